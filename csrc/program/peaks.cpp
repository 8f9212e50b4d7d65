// The steps maximum and true_peak: the levels that detectors hear. Each keeps the last samples of what it read.
#include <algorithm>
#include <cmath>

#include "fir/taps.h"
#include "program/step.h"
#include "support/arena.h"

namespace torchfx {
namespace {

// The larger one of a level and |v|, a NaN where one is a NaN.
template <class Sample>
Sample louder(Sample level, Sample v) {
    const Sample other = std::fabs(v);
    return other > level || other != other ? other : level;
}

// Makes a row of the samples kept from before and the tile that `write` puts behind them; the last ones are kept.
template <class Sample, class Write>
void join(Sample* past, int64_t kept, int64_t count, Sample* row, Write&& write) {
    std::copy_n(past, kept, row);
    write(row + kept);
    std::copy_n(row + count, kept, past);
}

namespace maximum {

enum Argument { linked, before, past };

int32_t check(const Step& step, const StepCheck& check) {
    const int64_t width = step.integer(linked), kept = step.integer(before);
    if (width < 1 || check.channels % width || kept < 0 || (kept && !step.integer(past))) return TORCHFX_BAD_ARGUMENT;
    return TORCHFX_OK;
}

template <class Sample>
int32_t run_on(const Step& step, const StepRun& run) {
    const int64_t width = step.integer(linked), kept = step.integer(before), size = kept + run.samples;
    const int64_t groups = run.channels / width, stride = run.source.time_stride;
    ScratchVector<Sample> levels(static_cast<size_t>(groups * size));
    for (int64_t g = 0; g < groups; ++g)
        join(step.pointer<Sample>(past) + g * kept, kept, run.samples, levels.data() + g * size, [&](Sample* fresh) {
            for (int64_t c = g * width; c < (g + 1) * width; ++c) {
                const Sample* const x = run.source.channel<const Sample>(c);
                for (int64_t t = 0; t < run.samples; ++t) fresh[t] = louder(fresh[t], x[t * stride]);
            }
        });
    return torchfx_sliding_max(step.dtype(), levels.data(), size, 1, run.target.data,
                               width * run.target.channel_stride, groups, run.samples, kept + 1, run.threads);
}

int32_t run(const Step& step, const StepRun& run) {
    return step.dtype() == TORCHFX_F32 ? run_on<float>(step, run) : run_on<double>(step, run);
}

// Every tile reads again what was kept.
int64_t shortest_tile(const Step& step) { return 4 * step.integer(before); }

}  // namespace maximum

namespace true_peak {

enum Argument { taps, up, n_taps, middle, wait, past };

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
    for (int64_t c = 0; c < run.channels; ++c)
        join(step.pointer<Sample>(past) + c * kept, kept, run.samples, heard.data() + c * size, [&](Sample* fresh) {
            const Sample* const x = run.source.channel<const Sample>(c);
            for (int64_t t = 0; t < run.samples; ++t) fresh[t] = x[t * stride];
        });
    const int32_t status = torchfx_resample_forward(
        step.dtype(), heard.data(), size, 1, size, between.data(), length, run.channels, length,
        step.pointer<const double>(taps), factor, step.integer(n_taps), 1, step.integer(middle) + late * factor,
        run.threads);
    for (int64_t c = 0; c < run.channels; ++c) {
        const Sample *const x = heard.data() + c * size + late, *above = between.data() + c * length;
        Sample* const y = run.target.channel<Sample>(c);
        for (int64_t t = 0; t < run.samples; ++t, above += factor) {
            Sample peak = std::fabs(x[t]);
            for (int64_t i = 0; i < factor; ++i) peak = louder(peak, above[i]);
            y[t] = peak;
        }
    }
    return status;
}

int32_t run(const Step& step, const StepRun& run) {
    return step.dtype() == TORCHFX_F32 ? run_on<float>(step, run) : run_on<double>(step, run);
}

}  // namespace true_peak
}  // namespace

extern const StepKind maximum_step = {3, false, false, maximum::check, maximum::run, maximum::shortest_tile};
extern const StepKind true_peak_step = {6, false, false, true_peak::check, true_peak::run, nullptr};

}  // namespace torchfx
