// torchfx_ballistics_forward and torchfx_dynamics_gain: groups of channels, in tiles of doubles; torchfx_sliding_max.
#include <algorithm>
#include <cmath>
#include <new>
#include <vector>

#include "dynamics/kernels.h"
#include "support/pool.h"
#include "support/rows.h"
#include "support/signal.h"
#include "support/subnormals.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

constexpr int64_t tile_samples = 512;
constexpr int64_t room = 8;                     // behind a tile: kernels work on whole vectors
constexpr int64_t samples_per_thread = 1 << 14;  // fewer than these take less time than waking a thread
constexpr int64_t maximum_samples = 4096;       // of a tile, at least

template <class Sample>
struct Detector {
    Signal<const Sample> x;
    Signal<Sample> y;
    int64_t channels, samples;
    const double* settings;  // (rows, width), the last two being rise and fall
    int64_t width;
    Rows rows;
    const double* state_in;
    double* state_out;

    const double* of(int64_t channel) const { return settings + rows.of(channel) * width; }

    // step(first, smoothed, group, count): runs the kernel on a tile of `group` channels from `first` on.
    template <class Step>
    void run(int threads, Step&& step) const {
        const int wanted =
            static_cast<int>(std::clamp<int64_t>(channels * samples / samples_per_thread, 1, threads));
        const int64_t size = std::clamp<int64_t>(channels / wanted, 1, most_smoothed);
        parallel_for((channels + size - 1) / size, wanted, [&](int64_t group) {
            const int64_t first = group * size, count = std::min(size, channels - first);
            double tiles[most_smoothed][tile_samples + room] = {};
            Smoothed smoothed[most_smoothed];
            for (int64_t i = 0; i < count; ++i) {
                const double* const own = of(first + i) + width - 2;
                smoothed[i] = {own[0], own[1], state_in ? state_in[first + i] : 0, tiles[i]};
            }
            for (int64_t start = 0; start < samples; start += tile_samples) {
                const int64_t n = std::min(tile_samples, samples - start);
                for (int64_t i = 0; i < count; ++i) x.load(first + i, start, n, tiles[i]);
                step(first, smoothed, count, n);
                for (int64_t i = 0; i < count; ++i) {
                    flush_tiny(&smoothed[i].y, 1);
                    y.store(first + i, start, n, tiles[i]);
                }
            }
            for (int64_t i = 0; i < count && state_out; ++i) state_out[first + i] = smoothed[i].y;
        });
    }

    int32_t refusal(int32_t dtype, int32_t threads) const {
        if (!x.data || !y.data || !settings || (dtype != TORCHFX_F32 && dtype != TORCHFX_F64) || channels < 1 ||
            samples < 1 || x.repeat < 1 || !rows.valid(channels) || threads < 1)
            return TORCHFX_BAD_ARGUMENT;
        const bool finite =
            std::all_of(settings, settings + rows.count * width, [](double v) { return std::isfinite(v); });
        return finite ? TORCHFX_OK : TORCHFX_NOT_FINITE;
    }
};

// Calls run with a float or a double.
template <class F>
int32_t with_type(int32_t dtype, F&& run) {
    const FlushSubnormals flush(dtype == TORCHFX_F64);
    return dtype == TORCHFX_F32 ? run(float{}) : run(double{});
}

}  // namespace
}  // namespace torchfx

extern "C" int32_t torchfx_ballistics_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* coefficients, int64_t rows, int64_t repeat,
    const double* state_in, double* state_out, int32_t threads) {
    using namespace torchfx;
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        const Detector<Sample> call = {{static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat},
                                       {static_cast<Sample*>(y), y_channel_stride, 1, 1},
                                       channels, samples, coefficients, 2, {rows, repeat}, state_in, state_out};
        if (const int32_t refused = call.refusal(dtype, threads)) return refused;
        const DynamicsKernels& kernels = TORCHFX_KERNELS(dynamics_kernels);
        call.run(threads, [&](int64_t, Smoothed* smoothed, int64_t group, int64_t count) {
            kernels.smooth[group](smoothed, count);
        });
        return TORCHFX_OK;
    });
}

extern "C" int32_t torchfx_dynamics_gain(
    int32_t dtype, const void* key, int64_t key_channel_stride, int64_t key_time_stride, int64_t key_repeat,
    void* gain, int64_t gain_channel_stride, int64_t channels, int64_t samples,
    const double* settings, int64_t rows, int64_t repeat,
    const double* state_in, double* state_out, int32_t threads) {
    using namespace torchfx;
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        const Detector<Sample> call = {
            {static_cast<const Sample*>(key), key_channel_stride, key_time_stride, key_repeat},
            {static_cast<Sample*>(gain), gain_channel_stride, 1, 1},
            channels, samples, settings, TORCHFX_DYNAMICS_SETTINGS, {rows, repeat}, state_in, state_out};
        if (const int32_t refused = call.refusal(dtype, threads)) return refused;
        const DynamicsKernels& kernels = TORCHFX_KERNELS(dynamics_kernels);
        call.run(threads, [&](int64_t first, Smoothed* smoothed, int64_t group, int64_t count) {
            GainCurve curves[most_smoothed];
            for (int64_t i = 0; i < group; ++i) {
                const double* const of = call.of(first + i);
                curves[i] = {of[0], of[1], of[2], of[3], of[4], of[5]};
            }
            kernels.gain[group](curves, smoothed, count);
        });
        return TORCHFX_OK;
    });
}

extern "C" int32_t torchfx_sliding_max(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples, int64_t window, int32_t threads) {
    using namespace torchfx;
    if (!x || !y || (dtype != TORCHFX_F32 && dtype != TORCHFX_F64) || channels < 1 || samples < 1 || window < 1 ||
        threads < 1)
        return TORCHFX_BAD_ARGUMENT;
    const DynamicsKernels& kernels = TORCHFX_KERNELS(dynamics_kernels);
    const int64_t tile = std::min(samples, std::max(maximum_samples, window));
    const int64_t parts = (samples + tile - 1) / tile;
    const int wanted = static_cast<int>(std::clamp<int64_t>(channels * samples / samples_per_thread, 1, threads));
    try {
        return with_type(dtype, [&](auto sample) -> int32_t {
            using Sample = decltype(sample);
            parallel_for_or_throw(channels * parts, wanted, [&](int64_t i) {
                const int64_t c = i / parts, start = i % parts * tile, count = std::min(tile, samples - start);
                const Sample* const from = static_cast<const Sample*>(x) + c * x_channel_stride + start * x_time_stride;
                std::vector<Sample> heard(static_cast<size_t>(count + window - 1));
                for (size_t t = 0; t < heard.size(); ++t) heard[t] = from[static_cast<int64_t>(t) * x_time_stride];
                kernels.maximum(heard.data(), count, window);
                std::copy_n(heard.data(), count, static_cast<Sample*>(y) + c * y_channel_stride + start);
            });
            return TORCHFX_OK;
        });
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
}
