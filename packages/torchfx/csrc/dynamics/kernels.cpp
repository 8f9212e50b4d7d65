#include "dynamics/kernels.h"

#include "support/functions.h"
#include "support/vec.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

// Recursions of two channels share a vector, in lanes 0 and 1, and a row: a sample of one, then of the other.
constexpr int row_channels = VD > 1 ? 2 : 1;

#if TORCHFX_VD == 1
TORCHFX_INLINE void interleave(vd a, vd, vd (&row)[1]) { row[0] = a; }
TORCHFX_INLINE void separate(const vd (&row)[1], vd (&channels)[1]) { channels[0] = row[0]; }
TORCHFX_INLINE vd load_step(const double* p) { return *p; }
#else
#if TORCHFX_VD == 2
TORCHFX_INLINE void interleave(vd a, vd b, vd (&row)[2]) {
    row[0] = __builtin_shufflevector(a, b, 0, 2);
    row[1] = __builtin_shufflevector(a, b, 1, 3);
}
TORCHFX_INLINE void separate(const vd (&row)[2], vd (&channels)[2]) { interleave(row[0], row[1], channels); }
TORCHFX_INLINE vd load_step(const double* p) { return load(p); }
#elif TORCHFX_VD == 4
TORCHFX_INLINE void interleave(vd a, vd b, vd (&row)[2]) {
    row[0] = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    row[1] = __builtin_shufflevector(a, b, 2, 6, 3, 7);
}
TORCHFX_INLINE void separate(const vd (&row)[2], vd (&channels)[2]) {
    channels[0] = __builtin_shufflevector(row[0], row[1], 0, 2, 4, 6);
    channels[1] = __builtin_shufflevector(row[0], row[1], 1, 3, 5, 7);
}
TORCHFX_INLINE vd load_step(const double* p) { return (vd)_mm256_broadcast_pd((const __m128d*)p); }
#else
TORCHFX_INLINE void interleave(vd a, vd b, vd (&row)[2]) {
    row[0] = __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
    row[1] = __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}
TORCHFX_INLINE void separate(const vd (&row)[2], vd (&channels)[2]) {
    channels[0] = __builtin_shufflevector(row[0], row[1], 0, 2, 4, 6, 8, 10, 12, 14);
    channels[1] = __builtin_shufflevector(row[0], row[1], 1, 3, 5, 7, 9, 11, 13, 15);
}
TORCHFX_INLINE vd load_step(const double* p) { return (vd)_mm512_maskz_broadcast_f64x2(0xff, _mm_loadu_pd(p)); }
#endif
#endif

