// The hyperbolic tangent of vectors. For *kernels.cpp only, see vec.h.
#ifndef TORCHFX_SUPPORT_TANH_H
#define TORCHFX_SUPPORT_TANH_H

#include "support/vec.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {

#if defined(TORCHFX_VECTORS)
typedef uint64_t vi __attribute__((vector_size(8 * VD)));
TORCHFX_INLINE vi spread(uint64_t a) { return a - vi{}; }
#else
typedef uint64_t vi;
TORCHFX_INLINE vi spread(uint64_t a) { return a; }
#endif
TORCHFX_INLINE vi integers_of(vd v) { vi bits; memcpy(&bits, &v, sizeof bits); return bits; }
TORCHFX_INLINE vd doubles_of(vi bits) { vd v; memcpy(&v, &bits, sizeof v); return v; }

// of[0] + of[1] v + ...: even and odd powers apart, so that half as many products wait for each other.
template <int terms>
TORCHFX_INLINE vd power_series(const double (&of)[terms], vd v) {
    const vd square = v * v;
    vd sums[2] = {set1(of[(terms - 1) / 2 * 2]), set1(of[(terms - 2) / 2 * 2 + 1])};
    TORCHFX_UNROLL
    for (int n = terms - 3; n >= 0; --n) sums[n % 2] = fma(sums[n % 2], square, set1(of[n]));
    return fma(sums[1], v, sums[0]);
}

// (e^z - 1) / z for |z| <= log(2) / 2.
constexpr double exponential_terms[] = {
    1.0, 1.0 / 2, 1.0 / 6, 1.0 / 24, 1.0 / 120, 1.0 / 720, 1.0 / 5040, 1.0 / 40320, 1.0 / 362880, 1.0 / 3628800,
    1.0 / 39916800, 1.0 / 479001600, 1.0 / 6227020800, 1.0 / 87178291200};

// E / (E + 2) with E = e^(2 v) - 1 = 2^k (e^z - 1) + (2^k - 1), which loses nothing near 0; a NaN stays one.
TORCHFX_INLINE vd tanh_of(vd v) {
    constexpr double rounds = 0x1.8p52;  // adding it rounds to whole numbers
    const vd twice = v + v, within = min_of(set1(40.0), max_of(set1(-40.0), twice));
    const vd counted = fma(within, set1(1.4426950408889634), set1(rounds)), k = counted - set1(rounds);
    // log(2) in two parts, the first one short: their product with k is exact.
    const vd z = fnma(k, set1(1.90821492927058770002e-10), fnma(k, set1(6.93147180369123816490e-01), within));
    const vd power = doubles_of((integers_of(counted) + spread(1023)) << 52);
    const vd e = fma(power, z * power_series(exponential_terms, z), power - set1(1.0));
    return e / (e + set1(2.0));
}

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx

#endif
