// What a call of the resampling operator is asked for.
#ifndef TORCHFX_RESAMPLE_JOB_H
#define TORCHFX_RESAMPLE_JOB_H

#include <cstdint>

namespace torchfx {

// Output m of a channel is the sum over k of taps[(m * down + origin) mod up][k] x[floor((m * down + origin) / up) - k].
struct ResampleJob {
    int32_t dtype;
    const void* x;
    int64_t x_channel_stride, x_time_stride, samples;
    void* y;
    int64_t y_channel_stride, channels, length;
    const double* taps;  // (up, n_taps)
    int64_t up, n_taps, down, origin;
    int threads;
};

inline int64_t floor_division(int64_t a, int64_t b) { return a / b - (a % b < 0); }
inline int64_t rounded_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

}  // namespace torchfx

#endif
