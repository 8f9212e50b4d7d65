// Gains, delays and all-pass filters that swing with an oscillator: what it asks for is computed once for all channels
// that it modulates in the same way.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "dynamics/kernels.h"
#include "modulation/kernels.h"
#include "support/arena.h"
#include "support/pool.h"
#include "support/rows.h"
#include "support/signal.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

constexpr int64_t samples_per_thread = 1 << 14;  // fewer than these take less time than waking a thread
constexpr double coarseness = 0x1p24;
constexpr double least_delay = TORCHFX_LEAST_DELAY, highest_corner = 0.49;

// Settings in rows, the first of each the oscillator's turns per sample, and phases of the channels.
struct Oscillators {
    const double* settings;
    int64_t width;
    Rows rows;
    const double* phase_in;
    double* phase_out;

    const double* of(int64_t channel) const { return settings + rows.of(channel) * width; }
    Oscillator oscillator(int64_t channel) const {
        const double turns = *of(channel), coarse = std::nearbyint(turns * coarseness) / coarseness;
        return {coarse, turns - coarse, phase_in[channel]};
    }
    bool alike(int64_t a, int64_t b) const { return std::memcmp(phase_in + a, phase_in + b, sizeof(double)) == 0; }
    void go_on(int64_t channels, int64_t samples) const {
        const double n = static_cast<double>(samples);
        for (int64_t c = 0; c < channels; ++c) {
            const Oscillator at = oscillator(c);
            const double turns = at.coarse * n, phase = at.phase + ((turns - std::floor(turns)) + at.fine * n);
            phase_out[c] = phase - std::floor(phase);
        }
    }
    int32_t refusal(int32_t dtype, int64_t channels, int64_t samples, int32_t threads) const {
        if (!settings || !phase_in || !phase_out || (dtype != TORCHFX_F32 && dtype != TORCHFX_F64) || channels < 1 ||
            samples < 1 || !rows.valid(channels) || threads < 1)
            return TORCHFX_BAD_ARGUMENT;
        const bool finite =
            std::all_of(settings, settings + rows.count * width, [](double v) { return std::isfinite(v); });
        return finite ? TORCHFX_OK : TORCHFX_NOT_FINITE;
    }
};

// Channels with the same row and the same phase: of the row's channels `count` from number `first` on.
struct Group {
    const Rows& rows;
    int64_t row, first, count;

    int64_t channel(int64_t i) const { return rows.channel(row, first + i); }
};

// body(group, oscillator, settings) for groups of at most `most` channels; phases go on. Throws std::bad_alloc.
template <class Body>
void for_groups(const Oscillators& of, int64_t channels, int64_t samples, int64_t most, int threads, Body&& body) {
    const int wanted = static_cast<int>(std::clamp<int64_t>(channels * samples / samples_per_thread, 1, threads));
    const int64_t size = std::clamp<int64_t>(channels / wanted, 1, most);
    ScratchVector<Group> groups;
    groups.reserve(static_cast<size_t>(channels));
    for (int64_t row = 0; row < of.rows.count; ++row)
        for (int64_t k = 0; k < of.rows.channels(row, channels); ++k) {
            const bool joins = k > 0 && groups.back().count < size &&
                               of.alike(of.rows.channel(row, k), groups.back().channel(0));
            if (joins) ++groups.back().count;
            else groups.push_back({of.rows, row, k, 1});
        }
    parallel_for_or_throw(static_cast<int64_t>(groups.size()), wanted, [&](int64_t i) {
        const Group& group = groups[static_cast<size_t>(i)];
        body(group, of.oscillator(group.channel(0)), of.of(group.channel(0)));
    });
    of.go_on(channels, samples);
}

// body(start, count) for tiles.
template <class Body>
void for_tiles(int64_t samples, Body&& body) {
    for (int64_t start = 0; start < samples; start += modulation_tile)
        body(start, std::min(modulation_tile, samples - start));
}

template <class Sample>
void modulate_gain(const Signal<const Sample>& x, const Signal<Sample>& y, int64_t channels, int64_t samples,
                   const Oscillators& of, int threads) {
    const ModulationKernels& kernels = TORCHFX_KERNELS(modulation_kernels);
    const auto scale = TORCHFX_KERNELS(dynamics_kernels).of(Sample{}).scale;
    for_groups(of, channels, samples, most_modulated, threads,
               [&](const Group& group, const Oscillator& oscillator, const double* own) {
        double factors[modulation_tile];
        Sample row[modulation_tile];
        for_tiles(samples, [&](int64_t start, int64_t count) {
            kernels.gains(oscillator, start, count, own[1], own[2], factors);
            for (int64_t i = 0; i < group.count; ++i) {
                const int64_t c = group.channel(i);
                scale(x.in_a_row(c, start, count, row), factors, count, y.of(c) + start);
            }
        });
    });
}

