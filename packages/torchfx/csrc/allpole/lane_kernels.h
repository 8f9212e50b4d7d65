// All-pole recursions of first and second order with coefficients for each sample, a channel in each lane.
#ifndef TORCHFX_ALLPOLE_LANE_KERNELS_H
#define TORCHFX_ALLPOLE_LANE_KERNELS_H

#include <stdint.h>

#include "support/dispatch.h"

namespace torchfx {

constexpr int most_lanes = 8;
constexpr int most_lane_order = 2;

// Channels side by side; two lanes may be the same channel. `count` is a multiple of the lanes.
template <class Sample, class Coefficient>
struct AllpoleLanes {
    const Sample* x[most_lanes];
    const Coefficient* a[most_lanes];  // (count, order)
    Sample* y[most_lanes];
    double* past;  // (order, lanes): outputs before, latest first; on return the last ones
    int64_t count;
};

template <class Sample, class Coefficient>
struct AllpoleLanesGradient {
    const Sample* grad_y[most_lanes];
    const Coefficient* a[most_lanes];
    const Sample* y[most_lanes];  // readable from `lanes` samples before the first
    double* pending;              // (order, lanes): as in AllpoleGradient
    Sample* grad_x[most_lanes];
    Coefficient* grad_a[most_lanes];
    bool want_x, want_a;
    int64_t count;
};

template <class Sample, class Coefficient>
struct AllpoleLaneKernel {
    // By order; 0 is empty.
    void (*forward[most_lane_order + 1])(const AllpoleLanes<Sample, Coefficient>&);
    void (*backward[most_lane_order + 1])(const AllpoleLanesGradient<Sample, Coefficient>&);
};

struct AllpoleLaneKernels {
    int lanes;
    AllpoleLaneKernel<float, float> f32_f32;  // samples, coefficients
    AllpoleLaneKernel<float, double> f32_f64;
    AllpoleLaneKernel<double, float> f64_f32;
    AllpoleLaneKernel<double, double> f64_f64;

    const AllpoleLaneKernel<float, float>& of(float, float) const { return f32_f32; }
    const AllpoleLaneKernel<float, double>& of(float, double) const { return f32_f64; }
    const AllpoleLaneKernel<double, float>& of(double, float) const { return f64_f32; }
    const AllpoleLaneKernel<double, double>& of(double, double) const { return f64_f64; }
};

TORCHFX_DECLARE_KERNELS(AllpoleLaneKernels, allpole_lane_kernels)

}  // namespace torchfx

#endif
