// The inner loops of FIR filters, one table per instruction set.
#ifndef TORCHFX_FIR_KERNELS_H
#define TORCHFX_FIR_KERNELS_H

#include <stdint.h>

#include "support/dispatch.h"
#include "fft/kernels.h"

namespace torchfx {

// One channel as a tile is cut out of it: zero before 0, `length` samples, `tail_length` doubles that follow
// them, and zero again.
struct FirSignal {
    const void* data;  // float or double, by `dtype` (torchfx_dtype)
    int32_t dtype;
    int64_t stride;    // between samples, in elements
    int64_t length;
    const double* tail;
    int64_t tail_length;
};

// Where one channel's results go: `length` samples, then `tail_length` doubles. What lies beyond is dropped.
struct FirOutput {
    void* data;
    int32_t dtype;
    int64_t length;
    double* tail;
    int64_t tail_length;
};

// Up to so many taps, to convert each sample once for each of them takes less time than to write it to a tile.
constexpr int64_t few_taps = 4;

// Tiles are doubles in memory; vector v of a tile (`lanes` values) lies at tile[v * step].
struct FirKernels {
    int lanes;

    // tile <- signal[first .. first + count), count a multiple of `lanes`. Returns whether all are finite.
    bool (*load)(const FirSignal& signal, int64_t first, int64_t count, double* tile, int64_t step);
    // output[first .. first + count) <- tile, any count.
    void (*store)(const double* tile, int64_t step, const FirOutput& output, int64_t first, int64_t count);

    // out[i] = sum_k taps[k] in[i + n_taps - 1 - k] for i < count, a multiple of `lanes`.
    void (*filter)(const double* in, const double* taps, int64_t n_taps, double* out, int64_t count);
    // output[first + i] = sum_k taps[k] signal[first + origin + i - k] for i < count, a multiple of `lanes`: of at most
    // `few_taps` taps and `lanes`, and of contiguous samples that lie within signal and output.
    void (*filter_few)(const FirSignal& signal, int64_t origin, const double* taps, int64_t n_taps,
                       const FirOutput& output, int64_t first, int64_t count);
    // sum[k] += sum_i a[i] b[i + k] for k < lags and i < count, a multiple of `lanes`.
    void (*correlate)(const double* a, const double* b, int64_t count, double* sum, int64_t lags);

    // For not_finite.cpp. values <- the signs of the infinities among them, 0 for all others;
    // counts[i] <- how many of the first i values are not finite, i <= count.
    void (*take_signs)(double* values, int64_t count, int32_t* counts);
    // output[first + t] += what a window of inputs [t, t + window) with this balance of signs adds, t < count.
    void (*add_not_finite)(const double* balance, const int32_t* counts, int64_t window, const FirOutput& output,
                           int64_t first, int64_t count);

    const FftKernels* fft;  // of the same instruction set
};

TORCHFX_DECLARE_KERNELS(FirKernels, fir_kernels)

}  // namespace torchfx

#endif