// Runs the recursions of N channels on read(i, t), a vector of channel i from sample t on, and gives what they make of it,
// to be multiplied by `unit` or -unit, to write(i, t, vector, that factor).
//
// The larger coefficient gives the larger result where x > y and the smaller one elsewhere: where it is `rise`, the
// larger of both results is the one asked for, and no comparison of x with y waits for y. Where it is `fall`, signs are
// turned round. The recursion waits for itself, 8 cycles a sample: what is computed on vectors meanwhile, a vector before
// it and two behind it, costs little. It runs in whole vectors, too, of which two lanes count: next to AVX-512's, shorter
// ones have one port of the processor, and the recursions of 4 channels took 25 cycles a sample in the place of 11.
template <int N, class Read, class Write>
TORCHFX_INLINE void smoothed_by(Smoothed* of, int64_t count, double unit, Read&& read, Write&& write) {
    constexpr int R = row_channels, rows = (N + R - 1) / R, step_size = R * VD;
    double sign[N], risen[rows][4 * step_size], fallen[rows][2 * step_size];
    vd y[rows], rise[rows], fall[rows], rise_left[rows], fall_left[rows];
    const auto of_both = [](double a, double b) TORCHFX_INLINE_LAMBDA {
        vd row[R];
        interleave(set1(a), set1(b), row);
        return row[0];
    };
    for (int i = 0; i < N; ++i) sign[i] = of[i].rise >= of[i].fall ? 1 : -1;
    for (int r = 0; r < rows; ++r) {
        const int i = R * r, j = i + R <= N ? i + R - 1 : i;  // the last row may hold one channel twice
        rise[r] = of_both(sign[i] * of[i].rise, sign[j] * of[j].rise);
        fall[r] = of_both(sign[i] * of[i].fall, sign[j] * of[j].fall);
        rise_left[r] = of_both(1 - of[i].rise, 1 - of[j].rise);
        fall_left[r] = of_both(1 - of[i].fall, 1 - of[j].fall);
        y[r] = of_both(sign[i] * of[i].y, sign[j] * of[j].y);
    }
    const auto at = [](int64_t t, int vectors) TORCHFX_INLINE_LAMBDA { return t % (vectors * VD) * R; };
    const auto read_all = [&](int64_t t) TORCHFX_INLINE_LAMBDA {
        for (int r = 0; r < rows; ++r) {
            vd row[R];
            const vd x = read(R * r, t);
            interleave(x, R * (r + 1) <= N && R > 1 ? read(R * r + 1, t) : x, row);
            for (int k = 0; k < R; ++k) {
                store(risen[r] + at(t, 4) + k * VD, rise[r] * row[k]);
                store(fallen[r] + at(t, 2) + k * VD, fall[r] * row[k]);
            }
        }
    };
    const auto write_all = [&](int64_t t) TORCHFX_INLINE_LAMBDA {
        for (int r = 0; r < rows; ++r) {
            vd row[R], channels[R];
            for (int k = 0; k < R; ++k) row[k] = load(risen[r] + at(t, 4) + k * VD);
            separate(row, channels);
            for (int i = R * r; i < N && i < R * (r + 1); ++i) write(i, t, channels[i % R], set1(sign[i] * unit));
        }
    };
    const auto step = [&](int64_t t, int64_t j) TORCHFX_INLINE_LAMBDA {
        for (int r = 0; r < rows; ++r) {
            double *const up = risen[r] + at(t, 4) + R * j, *const down = fallen[r] + at(t, 2) + R * j;
            y[r] = max_of(fma(rise_left[r], y[r], load_step(up)), fma(fall_left[r], y[r], load_step(down)));
            memcpy(up, &y[r], R * sizeof(double));
        }
    };
    const int64_t last = (count - 1) / VD * VD;  // where the last vector begins
    read_all(0);
    for (int64_t t = 0; t < last; t += VD) {
        if (t >= 2 * VD) write_all(t - 2 * VD);
        read_all(t + VD);
        TORCHFX_UNROLL
        for (int j = 0; j < VD; ++j) step(t, j);
    }
    for (int64_t j = 0; j < count - last; ++j) step(last, j);
    for (int64_t t = last < 2 * VD ? 0 : last - 2 * VD; t <= last; t += VD) write_all(t);
    for (int i = 0; i < N; ++i) {
        double both[VD];
        store(both, y[i / R]);
        of[i].y = sign[i] * both[i % R];
    }
}

template <int N>
void smooth(Smoothed* of, int64_t count) {
    smoothed_by<N>(
        of, count, 1, [&](int i, int64_t t) TORCHFX_INLINE_LAMBDA { return load(of[i].samples + t); },
        [&](int i, int64_t t, vd y, vd sign) TORCHFX_INLINE_LAMBDA { store(of[i].samples + t, y * sign); });
}

constexpr uint64_t magnitude = 0x7fffffffffffffff;
constexpr double per_octave = 6.020599913279624;  // dB, 20 log10(2)

// The gain in dB that a curve asks for at the level of each sample. Levels are counted in octaves from the knee's lower end.
template <class Sample>
struct Curve {
    vd start, knee, bend, both, negative, below, offset, lowest;

    Curve() = default;
    explicit Curve(const GainCurve& of) {
        const double each = (of.above + of.below) * per_octave;
        start = set1((of.threshold - of.knee / 2) / per_octave);
        knee = set1(of.knee / per_octave);
        bend = set1(of.knee > 0 ? each * per_octave / (2 * of.knee) : 0.0);
        both = set1(each);
        negative = set1(-each);
        below = set1(of.below * per_octave);
        offset = set1(of.below * of.knee / 2);
        lowest = set1(of.lowest);
    }

