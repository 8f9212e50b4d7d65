// The step saturated: a system in a loop with a saturating amplifier.
#include <algorithm>
#include <cmath>

#include "program/step.h"
#include "state_space/kernels.h"
#include "support/rows.h"

namespace torchfx {
namespace {

TORCHFX_FIELDS(saturated);

int32_t check(const Step& step, const StepCheck& check) {
    const int64_t size = step.integer(states) + 1;
    const Rows of_systems = {step.integer(rows), step.integer(repeat)};
    const Rows of_tables = {step.integer(table_rows), step.integer(table_repeat)};
    for (const Field each : {systems, outputs, feedback, drive, tables, state})
        if (!step.integer(each)) return TORCHFX_BAD_ARGUMENT;
    if (size < 2 || size > most_states + 1 || !of_systems.valid(check.channels) || !of_tables.valid(check.channels))
        return TORCHFX_BAD_ARGUMENT;
    const double* const values = step.pointer<const double>(systems);
    const double* const put_out = step.pointer<const double>(outputs);
    const auto is_finite = [](double v) { return std::isfinite(v); };
    const bool finite = std::all_of(values, values + of_systems.count * size * size, is_finite) &&
                        std::all_of(put_out, put_out + of_systems.count * size, is_finite);
    return finite ? TORCHFX_OK : TORCHFX_NOT_FINITE;
}

int32_t run(const Step& step, const StepRun& run) {
    double* const before = step.pointer<double>(state);
    return torchfx_saturated_forward(
        step.dtype(), run.source.data, run.source.channel_stride, run.source.time_stride, 1,
        run.target.data, run.target.channel_stride, run.channels, run.samples,
        step.pointer<const double>(systems), step.integer(states), 1, step.integer(rows), step.integer(repeat),
        step.pointer<const double>(outputs), step.pointer<const double>(feedback), step.pointer<const double>(drive),
        step.pointer<const double>(tables), step.integer(table_rows), step.integer(table_repeat),
        before, before, run.threads);
}

}  // namespace

extern const StepKind saturated_step = {false, false, check, run, nullptr};

}  // namespace torchfx
