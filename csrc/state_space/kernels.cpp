#include "state_space/kernels.h"

#include "support/vec.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

// Row i of the matrix times [s; x], the input first: it does not wait for the sample before.
template <int N>
TORCHFX_INLINE double row(const double* m, int i, const double* s, double x) {
    double sum = m[i * (N + 1) + N] * x;
    for (int j = 0; j < N; ++j) sum = plus_product(m[i * (N + 1) + j], s[j], sum);
    return sum;
}

template <int N>
TORCHFX_INLINE void next_state(const double* m, double* s, double x) {
    double next[N];
    for (int i = 0; i < N; ++i) next[i] = row<N>(m, i, s, x);
    for (int i = 0; i < N; ++i) s[i] = next[i];
}

template <int N>
void run(const StateSpaceRun& of) {
    double s[N];
    for (int i = 0; i < N; ++i) s[i] = of.state[i];
    const double* m = of.m;
    for (int64_t t = 0; t < of.count; ++t, m += of.step) {
        const double x = of.samples[t];
        of.samples[t] = row<N>(m, N, s, x);
        next_state<N>(m, s, x);
    }
    for (int i = 0; i < N; ++i) of.state[i] = s[i];
}

template <int N>
void trace(const StateSpaceRun& of, double* states) {
    double s[N];
    for (int i = 0; i < N; ++i) s[i] = of.state[i];
    const double* m = of.m;
    for (int64_t t = 0; t < of.count; ++t, m += of.step) {
        for (int i = 0; i < N; ++i) states[t * N + i] = s[i];
        next_state<N>(m, s, of.samples[t]);
    }
    for (int i = 0; i < N; ++i) of.state[i] = s[i];
}

// The system turned round: [adjoint; grad_x] = M^T [adjoint'; grad_y].
template <int N>
void backward(const StateSpaceGradient& of) {
    double out[N + 1], sums[(N + 1) * (N + 1)] = {};
    for (int i = 0; i < N; ++i) out[i] = of.adjoint[i];
    for (int64_t t = of.count - 1; t >= 0; --t) {
        const double* m = of.m + t * of.step;
        const double* s = of.states + t * N;
        out[N] = of.samples[t];
        if (of.grad_m) {
            double* sum = of.step ? of.grad_m + t * of.step : sums;
            for (int i = 0; i <= N; ++i) {
                for (int j = 0; j < N; ++j) sum[i * (N + 1) + j] += out[i] * s[j];
                sum[i * (N + 1) + N] += out[i] * of.x[t];
            }
        }
        double in[N + 1];
        for (int j = 0; j <= N; ++j) {
            in[j] = m[N * (N + 1) + j] * out[N];
            for (int i = 0; i < N; ++i) in[j] = plus_product(m[i * (N + 1) + j], out[i], in[j]);
        }
        for (int j = 0; j < N; ++j) out[j] = in[j];
        of.samples[t] = in[N];
    }
    for (int i = 0; i < N; ++i) of.adjoint[i] = out[i];
    if (of.grad_m && !of.step)
        for (int i = 0; i < (N + 1) * (N + 1); ++i) of.grad_m[i] += sums[i];
}

// The solution of w + c tanh(w) = b for c >= 0, by Newton's method. The left side is increasing, and concave for w > 0
// (b > 0 be assumed): from b / (1 + c), which lies before the solution, the steps never pass it.
double solved(double b, double c) {
    double w = b / (1 + c);
    for (int i = 0; i < 50; ++i) {
        const double h = __builtin_tanh(w);
        const double step = (b - w - c * h) / (1 + c * (1 - h * h));
        w += step;
        if (!(__builtin_fabs(step) > 1e-15 * __builtin_fabs(w))) break;
    }
    return w;
}

template <int N>
void saturated(const SaturatedRun& call) {
    const StateSpaceRun& of = call.run;
    double s[N];
    for (int i = 0; i < N; ++i) s[i] = of.state[i];
    const double* m = of.m;
    for (int64_t t = 0; t < of.count; ++t, m += of.step) {
        const double open = row<N>(m, N, s, 0.0), direct = m[(N + 1) * (N + 1) - 1];
        const double z = of.samples[t] - call.feedback * open, c = call.feedback * direct;
        const double u = call.drive == 0 ? z / (1 + c) : __builtin_tanh(solved(call.drive * z, c)) / call.drive;
        of.samples[t] = open + direct * u;
        next_state<N>(m, s, u);
    }
    for (int i = 0; i < N; ++i) of.state[i] = s[i];
}

}  // namespace

extern const StateSpaceKernels state_space_kernels = {
    {nullptr, run<1>, run<2>, run<3>, run<4>},
    {nullptr, trace<1>, trace<2>, trace<3>, trace<4>},
    {nullptr, backward<1>, backward<2>, backward<3>, backward<4>},
    {nullptr, saturated<1>, saturated<2>, saturated<3>, saturated<4>},
};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
