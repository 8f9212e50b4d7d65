// A quantiser with error feedback, channel by channel: each error waits for the one before it.
#include <algorithm>
#include <cmath>

#include "support/arena.h"
#include "support/pool.h"
#include "support/rows.h"
#include "support/signal.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

constexpr int64_t tile_samples = 512;
constexpr int64_t samples_per_thread = 1 << 13;  // fewer than these take less time than waking a thread

template <class Sample>
struct ErrorFeedback {
    Signal<const Sample> x, dither;
    Signal<Sample> y;
    int64_t samples;
    const double* taps;
    int64_t order;
    Rows rows;
    const double* state_in;
    double* state_out;

    void channel(int64_t c) const {
        double values[tile_samples], noise[tile_samples];
        ScratchVector<double> memory(static_cast<size_t>(order + tile_samples), 0.0);  // errors, the latest last
        double* const errors = memory.data() + order;
        const double* const own = taps + rows.of(c) * order;
        if (state_in) std::reverse_copy(state_in + c * order, state_in + (c + 1) * order, memory.data());
        for (int64_t start = 0; start < samples; start += tile_samples) {
            const int64_t count = std::min(tile_samples, samples - start);
            x.load(c, start, count, values);
            dither.load(c, start, count, noise);
            for (int64_t t = 0; t < count; ++t) {
                double wanted = values[t];
                for (int64_t k = order - 1; k >= 0; --k) wanted -= own[k] * errors[t - 1 - k];  // the latest last
                values[t] = std::nearbyint(wanted + noise[t]);
                errors[t] = values[t] - wanted;
            }
            y.store(c, start, count, values);
            std::copy(errors + count - order, errors + count, memory.data());
        }
        if (state_out) std::reverse_copy(memory.data(), errors, state_out + c * order);
    }
};

}  // namespace
}  // namespace torchfx

extern "C" int32_t torchfx_error_feedback_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    const void* dither, int64_t dither_channel_stride, int64_t dither_time_stride, int64_t dither_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* taps, int64_t order, int64_t rows, int64_t repeat,
    const double* state_in, double* state_out, int32_t threads) {
    using namespace torchfx;
    if ((dtype != TORCHFX_F32 && dtype != TORCHFX_F64) || !x || !dither || !y || !taps || x_repeat < 1 ||
        dither_repeat < 1 || channels < 1 || samples < 1 || order < 1 ||
        !Rows{rows, repeat}.valid(channels) || threads < 1)
        return TORCHFX_BAD_ARGUMENT;
    if (!std::all_of(taps, taps + rows * order, [](double tap) { return std::isfinite(tap); })) return TORCHFX_NOT_FINITE;
    const int wanted = static_cast<int>(std::clamp<int64_t>(channels * samples / samples_per_thread, 1, threads));
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        const ErrorFeedback<Sample> call = {
            {static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat},
            {static_cast<const Sample*>(dither), dither_channel_stride, dither_time_stride, dither_repeat},
            {static_cast<Sample*>(y), y_channel_stride, 1, 1},
            samples, taps, order, {rows, repeat}, state_in, state_out};
        parallel_for_or_throw(channels, wanted, [&](int64_t c) { call.channel(c); });
        return TORCHFX_OK;
    });
}
