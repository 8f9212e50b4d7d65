// The step sos: a cascade of second-order sections.
#include "program/step.h"
#include "sos/stage.h"
#include "support/rows.h"

namespace torchfx {
namespace {

TORCHFX_FIELDS(sos);

int32_t check(const Step& step, const StepCheck& check) {
    const Rows sos_rows = {step.integer(rows), step.integer(repeat)};
    if (!step.integer(sos) || !step.integer(state) || step.integer(sections) < 1 || !sos_rows.valid(check.channels))
        return TORCHFX_BAD_ARGUMENT;
    return check_stages(step.pointer<const double>(sos), sos_rows.count * step.integer(sections));
}

int32_t run(const Step& step, const StepRun& run) {
    double* const states = step.pointer<double>(state);
    return torchfx_sos_forward(step.dtype(), run.source.data, run.source.channel_stride, run.source.time_stride, 1,
                               run.target.data, run.target.channel_stride, run.channels, run.samples,
                               step.pointer<const double>(sos), step.integer(sections), step.integer(rows),
                               step.integer(repeat), states, states, run.threshold, run.threads);
}

}  // namespace

extern const StepKind sos_step = {false, false, check, run, nullptr};

}  // namespace torchfx
