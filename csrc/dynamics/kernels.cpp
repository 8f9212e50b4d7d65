#include "dynamics/kernels.h"

#include "support/vec.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

// The larger coefficient gives the larger result where x > y and the smaller one elsewhere: where it is `rise`, the
// larger of both results is the one asked for, and no comparison of x with y waits for y. Where it is `fall`, signs are
// turned round.
template <int N>
struct Smoother {
    Smoothed* of;
    double sign[N], rise[N], fall[N], y[N];
    double* samples[N];

    TORCHFX_INLINE_MEMBER explicit Smoother(Smoothed* given) : of(given) {
        for (int i = 0; i < N; ++i) {
            sign[i] = of[i].rise >= of[i].fall ? 1 : -1;
            rise[i] = of[i].rise;
            fall[i] = of[i].fall;
            y[i] = sign[i] * of[i].y;
            samples[i] = of[i].samples;
        }
    }
    TORCHFX_INLINE_MEMBER void run(int64_t first, int64_t end) {
        for (int64_t t = first; t < end; ++t)
            for (int i = 0; i < N; ++i) {
                const double x = sign[i] * samples[i][t];
                const double risen = plus_product(1 - rise[i], y[i], rise[i] * x);
                const double fallen = plus_product(1 - fall[i], y[i], fall[i] * x);
                y[i] = risen > fallen ? risen : fallen;
                samples[i][t] = sign[i] * y[i];
            }
    }
    TORCHFX_INLINE_MEMBER void end() {
        for (int i = 0; i < N; ++i) of[i].y = sign[i] * y[i];
    }
};

template <int N>
void smooth(Smoothed* of, int64_t count) {
    Smoother<N> smoother(of);
    smoother.run(0, count);
    smoother.end();
}

#if defined(TORCHFX_VECTORS)
typedef uint64_t vu __attribute__((vector_size(8 * VD)));
TORCHFX_INLINE vu set_bits(uint64_t a) { return a - vu{}; }
#else
typedef uint64_t vu;
TORCHFX_INLINE vu set_bits(uint64_t a) { return a; }
#endif
TORCHFX_INLINE vu bits_of(vd v) { vu bits; memcpy(&bits, &v, sizeof bits); return bits; }
TORCHFX_INLINE vd from_bits(vu bits) { vd v; memcpy(&v, &bits, sizeof v); return v; }

constexpr uint64_t magnitude = 0x7fffffffffffffff, mantissa = 0x000fffffffffffff, one = 0x3ff0000000000000;
constexpr uint64_t root_half = 0x3fe6a09e667f3bcd;  // sqrt(1/2)
constexpr uint64_t integers = 0x4330000000000000;   // 2^52: its last bits count
constexpr double per_octave = 6.020599913279624;    // dB, 20 log10(2)

// log2 of normal numbers: 2^e m with m from sqrt(1/2) on, and log(m) = 2 artanh((m - 1) / (m + 1)) by its series.
TORCHFX_INLINE vd log2_of(vd v) {
    const vu shifted = bits_of(v) + set_bits(one - root_half);
    const vd e = from_bits((shifted >> 52) | set_bits(integers)) - set1(0x1p52 + 1023);
    const vd m = from_bits((shifted & set_bits(mantissa)) + set_bits(root_half));
    const vd s = (m - set1(1.0)) / (m + set1(1.0)), square = s * s;
    vd sum = set1(1.0 / 21);
    TORCHFX_UNROLL
    for (int n = 19; n >= 1; n -= 2) sum = fma(sum, square, set1(1.0 / n));
    return fma(s * sum, set1(2.8853900817779268), e);  // 2 / log(2)
}

constexpr double inverse_factorials[] = {
    1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
    1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200};