template <class Sample>
struct ModulatedDelay {
    Signal<const Sample> x;
    const Sample* past;
    Sample* past_out;
    int64_t kept;
    Signal<Sample> y;

    // Samples [start, start + count) of a channel, in a row behind `reach` samples before.
    const Sample* heard(int64_t channel, int64_t start, int64_t count, int64_t reach, Sample* room) const {
        if (x.time_stride == 1 && start >= reach) return x.of(channel) + start;
        const int64_t old = std::clamp<int64_t>(reach - start, 0, reach);
        std::copy_n(past + channel * kept + kept - old, old, room);
        const Sample* const from = x.of(channel) + (start - reach + old) * x.time_stride;
        for (int64_t t = 0; t < reach - old + count; ++t) room[old + t] = from[t * x.time_stride];
        return room + reach;
    }

    void run(int64_t channels, int64_t samples, const Oscillators& of, int threads) const {
        const ModulationKernels& kernels = TORCHFX_KERNELS(modulation_kernels);
        for_groups(of, channels, samples, most_modulated, threads,
                   [&](const Group& group, const Oscillator& oscillator, const double* own) {
            const double most = static_cast<double>(kept) - least_delay, farthest = std::ceil(own[1] + std::fabs(own[2]));
            const SwingingDelay swing = {own[1], own[2], least_delay, std::clamp(farthest, least_delay, most)};
            if (own[4] != 0) return feed_back(group, oscillator, own, swing, samples);
            const int64_t reach = static_cast<int64_t>(swing.most) + 1;
            ScratchVector<Sample> room(static_cast<size_t>(reach + modulation_tile));
            DelayTaps taps;
            for_tiles(samples, [&](int64_t start, int64_t count) {
                kernels.delays(oscillator, start, count, swing, own[3], &taps);
                for (int64_t i = 0; i < group.count; ++i) {
                    const int64_t c = group.channel(i);
                    const Sample* const from = heard(c, start, count, reach, room.data());
                    kernels.interpolate(Sample{})(from, count, 1 - own[3], taps, y.of(c) + start);
                }
            });
            for (int64_t i = 0; i < group.count; ++i) keep_input(group.channel(i), samples);
        });
    }

    void keep_input(int64_t channel, int64_t samples) const {
        Sample* const to = past_out + channel * kept;
        if (past_out != past) std::copy_n(past + channel * kept, kept, to);
        keep(x.of(channel), x.time_stride, samples, to, kept);
    }

    // A line for each channel: `kept` samples, and a tile that is the input until the delayed one is added.
    void feed_back(const Group& group, const Oscillator& oscillator, const double* own, const SwingingDelay& swing,
                   int64_t samples) const {
        const ModulationKernels& kernels = TORCHFX_KERNELS(modulation_kernels);
        ScratchVector<Sample> lines(static_cast<size_t>(group.count * (kept + modulation_tile)));
        const auto line = [&](int64_t i) { return lines.data() + i * (kept + modulation_tile); };
        for (int64_t i = 0; i < group.count; ++i) std::copy_n(past + group.channel(i) * kept, kept, line(i));
        DelayTaps taps;
        for_tiles(samples, [&](int64_t start, int64_t count) {
            kernels.delays(oscillator, start, count, swing, 1.0, &taps);
            for (int64_t i = 0; i < group.count; ++i) {
                const int64_t c = group.channel(i);
                Sample* const tile = line(i) + kept;
                const Sample* const from = x.of(c) + start * x.time_stride;
                for (int64_t t = 0; t < count; ++t) tile[t] = from[t * x.time_stride];
                kernels.feed_back(Sample{})(tile, count, 1 - own[3], own[3], own[4], taps, y.of(c) + start);
                std::copy(line(i) + count, tile + count, line(i));
            }
        });
        for (int64_t i = 0; i < group.count; ++i) std::copy_n(line(i), kept, past_out + group.channel(i) * kept);
    }
};

