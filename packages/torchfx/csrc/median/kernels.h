// Sliding medians, a channel in each lane.
#ifndef TORCHFX_MEDIAN_KERNELS_H
#define TORCHFX_MEDIAN_KERNELS_H

#include <stdint.h>

#include "support/dispatch.h"

namespace torchfx {

template <class Sample>
struct MedianSampleKernels {
    int64_t lanes;
    // For `channels` <= lanes channels, y[t] becomes the median of x[t] ... x[t + window - 1]. `room` has lanes * window
    // samples.
    void (*median)(const Sample* x, int64_t x_channel_stride, int64_t x_time_stride, Sample* y, int64_t y_channel_stride,
                   int64_t channels, int64_t samples, int64_t window, Sample* room);
};

struct MedianKernels {
    MedianSampleKernels<float> of_floats;
    MedianSampleKernels<double> of_doubles;
    const MedianSampleKernels<float>& of(float) const { return of_floats; }
    const MedianSampleKernels<double>& of(double) const { return of_doubles; }
};

TORCHFX_DECLARE_KERNELS(MedianKernels, median_kernels)

}  // namespace torchfx

#endif
