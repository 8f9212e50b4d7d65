// Detectors, dynamics processors and limiters, tile by tile, from a signal to the signal that they make of it.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "dynamics/kernels.h"
#include "support/arena.h"
#include "support/pool.h"
#include "support/rows.h"
#include "support/scratch.h"
#include "support/signal.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

constexpr int64_t tile_samples = 512;
constexpr int64_t vector_room = 8;              // behind a tile: kernels work on whole vectors
constexpr int64_t samples_per_thread = 1 << 14;  // fewer than these take less time than waking a thread
constexpr int64_t maximum_samples = 4096;       // of a tile of maxima, at least
constexpr int64_t limiter_samples = 1024;       // of a limiter's tile, at least

// Channels that share one recursion: group g has `width` of them, `inner` apart.
struct Groups {
    int64_t count, width, inner;

    int64_t channel(int64_t group, int64_t i) const { return (group / inner * width + i) * inner + group % inner; }
    bool valid() const { return count >= 1 && width >= 1 && inner >= 1 && count % inner == 0; }
};

// What a recursion has of its own: rows of settings, and its output before the first sample and after the last.
struct Recursions {
    const double* settings;
    int64_t width;
    Rows rows;
    const double* state_in;
    double* state_out;

    const double* of(int64_t group) const { return settings + rows.of(group) * width; }

    int32_t refusal(int32_t dtype, int64_t groups, int64_t samples, int32_t threads) const {
        if (!settings || (dtype != TORCHFX_F32 && dtype != TORCHFX_F64) || groups < 1 || samples < 1 ||
            !rows.valid(groups) || threads < 1)
            return TORCHFX_BAD_ARGUMENT;
        const bool finite =
            std::all_of(settings, settings + rows.count * width, [](double v) { return std::isfinite(v); });
        return finite ? TORCHFX_OK : TORCHFX_NOT_FINITE;
    }
};

int threads_for(int64_t samples, int threads) {
    return static_cast<int>(std::clamp<int64_t>(samples / samples_per_thread, 1, threads));
}

// body(first, count) for all groups, at most `most_smoothed` at a time: their recursions overlap. Throws std::bad_alloc.
template <class Body>
void for_groups(int64_t groups, int64_t samples, int threads, Body&& body) {
    const int wanted = threads_for(groups * samples, threads);
    const int64_t size = std::clamp<int64_t>(groups / wanted, 1, most_smoothed);
    parallel_for_or_throw((groups + size - 1) / size, wanted,
                          [&](int64_t i) { body(i * size, std::min(size, groups - i * size)); });
}

// The levels that a group's detector hears: its own row of the key, or without one the loudest of its channels.
template <class Sample>
struct Levels {
    Signal<const Sample> x, key;
    Groups groups;

    void read(const DynamicsSampleKernels<Sample>& kernels, int64_t group, int64_t start, int64_t count, Sample* to,
              Sample* room) const {
        std::fill_n(to, count, Sample{0});
        if (key.data) kernels.raise(key.in_a_row(group, start, count, room), count, to);
        else
            for (int64_t i = 0; i < groups.width; ++i)
                kernels.raise(x.in_a_row(groups.channel(group, i), start, count, room), count, to);
    }
    // Samples whose magnitudes are the levels, in whole vectors: where they lie, if one channel has them all, or in `to`,
    // which has a vector's room behind them.
    const Sample* heard(const DynamicsSampleKernels<Sample>& kernels, int64_t group, int64_t start, int64_t count,
                        Sample* to, Sample* room) const {
        const Signal<const Sample>& only = key.data ? key : x;
        if ((key.data || groups.width == 1) && only.time_stride == 1 && count % vector_room == 0)
            return only.of(key.data ? group : groups.channel(group, 0)) + start;
        read(kernels, group, start, count, to, room);
        std::fill_n(to + count, vector_room, Sample{0});
        return to;
    }
    bool valid() const { return x.data && x.repeat >= 1 && (!key.data || key.repeat >= 1) && groups.valid(); }
};

template <class Sample>
void follow(const Signal<const Sample>& x, const Signal<Sample>& y, int64_t channels, int64_t samples,
            const Recursions& of, int threads) {
    const DynamicsKernels& kernels = TORCHFX_KERNELS(dynamics_kernels);
    for_groups(channels, samples, threads, [&](int64_t first, int64_t count) {
        double tiles[most_smoothed][tile_samples + vector_room];
        Smoothed smoothed[most_smoothed];
        for (int64_t i = 0; i < count; ++i) {
            const double* const own = of.of(first + i);
            smoothed[i] = {own[0], own[1], of.state_in ? of.state_in[first + i] : 0, tiles[i]};
        }
        for (int64_t start = 0; start < samples; start += tile_samples) {
            const int64_t n = std::min(tile_samples, samples - start);
            for (int64_t i = 0; i < count; ++i) x.load(first + i, start, n, tiles[i]);
            kernels.smooth[count](smoothed, n);
            for (int64_t i = 0; i < count; ++i) {
                flush_tiny(&smoothed[i].y, 1);
                y.store(first + i, start, n, tiles[i]);
            }
        }
        for (int64_t i = 0; i < count && of.state_out; ++i) of.state_out[first + i] = smoothed[i].y;
    });
}

