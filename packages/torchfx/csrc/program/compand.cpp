// The step compand: the signal times the gain that a transfer curve asks for at its smoothed level, its own or a key's.
#include <algorithm>
#include <cmath>

#include "program/step.h"
#include "support/rows.h"

namespace torchfx {
namespace {

TORCHFX_FIELDS(compand);

int32_t check(const Step& step, const StepCheck& check) {
    const int64_t width = step.integer(linked), size = 3 + 4 * step.integer(points);
    if (!check.holds(step.integer(key), step.dtype()) || step.integer(key) == step.target() || step.integer(points) < 1)
        return TORCHFX_BAD_ARGUMENT;
    if (width < 1 || check.channels % width || !step.integer(settings) || !step.integer(state)) return TORCHFX_BAD_ARGUMENT;
    const Rows of_settings = {step.integer(rows), step.integer(repeat)};
    if (!of_settings.valid(check.channels / width)) return TORCHFX_BAD_ARGUMENT;
    const double* const values = step.pointer<const double>(settings);
    const bool finite = std::all_of(values, values + of_settings.count * size, [](double v) { return std::isfinite(v); });
    return finite ? TORCHFX_OK : TORCHFX_NOT_FINITE;
}

int32_t run(const Step& step, const StepRun& run) {
    const int64_t width = step.integer(linked);
    double* const level = step.pointer<double>(state);
    const Samples& heard = run.buffers[step.integer(key)];
    return torchfx_compand_forward(
        step.dtype(), run.source.data, run.source.channel_stride, run.source.time_stride, 1,
        step.integer(key) == step.source() ? nullptr : heard.data, width * heard.channel_stride, heard.time_stride, 1,
        run.target.data, run.target.channel_stride, run.channels / width, width, 1, run.samples,
        step.pointer<const double>(settings), step.integer(points), step.integer(rows), step.integer(repeat),
        level, level, run.threads);
}

}  // namespace

extern const StepKind compand_step = {false, false, check, run, nullptr};

}  // namespace torchfx
