// The steps fir and partitioned: finite impulse responses.
#include "fir/partitioned.h"
#include "fir/taps.h"
#include "program/step.h"

namespace torchfx {
namespace {

// With the fields taps, n_taps, rows, repeat and state, in this order, from `first` on.
int32_t filter_whole(const Step& step, const StepRun& run, int64_t first) {
    double* const states = step.pointer<double>(first + 4);
    return torchfx_fir_forward(step.dtype(), run.source.data, run.source.channel_stride, run.source.time_stride, 1,
                               run.target.data, run.target.channel_stride, run.channels, run.samples,
                               step.pointer<const double>(first), step.integer(first + 1), step.integer(first + 2),
                               step.integer(first + 3), states, states, run.threads);
}

namespace whole {

TORCHFX_FIELDS(fir);

int32_t check(const Step& step, const StepCheck& check) {
    if (step.integer(n_taps) > 1 && !step.integer(state)) return TORCHFX_BAD_ARGUMENT;
    return check_taps(step.pointer<const double>(taps), step.integer(n_taps), {step.integer(rows), step.integer(repeat)},
                      check.channels);
}

int32_t run(const Step& step, const StepRun& run) { return filter_whole(step, run, taps); }

// Every tile transforms the taps again.
int64_t shortest_tile(const Step& step) { return 4 * step.integer(n_taps); }

}  // namespace whole

namespace partitioned {

TORCHFX_FIELDS(partitioned);

PartitionedFir fir_of(const Step& step, int64_t channels) {
    const FirFilters filters = {step.pointer<const double>(taps), step.integer(n_taps), step.integer(n_taps),
                                {step.integer(rows), step.integer(repeat)}};
    return {channels, step.integer(width), filters, step.pointer<double>(state), step.pointer<double>(work)};
}

int32_t check(const Step& step, const StepCheck& check) {
    return check_partitioned(fir_of(step, check.channels));
}

int32_t run(const Step& step, const StepRun& run) {
    // Blocks much longer than the taps take less time at once.
    if (step.integer(width) == 1 && run.samples >= 4 * step.integer(n_taps)) {
        settle(fir_of(step, run.channels), run.threads);
        return filter_whole(step, run, taps);
    }
    const FirSignal signal = {run.source.data, step.dtype(), run.source.time_stride, run.samples, nullptr, 0};
    const FirOutput output = {run.target.data, step.dtype(), run.samples, nullptr, 0};
    filter_partitioned(fir_of(step, run.channels), signal, run.source.channel_stride, output, run.target.channel_stride,
                       run.threads);
    return TORCHFX_OK;
}

}  // namespace partitioned
}  // namespace

extern const StepKind fir_step = {false, false, whole::check, whole::run, whole::shortest_tile};
extern const StepKind partitioned_step = {false, false, partitioned::check, partitioned::run, nullptr};

}  // namespace torchfx
