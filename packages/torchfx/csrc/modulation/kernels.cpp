#include "modulation/kernels.h"

#include <algorithm>

#include "support/functions.h"
#include "support/transpose.h"
#include "support/vec.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

// body(t, the sines of samples start + t on) for whole vectors.
template <class Body>
TORCHFX_INLINE void for_sines(const Oscillator& of, int64_t start, int64_t count, Body&& body) {
    double lanes[VD];
    for (int i = 0; i < VD; ++i) lanes[i] = i;
    const vd coarse = set1(of.coarse), fine = set1(of.fine), phase = set1(of.phase);
    for (int64_t t = 0; t < count; t += VD) {
        const vd n = load(lanes) + set1(static_cast<double>(start + t)), turns = coarse * n;
        body(t, sine_of_turns(phase + ((turns - rounded(turns)) + fine * n)));
    }
}

void gains(const Oscillator& of, int64_t start, int64_t count, double middle, double depth, double* factors) {
    for_sines(of, start, count, [&](int64_t t, vd sine) TORCHFX_INLINE_LAMBDA {
        store(factors + t, fma(set1(depth), sine, set1(middle)));
    });
}

// A delay d is f samples less than a whole number: of d alone, as a place in the signal has fewer digits behind the point.
void delays(const Oscillator& of, int64_t start, int64_t count, const SwingingDelay& swing, double wet, DelayTaps* taps) {
    double whole[modulation_tile];
    const vd half = set1(0.5 * wet), two = set1(2.0), three = set1(3.0), five = set1(5.0);
    for_sines(of, start, count, [&](int64_t t, vd sine) TORCHFX_INLINE_LAMBDA {
        const vd swung = fma(set1(swing.depth), sine, set1(swing.centre));
        // In this order a NaN, of a phase that is one, becomes the least delay.
        const vd delay = min_of(max_of(swung, set1(swing.least)), set1(swing.most)), near = rounded(delay);
        const vd ceiling = near < delay ? near + set1(1.0) : near, f = ceiling - delay, scaled = half * f;
        store(whole + t, ceiling);
        store(taps->weights[0] + t, scaled * (f * (two - f) - set1(1.0)));
        store(taps->weights[1] + t, fma(scaled * f, three * f - five, set1(wet)));
        store(taps->weights[2] + t, scaled * (f * (two + two - three * f) + set1(1.0)));
        store(taps->weights[3] + t, scaled * f * (f - set1(1.0)));
    });
    for (int64_t t = 0; t < count; ++t) taps->whole[t] = static_cast<int32_t>(whole[t]);
}

template <class Sample>
TORCHFX_INLINE double between(const Sample* x, int64_t t, const DelayTaps& taps) {
    const auto& w = taps.weights;
    const Sample* at = x + t - taps.whole[t];
    const double early = plus_product(w[0][t], static_cast<double>(at[-1]), w[1][t] * static_cast<double>(at[0]));
    const double late = plus_product(w[2][t], static_cast<double>(at[1]), w[3][t] * static_cast<double>(at[2]));
    return early + late;
}

template <class Sample>
constexpr int at_once = sizeof(decltype(load(static_cast<const Sample*>(nullptr)))) / sizeof(Sample);

// The same of samples t to t + at_once - 1. A sample's four taps lie in a row, which one load takes: half the time of single
// taps, and Clang would gather those with AVX-512, which took longer still (Zen 4).
template <class Sample>
TORCHFX_INLINE void between(const Sample* x, int64_t t, const DelayTaps& taps, double (&sums)[at_once<Sample>]) {
    const auto& w = taps.weights;
    const Sample* rows[at_once<Sample>];
    for (int i = 0; i < at_once<Sample>; ++i) rows[i] = x + t + i - taps.whole[t + i];
    decltype(load(x)) seen[4];
    load_four(rows, -1, seen);
    Sample tap[4][at_once<Sample>];
    for (int j = 0; j < 4; ++j) store(tap[j], seen[j]);
    for (int i = 0; i < at_once<Sample>; i += VD) {
        const auto product = [&](int j) TORCHFX_INLINE_LAMBDA { return load(w[j] + t + i) * load_samples(tap[j] + i); };
        const vd early = fma(load(w[0] + t + i), load_samples(tap[0] + i), product(1));
        const vd late = fma(load(w[2] + t + i), load_samples(tap[2] + i), product(3));
        store(sums + i, early + late);
    }
}

template <class Sample>
void interpolate(const Sample* x, int64_t count, double dry, const DelayTaps& taps, Sample* TORCHFX_RESTRICT y) {
    constexpr int n = at_once<Sample>;
    int64_t t = 0;
    for (; t + n <= count; t += n) {
        double v[n];
        between(x, t, taps, v);
        for (int i = 0; i < n; i += VD) store_samples(y + t + i, fma(set1(dry), load_samples(x + t + i), load(v + i)));
    }
    for (; t < count; ++t)
        y[t] = static_cast<Sample>(plus_product(dry, static_cast<double>(x[t]), between(x, t, taps)));
}

