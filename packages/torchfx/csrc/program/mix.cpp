// The step mix: channels of a group as weighted sums of each other, added up in double.
#include <algorithm>
#include <cmath>

#include "program/step.h"
#include "support/rows.h"
#include "support/signal.h"

namespace torchfx {
namespace {

TORCHFX_FIELDS(mix);

constexpr int64_t tile_samples = 512;

int32_t check(const Step& step, const StepCheck& check) {
    const int64_t n = step.integer(width);
    if (n < 1 || check.channels % n || !step.integer(weights)) return TORCHFX_BAD_ARGUMENT;
    const Rows of_weights = {step.integer(rows), step.integer(repeat)};
    if (!of_weights.valid(check.channels / n)) return TORCHFX_BAD_ARGUMENT;
    const double* const values = step.pointer<const double>(weights);
    const bool finite =
        std::all_of(values, values + of_weights.count * n * n, [](double v) { return std::isfinite(v); });
    return finite ? TORCHFX_OK : TORCHFX_NOT_FINITE;
}

template <class Sample>
void mix(const Step& step, const StepRun& run, int64_t channel, int64_t start, int64_t count) {
    const int64_t n = step.integer(width), first = channel / n * n, stride = run.source.time_stride;
    const Rows of_weights = {step.integer(rows), step.integer(repeat)};
    const double* const own = step.pointer<const double>(weights) + (of_weights.of(channel / n) * n + channel % n) * n;
    double sums[tile_samples] = {};
    for (int64_t i = 0; i < n; ++i) {
        const Sample* const x = run.source.channel<const Sample>(first + i) + start * stride;
        if (stride == 1)
            for (int64_t t = 0; t < count; ++t) sums[t] += own[i] * static_cast<double>(x[t]);
        else
            for (int64_t t = 0; t < count; ++t) sums[t] += own[i] * static_cast<double>(x[t * stride]);
    }
    Sample* const y = run.target.channel<Sample>(channel) + start;
    for (int64_t t = 0; t < count; ++t) y[t] = static_cast<Sample>(sums[t]);
}

int32_t run(const Step& step, const StepRun& run) {
    return with_type(step.dtype(), [&](auto sample) -> int32_t {
        for_parts(run, [&](int64_t c, int64_t first, int64_t count) {
            for (int64_t start = first; start < first + count; start += tile_samples)
                mix<decltype(sample)>(step, run, c, start, std::min(tile_samples, first + count - start));
        });
        return TORCHFX_OK;
    });
}

}  // namespace

extern const StepKind mix_step = {false, false, check, run, nullptr};

}  // namespace torchfx