// gains(settings, smoothed, keys, channels, samples): makes factors of keys, in the place of what is smoothed. A row of
// settings holds the coefficients of rise and fall from `ballistics` on.
template <class Sample, class Gains>
void multiply_by_gains(const Levels<Sample>& levels, const Signal<Sample>& y, int64_t samples, const Recursions& of,
                       int64_t ballistics, int threads, Gains&& gains) {
    const DynamicsSampleKernels<Sample>& kernels = TORCHFX_KERNELS(dynamics_kernels).of(Sample{});
    const Groups& groups = levels.groups;
    for_groups(groups.count, samples, threads, [&](int64_t first, int64_t count) {
        double tiles[most_smoothed][tile_samples + vector_room];
        Sample heard[most_smoothed][tile_samples + vector_room], row[tile_samples];
        const Sample* keys[most_smoothed];
        const double* own[most_smoothed];
        Smoothed smoothed[most_smoothed];
        for (int64_t i = 0; i < count; ++i) {
            own[i] = of.of(first + i);
            const double* const times = own[i] + ballistics;
            smoothed[i] = {times[0], times[1], of.state_in ? of.state_in[first + i] : 0, tiles[i]};
        }
        for (int64_t start = 0; start < samples; start += tile_samples) {
            const int64_t n = std::min(tile_samples, samples - start);
            for (int64_t i = 0; i < count; ++i) keys[i] = levels.heard(kernels, first + i, start, n, heard[i], row);
            gains(own, smoothed, keys, count, n);
            for (int64_t i = 0; i < count; ++i) {
                flush_tiny(&smoothed[i].y, 1);
                for (int64_t j = 0; j < groups.width; ++j) {
                    const int64_t c = groups.channel(first + i, j);
                    kernels.scale(levels.x.in_a_row(c, start, n, row), tiles[i], n, y.of(c) + start);
                }
            }
        }
        for (int64_t i = 0; i < count && of.state_out; ++i) of.state_out[first + i] = smoothed[i].y;
    });
}

// Of numbers whose sums are exact in any order (DynamicsKernels::average): sums side by side do not wait for each other.
double exact_sum(const double* values, int64_t count) {
    constexpr int64_t lanes = 8;
    double sums[lanes] = {};
    int64_t t = 0;
    for (; t + lanes <= count; t += lanes)
        for (int64_t i = 0; i < lanes; ++i) sums[i] += values[t + i];
    return std::accumulate(values + t, values + count, std::accumulate(sums, sums + lanes, 0.0));
}

// The limiter's signal comes late: `delay` samples of each channel of y lie in front of x.
template <class Sample>
struct Limiter {
    Levels<Sample> levels;
    const Sample* past;
    int64_t delay, window, ahead;
    Signal<Sample> y;
    Recursions recursions;  // threshold and fall
    const double* ramp_in;
    double* ramp_out;

    // Samples [start, start + count) of a channel of the delayed signal.
    const Sample* late(int64_t channel, int64_t start, int64_t count, Sample* room) const {
        if (start >= delay) return levels.x.in_a_row(channel, start - delay, count, room);
        const int64_t old = std::min(count, delay - start);
        std::copy_n(past + channel * delay + start, old, room);
        for (int64_t t = old; t < count; ++t) room[t] = levels.x.of(channel)[(start + t - delay) * levels.x.time_stride];
        return room;
    }

    // Of one group, while it runs: peaks that count for later samples, their maxima, what is taken away and the sum of it.
    struct Work {
        Sample *peaks, *heard;
        double *taken, sum;
    };

    // Pieces of one memory, each of whole cache lines.
    class Pieces {
    public:
        explicit Pieces(std::size_t bytes) : memory_(bytes), next_(memory_.data()) {}
        template <class T>
        static std::size_t size(int64_t count) {
            return (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
        }
        template <class T>
        T* take(int64_t count) {
            T* const taken = reinterpret_cast<T*>(next_);
            next_ += size<T>(count);
            return taken;
        }

    private:
        Scratch<unsigned char, 16384> memory_;  // what blocks of 64 samples and 5 ms of look-ahead take
        unsigned char* next_;
    };

