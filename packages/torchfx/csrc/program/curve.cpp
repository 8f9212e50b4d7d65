// The step curve: each sample by itself, or at a multiple of the rate, between two low-passes.
#include <algorithm>
#include <cmath>

#include "curves/kernels.h"
#include "fir/taps.h"
#include "program/step.h"
#include "support/arena.h"
#include "support/pool.h"
#include "support/rows.h"

namespace torchfx {
namespace {

TORCHFX_FIELDS(curve);

Rows rows_of(const Step& step) { return {step.integer(rows), step.integer(repeat)}; }

int32_t check(const Step& step, const StepCheck& check) {
    const int64_t number = step.integer(curve), size = step.integer(length), times = step.integer(up);
    if (number < 0 || number >= TORCHFX_CURVE_COUNT || !step.integer(parameters) ||
        size < (number == TORCHFX_CURVE_table ? 2 : 1) || !rows_of(step).valid(check.channels) || times < 1)
        return TORCHFX_BAD_ARGUMENT;
    const double* const values = step.pointer<const double>(parameters);
    if (!std::all_of(values, values + rows_of(step).count * size, [](double v) { return std::isfinite(v); }))
        return TORCHFX_NOT_FINITE;
    if (times == 1) return TORCHFX_OK;
    if (step.integer(middle) < 0 || step.integer(wait) < 1 || !step.integer(past) || !step.integer(shaped))
        return TORCHFX_BAD_ARGUMENT;
    if (const int32_t status = check_taps(step.pointer<const double>(taps), step.integer(n_taps), {times, 1}, times))
        return status;
    return check_taps(step.pointer<const double>(taps_back), step.integer(n_taps_back), {1, 1}, 1);
}

template <class Sample>
int32_t run_on(const Step& step, const StepRun& run) {
    const auto kernel = TORCHFX_KERNELS(curve_kernels).of(Sample{})[step.integer(curve)];
    const int64_t size = step.integer(length), times = step.integer(up), stride = run.source.time_stride;
    const auto shape = [&](int64_t c, const Sample* x, int64_t count, Sample* y) {
        kernel(step.pointer<const double>(parameters) + rows_of(step).of(c) * size, size, x, count, y);
    };
    if (times == 1) {
        for_parts(run, [&](int64_t c, int64_t first, int64_t count) {
            const Sample* x = run.source.channel<const Sample>(c) + first * stride;
            Sample* const y = run.target.channel<Sample>(c) + first;
            if (stride != 1) {
                copy(x, stride, count, y);
                x = y;
            }
            shape(c, x, count, y);
        });
        return TORCHFX_OK;
    }
    // Both low-passes begin `wait` samples behind the tile.
    const int64_t kept = 2 * step.integer(wait), heard_size = kept + run.samples, fine_size = times * heard_size;
    const int64_t fine = times * run.samples, origin = step.integer(middle) + step.integer(wait) * times;
    ScratchVector<Sample> heard(static_cast<size_t>(run.channels * heard_size));
    ScratchVector<Sample> finer(static_cast<size_t>(run.channels * fine_size));
    for (int64_t c = 0; c < run.channels; ++c) {
        const Sample* const x = run.source.channel<const Sample>(c);
        Sample *const own = step.pointer<Sample>(past) + c * kept, *const row = heard.data() + c * heard_size;
        std::copy_n(own, kept, row);
        copy(x, stride, run.samples, row + kept);
        keep(x, stride, run.samples, own, kept);
    }
    if (const int32_t status = torchfx_resample_forward(
            step.dtype(), heard.data(), heard_size, 1, heard_size, finer.data() + times * kept, fine_size, run.channels, fine,
            step.pointer<const double>(taps), times, step.integer(n_taps), 1, origin, run.threads))
        return status;
    constexpr int64_t samples_per_thread = 1 << 15;
    const int threads =
        static_cast<int>(std::clamp<int64_t>(run.channels * fine / samples_per_thread, 1, run.threads));
    parallel_for(run.channels, threads, [&](int64_t c) {
        Sample *const own = step.pointer<Sample>(shaped) + c * times * kept, *const row = finer.data() + c * fine_size;
        std::copy_n(own, times * kept, row);
        shape(c, row + times * kept, fine, row + times * kept);
        keep(row + times * kept, 1, fine, own, times * kept);
    });
    return torchfx_resample_forward(
        step.dtype(), finer.data(), fine_size, 1, fine_size, run.target.data, run.target.channel_stride, run.channels,
        run.samples, step.pointer<const double>(taps_back), 1, step.integer(n_taps_back), times, origin, run.threads);
}

int32_t run(const Step& step, const StepRun& run) {
    return step.dtype() == TORCHFX_F32 ? run_on<float>(step, run) : run_on<double>(step, run);
}

}  // namespace

extern const StepKind curve_step = {true, false, check, run, nullptr};

}  // namespace torchfx
