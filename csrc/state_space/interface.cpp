// torchfx_state_space_forward, _backward and torchfx_saturated_forward: channel by channel, in tiles of doubles.
#include <algorithm>
#include <cmath>
#include <vector>

#include "state_space/kernels.h"
#include "support/pool.h"
#include "support/rows.h"
#include "support/signal.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

constexpr int64_t tile_samples = 512;
constexpr int64_t samples_per_thread = 8192;  // fewer than these take less time than waking a thread

// Matrices (rows, times, states + 1, states + 1), each for samples / times samples in a row.
struct Systems {
    const double* data;
    int64_t states, times, samples;
    Rows rows;

    int64_t size() const { return (states + 1) * (states + 1); }
    int64_t hold() const { return samples / times; }
    const double* of(int64_t channel) const { return data + rows.of(channel) * times * size(); }
    // Systems that change are signals, and not looked through.
    bool finite() const {
        return times > 1 || std::all_of(data, data + rows.count * size(), [](double m) { return std::isfinite(m); });
    }
};

// Calls body(first, count, matrix, step) for stretches of start ... start + count - 1 with one matrix, or one for each.
template <class Body>
void for_stretches(const Systems& systems, int64_t start, int64_t count, Body&& body) {
    const int64_t hold = systems.hold();
    if (hold == 1) return body(start, count, start, systems.size());
    for (int64_t t = start; t < start + count;) {
        const int64_t end = std::min(start + count, (t / hold + 1) * hold);
        body(t, end - t, t / hold, 0);
        t = end;
    }
}

template <class Body>
void for_stretches_backwards(const Systems& systems, int64_t start, int64_t count, Body&& body) {
    const int64_t hold = systems.hold();
    if (hold == 1) return body(start, count, start, systems.size());
    for (int64_t end = start + count; end > start;) {
        const int64_t t = std::max(start, (end - 1) / hold * hold);
        body(t, end - t, t / hold, 0);
        end = t;
    }
}

template <class Body>
void for_channels(int64_t channels, int64_t samples, int threads, Body&& body) {
    const int wanted = static_cast<int>(std::clamp<int64_t>(channels * samples / samples_per_thread, 1, threads));
    parallel_for_or_throw(channels, wanted, body);
}

void load_state(const double* from, int64_t channel, int64_t states, double* to) {
    for (int64_t i = 0; i < states; ++i) to[i] = from ? from[channel * states + i] : 0;
}

// step(run, channel): runs the kernel on a stretch.
template <class Sample, class Step>
void forward(const Systems& systems, const Signal<const Sample>& x, const Signal<Sample>& y, int64_t channels,
             const double* state_in, double* state_out, int threads, Step&& step) {
    for_channels(channels, systems.samples, threads, [&](int64_t c) {
        double state[most_states], tile[tile_samples];
        load_state(state_in, c, systems.states, state);
        for (int64_t start = 0; start < systems.samples; start += tile_samples) {
            const int64_t count = std::min(tile_samples, systems.samples - start);
            x.load(c, start, count, tile);
            for_stretches(systems, start, count, [&](int64_t t, int64_t n, int64_t row, int64_t stride) {
                step(StateSpaceRun{systems.of(c) + row * systems.size(), stride, state, tile + (t - start), n}, c);
            });
            y.store(c, start, count, tile);
            flush_tiny(state, systems.states);
        }
        if (state_out) std::copy_n(state, systems.states, state_out + c * systems.states);
    });
}

template <class Sample>
struct Backward {
    Systems systems;
    Signal<const Sample> x, grad_y;
    const double* state_in;
    const double* grad_state_out;
    Signal<Sample> grad_x;
    double* grad_m;  // (channels, times, ...)
    double* grad_state_in;

