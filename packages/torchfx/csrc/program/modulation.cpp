// The steps modulated_gain, modulated_delay and phaser: what swings with an oscillator.
#include <algorithm>
#include <cmath>

#include "program/step.h"
#include "support/rows.h"

namespace torchfx {
namespace {

// All begin with these.
TORCHFX_FIELDS(modulated_gain);

template <int64_t width>
int32_t check_oscillators(const Step& step, const StepCheck& check) {
    const Rows of = {step.integer(rows), step.integer(repeat)};
    if (!step.integer(settings) || !step.integer(phase) || !of.valid(check.channels)) return TORCHFX_BAD_ARGUMENT;
    const double* const values = step.pointer<const double>(settings);
    const bool finite = std::all_of(values, values + of.count * width, [](double v) { return std::isfinite(v); });
    return finite ? TORCHFX_OK : TORCHFX_NOT_FINITE;
}

namespace gain {

int32_t run(const Step& step, const StepRun& run) {
    double* const phases = step.pointer<double>(phase);
    return torchfx_modulated_gain_forward(
        step.dtype(), run.source.data, run.source.channel_stride, run.source.time_stride, 1, run.target.data,
        run.target.channel_stride, run.channels, run.samples, step.pointer<const double>(settings), step.integer(rows),
        step.integer(repeat), phases, phases, run.threads);
}

}  // namespace gain

namespace delay {

TORCHFX_FIELDS(modulated_delay);

int32_t check(const Step& step, const StepCheck& check) {
    if (step.integer(kept) < 2 * TORCHFX_LEAST_DELAY || !step.integer(past)) return TORCHFX_BAD_ARGUMENT;
    return check_oscillators<TORCHFX_MODULATED_DELAY_SETTINGS>(step, check);
}

int32_t run(const Step& step, const StepRun& run) {
    double* const phases = step.pointer<double>(phase);
    void* const line = step.pointer<void>(past);
    return torchfx_modulated_delay_forward(
        step.dtype(), run.source.data, run.source.channel_stride, run.source.time_stride, 1, line, line, step.integer(kept),
        run.target.data, run.target.channel_stride, run.channels, run.samples,
        step.pointer<const double>(settings), step.integer(rows), step.integer(repeat), phases, phases, run.threads);
}

}  // namespace delay

namespace phaser {

TORCHFX_FIELDS(phaser);

int32_t check(const Step& step, const StepCheck& check) {
    if (step.integer(stages) < 1 || !step.integer(state)) return TORCHFX_BAD_ARGUMENT;
    return check_oscillators<TORCHFX_PHASER_SETTINGS>(step, check);
}

int32_t run(const Step& step, const StepRun& run) {
    double *const phases = step.pointer<double>(phase), *const states = step.pointer<double>(state);
    return torchfx_phaser_forward(
        step.dtype(), run.source.data, run.source.channel_stride, run.source.time_stride, 1, run.target.data,
        run.target.channel_stride, run.channels, run.samples, step.integer(stages), step.pointer<const double>(settings),
        step.integer(rows), step.integer(repeat), phases, phases, states, states, run.threads);
}

}  // namespace phaser
}  // namespace

extern const StepKind modulated_gain_step = {false, false, check_oscillators<TORCHFX_MODULATED_GAIN_SETTINGS>, gain::run,
                                             nullptr};
extern const StepKind modulated_delay_step = {false, false, delay::check, delay::run, nullptr};
extern const StepKind phaser_step = {false, false, phaser::check, phaser::run, nullptr};

}  // namespace torchfx
