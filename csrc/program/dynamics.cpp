// The step dynamics: the signal times the gain that its level asks for, which neighbouring channels may share.
#include <algorithm>
#include <cmath>

#include "program/step.h"
#include "support/rows.h"

namespace torchfx {
namespace {

enum Argument { linked, settings, rows, repeat, state };

int32_t check(const Step& step, const StepCheck& check) {
    const int64_t width = step.integer(linked);
    if (width < 1 || check.channels % width || !step.integer(settings) || !step.integer(state)) return TORCHFX_BAD_ARGUMENT;
    const Rows of_settings = {step.integer(rows), step.integer(repeat)};
    if (!of_settings.valid(check.channels / width)) return TORCHFX_BAD_ARGUMENT;
    const double* const values = step.pointer<const double>(settings);
    const bool finite = std::all_of(values, values + of_settings.count * TORCHFX_DYNAMICS_SETTINGS,
                                    [](double v) { return std::isfinite(v); });
    return finite ? TORCHFX_OK : TORCHFX_NOT_FINITE;
}

// The loudest sample of `width` channels from `first` on; a NaN where there is one, as in PyTorch's amax.
template <class Sample>
void write_peaks(const StepRun& run, int64_t first, int64_t width, Sample* to) {
    const int64_t stride = run.source.time_stride;
    for (int64_t i = 0; i < width; ++i) {
        const Sample* const x = run.source.channel<const Sample>(first + i);
        for (int64_t t = 0; t < run.samples; ++t) {
            const Sample v = std::abs(x[t * stride]);
            if (i == 0 || v > to[t] || v != v) to[t] = v;
        }
    }
}

template <class Sample>
int32_t run_channels(const Step& step, const StepRun& run) {
    const int64_t width = step.integer(linked), groups = run.channels / width, stride = run.source.time_stride;
    // The gain of a group lies in its last channel's place until it is used there.
    const Samples gains = {run.target.channel<Sample>(width - 1), width * run.target.channel_stride, 1};
    Samples key = {run.source.data, run.source.channel_stride, stride};
    if (width > 1) {
        key = {run.target.data, width * run.target.channel_stride, 1};
        for (int64_t g = 0; g < groups; ++g) write_peaks(run, g * width, width, key.channel<Sample>(g));
    }
    double* const smoothed = step.pointer<double>(state);
    const int32_t status = torchfx_dynamics_gain(
        step.dtype(), key.data, key.channel_stride, key.time_stride, 1, gains.data, gains.channel_stride, groups,
        run.samples, step.pointer<const double>(settings), step.integer(rows), step.integer(repeat), smoothed, smoothed,
        run.threads);
    for (int64_t c = 0; c < run.channels && !status; ++c) {
        const Sample *const gain = gains.channel<const Sample>(c / width), *const x = run.source.channel<const Sample>(c);
        Sample* const y = run.target.channel<Sample>(c);
        for (int64_t t = 0; t < run.samples; ++t) y[t] = x[t * stride] * gain[t];
    }
    return status;
}

int32_t run(const Step& step, const StepRun& run) {
    return step.dtype() == TORCHFX_F32 ? run_channels<float>(step, run) : run_channels<double>(step, run);
}

}  // namespace

extern const StepKind dynamics_step = {5, false, false, check, run, nullptr};

}  // namespace torchfx
