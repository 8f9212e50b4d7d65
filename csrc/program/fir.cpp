// The step fir: a finite impulse response.
#include "fir/taps.h"
#include "program/step.h"

namespace torchfx {
namespace {

enum Argument { taps, n_taps, rows, repeat, state };

int32_t check(const Step& step, const StepCheck& check) {
    if (step.integer(n_taps) > 1 && !step.integer(state)) return TORCHFX_BAD_ARGUMENT;
    return check_taps(step.pointer<const double>(taps), step.integer(n_taps), {step.integer(rows), step.integer(repeat)},
                      check.channels);
}

int32_t run(const Step& step, const StepRun& run) {
    double* const states = step.pointer<double>(state);
    return torchfx_fir_forward(step.dtype(), run.source.data, run.source.channel_stride, run.source.time_stride, 1,
                               run.target.data, run.target.channel_stride, run.channels, run.samples,
                               step.pointer<const double>(taps), step.integer(n_taps), step.integer(rows),
                               step.integer(repeat), states, states, run.threads);
}

// Every tile transforms the taps again.
int64_t shortest_tile(const Step& step) { return 4 * step.integer(n_taps); }

}  // namespace

extern const StepKind fir_step = {5, false, false, check, run, shortest_tile};

}  // namespace torchfx
