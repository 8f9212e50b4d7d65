// The step allpole: an all-pole recursion with constant coefficients.
#include <algorithm>
#include <cmath>

#include "program/step.h"
#include "support/rows.h"

namespace torchfx {
namespace {

enum Argument { a, order, rows, repeat, state };

int32_t check(const Step& step, const StepCheck& check) {
    const Rows a_rows = {step.integer(rows), step.integer(repeat)};
    if (!step.integer(a) || !step.integer(state) || step.integer(order) < 1 || !a_rows.valid(check.channels))
        return TORCHFX_BAD_ARGUMENT;
    const double* const first = step.pointer<const double>(a);
    const auto is_finite = [](double value) { return std::isfinite(value); };
    const bool finite = std::all_of(first, first + a_rows.count * step.integer(order), is_finite);
    return finite ? TORCHFX_OK : TORCHFX_NOT_FINITE;
}

int32_t run(const Step& step, const StepRun& run) {
    double* const states = step.pointer<double>(state);
    return torchfx_allpole_forward(step.dtype(), run.source.data, run.source.channel_stride, run.source.time_stride, 1,
                                   run.target.data, run.target.channel_stride, run.channels, run.samples, TORCHFX_F64,
                                   step.pointer<const double>(a), step.integer(order), 0, step.integer(rows),
                                   step.integer(repeat), states, states, run.threads);
}

}  // namespace

extern const StepKind allpole_step = {5, false, false, check, run, nullptr};

}  // namespace torchfx