// The taps reach w[t] itself at the least delay alone, where its weight is 0.
template <class Sample>
void feed_back(Sample* w, int64_t count, double dry, double wet, double feedback, const DelayTaps& taps,
               Sample* TORCHFX_RESTRICT y) {
    constexpr int n = at_once<Sample>;
    for (int64_t t = 0; t < count; t += n) {
        const int64_t end = t + n < count ? t + n : count;
        int32_t least = taps.whole[t];
        for (int64_t i = t; i < end; ++i) least = taps.whole[i] < least ? taps.whole[i] : least;
        if (end - t == n && least > n + 1) {  // none of these samples is another one's tap
            double sums[n];
            between(w, t, taps, sums);
            for (int i = 0; i < n; i += VD) {
                const vd x = load_samples(w + t + i), v = load(sums + i);
                store_samples(w + t + i, fma(set1(feedback), v, x));
                store_samples(y + t + i, fma(set1(dry), x, set1(wet) * v));
            }
            continue;
        }
        for (int64_t i = t; i < end; ++i) {
            const double x = static_cast<double>(w[i]), v = between(w, i, taps);
            w[i] = static_cast<Sample>(plus_product(feedback, v, x));
            y[i] = static_cast<Sample>(plus_product(dry, x, wet * v));
        }
    }
}

// (tan(pi f) - 1) / (tan(pi f) + 1) is tan(pi (f - 1/4)).
void coefficients(const Oscillator& of, int64_t start, int64_t count, double centre, double octaves, double highest,
                  double* a) {
    for_sines(of, start, count, [&](int64_t t, vd sine) TORCHFX_INLINE_LAMBDA {
        const vd swing = min_of(set1(1000.0), max_of(set1(-1000.0), set1(octaves) * sine));
        const vd corner = min_of(set1(highest), set1(centre) * exp2_of<double>(swing)) * set1(0.5), eighth = set1(0.125);
        store(a + t, sine_of_turns(corner - eighth) / sine_of_turns(corner + eighth));
    });
}

// y = a x + s, and s becomes x - a y: sample by sample, a stage after the other, so that their recursions overlap.
void allpass(double* const* rows, int64_t count, const double* a, int64_t stages, double* state, double dry, double wet) {
    for (int64_t t = 0; t < count; t += VD, a += VD) {
        const double* from[VD];
        for (int i = 0; i < VD; ++i) from[i] = rows[i] + t;
        vd x[VD], v[VD];
        load_transposed(from, x);
        for (int i = 0; i < VD; ++i) v[i] = x[i];
        const auto run = [&](int n) TORCHFX_INLINE_LAMBDA {
            for (int64_t k = 0; k < stages; ++k) {
                vd s = load(state + k * VD);
                TORCHFX_UNROLL
                for (int i = 0; i < n; ++i) {
                    const vd factor = set1(a[i]), y = fma(factor, v[i], s);
                    s = fnma(factor, y, v[i]);
                    v[i] = y;
                }
                store(state + k * VD, s);
            }
        };
        if (count - t >= VD) run(VD);
        else run(static_cast<int>(count - t));
        for (int i = 0; i < VD; ++i) v[i] = fma(set1(dry), x[i], set1(wet) * v[i]);
        transpose(v);
        for (int i = 0; i < VD; ++i) store(rows[i] + t, v[i]);
    }
}

// What the filters make of an input u is a^stages u + rest, with `rest` from their states alone. So u = x + feedback (a^stages
// u + rest) is solved without a delay in the loop.
void allpass_loop(double* const* rows, int64_t count, const double* a, int64_t stages, double* state, double dry, double wet,
                  double feedback) {
    for (int64_t t = 0; t < count; t += VD) {
        const double* from[VD];
        for (int i = 0; i < VD; ++i) from[i] = rows[i] + t;
        vd x[VD], v[VD] = {};
        load_transposed(from, x);
        for (int64_t i = 0; i < std::min<int64_t>(VD, count - t); ++i) {
            const vd factor = set1(a[t + i]);
            vd rest = set1(0.0);
            double through = feedback;
            for (int64_t k = 0; k < stages; ++k) {
                rest = fma(factor, rest, load(state + k * VD));
                through *= a[t + i];
            }
            v[i] = fma(set1(feedback), rest, x[i]) / set1(1 - through);
            for (int64_t k = 0; k < stages; ++k) {
                const vd y = fma(factor, v[i], load(state + k * VD));
                store(state + k * VD, fnma(factor, y, v[i]));
                v[i] = y;
            }
        }
        for (int i = 0; i < VD; ++i) v[i] = fma(set1(dry), x[i], set1(wet) * v[i]);
        transpose(v);
        for (int i = 0; i < VD; ++i) store(rows[i] + t, v[i]);
    }
}

}  // namespace

extern const ModulationKernels modulation_kernels = {
    gains,        delays,  interpolate<float>, interpolate<double>, feed_back<float>, feed_back<double>,
    coefficients, allpass, allpass_loop,       VD,
};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
