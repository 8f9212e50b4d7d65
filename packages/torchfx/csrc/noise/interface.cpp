// Random noise by its place: threads share the channels and stretches of their time.
#include <algorithm>
#include <cmath>
#include <vector>

#include "noise/kernels.h"
#include "support/pool.h"
#include "support/rows.h"
#include "support/signal.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

constexpr int64_t stretch_samples = 1 << 14;  // fewer than these take less time than waking a thread

// body(channel, start, count) for all stretches, numbered channel by channel. Throws std::bad_alloc.
template <class Body>
void for_stretches(int64_t channels, int64_t samples, int threads, Body&& body) {
    const int64_t each = (samples + stretch_samples - 1) / stretch_samples;
    const int wanted = static_cast<int>(std::clamp<int64_t>(channels * samples / stretch_samples, 1, threads));
    parallel_for(channels * each, wanted, [&](int64_t i) {
        const int64_t start = i % each * stretch_samples;
        body(i / each, start, std::min(stretch_samples, samples - start));
    });
}

// body(start, count) for the tiles of a stretch.
template <class Body>
void for_tiles(int64_t start, int64_t count, Body&& body) {
    for (const int64_t end = start + count; start < end; start += noise_tile)
        body(start, std::min(noise_tile, end - start));
}

// The roots of what energy(channel, start, count) adds up to, in the same order whatever the threads.
template <class Energy>
int32_t magnitudes_of(int64_t channels, int64_t samples, int threads, double* magnitudes, Energy&& energy) {
    const int64_t each = (samples + stretch_samples - 1) / stretch_samples;
    std::vector<double> energies(static_cast<std::size_t>(channels * each));
    for_stretches(channels, samples, threads, [&](int64_t c, int64_t start, int64_t count) {
        double sum = 0;
        for_tiles(start, count, [&](int64_t at, int64_t n) { sum += energy(c, at, n); });
        energies[static_cast<std::size_t>(c * each + start / stretch_samples)] = sum;
    });
    for (int64_t c = 0; c < channels; ++c) {
        double sum = 0;
        for (int64_t i = 0; i < each; ++i) sum += energies[static_cast<std::size_t>(c * each + i)];
        magnitudes[c] = std::sqrt(sum);
    }
    return TORCHFX_OK;
}

}  // namespace
}  // namespace torchfx

using namespace torchfx;

extern "C" {

int32_t torchfx_noise_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* gains, int64_t gain_rows, int64_t gain_repeat,
    const int64_t* places, int64_t rows, int64_t repeat, int64_t key, int32_t density, int32_t rounded, int32_t threads) {
    const Rows gains_of = {gain_rows, gain_repeat}, places_of = {rows, repeat};
    if ((dtype != TORCHFX_F32 && dtype != TORCHFX_F64) || !x || !y || !gains || !places || x_repeat < 1 || channels < 1 ||
        samples < 1 || !gains_of.valid(channels) || !places_of.valid(channels) || density < TORCHFX_NORMAL ||
        density > TORCHFX_DIFFERENCES || threads < 1)
        return TORCHFX_BAD_ARGUMENT;
    const NoiseKernels& kernels = TORCHFX_KERNELS(noise_kernels);
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        const Signal<const Sample> from = {static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat};
        const auto combine = rounded ? kernels.of(sample).round : kernels.of(sample).add;
        for_stretches(channels, samples, threads, [&](int64_t c, int64_t start, int64_t count) {
            const uint64_t place = static_cast<uint64_t>(places[places_of.of(c)]);
            Sample* const to = static_cast<Sample*>(y) + c * y_channel_stride;
            for_tiles(start, count, [&](int64_t at, int64_t n) {
                double room[noise_tile + 2 * noise_block];
                Sample row[noise_tile];
                const double* noise =
                    kernels.noise[density](place + static_cast<uint64_t>(at), static_cast<uint64_t>(key), n, room);
                combine(from.in_a_row(c, at, n, row), gains[gains_of.of(c)], noise, n, to + at);
            });
        });
        return TORCHFX_OK;
    });
}

int32_t torchfx_noise_magnitude(const int64_t* places, int64_t channels, int64_t samples, int64_t key, double* magnitudes,
                                int32_t threads) {
    if (!places || !magnitudes || channels < 1 || samples < 1 || threads < 1) return TORCHFX_BAD_ARGUMENT;
    const NoiseKernels& kernels = TORCHFX_KERNELS(noise_kernels);
    return with_type(TORCHFX_F64, [&](auto) -> int32_t {
        return magnitudes_of(channels, samples, threads, magnitudes, [&](int64_t c, int64_t at, int64_t n) {
            double room[noise_tile + 2 * noise_block];
            const uint64_t place = static_cast<uint64_t>(places[c]) + static_cast<uint64_t>(at);
            return kernels.of_doubles.energy(kernels.noise[TORCHFX_NORMAL](place, static_cast<uint64_t>(key), n, room), n);
        });
    });
}

int32_t torchfx_magnitude(int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t channels,
                          int64_t samples, double* magnitudes, int32_t threads) {
    if ((dtype != TORCHFX_F32 && dtype != TORCHFX_F64) || !x || !magnitudes || channels < 1 || samples < 1 || threads < 1)
        return TORCHFX_BAD_ARGUMENT;
    const NoiseKernels& kernels = TORCHFX_KERNELS(noise_kernels);
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        const Signal<const Sample> from = {static_cast<const Sample*>(x), x_channel_stride, x_time_stride, 1};
        return magnitudes_of(channels, samples, threads, magnitudes, [&](int64_t c, int64_t at, int64_t n) {
            Sample row[noise_tile];
            return kernels.of(sample).energy(from.in_a_row(c, at, n, row), n);
        });
    });
}

}  // extern "C"
