// The roots of unity the FFT kernels multiply by, computed once and kept.
#ifndef TORCHFX_FFT_ROOTS_H
#define TORCHFX_FFT_ROOTS_H

#include <cstdint>
#include <memory>

#include "fft/kernels.h"

namespace torchfx {

class FftRootTable {
public:
    // The first powers for `lane_blocks` blocks, all seven for `blocks`, and in any case what `smaller` has,
    // the table this one replaces, or null.
    FftRootTable(int64_t lane_blocks, int64_t blocks, const FftRootTable* smaller);
    FftRoots view() const { return {re_.get(), im_.get(), powers_.get()}; }
    bool serves(int64_t lane_blocks, int64_t blocks) const {
        return lane_blocks <= lane_blocks_ && blocks <= blocks_;
    }

private:
    int64_t lane_blocks_, blocks_;
    std::unique_ptr<double[]> re_, im_, powers_;
    const FftRootTable* smaller_;  // kept in reach, so that a leak checker sees it is
};

// A table for transforms of up to `size` values by kernels with that many lanes, shared between calls and
// threads. Throws std::bad_alloc.
std::shared_ptr<const FftRootTable> fft_roots(int64_t size, int lanes);

}  // namespace torchfx

#endif
