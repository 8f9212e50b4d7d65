// The step delay_network: lines that feed each other, with as many outputs as inputs.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "program/step.h"
#include "sos/stage.h"
#include "support/rows.h"

namespace torchfx {
namespace {

TORCHFX_FIELDS(delay_network);

int32_t check(const Step& step, const StepCheck& check) {
    const int64_t n = step.integer(lines), width = n + step.integer(inputs), filters = step.integer(sections);
    if (!step.integer(delays) || n < 1 || width <= n || !step.integer(systems) || filters < 0 ||
        check.channels % (width - n))
        return TORCHFX_BAD_ARGUMENT;
    const int64_t groups = check.channels / (width - n);
    const Rows of_systems = {step.integer(rows), step.integer(repeat)};
    const Rows of_sos = {step.integer(sos_rows), step.integer(sos_repeat)};
    const int64_t* const lengths = step.pointer<const int64_t>(delays);
    if (!of_systems.valid(groups) || std::any_of(lengths, lengths + n, [](int64_t delay) { return delay < 1; }) ||
        std::accumulate(lengths, lengths + n, int64_t{0}) != step.integer(length) ||
        (step.integer(passed) && !step.integer(held)) || step.integer(kept_size) < 0 || (filters && (!step.integer(sos) || !step.integer(state) != !step.integer(held) || !of_sos.valid(groups))))
        return TORCHFX_BAD_ARGUMENT;
    const double* const weights = step.pointer<const double>(systems);
    if (!std::all_of(weights, weights + of_systems.count * width * width, [](double v) { return std::isfinite(v); }))
        return TORCHFX_NOT_FINITE;
    return filters ? check_stages(step.pointer<const double>(sos), of_sos.count * n * filters) : TORCHFX_OK;
}

int32_t run(const Step& step, const StepRun& run) {
    double* const lines_state = step.pointer<double>(held);
    double* const filter_state = step.integer(sections) ? step.pointer<double>(state) : nullptr;
    return torchfx_delay_network_forward(
        step.dtype(), run.source.data, run.source.channel_stride, run.source.time_stride, 1, run.target.data,
        run.target.channel_stride, run.channels / step.integer(inputs), run.samples, step.pointer<const int64_t>(delays),
        step.integer(lines), step.integer(inputs), step.integer(inputs), step.pointer<const double>(systems),
        step.integer(rows), step.integer(repeat), step.pointer<const double>(sos), step.integer(sections),
        step.integer(sos_rows), step.integer(sos_repeat), 0, lines_state, lines_state, filter_state, filter_state,
        step.pointer<int64_t>(passed), step.pointer<double>(kept), 8 * step.integer(kept_size), run.threads);
}

}  // namespace

extern const StepKind delay_network_step = {false, false, check, run, nullptr};

}  // namespace torchfx
