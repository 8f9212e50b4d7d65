#include "delay_network/kernels.h"

#include "sos/running.h"
#include "support/transpose.h"
#include "support/vec.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

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

// N stages from `from` to `to`; `added` may be nullptr. Samples are turned round in registers, VD at a time, so that each
// lane is a line.
template <int N, bool shifted>
TORCHFX_NOINLINE void filter_stages(const double* stages, double* state, const double* const* from, vd weight,
                                    const double* const* added, double* const* to, int64_t count) {
    Stages<N, shifted> running(stages, state);
    int64_t t = 0;
    for (; t + VD <= count; t += VD) {
        vd r[VD];
        TORCHFX_UNROLL
        for (int lane = 0; lane < VD; ++lane) {
            prefetch(from[lane] + t + 64);
            r[lane] = load(from[lane] + t);
        }
        transpose(r);
        TORCHFX_UNROLL
        for (int i = 0; i < VD; ++i) r[i] = running.step(weight * r[i]);
        transpose(r);
        TORCHFX_UNROLL
        for (int lane = 0; lane < VD; ++lane) store(to[lane] + t, added ? r[lane] + load(added[lane] + t) : r[lane]);
    }
    for (; t < count; ++t) {
        double sample[VD];
        for (int lane = 0; lane < VD; ++lane) sample[lane] = from[lane][t];
        store(sample, running.step(weight * load(sample)));
        for (int lane = 0; lane < VD; ++lane) to[lane][t] = added ? sample[lane] + added[lane][t] : sample[lane];
    }
    running.save(state);
}

template <bool shifted>
void filter_lines(const LoopFilterRun& run, int64_t count) {
    const double* from[VD];
    for (int lane = 0; lane < VD; ++lane) from[lane] = run.from[lane];
    vd weight = load(run.weights);
    for (int64_t k = 0; k < run.sections; k += 2) {
        const bool last = k + 2 >= run.sections;
        const auto stages = run.sections - k == 1 ? filter_stages<1, shifted> : filter_stages<2, shifted>;
        stages(run.stages + k * constants_size, run.state + k * state_size, from, weight, last ? run.added : nullptr,
               run.to, count);
        for (int lane = 0; lane < VD; ++lane) from[lane] = run.to[lane];
        weight = set1(1.0);
    }
}

void filter(const LoopFilterRun& run, int64_t count) {
    if (run.shifted) filter_lines<true>(run, count);
    else filter_lines<false>(run, count);
}

void widen_samples(const float* from, int64_t count, double* to) {
    int64_t t = 0;
    for (; t + VD <= count; t += VD) store(to + t, load_samples(from + t));
    for (; t < count; ++t) to[t] = from[t];
}

}  // namespace

extern const DelayNetworkKernels delay_network_kernels = {sum<float>, sum<double>, filter, widen_samples};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