// 2^v for v in [-1000, 1000]: 2^k e^z with |z| <= log(2) / 2, by the series of the exponential function.
TORCHFX_INLINE vd exp2_of(vd v) {
    constexpr double rounds = 0x1.8p52;  // adding it rounds to whole numbers
    const vd counted = v + set1(rounds), z = (v - (counted - set1(rounds))) * set1(0.6931471805599453);
    vd sum = set1(inverse_factorials[14]);
    TORCHFX_UNROLL
    for (int n = 13; n >= 0; --n) sum = fma(sum, z, set1(inverse_factorials[n]));
    return from_bits(bits_of(sum) + (bits_of(counted) << 52));
}

// The gain in dB that a curve asks for at the level of each sample.
struct Curve {
    vd threshold, above, below, lowest, half, bend;

    TORCHFX_INLINE_MEMBER explicit Curve(const GainCurve& of)
        : threshold(set1(of.threshold)), above(set1(of.above)), below(set1(of.below)), lowest(set1(of.lowest)),
          half(set1(of.knee / 2)), bend(set1(of.knee > 0 ? 0.5 / of.knee : 0.0)) {}

    TORCHFX_INLINE_MEMBER vd operator()(vd sample) const {
        const vd x = from_bits(bits_of(sample) & set_bits(magnitude)), quietest = set1(1e-15), zero = set1(0.0);
        const vd over = log2_of(x < quietest ? quietest : x) * set1(per_octave) - threshold, bent = over + half;
        const vd k = bent <= zero ? zero : (over >= half ? over : bent * bent * bend);
        const vd gain = fma(above, k, below * (k - over));
        return (gain < lowest ? lowest : gain) + (x - x);  // NaN where x is NaN or infinite
    }
};

TORCHFX_INLINE void to_factors(double* at, vd makeup) {
    const vd least = set1(-1000.0), most = set1(1000.0), octaves = (load(at) + makeup) * set1(1 / per_octave);
    const vd within = octaves < least ? least : (octaves > most ? most : octaves);
    store(at, octaves == octaves ? exp2_of(within) : octaves);
}

// The smoother waits for itself, 8 cycles a sample: what is computed on vectors meanwhile, a vector before it and two
// behind it, costs little.
template <int N>
void gain(const GainCurve* curves, Smoothed* of, int64_t count) {
    Smoother<N> smoother(of);
    for (int64_t t = -VD; t < count + 2 * VD; t += VD) {
        for (int i = 0; i < N; ++i) {
            double* const at = smoother.samples[i] + t;
            if (t + VD < count) store(at + VD, Curve(curves[i])(load(at + VD)));
            if (t >= 2 * VD) to_factors(at - 2 * VD, set1(curves[i].makeup));
        }
        if (t >= 0 && t < count) smoother.run(t, t + VD < count ? t + VD : count);
    }
    smoother.end();
}

TORCHFX_INLINE void put_larger(double* at, const double* other, int64_t count) {
    int64_t t = 0;
    for (; t + VD <= count; t += VD) {
        const vd a = load(at + t), b = load(other + t);
        store(at + t, a > b ? a : (a == a ? b : a));
    }
    for (; t < count; ++t) at[t] = at[t] > other[t] || at[t] != at[t] ? at[t] : other[t];
}

TORCHFX_INLINE void put_larger(float* at, const float* other, int64_t count) {
    int64_t t = 0;
    for (; t + VF <= count; t += VF) {
        const vf a = load(at + t), b = load(other + t);
        store(at + t, a > b ? a : (a == a ? b : a));
    }
    for (; t < count; ++t) at[t] = at[t] > other[t] || at[t] != at[t] ? at[t] : other[t];
}

// Maxima over 1, 2, 4, ... samples, each of two of the maxima before: all that is written lies before what is read next.
template <class Sample>
void maximum(Sample* samples, int64_t count, int64_t window) {
    int64_t width = 1;
    for (; 2 * width <= window; width *= 2) put_larger(samples, samples + width, count + window - 2 * width);
    if (width < window) put_larger(samples, samples + window - width, count);
}

}  // namespace

extern const DynamicsKernels dynamics_kernels = {
    {nullptr, smooth<1>, smooth<2>, smooth<3>, smooth<4>},
    {nullptr, gain<1>, gain<2>, gain<3>, gain<4>},
    maximum<float>,
    maximum<double>,
};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
