// Logarithms, powers, sines and hyperbolic tangents of vectors. For *_kernels.cpp only, see vec.h.
#ifndef TORCHFX_SUPPORT_FUNCTIONS_H
#define TORCHFX_SUPPORT_FUNCTIONS_H

#include "support/vec.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {

#if defined(TORCHFX_VECTORS)
typedef uint64_t vu __attribute__((vector_size(8 * VD)));
TORCHFX_INLINE vu set_bits(uint64_t a) { return a - vu{}; }
#else
typedef uint64_t vu;
TORCHFX_INLINE vu set_bits(uint64_t a) { return a; }
#endif
TORCHFX_INLINE vu bits_of(vd v) { vu bits; memcpy(&bits, &v, sizeof bits); return bits; }
TORCHFX_INLINE vd from_bits(vu bits) { vd v; memcpy(&v, &bits, sizeof v); return v; }

constexpr uint64_t mantissa = 0x000fffffffffffff, one = 0x3ff0000000000000;
constexpr uint64_t root_half = 0x3fe6a09e667f3bcd;  // sqrt(1/2)
constexpr uint64_t integers = 0x4330000000000000;   // 2^52: its last bits count

constexpr double rounds = 0x1.8p52;  // adding it rounds to whole numbers
TORCHFX_INLINE vd rounded(vd v) { return (v + set1(rounds)) - set1(rounds); }

// Logarithms and powers are as exact as the samples they serve. For doubles they are series with relative errors below
// 1e-15; for floats, polynomials of least largest error (Remez), 1.2e-9 octaves for logarithms and 2e-9 for powers, a 30th
// of a float's rounding. Both are exact at 1 and 0: what a curve leaves alone keeps its value.
constexpr double log_series[] = {1.0, 1.0 / 3, 1.0 / 5, 1.0 / 7, 1.0 / 9, 1.0 / 11, 1.0 / 13, 1.0 / 15, 1.0 / 17,
                                 1.0 / 19, 1.0 / 21};
constexpr double log_polynomial[] = {  // log2(1 + u) / u, u in [sqrt(1/2) - 1, sqrt(2) - 1]
    1.4426950408470343, -0.72134716012004296, 0.48089814544605747, -0.36070881470831256, 0.28857917524004129,
    -0.23939290309560712, 0.20428941249804514, -0.19235298171650064, 0.18839046110974247, -0.10975115593126793};
constexpr double exp_series[] = {
    1.0, 1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
    1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200};
constexpr double exp_polynomial[] = {  // 2^z, z in [-1/2, 1/2]
    1, 0.6931472028550684, 0.2402264791362863, 0.05550332471123368, 0.009618437357694482, 0.001339887441486807,
    0.0001535336190340143};

// of[0] + of[1] v + ...: even and odd powers apart, so that half as many products wait for each other.
template <int terms>
TORCHFX_INLINE vd first_terms(const double* of, vd v) {
    const vd square = v * v;
    vd sums[2] = {set1(of[(terms - 1) / 2 * 2]), set1(of[(terms - 2) / 2 * 2 + 1])};
    TORCHFX_UNROLL
    for (int n = terms - 3; n >= 0; --n) sums[n % 2] = fma(sums[n % 2], square, set1(of[n]));
    return fma(sums[1], v, sums[0]);
}
template <int terms>
TORCHFX_INLINE vd polynomial(const double (&of)[terms], vd v) { return first_terms<terms>(of, v); }

// As precise as Sample, terms rounded to it: a division of doubles takes three times as long.
TORCHFX_INLINE vd quotient(vd a, vd b, double) { return a / b; }
TORCHFX_INLINE vd quotient(vd a, vd b, float) { return widen(narrow(a) / narrow(b)); }

// e + log2(m) for m from sqrt(1/2) to sqrt(2); for doubles, log(m) = 2 artanh((m - 1) / (m + 1)).
TORCHFX_INLINE vd add_log2(vd e, vd m, double) {
    const vd s = (m - set1(1.0)) / (m + set1(1.0));
    return fma(s * polynomial(log_series, s * s), set1(2.8853900817779268), e);
}
TORCHFX_INLINE vd add_log2(vd e, vd m, float) {
    const vd u = m - set1(1.0);
    return fma(u, polynomial(log_polynomial, u), e);
}

// 2^z for z in [-1/2, 1/2].
TORCHFX_INLINE vd exp2_near_0(vd z, double) { return polynomial(exp_series, z * set1(0.6931471805599453)); }
TORCHFX_INLINE vd exp2_near_0(vd z, float) { return polynomial(exp_polynomial, z); }

// log2 of normal numbers, as precise as Sample: that of 2^e m, with m from sqrt(1/2) on.
template <class Sample>
TORCHFX_INLINE vd log2_of(vd v) {
    const vu shifted = bits_of(v) + set_bits(one - root_half);
    const vd e = from_bits((shifted >> 52) | set_bits(integers)) - set1(0x1p52 + 1023);
    const vd m = from_bits((shifted & set_bits(mantissa)) + set_bits(root_half));
    return add_log2(e, m, Sample{});
}

// 2^v for v in [-1000, 1000], as precise as Sample: 2^k 2^z with |z| <= 1/2.
template <class Sample>
TORCHFX_INLINE vd exp2_of(vd v) {
    const vd counted = v + set1(rounds), z = v - (counted - set1(rounds));
    return from_bits(bits_of(exp2_near_0(z, Sample{})) + (bits_of(counted) << 52));
}

constexpr double sine_series[] = {
    1.0, -1.0 / 6, 1.0 / 120, -1.0 / 5040, 1.0 / 362880, -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000,
    1.0 / 355687428096000, -1.0 / 121645100408832000, 1.0 / 51090942171709440000.0};

// sin(2 pi v) for |v| < 2^50: half-turns change the sign, and what is left of |z| <= 1/4 goes into the series of the sine.
TORCHFX_INLINE vd sine_of_turns(vd v) {
    const vd halves = v + v + set1(rounds), z = v - (halves - set1(rounds)) * set1(0.5);
    const vd angle = z * set1(6.283185307179586);
    return from_bits(bits_of(angle * polynomial(sine_series, angle * angle)) ^ (bits_of(halves) << 63));
}

// (e^z - 1) / z for |z| <= log(2) / 2; for floats with an error of 6e-10.
constexpr double exponential_terms[] = {
    1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
    1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200};
TORCHFX_INLINE vd exponential_slope(vd z, double) { return polynomial(exponential_terms, z); }
TORCHFX_INLINE vd exponential_slope(vd z, float) { return first_terms<8>(exponential_terms, z); }

// E / (E + 2) with E = e^(2 v) - 1 = 2^k (e^z - 1) + (2^k - 1), which loses nothing near 0; a NaN stays one.
template <class Sample>
TORCHFX_INLINE vd tanh_of(vd v) {
    const vd twice = v + v, within = min_of(set1(40.0), max_of(set1(-40.0), twice));
    const vd counted = fma(within, set1(1.4426950408889634), set1(rounds)), k = counted - set1(rounds);
    // log(2) in two parts, the first one short: their product with k is exact.
    const vd z = fnma(k, set1(1.90821492927058770002e-10), fnma(k, set1(6.93147180369123816490e-01), within));
    const vd power = from_bits((bits_of(counted) + set_bits(1023)) << 52);
    const vd e = fma(power, z * exponential_slope(z, Sample{}), power - set1(1.0));
    return quotient(e, e + set1(2.0), Sample{});
}

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx

#endif
