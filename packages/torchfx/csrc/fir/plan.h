// Which way to convolve, decided by measured cost.
#ifndef TORCHFX_FIR_PLAN_H
#define TORCHFX_FIR_PLAN_H

#include <cstdint>

namespace torchfx {

struct FirPlan {
    int64_t fft_size;  // 0: sum directly
    int threads;
};

struct FirShape {
    int64_t channels;
    int64_t results;  // of each channel
    int64_t filter_length;
    int64_t rows;  // of filters
};

FirPlan plan_fir(const FirShape& shape, int threads);

// Samples at the start of every tile that only serve as history: filter_length - 1, in whole vectors of any
// instruction set.
int64_t fir_history(int64_t filter_length);

// Transforms up to this size stay in one core's cache and run one per thread; larger ones are shared by all.
constexpr int64_t largest_private_fft = 1 << 14;

}  // namespace torchfx

#endif
