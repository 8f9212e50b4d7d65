// A transform in three steps that threads can share: the root's butterfly by columns, its children, and the
// root's inverse by columns. What fills the buffer and what reads it rides along while a part is in cache.
#ifndef TORCHFX_FFT_PARALLEL_H
#define TORCHFX_FFT_PARALLEL_H

#include <algorithm>
#include <cstdint>

#include "fft/kernels.h"
#include "support/pool.h"

namespace torchfx {

struct ParallelFft {
    const FftKernels& kernels;
    FftRoots roots;
    int64_t size;

    // fill(begin, end) writes values [begin, end) of the buffer, whole vectors.
    template <class Fill>
    void forward_root(double* data, int threads, Fill&& fill) const {
        for_columns(threads, [&](int64_t first, int64_t last) {
            for_rows(first, last, fill);
            kernels.forward_pass(data, size, first, last);
        });
    }

    // body(offset of the child in the buffer, its size, its number)
    template <class Body>
    void for_children(int threads, Body&& body) const {
        const int radix = kernels.root_radix(size);
        const int64_t child_size = size / radix;
        parallel_for(radix, threads, [&](int64_t child) { body(2 * child * child_size, child_size, child); });
    }

    // use(begin, end) reads values [begin, end) of the result.
    template <class Use>
    void inverse_root(double* data, int threads, Use&& use) const {
        for_columns(threads, [&](int64_t first, int64_t last) {
            kernels.inverse_pass(data, size, first, last);
            for_rows(first, last, use);
        });
    }

private:
    // As many columns at a time as a first-level cache holds: 2048 values, 32 KiB.
    template <class Body>
    void for_columns(int threads, Body&& body) const {
        const int radix = kernels.root_radix(size);
        const int64_t columns = size / radix / kernels.lanes;
        const int64_t part = 2048 / radix / kernels.lanes;
        parallel_for((columns + part - 1) / part, threads, [&](int64_t i) {
            body(i * part, std::min(columns, (i + 1) * part));
        });
    }

    // The ranges of values that make up some columns.
    template <class Body>
    void for_rows(int64_t first_column, int64_t last_column, Body&& body) const {
        const int64_t row = size / kernels.root_radix(size);
        for (int64_t start = 0; start < size; start += row)
            body(start + first_column * kernels.lanes, start + last_column * kernels.lanes);
    }
};

}  // namespace torchfx

#endif
