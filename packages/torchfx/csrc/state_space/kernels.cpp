#include "state_space/kernels.h"

#include "support/functions.h"
#include "support/vec.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

// A row times [s; x], the input first: it does not wait for the sample before.
template <int N>
TORCHFX_INLINE double product(const double* row, const double* s, double x) {
    double sum = row[N] * x;
    for (int j = 0; j < N; ++j) sum = plus_product(row[j], s[j], sum);
    return sum;
}

// Row i of the matrix times [s; x].
template <int N>
TORCHFX_INLINE double row(const double* m, int i, const double* s, double x) {
    return product<N>(m + i * (N + 1), s, x);
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
        of.samples[t] = product<N>(call.output ? call.output : m + N * (N + 1), s, u);
        next_state<N>(m, s, u);
    }
    for (int i = 0; i < N; ++i) of.state[i] = s[i];
}

// Around the middle of each stretch h has the series of the solution of h' = g / (1 + c g), with g = 1 - h^2.
void tabulate(double c, double* table) {
    constexpr int terms = saturation_terms;
    const vd loop = set1(c), one = set1(1.0);
    double offsets[VD];
    for (int i = 0; i < VD; ++i) offsets[i] = static_cast<double>(i) / saturation_per_unit;
    for (int start = 0; start < saturation_stretches; start += VD, table += VD * terms) {
        const double begin = static_cast<double>(start) / saturation_per_unit;
        vd h[terms] = {one};
        if (begin < 20 + c) {  // tanh(20) is 1
            const vd b = load(offsets) + set1(begin);
            // Both lie before the solution, whence steps do not pass it; six are enough for c <= saturation_most.
            vd w = max_of(b / (one + loop), b - loop);
            for (int i = 0; i < 6; ++i) {
                const vd found = tanh_of<double>(w);
                w += fnma(loop, found, b - w) / fma(loop, fnma(found, found, one), one);
            }
            vd g[terms];
            h[0] = tanh_of<double>(w);
            g[0] = fnma(h[0], h[0], one);
            const vd share = one / fma(loop, g[0], one);
            for (int n = 0; n + 1 < terms; ++n) {
                vd sum = g[n], square = set1(0.0);
                for (int i = 1; i <= n; ++i) sum = fnma(loop * set1(1.0 * i) * h[i], g[n + 1 - i], sum);
                h[n + 1] = sum * share * set1(1.0 / (n + 1));
                for (int i = 0; i <= n + 1; ++i) square = fma(h[i], h[n + 1 - i], square);
                g[n + 1] = -square;
            }
        }
        for (int n = 0; n < terms; ++n) {
            double values[VD];
            store(values, h[n]);
            for (int i = 0; i < VD; ++i) table[i * terms + n] = values[i];
        }
    }
}

TORCHFX_INLINE double looked_up(const double* table, double b) {
    constexpr double most = (saturation_stretches - 1.0) / saturation_per_unit;
    static_assert(saturation_terms == 8, "the polynomial below");
    const double size = __builtin_fabs(b), within = size > most ? most : size;
    const double counted = plus_product(within, saturation_per_unit, rounds);
    uint64_t bits;
    memcpy(&bits, &counted, sizeof bits);
    const double* const of = table + bits % saturation_stretches * saturation_terms;
    const double d = minus_product(counted - rounds, 1.0 / saturation_per_unit, within), square = d * d;
    const double low = plus_product(plus_product(of[3], d, of[2]), square, plus_product(of[1], d, of[0]));
    const double high = plus_product(plus_product(of[7], d, of[6]), square, plus_product(of[5], d, of[4]));
    return __builtin_copysign(plus_product(high, square * square, low), b);
}

// A sample waits for the one before it only by what u adds to the next output, `entered`: the rest of that, `p`, follows
// from the states before. Two channels wait side by side.
template <int N, int channels>
void saturated_by_table(const SaturatedRun* calls) {
    double s[channels][N], next_row[channels][N], entered[channels], p[channels], entrance[channels][N + 1];
    const double* heard[channels];
    for (int l = 0; l < channels; ++l) {
        const StateSpaceRun& of = calls[l].run;
        const double *const m = of.m, *const output = m + N * (N + 1), scale = calls[l].drive * calls[l].feedback;
        heard[l] = calls[l].output ? calls[l].output : output;
        for (int i = 0; i < N; ++i) entrance[l][i] = m[i * (N + 1) + N] / calls[l].drive;
        entrance[l][N] = heard[l][N] / calls[l].drive;
        for (int i = 0; i < N; ++i) s[l][i] = of.state[i];
        p[l] = scale * row<N>(m, N, s[l], 0.0);
        entered[l] = 0;
        for (int i = 0; i < N; ++i) entered[l] += scale * output[i] * entrance[l][i];
        for (int j = 0; j < N; ++j) {
            next_row[l][j] = 0;
            for (int i = 0; i < N; ++i) next_row[l][j] += scale * output[i] * m[i * (N + 1) + j];
        }
    }
    for (int64_t t = 0; t < calls[0].run.count; ++t)
        TORCHFX_UNROLL
        for (int l = 0; l < channels; ++l) {
            const double* const m = calls[l].run.m;
            double* const sample = calls[l].run.samples + t;
            const double h = looked_up(calls[l].table, calls[l].drive * *sample - p[l]);
            double next[N], y = entrance[l][N] * h, coming = 0;
            for (int j = 0; j < N; ++j) {
                y = plus_product(heard[l][j], s[l][j], y);
                coming = plus_product(next_row[l][j], s[l][j], coming);
            }
            for (int i = 0; i < N; ++i) {
                next[i] = 0;
                for (int j = 0; j < N; ++j) next[i] = plus_product(m[i * (N + 1) + j], s[l][j], next[i]);
                next[i] = plus_product(entrance[l][i], h, next[i]);
            }
            *sample = y;
            p[l] = plus_product(entered[l], h, coming);
            for (int i = 0; i < N; ++i) s[l][i] = next[i];
        }
    for (int l = 0; l < channels; ++l)
        for (int i = 0; i < N; ++i) calls[l].run.state[i] = s[l][i];
}

#define TORCHFX_BY_TABLE(N) {nullptr, saturated_by_table<N, 1>, saturated_by_table<N, 2>}

}  // namespace

extern const StateSpaceKernels state_space_kernels = {
    {nullptr, run<1>, run<2>, run<3>, run<4>},
    {nullptr, trace<1>, trace<2>, trace<3>, trace<4>},
    {nullptr, backward<1>, backward<2>, backward<3>, backward<4>},
    {nullptr, saturated<1>, saturated<2>, saturated<3>, saturated<4>},
    {{}, TORCHFX_BY_TABLE(1), TORCHFX_BY_TABLE(2), TORCHFX_BY_TABLE(3), TORCHFX_BY_TABLE(4)},
    tabulate,
};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
