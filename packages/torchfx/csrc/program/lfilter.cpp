// The step lfilter: a transfer function, a channel in each lane.
#include <algorithm>
#include <cmath>

#include "allpole/transfer_kernels.h"
#include "program/step.h"
#include "support/pool.h"
#include "support/rows.h"
#include "support/scratch.h"

namespace torchfx {
namespace {

TORCHFX_FIELDS(lfilter);

struct Coefficients {
    const double* data;
    int64_t size;  // of a row
    Rows rows;

    bool finite() const {
        return std::all_of(data, data + rows.count * size, [](double value) { return std::isfinite(value); });
    }
    // Those of a lane's channel, to (size, lanes).
    void load(int64_t channel, int lanes, double* to) const {
        for (int64_t k = 0; k < size; ++k) to[k * lanes] = data[rows.of(channel) * size + k];
    }
};

Coefficients numerator(const Step& step) {
    return {step.pointer<const double>(b), step.integer(order) + 1, {step.integer(b_rows), step.integer(b_repeat)}};
}
Coefficients denominator(const Step& step) {
    return {step.pointer<const double>(a), step.integer(order) + 1, {step.integer(a_rows), step.integer(a_repeat)}};
}

int32_t check(const Step& step, const StepCheck& check) {
    if (step.integer(order) < 1 || !step.integer(state)) return TORCHFX_BAD_ARGUMENT;
    for (const Coefficients& each : {numerator(step), denominator(step)}) {
        if (!each.data || !each.rows.valid(check.channels)) return TORCHFX_BAD_ARGUMENT;
        if (!each.finite()) return TORCHFX_NOT_FINITE;
    }
    return TORCHFX_OK;
}

template <class Sample, class Kernel>
void run_group(const Step& step, const StepRun& run, int64_t first, int lanes, Kernel&& kernel) {
    const int64_t n = step.integer(order), used = std::min<int64_t>(lanes, run.channels - first);
    Scratch<double, 3 * 13 * most_transfer_lanes> memory(static_cast<std::size_t>((3 * n + 2) * lanes));
    double *const bs = memory.data(), *const as = bs + (n + 1) * lanes, *const zs = as + (n + 1) * lanes;
    std::fill_n(bs, (3 * n + 2) * lanes, 0.0);
    double* const states = step.pointer<double>(state) + first * n;
    TransferLanes<Sample> group = {};
    for (int64_t lane = 0; lane < used; ++lane) {
        group.x[lane] = run.source.channel<Sample>(first + lane);
        group.y[lane] = run.target.channel<Sample>(first + lane);
        numerator(step).load(first + lane, lanes, bs + lane);
        denominator(step).load(first + lane, lanes, as + lane);
        for (int64_t k = 0; k < n; ++k) zs[k * lanes + lane] = states[lane * n + k];
    }
    group.stride = run.source.time_stride;
    group.count = run.samples;
    group.order = n;
    group.b = bs;
    group.a = as;
    group.state = zs;
    kernel(group);
    for (int64_t lane = 0; lane < used; ++lane)
        for (int64_t k = 0; k < n; ++k) states[lane * n + k] = zs[k * lanes + lane];
}

int32_t run(const Step& step, const StepRun& run) {
    const TransferKernels& kernels = TORCHFX_KERNELS(transfer_kernels);
    const int lanes = kernels.lanes;
    parallel_for_or_throw((run.channels + lanes - 1) / lanes, run.threads, [&](int64_t i) {
        if (step.dtype() == TORCHFX_F32) run_group<float>(step, run, i * lanes, lanes, kernels.forward_f32);
        else run_group<double>(step, run, i * lanes, lanes, kernels.forward_f64);
    });
    return TORCHFX_OK;
}

}  // namespace

extern const StepKind lfilter_step = {false, false, check, run, nullptr};

}  // namespace torchfx
