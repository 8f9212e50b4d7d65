// The step dynamics: the signal times the gain that a level asks for, its own or a key's; neighbouring channels may share it.
#include <algorithm>
#include <cmath>

#include "program/step.h"
#include "support/rows.h"

namespace torchfx {
namespace {

TORCHFX_FIELDS(dynamics);

int32_t check(const Step& step, const StepCheck& check) {
    const int64_t width = step.integer(linked);
    if (!check.holds(step.integer(key), step.dtype()) || step.integer(key) == step.target()) return TORCHFX_BAD_ARGUMENT;
    if (width < 1 || check.channels % width || !step.integer(settings) || !step.integer(state)) return TORCHFX_BAD_ARGUMENT;
    const Rows of_settings = {step.integer(rows), step.integer(repeat)};
    if (!of_settings.valid(check.channels / width)) return TORCHFX_BAD_ARGUMENT;
    const double* const values = step.pointer<const double>(settings);
    const bool finite = std::all_of(values, values + of_settings.count * TORCHFX_DYNAMICS_SETTINGS,
                                    [](double v) { return std::isfinite(v); });
    return finite ? TORCHFX_OK : TORCHFX_NOT_FINITE;
}

int32_t run(const Step& step, const StepRun& run) {
    const int64_t width = step.integer(linked);
    double* const smoothed = step.pointer<double>(state);
    const Samples& heard = run.buffers[step.integer(key)];
    return torchfx_dynamics_forward(
        step.dtype(), run.source.data, run.source.channel_stride, run.source.time_stride, 1,
        step.integer(key) == step.source() ? nullptr : heard.data, width * heard.channel_stride, heard.time_stride, 1,
        run.target.data, run.target.channel_stride, run.channels / width, width, 1, run.samples,
        step.pointer<const double>(settings), step.integer(rows), step.integer(repeat), smoothed, smoothed, run.threads);
}

}  // namespace

extern const StepKind dynamics_step = {false, false, check, run, nullptr};

}  // namespace torchfx