    // First the states at the tiles' starts, then the tiles from the last to the first, their states once more.
    void channel(const StateSpaceKernels& kernels, int64_t c) const {
        const int64_t states = systems.states, samples = systems.samples, size = systems.size();
        const int64_t tiles = (samples + tile_samples - 1) / tile_samples;
        std::vector<double> starts(static_cast<size_t>((tiles + 1) * states));
        std::vector<double> traced(static_cast<size_t>(tile_samples * states));
        double inputs[tile_samples], grads[tile_samples], state[most_states], adjoint[most_states];
        const auto trace = [&](int64_t start, int64_t count) {
            x.load(c, start, count, inputs);
            for_stretches(systems, start, count, [&](int64_t t, int64_t n, int64_t row, int64_t stride) {
                kernels.trace[states]({systems.of(c) + row * size, stride, state, inputs + (t - start), n},
                                      traced.data() + (t - start) * states);
            });
            flush_tiny(state, states);
        };
        load_state(state_in, c, states, state);
        for (int64_t i = 0; i < tiles && grad_m; ++i) {
            std::copy_n(state, states, starts.data() + i * states);
            if (i + 1 < tiles) trace(i * tile_samples, tile_samples);
        }
        load_state(grad_state_out, c, states, adjoint);
        if (grad_m) std::fill_n(grad_m + c * systems.times * size, systems.times * size, 0.0);
        for (int64_t i = tiles - 1; i >= 0; --i) {
            const int64_t start = i * tile_samples, count = std::min(tile_samples, samples - start);
            if (grad_m) {
                std::copy_n(starts.data() + i * states, states, state);
                trace(start, count);
            }
            grad_y.load(c, start, count, grads);
            for_stretches_backwards(systems, start, count, [&](int64_t t, int64_t n, int64_t row, int64_t stride) {
                kernels.backward[states]({systems.of(c) + row * size, stride, traced.data() + (t - start) * states,
                                          inputs + (t - start), adjoint, grads + (t - start), n,
                                          grad_m ? grad_m + (c * systems.times + row) * size : nullptr});
            });
            if (grad_x.data) grad_x.store(c, start, count, grads);
            flush_tiny(adjoint, states);
        }
        if (grad_state_in) std::copy_n(adjoint, states, grad_state_in + c * states);
    }
};

bool valid(int32_t dtype, int64_t channels, int64_t x_repeat, const Systems& systems, int32_t threads) {
    return (dtype == TORCHFX_F32 || dtype == TORCHFX_F64) && channels >= 1 && systems.samples >= 1 && x_repeat >= 1 &&
           systems.states >= 1 && systems.states <= most_states && systems.times >= 1 &&
           systems.samples % systems.times == 0 && systems.rows.valid(channels) && threads >= 1;
}

}  // namespace
}  // namespace torchfx

extern "C" int32_t torchfx_state_space_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* systems, int64_t states, int64_t times, int64_t rows, int64_t repeat,
    const double* state_in, double* state_out, int32_t threads) {
    using namespace torchfx;
    const Systems given = {systems, states, times, samples, {rows, repeat}};
    if (!x || !y || !systems || !valid(dtype, channels, x_repeat, given, threads)) return TORCHFX_BAD_ARGUMENT;
    if (!given.finite()) return TORCHFX_NOT_FINITE;
    const auto kernel = TORCHFX_KERNELS(state_space_kernels).run[states];
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        forward<Sample>(given, {static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat},
                        {static_cast<Sample*>(y), y_channel_stride, 1, 1}, channels, state_in, state_out, threads,
                        [kernel](const StateSpaceRun& run, int64_t) { kernel(run); });
        return TORCHFX_OK;
    });
}

extern "C" int32_t torchfx_saturated_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* systems, int64_t states, int64_t times, int64_t rows, int64_t repeat,
    const double* feedback, const double* drive, const double* state_in, double* state_out, int32_t threads) {
    using namespace torchfx;
    const Systems given = {systems, states, times, samples, {rows, repeat}};
    if (!x || !y || !systems || !feedback || !drive || !valid(dtype, channels, x_repeat, given, threads))
        return TORCHFX_BAD_ARGUMENT;
    if (!given.finite()) return TORCHFX_NOT_FINITE;
    const auto kernel = TORCHFX_KERNELS(state_space_kernels).saturated[states];
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        forward<Sample>(given, {static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat},
                        {static_cast<Sample*>(y), y_channel_stride, 1, 1}, channels, state_in, state_out, threads,
                        [=](const StateSpaceRun& run, int64_t c) { kernel({run, feedback[c], drive[c]}); });
        return TORCHFX_OK;
    });
}

extern "C" int32_t torchfx_state_space_backward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    const void* grad_y, int64_t grad_y_channel_stride, int64_t grad_y_time_stride, int64_t channels, int64_t samples,
    const double* systems, int64_t states, int64_t times, int64_t rows, int64_t repeat,
    const double* state_in, const double* grad_state_out,
    void* grad_x, int64_t grad_x_channel_stride, double* grad_systems, double* grad_state_in, int32_t threads) {
    using namespace torchfx;
    const Systems given = {systems, states, times, samples, {rows, repeat}};
    if (!x || !grad_y || !systems || !valid(dtype, channels, x_repeat, given, threads)) return TORCHFX_BAD_ARGUMENT;
    const StateSpaceKernels& kernels = TORCHFX_KERNELS(state_space_kernels);
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        const Backward<Sample> call = {
            given,
            {static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat},
            {static_cast<const Sample*>(grad_y), grad_y_channel_stride, grad_y_time_stride, 1},
            state_in, grad_state_out,
            {static_cast<Sample*>(grad_x), grad_x_channel_stride, 1, 1},
            grad_systems, grad_state_in};
        for_channels(channels, samples, threads, [&](int64_t c) { call.channel(kernels, c); });
        return TORCHFX_OK;
    });
}