    void run(const DynamicsKernels& all, int64_t first, int64_t count, int64_t samples) const {
        const DynamicsSampleKernels<Sample>& kernels = all.of(Sample{});
        const Groups& groups = levels.groups;
        const int64_t most = std::min(samples, std::max(limiter_samples, window)), before = window - 1;
        const int64_t in_front = before + most, of_taken = ahead + most + vector_room, of_row = std::max(before, most);
        const auto group_size = static_cast<std::size_t>(count) *
            (2 * Pieces::template size<Sample>(in_front + vector_room) + Pieces::template size<double>(of_taken));
        Pieces pieces(group_size + Pieces::template size<Sample>(of_row) + Pieces::template size<double>(most));
        Sample* const row = pieces.template take<Sample>(of_row);
        double* const factors = pieces.template take<double>(most);
        Work work[most_smoothed];
        const Sample* heard[most_smoothed];
        double thresholds[most_smoothed];
        Smoothed smoothed[most_smoothed];
        for (int64_t k = 0; k < count; ++k) {
            const int64_t group = first + k;
            const double* const own = recursions.of(group);
            auto& [peaks, maxima, taken, sum] = work[k];
            peaks = pieces.template take<Sample>(in_front + vector_room);
            maxima = pieces.template take<Sample>(in_front + vector_room);
            taken = pieces.template take<double>(of_taken);
            std::fill_n(peaks, before, Sample{0});
            std::fill_n(maxima + in_front, vector_room, Sample{0});
            if (levels.key.data) levels.read(kernels, group, 0, before, peaks, row);
            else
                for (int64_t i = 0; i < groups.width; ++i)
                    kernels.raise(past + groups.channel(group, i) * delay, before, peaks);
            std::copy_n(ramp_in + group * ahead, ahead, taken);
            sum = exact_sum(taken, ahead);
            heard[k] = maxima;
            thresholds[k] = own[0];
            smoothed[k] = {1, own[1], recursions.state_in[group], taken + ahead};
        }
        const int64_t offset = levels.key.data ? before : 0;
        for (int64_t start = 0; start < samples; start += most) {
            const int64_t n = std::min(most, samples - start);
            for (int64_t k = 0; k < count; ++k) {
                auto& [peaks, maxima, taken, sum] = work[k];
                levels.read(kernels, first + k, start + offset, n, peaks + before, row);
                std::copy_n(peaks, before + n, maxima);
                kernels.maximum(maxima, n, window);
                if (start + n < samples) std::copy(peaks + n, peaks + n + before, peaks);
            }
            kernels.excess[count](thresholds, smoothed, heard, n);
            for (int64_t k = 0; k < count; ++k) {
                auto& [peaks, maxima, taken, sum] = work[k];
                flush_tiny(&smoothed[k].y, 1);
                sum = all.average(taken, ahead, n, sum, factors);
                for (int64_t i = 0; i < groups.width; ++i) {
                    const int64_t c = groups.channel(first + k, i);
                    kernels.limit(late(c, start, n, row), factors, n, static_cast<Sample>(thresholds[k]), y.of(c) + start);
                }
                std::copy(taken + n, taken + n + ahead, taken);
            }
        }
        for (int64_t k = 0; k < count; ++k) {
            recursions.state_out[first + k] = smoothed[k].y;
            std::copy_n(work[k].taken, ahead, ramp_out + (first + k) * ahead);
        }
    }
};

}  // namespace
}  // namespace torchfx

extern "C" int32_t torchfx_ballistics_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* coefficients, int64_t rows, int64_t repeat,
    const double* state_in, double* state_out, int32_t threads) {
    using namespace torchfx;
    const Recursions recursions = {coefficients, 2, {rows, repeat}, state_in, state_out};
    if (const int32_t refused = recursions.refusal(dtype, channels, samples, threads)) return refused;
    if (!x || !y || x_repeat < 1) return TORCHFX_BAD_ARGUMENT;
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        follow<Sample>({static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat},
                       {static_cast<Sample*>(y), y_channel_stride, 1, 1}, channels, samples, recursions, threads);
        return TORCHFX_OK;
    });
}

extern "C" int32_t torchfx_dynamics_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    const void* key, int64_t key_channel_stride, int64_t key_time_stride, int64_t key_repeat,
    void* y, int64_t y_channel_stride, int64_t groups, int64_t width, int64_t inner, int64_t samples,
    const double* settings, int64_t rows, int64_t repeat,
    const double* state_in, double* state_out, int32_t threads) {
    using namespace torchfx;
    const Recursions recursions = {settings, TORCHFX_DYNAMICS_SETTINGS, {rows, repeat}, state_in, state_out};
    if (const int32_t refused = recursions.refusal(dtype, groups, samples, threads)) return refused;
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        const Levels<Sample> levels = {
            {static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat},
            {static_cast<const Sample*>(key), key_channel_stride, key_time_stride, key_repeat}, {groups, width, inner}};
        if (!levels.valid() || !y) return TORCHFX_BAD_ARGUMENT;
        const auto& gain = TORCHFX_KERNELS(dynamics_kernels).of(sample).gain;
        multiply_by_gains<Sample>(
            levels, {static_cast<Sample*>(y), y_channel_stride, 1, 1}, samples, recursions, 6, threads,
            [&](const double* const* own, Smoothed* smoothed, const Sample* const* keys, int64_t count, int64_t n) {
                GainCurve curves[most_smoothed];
                for (int64_t i = 0; i < count; ++i)
                    curves[i] = {own[i][0], own[i][1], own[i][2], own[i][3], own[i][4], own[i][5]};
                gain[count](curves, smoothed, keys, n);
            });
        return TORCHFX_OK;
    });
}