    // k(o) is a parabola over the knee, and straight behind it; k(-o) = k(o) - o.
    TORCHFX_INLINE_MEMBER vd operator()(vd sample) const {
        const vd x = from_bits(bits_of(sample) & set_bits(magnitude)), zero = set1(0.0);
        const vd level = log2_of<Sample>(max_of(set1(1e-15), x)) - fma(x, zero, start);  // NaN where x is NaN or infinite
        const vd over = max_of(zero, level), bent = min_of(knee, over);
        const vd k = fma(fma(bend, bent, negative), bent, fma(both, over, offset));
        return max_of(lowest, fnma(below, level, k));
    }
};

// 2^octaves; a NaN stays one.
template <class Sample>
TORCHFX_INLINE vd factor_of(vd octaves) {
    const vd within = min_of(set1(1000.0), max_of(set1(-1000.0), octaves));
    return octaves == octaves ? exp2_of<Sample>(within) : octaves;
}

template <int N, class Sample>
void gain(const GainCurve* curves, Smoothed* of, const Sample* const* keys, int64_t count) {
    Curve<Sample> curve[N];
    vd makeup[N];
    for (int i = 0; i < N; ++i) {
        curve[i] = Curve<Sample>(curves[i]);
        makeup[i] = set1(curves[i].makeup / per_octave);
    }
    smoothed_by<N>(
        of, count, 1 / per_octave,
        [&](int i, int64_t t) TORCHFX_INLINE_LAMBDA { return curve[i](load_samples(keys[i] + t)); },
        [&](int i, int64_t t, vd y, vd scale) TORCHFX_INLINE_LAMBDA {
            store(of[i].samples + t, factor_of<Sample>(fma(y, scale, makeup[i])));
        });
}

// The gain in dB of a transfer curve at a level in dB: `points` rows of level, gain, slope to the right of it, and the
// bend's share of the distance to the end of its knee, squared.
TORCHFX_INLINE vd transferred(const double* points, int64_t count, vd level, vd half_knee) {
    vd straight = set1(points[1]), rounding = set1(0.0);
    for (int64_t n = 0; n < count; ++n, points += 4) {
        const vd over = level - set1(points[0]), size = from_bits(bits_of(over) & set_bits(magnitude));
        const vd within = max_of(set1(0.0), half_knee - size);
        straight = over > set1(0.0) ? fma(set1(points[2]), over, set1(points[1])) : straight;
        rounding = fma(within * within, set1(points[3]), rounding);
    }
    return straight + rounding;
}

template <int N, class Sample>
void compand(const double* const* settings, int64_t points, Smoothed* of, const Sample* const* keys, int64_t count) {
    smoothed_by<N>(
        of, count, 1,
        [&](int i, int64_t t) TORCHFX_INLINE_LAMBDA {
            return from_bits(bits_of(load_samples(keys[i] + t)) & set_bits(magnitude));
        },
        [&](int i, int64_t t, vd y, vd sign) TORCHFX_INLINE_LAMBDA {
            const vd size = y * sign, level = log2_of<double>(max_of(set1(1e-15), size)) * set1(per_octave);
            const vd gain = transferred(settings[i] + 3, points, level, set1(settings[i][2]));
            // NaN where the level is NaN or infinite.
            store(of[i].samples + t, factor_of<Sample>(fma(size, set1(0.0), gain * set1(1 / per_octave))));
        });
}

// How many samples of either precision a vector holds.
template <class Sample> struct Lanes;
template <> struct Lanes<float> { static constexpr int count = VF; };
template <> struct Lanes<double> { static constexpr int count = VD; };

TORCHFX_INLINE float magnitude_of(float v) { return v < 0 ? -v : v; }
TORCHFX_INLINE double magnitude_of(double v) { return v < 0 ? -v : v; }
#if defined(TORCHFX_VECTORS)
TORCHFX_INLINE vf magnitude_of(vf v) { return v < set1(0.0f) ? -v : v; }
TORCHFX_INLINE vd magnitude_of(vd v) { return v < set1(0.0) ? -v : v; }
#endif

template <class V>
TORCHFX_INLINE V larger(V a, V b) { return a > b ? a : (a == a ? b : a); }

