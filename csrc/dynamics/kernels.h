// Detectors and static curves of dynamics processors, on tiles of doubles, and sliding maxima of samples.
#ifndef TORCHFX_DYNAMICS_KERNELS_H
#define TORCHFX_DYNAMICS_KERNELS_H

#include <stdint.h>

#include "support/dispatch.h"

namespace torchfx {

constexpr int most_smoothed = 4;  // channels that a smoother takes at a time: their recursions overlap

// y[t] = y[t-1] + c (x[t] - y[t-1]) with c = rise where x[t] > y[t-1], else fall; both in [0, 1].
struct Smoothed {
    double rise, fall;
    double y;         // the one before; on return the last one
    double* samples;  // in: x, out: y
};

// The static curve in dB: with o = level - threshold and k(o) = 0 below the knee, o above it and a parabola within,
// max(above k(o) + below k(-o), lowest).
struct GainCurve {
    double threshold, above, below, knee, lowest, makeup;
};

struct DynamicsKernels {
    // Indexed by the number of channels; 0 is empty.
    void (*smooth[most_smoothed + 1])(Smoothed*, int64_t count);
    // Samples become factors, 10^((y + makeup) / 20): y are the gains that the curve asks for at their levels, smoothed.
    // Levels end at -300 dB. A vector's room behind the samples is written, too.
    void (*gain[most_smoothed + 1])(const GainCurve*, Smoothed*, int64_t count);
    // samples[t] becomes the largest of samples[t ... t + window - 1], a NaN where there is one.
    void (*maximum_f32)(float* samples, int64_t count, int64_t window);
    void (*maximum_f64)(double* samples, int64_t count, int64_t window);
    void maximum(float* samples, int64_t count, int64_t window) const { maximum_f32(samples, count, window); }
    void maximum(double* samples, int64_t count, int64_t window) const { maximum_f64(samples, count, window); }
};

TORCHFX_DECLARE_KERNELS(DynamicsKernels, dynamics_kernels)

}  // namespace torchfx

#endif
