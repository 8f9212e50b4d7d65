#include "curves/kernels.h"

#include "support/functions.h"
#include "support/vec.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

constexpr uint64_t sign_bit = 0x8000000000000000;

TORCHFX_INLINE vd magnitude_of(vd v) { return from_bits(bits_of(v) & set_bits(~sign_bit)); }
TORCHFX_INLINE vd signed_as(vd v, vd sign) {
    return from_bits(bits_of(v) | (bits_of(sign) & set_bits(sign_bit)));  // v is not negative
}
// A NaN stays one.
TORCHFX_INLINE vd bounded(vd v, vd by) { return min_of(by, max_of(-by, v)); }

// (-1)^n / (2 n + 1)
constexpr double arctan_terms[] = {
    1.0, -1.0 / 3, 1.0 / 5, -1.0 / 7, 1.0 / 9, -1.0 / 11, 1.0 / 13, -1.0 / 15, 1.0 / 17, -1.0 / 19, 1.0 / 21, -1.0 / 23,
    1.0 / 25, -1.0 / 27, 1.0 / 29, -1.0 / 31, 1.0 / 33, -1.0 / 35, 1.0 / 37, -1.0 / 39, 1.0 / 41};

TORCHFX_INLINE vd arctan_series(vd square, double) { return polynomial(arctan_terms, square); }
TORCHFX_INLINE vd arctan_series(vd square, float) { return first_terms<11>(arctan_terms, square); }

// Less pi / 4 or pi / 2, the angle is at most pi / 8.
template <class Sample>
TORCHFX_INLINE vd arctan_of(vd v) {
    constexpr double eighth = 0.41421356237309505, quarter_pi = 0.7853981633974483;
    const vd size = magnitude_of(v), one = set1(1.0);
    const vd base = size > set1(1 / eighth) ? set1(2 * quarter_pi) : (size > set1(eighth) ? set1(quarter_pi) : set1(0.0));
    const vd above = size > set1(1 / eighth) ? -one : (size > set1(eighth) ? size - one : size);
    const vd below = size > set1(1 / eighth) ? size : (size > set1(eighth) ? size + one : one);
    const vd part = quotient(above, below, Sample{});
    return signed_as(fma(part, arctan_series(part * part, Sample{}), base), v);
}

TORCHFX_INLINE vd nearest_whole(vd v) {
    return magnitude_of(v) < set1(0x1p51) ? rounded(v) : v;  // beyond it doubles have no fraction
}

TORCHFX_INLINE vd clip(vd x, vd threshold) { return bounded(x, threshold); }
template <class Sample>
TORCHFX_INLINE vd tanh(vd x, vd drive) { return tanh_of<Sample>(drive * x); }
TORCHFX_INLINE vd cubic(vd x, vd drive) {
    const vd v = bounded(drive * x, set1(1.0));
    return v * fnma(v * v, set1(0.5), set1(1.5));
}
template <class Sample>
TORCHFX_INLINE vd arctan(vd x, vd drive) { return arctan_of<Sample>(drive * x) * set1(0.6366197723675814); }
TORCHFX_INLINE vd overdrive(vd x, vd drive) {
    const vd driven = drive * x, size = magnitude_of(driven), left = fnma(set1(3.0), min_of(set1(2.0 / 3), size), set1(2.0));
    const vd soft = fnma(left, left, set1(3.0)) * set1(1.0 / 3);
    return size < set1(1.0 / 3) ? driven + driven : signed_as(soft, driven);
}
TORCHFX_INLINE vd square(vd x, vd factor) { return factor * (x * x); }
TORCHFX_INLINE vd round(vd x, vd steps) { return nearest_whole(x * steps) / steps; }

template <vd (*curve)(vd, vd), class Sample>
void map(const double* parameters, int64_t, const Sample* x, int64_t count, Sample* y) {
    const vd parameter = set1(*parameters);
    int64_t t = 0;
    for (; t + VD <= count; t += VD) store_samples(y + t, curve(load_samples(x + t), parameter));
    if (t == count) return;
    Sample rest[VD] = {};
    for (int64_t i = 0; t + i < count; ++i) rest[i] = x[t + i];
    store_samples(rest, curve(load_samples(rest), parameter));
    for (int64_t i = 0; t + i < count; ++i) y[t + i] = rest[i];
}

template <class Sample>
void table(const double* values, int64_t length, const Sample* x, int64_t count, Sample* y) {
    const double last = static_cast<double>(length - 1);
    for (int64_t t = 0; t < count; ++t) {
        const double v = x[t], place = ((v < -1 ? -1 : (v > 1 ? 1 : v)) + 1) * (last / 2);
        int64_t left = place > 0 ? static_cast<int64_t>(place) : 0;  // 0 for a NaN, which stays one below
        if (left > length - 2) left = length - 2;
        y[t] = static_cast<Sample>(values[left] + (place - static_cast<double>(left)) * (values[left + 1] - values[left]));
    }
}

#define TORCHFX_CURVE_KERNELS(Sample)                                              \
    {map<clip, Sample>, map<tanh<Sample>, Sample>, map<cubic, Sample>,             \
     map<arctan<Sample>, Sample>, map<overdrive, Sample>, map<round, Sample>,      \
     map<square, Sample>, table<Sample>}

}  // namespace

extern const CurveKernels curve_kernels = {TORCHFX_CURVE_KERNELS(float), TORCHFX_CURVE_KERNELS(double)};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
