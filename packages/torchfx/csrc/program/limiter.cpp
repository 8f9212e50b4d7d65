// The step limiter: the signal, delayed, never louder than a threshold.
#include <algorithm>
#include <cmath>

#include "program/step.h"
#include "support/rows.h"

namespace torchfx {
namespace {

TORCHFX_FIELDS(limiter);

int32_t check(const Step& step, const StepCheck& check) {
    const int64_t width = step.integer(linked);
    if (!check.holds(step.integer(peaks), step.dtype()) || step.integer(peaks) == step.target()) return TORCHFX_BAD_ARGUMENT;
    if (width < 1 || check.channels % width || step.integer(delay) < 0 || step.integer(ahead) < 0 ||
        !step.integer(settings) || !step.integer(state))
        return TORCHFX_BAD_ARGUMENT;
    const Rows of_settings = {step.integer(rows), step.integer(repeat)};
    if (!of_settings.valid(check.channels / width)) return TORCHFX_BAD_ARGUMENT;
    if ((step.integer(delay) && !step.integer(past)) || (step.integer(ahead) && !step.integer(ramp)))
        return TORCHFX_BAD_ARGUMENT;
    const double* const values = step.pointer<const double>(settings);
    const bool finite = std::all_of(values, values + 2 * of_settings.count, [](double v) { return std::isfinite(v); });
    return finite ? TORCHFX_OK : TORCHFX_NOT_FINITE;
}

template <class Sample>
void keep_channels(const Step& step, const StepRun& run) {
    const int64_t count = step.integer(delay), stride = run.source.time_stride;
    for (int64_t c = 0; c < run.channels; ++c)
        keep(run.source.channel<const Sample>(c), stride, run.samples, step.pointer<Sample>(past) + c * count, count);
}

int32_t run(const Step& step, const StepRun& run) {
    const int64_t width = step.integer(linked), late = step.integer(delay);
    const Samples& heard = run.buffers[step.integer(peaks)];
    const bool own = step.integer(peaks) == step.source();
    double *const reduction = step.pointer<double>(state), *const last = step.pointer<double>(ramp);
    const int32_t status = torchfx_limiter_forward(
        step.dtype(), run.source.data, run.source.channel_stride, run.source.time_stride, 1, step.pointer<const void>(past),
        late, own ? nullptr : heard.data, width * heard.channel_stride, heard.time_stride, 1, run.target.data,
        run.target.channel_stride, run.channels / width, width, 1, run.samples, own ? late + 1 : 1, step.integer(ahead),
        step.pointer<const double>(settings), step.integer(rows), step.integer(repeat), reduction, reduction, last, last,
        run.threads);
    if (step.dtype() == TORCHFX_F32) keep_channels<float>(step, run);
    else keep_channels<double>(step, run);
    return status;
}

}  // namespace

extern const StepKind limiter_step = {false, false, check, run, nullptr};

}  // namespace torchfx
