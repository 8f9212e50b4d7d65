#include "delay_network/kernels.h"

#include "support/vec.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

#if defined(__FMA__) || defined(__aarch64__)
TORCHFX_INLINE double plus_product(double a, double b, double c) { return __builtin_fma(a, b, c); }
#else
TORCHFX_INLINE double plus_product(double a, double b, double c) { return c + a * b; }
#endif

// Four vectors at a time: each waits for its own sum before, and a weight is fetched once for all of them.
constexpr int vectors = 4;

template <int N, class Sample>
TORCHFX_INLINE void sum_vectors(const WeightedSum& of, int64_t t, Sample* to) {
    vd sum[N] = {};
    for (int64_t k = 0; k < of.terms; ++k) {
        const vd weight = set1(of.weights[k]);
        const double* source = of.sources[k] + t;
        TORCHFX_UNROLL
        for (int i = 0; i < N; ++i) sum[i] = fma(weight, load(source + i * VD), sum[i]);
    }
    TORCHFX_UNROLL
    for (int i = 0; i < N; ++i) store_samples(to + t + i * VD, sum[i]);
}

template <class Sample>
void sum(const WeightedSum& of, int64_t count, Sample* to) {
    int64_t t = 0;
    for (; t + vectors * VD <= count; t += vectors * VD) sum_vectors<vectors>(of, t, to);
    for (; t + VD <= count; t += VD) sum_vectors<1>(of, t, to);
    for (; t < count; ++t) {
        double single = 0;
        for (int64_t k = 0; k < of.terms; ++k) single = plus_product(of.weights[k], of.sources[k][t], single);
        to[t] = static_cast<Sample>(single);
    }
}

void widen_samples(const float* from, int64_t count, double* to) {
    int64_t t = 0;
    for (; t + VD <= count; t += VD) store(to + t, load_samples(from + t));
    for (; t < count; ++t) to[t] = from[t];
}

}  // namespace

extern const DelayNetworkKernels delay_network_kernels = {sum<float>, sum<double>, widen_samples};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
