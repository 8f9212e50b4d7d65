// The inner loops of resampling, one table per instruction set.
#ifndef TORCHFX_RESAMPLE_KERNELS_H
#define TORCHFX_RESAMPLE_KERNELS_H

#include <stdint.h>

#include "support/dispatch.h"

namespace torchfx {

// Outputs that share each load of an input: twelve sums (two vectors each) hide the latency of multiply-adds and fit 16
// registers; 11 % faster than four outputs, and eight are no faster (AVX-512, 188 taps).
constexpr int resample_group = 6;

// One stretch of one channel. Its input `first` is the tile's first row.
struct ResampleLane {
    const void* x;
    int64_t first;
    void* y;        // its first output
    int64_t count;  // how many outputs it has
};

// A tile is rows of `lanes` doubles: one instant of as many stretches.
struct ResampleKernels {
    int lanes;  // of a full tile: two vectors; half as many are one vector

    // tile[i] <- input first + i of every lane, for i < count; 0 outside [0, length).
    void (*load)(const ResampleLane* lanes, int n_lanes, int32_t dtype, int64_t stride, int64_t length, int64_t count,
                 double* tile);
    // out[j] = sum over i < width of taps[i * resample_group + j] tile[i], for j < resample_group.
    void (*filter)(const double* tile, int n_lanes, const double* taps, int64_t width, double* out);
    // y[first + i] of every lane <- out[i], for i < count, as far as the lane has such outputs.
    void (*store)(const double* out, const ResampleLane* lanes, int n_lanes, int32_t dtype, int64_t first,
                  int64_t count);
};

TORCHFX_DECLARE_KERNELS(ResampleKernels, resample_kernels)

}  // namespace torchfx

#endif