extern "C" int32_t torchfx_compand_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    const void* key, int64_t key_channel_stride, int64_t key_time_stride, int64_t key_repeat,
    void* y, int64_t y_channel_stride, int64_t groups, int64_t width, int64_t inner, int64_t samples,
    const double* settings, int64_t points, int64_t rows, int64_t repeat,
    const double* state_in, double* state_out, int32_t threads) {
    using namespace torchfx;
    if (points < 1) return TORCHFX_BAD_ARGUMENT;
    const Recursions recursions = {settings, 3 + 4 * points, {rows, repeat}, state_in, state_out};
    if (const int32_t refused = recursions.refusal(dtype, groups, samples, threads)) return refused;
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        const Levels<Sample> levels = {
            {static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat},
            {static_cast<const Sample*>(key), key_channel_stride, key_time_stride, key_repeat}, {groups, width, inner}};
        if (!levels.valid() || !y) return TORCHFX_BAD_ARGUMENT;
        const auto& compand = TORCHFX_KERNELS(dynamics_kernels).of(sample).compand;
        multiply_by_gains<Sample>(
            levels, {static_cast<Sample*>(y), y_channel_stride, 1, 1}, samples, recursions, 0, threads,
            [&](const double* const* own, Smoothed* smoothed, const Sample* const* keys, int64_t count, int64_t n) {
                compand[count](own, points, smoothed, keys, n);
            });
        return TORCHFX_OK;
    });
}

extern "C" int32_t torchfx_limiter_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    const void* past, int64_t delay,
    const void* peaks, int64_t peaks_channel_stride, int64_t peaks_time_stride, int64_t peaks_repeat,
    void* y, int64_t y_channel_stride, int64_t groups, int64_t width, int64_t inner, int64_t samples,
    int64_t window, int64_t ahead, const double* settings, int64_t rows, int64_t repeat,
    const double* state_in, double* state_out, const double* ramp_in, double* ramp_out, int32_t threads) {
    using namespace torchfx;
    const Recursions recursions = {settings, 2, {rows, repeat}, state_in, state_out};
    if (const int32_t refused = recursions.refusal(dtype, groups, samples, threads)) return refused;
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        const Limiter<Sample> limiter = {
            {{static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat},
             {static_cast<const Sample*>(peaks), peaks_channel_stride, peaks_time_stride, peaks_repeat},
             {groups, width, inner}},
            static_cast<const Sample*>(past), delay, window, ahead,
            {static_cast<Sample*>(y), y_channel_stride, 1, 1}, recursions, ramp_in, ramp_out};
        if (!limiter.levels.valid() || !y || delay < 0 || ahead < 0 || window < 1 || (delay && !past) || !state_in ||
            !state_out || (ahead && (!ramp_in || !ramp_out)) || (!peaks && window != delay + 1))
            return TORCHFX_BAD_ARGUMENT;
        const DynamicsKernels& kernels = TORCHFX_KERNELS(dynamics_kernels);
        for_groups(groups, samples, threads,
                   [&](int64_t first, int64_t count) { limiter.run(kernels, first, count, samples); });
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
    const int64_t tile = std::min(samples, std::max(maximum_samples, window));
    const int64_t parts = (samples + tile - 1) / tile;
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        const DynamicsSampleKernels<Sample>& kernels = TORCHFX_KERNELS(dynamics_kernels).of(sample);
        parallel_for_or_throw(channels * parts, threads_for(channels * samples, threads), [&](int64_t i) {
            const int64_t c = i / parts, start = i % parts * tile, count = std::min(tile, samples - start);
            const Sample* const from = static_cast<const Sample*>(x) + c * x_channel_stride + start * x_time_stride;
            ScratchVector<Sample> heard(static_cast<size_t>(count + window - 1));
            for (size_t t = 0; t < heard.size(); ++t) heard[t] = from[static_cast<int64_t>(t) * x_time_stride];
            kernels.maximum(heard.data(), count, window);
            std::copy_n(heard.data(), count, static_cast<Sample*>(y) + c * y_channel_stride + start);
        });
        return TORCHFX_OK;
    });
}
