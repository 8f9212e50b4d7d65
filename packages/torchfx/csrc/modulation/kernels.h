// What an oscillator modulates: gains, delays and all-pass filters, on tiles.
#ifndef TORCHFX_MODULATION_KERNELS_H
#define TORCHFX_MODULATION_KERNELS_H

#include <stdint.h>

#include "support/dispatch.h"

namespace torchfx {

constexpr int64_t modulation_tile = 256;  // samples: whole vectors
constexpr int most_modulated = 8;         // channels that share an oscillator's work: a lane of any vector for each

// sin(2 pi p) with p = phase + (coarse + fine) n at sample n. Whole numbers of `coarse`, below 2^29, are exact.
struct Oscillator {
    double coarse, fine, phase;
};

// Delays of centre + depth sin samples, within [least, most].
struct SwingingDelay {
    double centre, depth, least, most;
};

// A delay of each sample t as four taps, of the samples t - whole[t] + k - 1 for k < 4.
struct DelayTaps {
    double weights[4][modulation_tile];
    int32_t whole[modulation_tile];
};

// A line that feeds itself: w[t] = w[t] + feedback v[t] and y[t] = dry w[t] + wet v[t], by w[t] as it was; v is the taps' sum.
template <class Sample>
using FeedBack = void (*)(Sample* w, int64_t count, double dry, double wet, double feedback, const DelayTaps&, Sample* y);

template <class Sample>
using Interpolate = void (*)(const Sample* x, int64_t count, double dry, const DelayTaps&, Sample* y);

// Of samples start ... start + count - 1 of an oscillator; what is written for them is filled up to whole vectors.
struct ModulationKernels {
    // middle + depth sin
    void (*gains)(const Oscillator&, int64_t start, int64_t count, double middle, double depth, double* factors);
    // Catmull-Rom cubics, times `wet`.
    void (*delays)(const Oscillator&, int64_t start, int64_t count, const SwingingDelay&, double wet, DelayTaps*);
    // y[t] = dry x[t] + the taps' sum
    Interpolate<float> interpolate_floats;
    Interpolate<double> interpolate_doubles;
    FeedBack<float> feed_back_floats;
    FeedBack<double> feed_back_doubles;
    // Of all-pass filters with a corner of centre 2^(octaves sin) cycles per sample, at most `highest`.
    void (*coefficients)(const Oscillator&, int64_t start, int64_t count, double centre, double octaves, double highest,
                         double* a);
    // Filters (a + 1/z) / (1 + a/z), one behind the other: dry x + wet times what they make of x, in place, for `lanes`
    // rows of whole vectors. State: (stages, lanes).
    void (*allpass)(double* const* rows, int64_t count, const double* a, int64_t stages, double* state, double dry,
                    double wet);
    // The same of x + feedback times what they make of it, |feedback| < 1.
    void (*allpass_loop)(double* const* rows, int64_t count, const double* a, int64_t stages, double* state, double dry,
                         double wet, double feedback);
    int lanes;

    Interpolate<float> interpolate(float) const { return interpolate_floats; }
    Interpolate<double> interpolate(double) const { return interpolate_doubles; }
    FeedBack<float> feed_back(float) const { return feed_back_floats; }
    FeedBack<double> feed_back(double) const { return feed_back_doubles; }
};

TORCHFX_DECLARE_KERNELS(ModulationKernels, modulation_kernels)

}  // namespace torchfx

#endif
