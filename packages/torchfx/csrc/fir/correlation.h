// The gradient of a FIR filter's taps: a sum over all of the signal for each of a few lags.
#ifndef TORCHFX_FIR_CORRELATION_H
#define TORCHFX_FIR_CORRELATION_H

#include <cstdint>

#include "fir/kernels.h"
#include "support/rows.h"

namespace torchfx {

// result[r * result_stride + k] = sum over t and the channels c of row r of a[c / a_repeat][t] b[c][t + k], k < lags.
struct FirCorrelation {
    int64_t channels;
    FirSignal a;
    int64_t a_channel_stride;
    int64_t a_repeat;
    FirSignal b;
    int64_t b_channel_stride;
    Rows rows;
    double* result;
    int64_t result_stride;
    int64_t lags;
    int threads;
};

// The same on every run with as many threads. Throws std::bad_alloc before anything is written.
void correlate(const FirCorrelation& job);

}  // namespace torchfx

#endif
