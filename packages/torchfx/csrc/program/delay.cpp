// The step delay: by a whole number of samples.
#include <algorithm>

#include "program/step.h"

namespace torchfx {
namespace {

TORCHFX_FIELDS(delay);

int32_t check(const Step& step, const StepCheck&) {
    return step.integer(delay) >= 1 && step.integer(state) ? TORCHFX_OK : TORCHFX_BAD_ARGUMENT;
}

template <class Sample>
void run_channel(const Sample* x, int64_t stride, Sample* y, int64_t samples, Sample* kept, int64_t delay) {
    const int64_t old = std::min(delay, samples), fresh = samples - old;
    std::copy_n(kept, old, y);
    copy(x, stride, fresh, y + old);
    keep(x, stride, samples, kept, delay);
}

template <class Sample>
void run_channels(const Step& step, const StepRun& run) {
    const int64_t samples = step.integer(delay);
    for (int64_t c = 0; c < run.channels; ++c)
        run_channel(run.source.channel<const Sample>(c), run.source.time_stride, run.target.channel<Sample>(c),
                    run.samples, step.pointer<Sample>(state) + c * samples, samples);
}

int32_t run(const Step& step, const StepRun& run) {
    if (step.dtype() == TORCHFX_F32) run_channels<float>(step, run);
    else run_channels<double>(step, run);
    return TORCHFX_OK;
}

}  // namespace

extern const StepKind delay_step = {false, false, check, run, nullptr};

}  // namespace torchfx
