#include "allpole/kernels.h"

#include "support/vec.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

// The newest output comes last: the others don't have to wait for it.
template <int order, class Coefficient>
void forward_fixed(const Coefficient* a, int64_t step, double* samples, int64_t count) {
    double past[order];
    for (int k = 0; k < order; ++k) past[k] = samples[-1 - k];
    for (int64_t t = 0; t < count; ++t, a += step) {
        double y = samples[t];
        for (int k = order - 1; k >= 0; --k) y = minus_product(a[k], past[k], y);
        for (int k = order - 1; k > 0; --k) past[k] = past[k - 1];
        samples[t] = past[0] = y;
    }
}

template <class Coefficient>
void forward(const Coefficient* a, int64_t step, int64_t order, double* samples, int64_t count) {
    switch (order) {
        case 1: return forward_fixed<1>(a, step, samples, count);
        case 2: return forward_fixed<2>(a, step, samples, count);
        case 3: return forward_fixed<3>(a, step, samples, count);
        case 4: return forward_fixed<4>(a, step, samples, count);
        case 5: return forward_fixed<5>(a, step, samples, count);
        case 6: return forward_fixed<6>(a, step, samples, count);
        case 7: return forward_fixed<7>(a, step, samples, count);
        case 8: return forward_fixed<8>(a, step, samples, count);
        case 9: return forward_fixed<9>(a, step, samples, count);
        case 10: return forward_fixed<10>(a, step, samples, count);
        case 11: return forward_fixed<11>(a, step, samples, count);
        case 12: return forward_fixed<12>(a, step, samples, count);
    }
    for (int64_t t = 0; t < count; ++t, a += step) {
        double y = samples[t];
        for (int64_t k = order - 1; k >= 0; --k) y = minus_product(a[k], samples[t - 1 - k], y);
        samples[t] = y;
    }
}

template <int order, class Coefficient>
void backward_fixed(const AllpoleGradient<Coefficient>& of, double* samples, int64_t count) {
    double pending[order + 1];
    for (int k = 0; k < order; ++k) pending[k] = of.pending[k];
    pending[order] = 0;
    for (int64_t t = count - 1; t >= 0; --t) {
        const Coefficient* a = of.a + t * order;
        const double w = samples[t] + pending[0];
        for (int k = 0; k < order; ++k) pending[k] = minus_product(a[k], w, pending[k + 1]);
        samples[t] = w;
        if (of.grad_a)
            for (int k = 0; k < order; ++k)
                of.grad_a[t * order + k] = static_cast<Coefficient>(-w * of.y[t + order - 1 - k]);
    }
    for (int k = 0; k < order; ++k) of.pending[k] = pending[k];
}

template <class Coefficient>
void backward(const AllpoleGradient<Coefficient>& of, double* samples, int64_t count) {
    switch (of.order) {
        case 1: return backward_fixed<1>(of, samples, count);
        case 2: return backward_fixed<2>(of, samples, count);
        case 3: return backward_fixed<3>(of, samples, count);
        case 4: return backward_fixed<4>(of, samples, count);
    }
    const int64_t order = of.order;
    double* pending = of.pending;
    for (int64_t t = count - 1; t >= 0; --t) {
        const Coefficient* a = of.a + t * order;
        const double w = samples[t] + pending[0];
        for (int64_t k = 0; k + 1 < order; ++k) pending[k] = minus_product(a[k], w, pending[k + 1]);
        pending[order - 1] = -a[order - 1] * w;
        samples[t] = w;
        if (of.grad_a)
            for (int64_t k = 0; k < order; ++k)
                of.grad_a[t * order + k] = static_cast<Coefficient>(-w * of.y[t + order - 1 - k]);
    }
}

template <int lags>
void correlate_lags(const double* w, const double* y, int64_t count, double* sums) {
    const int64_t whole = count / VD * VD;
    vd sum[lags] = {};
    for (int64_t i = 0; i < whole; i += VD) {
        const vd v = load(w + i);
        for (int k = 0; k < lags; ++k) sum[k] = fma(v, load(y + i + k), sum[k]);
    }
    for (int k = 0; k < lags; ++k) {
        double parts[VD], total = 0;
        store(parts, sum[k]);
        for (int lane = 0; lane < VD; ++lane) total += parts[lane];
        for (int64_t i = whole; i < count; ++i) total += w[i] * y[i + k];
        sums[k] -= total;
    }
}

void correlate(const double* w, const double* y, int64_t count, double* sums, int64_t order) {
    int64_t k = 0;
    for (; k + 4 <= order; k += 4) correlate_lags<4>(w, y + 1 + k, count, sums + k);
    for (; k < order; ++k) correlate_lags<1>(w, y + 1 + k, count, sums + k);
}

}  // namespace

extern const AllpoleKernels allpole_kernels = {forward<float>, forward<double>, backward<float>,
                                               backward<double>, correlate};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