template <class Sample>
void phase_shift(const Signal<const Sample>& x, const Signal<Sample>& y, int64_t channels, int64_t samples, int64_t stages,
                 const Oscillators& of, const double* state_in, double* state_out, int threads) {
    const ModulationKernels& kernels = TORCHFX_KERNELS(modulation_kernels);
    const int64_t lanes = kernels.lanes;
    for_groups(of, channels, samples, lanes, threads,
               [&](const Group& group, const Oscillator& oscillator, const double* own) {
        double tiles[most_modulated][modulation_tile] = {}, a[modulation_tile];
        double* rows[most_modulated];
        for (int i = 0; i < most_modulated; ++i) rows[i] = tiles[i];
        ScratchVector<double> state(static_cast<size_t>(stages * lanes), 0.0);
        const auto for_states = [&](auto&& body) {
            for (int64_t k = 0; k < stages; ++k)
                for (int64_t i = 0; i < group.count; ++i)
                    body(state[static_cast<size_t>(k * lanes + i)], k * channels + group.channel(i));
        };
        for_states([&](double& value, int64_t at) { value = state_in[at]; });
        for_tiles(samples, [&](int64_t start, int64_t count) {
            kernels.coefficients(oscillator, start, count, own[1], own[2], highest_corner, a);
            for (int64_t i = 0; i < group.count; ++i) x.load(group.channel(i), start, count, tiles[i]);
            if (own[4] == 0) kernels.allpass(rows, count, a, stages, state.data(), 1 - own[3], own[3]);
            else kernels.allpass_loop(rows, count, a, stages, state.data(), 1 - own[3], own[3], own[4]);
            for (int64_t i = 0; i < group.count; ++i) y.store(group.channel(i), start, count, tiles[i]);
            flush_tiny(state.data(), stages * lanes);
        });
        for_states([&](double& value, int64_t at) { state_out[at] = value; });
    });
}

}  // namespace
}  // namespace torchfx

extern "C" int32_t torchfx_modulated_gain_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* settings, int64_t rows, int64_t repeat, const double* phase_in, double* phase_out, int32_t threads) {
    using namespace torchfx;
    const Oscillators of = {settings, TORCHFX_MODULATED_GAIN_SETTINGS, {rows, repeat}, phase_in, phase_out};
    if (const int32_t refused = of.refusal(dtype, channels, samples, threads)) return refused;
    if (!x || !y || x_repeat < 1) return TORCHFX_BAD_ARGUMENT;
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        modulate_gain<Sample>({static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat},
                              {static_cast<Sample*>(y), y_channel_stride, 1, 1}, channels, samples, of, threads);
        return TORCHFX_OK;
    });
}

extern "C" int32_t torchfx_modulated_delay_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    const void* past_in, void* past_out, int64_t kept, void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* settings, int64_t rows, int64_t repeat, const double* phase_in, double* phase_out, int32_t threads) {
    using namespace torchfx;
    const Oscillators of = {settings, TORCHFX_MODULATED_DELAY_SETTINGS, {rows, repeat}, phase_in, phase_out};
    if (const int32_t refused = of.refusal(dtype, channels, samples, threads)) return refused;
    if (!x || !past_in || !past_out || !y || x_repeat < 1 || kept < 2 * TORCHFX_LEAST_DELAY || kept > std::numeric_limits<int32_t>::max())
        return TORCHFX_BAD_ARGUMENT;
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        const ModulatedDelay<Sample> call = {
            {static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat}, static_cast<const Sample*>(past_in),
            static_cast<Sample*>(past_out), kept, {static_cast<Sample*>(y), y_channel_stride, 1, 1}};
        call.run(channels, samples, of, threads);
        return TORCHFX_OK;
    });
}

extern "C" int32_t torchfx_phaser_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples, int64_t stages,
    const double* settings, int64_t rows, int64_t repeat, const double* phase_in, double* phase_out,
    const double* state_in, double* state_out, int32_t threads) {
    using namespace torchfx;
    const Oscillators of = {settings, TORCHFX_PHASER_SETTINGS, {rows, repeat}, phase_in, phase_out};
    if (const int32_t refused = of.refusal(dtype, channels, samples, threads)) return refused;
    if (!x || !y || x_repeat < 1 || stages < 1 || !state_in || !state_out) return TORCHFX_BAD_ARGUMENT;
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        phase_shift<Sample>({static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat},
                            {static_cast<Sample*>(y), y_channel_stride, 1, 1}, channels, samples, stages, of, state_in,
                            state_out, threads);
        return TORCHFX_OK;
    });
}
