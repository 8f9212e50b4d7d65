// The step transient: the signal times a gain that follows how far the level lies from two envelopes of it.
#include <algorithm>
#include <cmath>

#include "program/step.h"
#include "support/pool.h"
#include "support/rows.h"

namespace torchfx {
namespace {

TORCHFX_FIELDS(transient);

// A row of the settings.
struct Settings {
    double attack_db, sustain_db;
    double attack, sustain;  // coefficients of the envelopes
    double quietest_db, span_db;
};
constexpr int64_t columns = sizeof(Settings) / sizeof(double);

Rows rows_of(const Step& step) { return {step.integer(rows), step.integer(repeat)}; }

int32_t check(const Step& step, const StepCheck& check) {
    const int64_t width = step.integer(linked);
    if (!check.holds(step.integer(peaks), step.dtype()) || step.integer(peaks) == step.target() || width < 1 ||
        check.channels % width || !step.integer(settings) || !step.integer(rising) || !step.integer(falling) ||
        !rows_of(step).valid(check.channels / width))
        return TORCHFX_BAD_ARGUMENT;
    const double* const values = step.pointer<const double>(settings);
    const bool finite =
        std::all_of(values, values + rows_of(step).count * columns, [](double v) { return std::isfinite(v); });
    return finite ? TORCHFX_OK : TORCHFX_NOT_FINITE;
}

// NaN from a NaN on: std::max and std::min return their first argument where one is a NaN.
double gain(const Settings& of, double peak, double& rise, double& fall) {
    const double level = std::max(20 * std::log10(peak) - of.quietest_db, 0.0);
    rise = level > rise ? rise + of.attack * (level - rise) : level;
    fall = level > fall ? level : fall + of.sustain * (level - fall);
    const double beginning = std::min(std::fabs(level - rise) / of.span_db, 1.0);
    const double decaying = std::min(std::fabs(level - fall) / of.span_db, 1.0);
    constexpr double per_db = 0.11512925464970229;  // log(10) / 20
    return std::exp((of.attack_db * beginning + of.sustain_db * decaying) * per_db);
}

template <class Sample>
void run_group(const Step& step, const StepRun& run, int64_t group) {
    constexpr int64_t tile_samples = 512;
    const int64_t width = step.integer(linked), stride = run.source.time_stride;
    const Settings& own = step.pointer<const Settings>(settings)[rows_of(step).of(group)];
    double &rise = step.pointer<double>(rising)[group], &fall = step.pointer<double>(falling)[group];
    const Samples& heard = run.buffers[step.integer(peaks)];
    const Sample* const levels = heard.channel<const Sample>(group * width);
    double gains[tile_samples];
    for (int64_t start = 0; start < run.samples; start += tile_samples) {
        const int64_t count = std::min(tile_samples, run.samples - start);
        for (int64_t t = 0; t < count; ++t) gains[t] = gain(own, levels[(start + t) * heard.time_stride], rise, fall);
        for (int64_t c = group * width; c < (group + 1) * width; ++c) {
            const Sample* const x = run.source.channel<const Sample>(c) + start * stride;
            Sample* const y = run.target.channel<Sample>(c) + start;
            for (int64_t t = 0; t < count; ++t) y[t] = static_cast<Sample>(x[t * stride] * gains[t]);
        }
    }
}

int32_t run(const Step& step, const StepRun& run) {
    constexpr int64_t samples_per_thread = 1 << 12;
    const int64_t groups = run.channels / step.integer(linked);
    const int threads = static_cast<int>(std::clamp<int64_t>(groups * run.samples / samples_per_thread, 1, run.threads));
    parallel_for(groups, threads, [&](int64_t group) {
        if (step.dtype() == TORCHFX_F32) run_group<float>(step, run, group);
        else run_group<double>(step, run, group);
    });
    return TORCHFX_OK;
}

}  // namespace

extern const StepKind transient_step = {true, false, check, run, nullptr};

}  // namespace torchfx
