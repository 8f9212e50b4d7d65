// The steps maximum and true_peak: the levels that detectors hear. Each keeps the last samples of what it read.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <type_traits>

#include "dynamics/kernels.h"
#include "fir/taps.h"
#include "program/step.h"
#include "support/arena.h"
#include "support/signal.h"

namespace torchfx {
namespace {

// The larger one of a level and |v|, a NaN where one is a NaN: the bits of magnitudes are ordered as they are, and those
// of NaNs lie above all others.
template <class Sample>
Sample louder(Sample level, Sample v) {
    using Bits = std::conditional_t<sizeof(Sample) == 4, int32_t, int64_t>;
    const Sample other = std::fabs(v);
    Bits of_level, of_other;
    std::memcpy(&of_level, &level, sizeof level);
    std::memcpy(&of_other, &other, sizeof other);
    return of_other > of_level ? other : level;
}

namespace maximum {

TORCHFX_FIELDS(maximum);

int32_t check(const Step& step, const StepCheck& check) {
    const int64_t width = step.integer(linked), kept = step.integer(before);
    if (width < 1 || check.channels % width || kept < 0 || (kept && !step.integer(past))) return TORCHFX_BAD_ARGUMENT;
    return TORCHFX_OK;
}

// The largest of many levels, a NaN where there is one.
template <class Sample>
Sample largest(const Sample* levels, int64_t count) {
    constexpr int64_t lanes = 64;
    Sample most[lanes] = {};
    const auto raise = TORCHFX_KERNELS(dynamics_kernels).of(Sample{}).raise;
    for (int64_t t = 0; t < count; t += lanes) raise(levels + t, std::min(lanes, count - t), most);
    return std::accumulate(most, most + lanes, Sample{0}, louder<Sample>);
}

// A window longer than the tile holds levels that all of the tile's samples look back at: their maximum stands for them.
template <class Sample>
int32_t run_on(const Step& step, const StepRun& run) {
    const int64_t width = step.integer(linked), kept = step.integer(before), groups = run.channels / width;
    const int64_t shared = std::max<int64_t>(0, kept - run.samples + 1), apart = kept - shared;
    const int64_t back = apart + (shared > 0), size = back + run.samples, stride = run.source.time_stride;
    const Signal<const Sample> x = {run.source.channel<const Sample>(0), run.source.channel_stride, stride, 1};
    const auto raise = TORCHFX_KERNELS(dynamics_kernels).of(Sample{}).raise;
    ScratchVector<Sample> levels(static_cast<size_t>(groups * size));
    ScratchVector<Sample> room(static_cast<size_t>(stride == 1 ? 0 : run.samples));
    for (int64_t g = 0; g < groups; ++g) {
        Sample *const own = step.pointer<Sample>(past) + g * kept, *const row = levels.data() + g * size;
        std::copy_n(own, apart, row);
        if (shared) row[apart] = largest(own + apart, shared);
        for (int64_t c = g * width; c < (g + 1) * width; ++c)
            raise(x.in_a_row(c, 0, run.samples, room.data()), run.samples, row + back);
        keep(row + back, 1, run.samples, own, kept);
    }
    return torchfx_sliding_max(step.dtype(), levels.data(), size, 1, run.target.data,
                               width * run.target.channel_stride, groups, run.samples, back + 1, run.threads);
}

int32_t run(const Step& step, const StepRun& run) {
    return step.dtype() == TORCHFX_F32 ? run_on<float>(step, run) : run_on<double>(step, run);
}

// Every tile reads what was kept.
int64_t shortest_tile(const Step& step) { return step.integer(before); }

}  // namespace maximum

namespace true_peak {

TORCHFX_FIELDS(true_peak);

int32_t check(const Step& step, const StepCheck&) {
    if (step.integer(middle) < 0 || step.integer(wait) < 1 || !step.integer(past)) return TORCHFX_BAD_ARGUMENT;
    return check_taps(step.pointer<const double>(taps), step.integer(n_taps), {step.integer(up), 1}, step.integer(up));
}

template <class Sample>
int32_t run_on(const Step& step, const StepRun& run) {
    const int64_t late = step.integer(wait), kept = 2 * late, size = kept + run.samples;
    const int64_t factor = step.integer(up), length = factor * run.samples, stride = run.source.time_stride;
    ScratchVector<Sample> heard(static_cast<size_t>(run.channels * size));
    ScratchVector<Sample> between(static_cast<size_t>(run.channels * length));
    for (int64_t c = 0; c < run.channels; ++c) {
        Sample *const own = step.pointer<Sample>(past) + c * kept, *const row = heard.data() + c * size;
        const Sample* const x = run.source.channel<const Sample>(c);
        std::copy_n(own, kept, row);
        copy(x, stride, run.samples, row + kept);
        keep(x, stride, run.samples, own, kept);
    }
    const int32_t status = torchfx_resample_forward(
        step.dtype(), heard.data(), size, 1, size, between.data(), length, run.channels, length,
        step.pointer<const double>(taps), factor, step.integer(n_taps), 1, step.integer(middle) + late * factor,
        run.threads);
    for_parts(run, [&](int64_t c, int64_t first, int64_t count) {
        const Sample* const x = heard.data() + c * size + late + first;
        const Sample* above = between.data() + c * length + first * factor;
        Sample* const y = run.target.channel<Sample>(c) + first;
        for (int64_t t = 0; t < count; ++t, above += factor) {
            Sample peak = std::fabs(x[t]);
            for (int64_t i = 0; i < factor; ++i) peak = louder(peak, above[i]);
            y[t] = peak;
        }
    });
    return status;
}

int32_t run(const Step& step, const StepRun& run) {
    return step.dtype() == TORCHFX_F32 ? run_on<float>(step, run) : run_on<double>(step, run);
}

}  // namespace true_peak
}  // namespace

extern const StepKind maximum_step = {false, false, maximum::check, maximum::run, maximum::shortest_tile};
extern const StepKind true_peak_step = {false, false, true_peak::check, true_peak::run, nullptr};

}  // namespace torchfx