template <class Sample>
void raise(const Sample* x, int64_t count, Sample* to) {
    int64_t t = 0;
    for (; t + Lanes<Sample>::count <= count; t += Lanes<Sample>::count)
        store(to + t, larger(magnitude_of(load(x + t)), load(to + t)));
    for (; t < count; ++t) to[t] = larger(magnitude_of(x[t]), to[t]);
}

template <class Sample>
TORCHFX_INLINE void put_larger(Sample* at, const Sample* other, int64_t count) {
    int64_t t = 0;
    for (; t + Lanes<Sample>::count <= count; t += Lanes<Sample>::count)
        store(at + t, larger(load(at + t), load(other + t)));
    for (; t < count; ++t) at[t] = larger(at[t], other[t]);
}

// Maxima over 1, 2, 4, ... samples, each of two of the maxima before: all that is written lies before what is read next.
template <class Sample>
void maximum(Sample* samples, int64_t count, int64_t window) {
    int64_t width = 1;
    for (; 2 * width <= window; width *= 2) put_larger(samples, samples + width, count + window - 2 * width);
    if (width < window) put_larger(samples, samples + window - width, count);
}

template <class Sample>
void scale(const Sample* x, const double* factors, int64_t count, Sample* y) {
    int64_t t = 0;
    for (; t + VD <= count; t += VD) store_samples(y + t, load_samples(x + t) * load(factors + t));
    for (; t < count; ++t) y[t] = static_cast<Sample>(x[t] * factors[t]);
}

template <int N, class Sample>
void excess(const double* thresholds, Smoothed* of, const Sample* const* peaks, int64_t count) {
    vd threshold[N];
    for (int i = 0; i < N; ++i) threshold[i] = set1(thresholds[i]);
    smoothed_by<N>(
        of, count, 1,
        [&](int i, int64_t t) TORCHFX_INLINE_LAMBDA {
            return set1(1.0) - threshold[i] / max_of(threshold[i], load_samples(peaks[i] + t));
        },
        [&](int i, int64_t t, vd y, vd sign) TORCHFX_INLINE_LAMBDA { store(of[i].samples + t, y * sign); });
}

template <class Sample>
void limit(const Sample* x, const double* factors, int64_t count, Sample bound, Sample* y) {
    scale(x, factors, count, y);
    // Comparisons with a NaN are false, so it stays.
    for (int64_t t = 0; t < count; ++t) {
        const Sample raised = y[t] < -bound ? -bound : y[t];
        y[t] = raised > bound ? bound : raised;
    }
}

double average(double* taken, int64_t ahead, int64_t count, double sum, double* factors) {
    double* const latest = taken + ahead;
    double size = 1;
    while (size <= static_cast<double>(ahead)) size *= 2;
    for (int64_t t = 0; t < count; ++t) latest[t] = (latest[t] + 1.5 * size) - 1.5 * size;
    for (int64_t t = 0; t < count; ++t) factors[t] = latest[t] - taken[t];
    for (int64_t t = 0; t < count; ++t) {
        const double change = factors[t];
        factors[t] = sum;
        sum += change;
    }
    const double part = 1 / static_cast<double>(ahead + 1);
    for (int64_t t = 0; t < count; ++t) factors[t] = 1 - (factors[t] + latest[t]) * part;
    return sum;
}

#define TORCHFX_SAMPLE_KERNELS(Sample)                                                                 \
    {raise<Sample>, maximum<Sample>,                                                                   \
     {nullptr, gain<1, Sample>, gain<2, Sample>, gain<3, Sample>, gain<4, Sample>},                    \
     {nullptr, compand<1, Sample>, compand<2, Sample>, compand<3, Sample>, compand<4, Sample>},        \
     scale<Sample>,                                                                                    \
     {nullptr, excess<1, Sample>, excess<2, Sample>, excess<3, Sample>, excess<4, Sample>},            \
     limit<Sample>}

}  // namespace

extern const DynamicsKernels dynamics_kernels = {
    {nullptr, smooth<1>, smooth<2>, smooth<3>, smooth<4>}, average,
    TORCHFX_SAMPLE_KERNELS(float), TORCHFX_SAMPLE_KERNELS(double),
};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
