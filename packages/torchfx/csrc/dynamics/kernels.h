// Detectors, static curves and gains of dynamics processors, on tiles.
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

template <class Sample>
struct DynamicsSampleKernels {
    // to[t] becomes the larger one of itself and |x[t]|, a NaN where one is a NaN.
    void (*raise)(const Sample* x, int64_t count, Sample* to);
    // samples[t] becomes the largest of samples[t ... t + window - 1], a NaN where there is one.
    void (*maximum)(Sample* samples, int64_t count, int64_t window);
    // Indexed by the number of keys, 0 is empty. The samples become factors, 10^((y + makeup) / 20): y are the gains that
    // the curves ask for at the levels of the keys, smoothed. Levels end at -300 dB. A vector's room behind keys and
    // samples is read and written, too.
    void (*gain[most_smoothed + 1])(const GainCurve*, Smoothed*, const Sample* const* keys, int64_t count);
    // The samples become the magnitudes of the keys, smoothed, and these the factors of transfer curves: for each channel
    // its own settings, as in torchfx_compand_forward. Otherwise as `gain`.
    void (*compand[most_smoothed + 1])(const double* const* settings, int64_t points, Smoothed*, const Sample* const* keys,
                                       int64_t count);
    void (*scale)(const Sample* x, const double* factors, int64_t count, Sample* y);
    // The samples become 1 - threshold / max(peak, threshold), smoothed. Otherwise as `gain`.
    void (*excess[most_smoothed + 1])(const double* thresholds, Smoothed*, const Sample* const* peaks, int64_t count);
    // y[t] = x[t] factors[t], within [-bound, bound]
    void (*limit)(const Sample* x, const double* factors, int64_t count, Sample bound, Sample* y);
};

struct DynamicsKernels {
    // Indexed by the number of channels; 0 is empty. A vector's room behind the samples is read and written, too.
    void (*smooth[most_smoothed + 1])(Smoothed*, int64_t count);
    // factors[t] is 1 less the mean of taken[t ... t + ahead]. The samples from `ahead` on, within [0, 1], are rounded to
    // multiples of 2^-52 times a power of two that is no smaller than ahead + 1: sums of them are exact. `sum` is that of
    // the first `ahead`; returned is that of the last.
    double (*average)(double* taken, int64_t ahead, int64_t count, double sum, double* factors);
    DynamicsSampleKernels<float> of_floats;
    DynamicsSampleKernels<double> of_doubles;
    const DynamicsSampleKernels<float>& of(float) const { return of_floats; }
    const DynamicsSampleKernels<double>& of(double) const { return of_doubles; }
};

TORCHFX_DECLARE_KERNELS(DynamicsKernels, dynamics_kernels)

}  // namespace torchfx

#endif
