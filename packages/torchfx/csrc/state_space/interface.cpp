// torchfx_state_space_forward, _backward and torchfx_saturated_forward: in tiles of doubles.
#include <algorithm>
#include <cmath>
#include <vector>

#include "state_space/kernels.h"
#include "support/arena.h"
#include "support/pool.h"
#include "support/rows.h"
#include "support/signal.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

constexpr int64_t tile_samples = 512;
constexpr int64_t samples_per_thread = 8192;  // fewer than these take less time than waking a thread
constexpr int64_t samples_per_table = 256;    // fewer than these take less time than making a table
static_assert(TORCHFX_SATURATION_TABLE == saturation_terms * saturation_stretches, "the size in torchfx_dsp.h");

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

int threads_for(int64_t samples, int threads) {
    return static_cast<int>(std::clamp<int64_t>(samples / samples_per_thread, 1, threads));
}

template <class Body>
void for_channels(int64_t channels, int64_t samples, int threads, Body&& body) {
    parallel_for_or_throw(channels, threads_for(channels * samples, threads), body);
}

void load_state(const double* from, int64_t channel, int64_t states, double* to) {
    for (int64_t i = 0; i < states; ++i) to[i] = from ? from[channel * states + i] : 0;
}

template <class Sample>
struct Forward {
    Systems systems;
    Signal<const Sample> x;
    Signal<Sample> y;
    const double* state_in;
    double* state_out;

    // `count` channels side by side: run_tile(start, samples, states, tiles) makes outputs of inputs.
    template <int most, class RunTile>
    void channels(int64_t first, int64_t count, RunTile&& run_tile) const {
        double states[most][most_states], tiles[most][tile_samples];
        for (int64_t i = 0; i < count; ++i) load_state(state_in, first + i, systems.states, states[i]);
        for (int64_t start = 0; start < systems.samples; start += tile_samples) {
            const int64_t n = std::min(tile_samples, systems.samples - start);
            for (int64_t i = 0; i < count; ++i) x.load(first + i, start, n, tiles[i]);
            run_tile(start, n, states, tiles);
            for (int64_t i = 0; i < count; ++i) {
                y.store(first + i, start, n, tiles[i]);
                flush_tiny(states[i], systems.states);
            }
        }
        for (int64_t i = 0; i < count && state_out; ++i)
            std::copy_n(states[i], systems.states, state_out + (first + i) * systems.states);
    }
    // run(stretch): one channel, stretches of samples one behind the other.
    template <class Run>
    void channel(int64_t c, Run&& run) const {
        channels<1>(c, 1, [&](int64_t start, int64_t count, auto& states, auto& tiles) {
            for_stretches(systems, start, count, [&](int64_t t, int64_t n, int64_t row, int64_t stride) {
                run(StateSpaceRun{systems.of(c) + row * systems.size(), stride, states[0], tiles[0] + (t - start), n});
            });
        });
    }
};

// Loops with a saturating amplifier. Tables are for all channels, in rows; where they are NULL, long signals get theirs here.
template <class Sample>
struct Saturated {
    Forward<Sample> through;
    const double *outputs, *feedback, *drive, *tables;
    Rows table_rows;

    const double* output(int64_t c) const {
        return outputs ? outputs + through.systems.rows.of(c) * (through.systems.states + 1) : nullptr;
    }

    double loop(int64_t c) const { return feedback[c] * through.systems.of(c)[through.systems.size() - 1]; }
    bool has_table(int64_t c) const {
        return (tables || through.systems.samples >= samples_per_table) && through.systems.times == 1 && drive[c] != 0 &&
               loop(c) >= 0 && loop(c) <= saturation_most;
    }
    void channels(const StateSpaceKernels& kernels, int64_t first, int64_t count) const {
        const int64_t states = through.systems.states;
        if (!has_table(first) || !has_table(first + count - 1)) {
            for (int64_t c = first; c < first + count; ++c)
                through.channel(c, [&](const StateSpaceRun& run) {
                    kernels.saturated[states]({run, output(c), feedback[c], drive[c], nullptr});
                });
            return;
        }
        ScratchVector<double> made[2];
        const double* table[2];
        for (int64_t i = 0; i < count; ++i) {
            const int64_t c = first + i;
            if (tables) table[i] = tables + table_rows.of(c) * TORCHFX_SATURATION_TABLE;
            else if (i > 0 && loop(c) == loop(first)) table[i] = table[0];
            else {
                made[i].resize(TORCHFX_SATURATION_TABLE);
                kernels.tabulate(loop(c), made[i].data());
                table[i] = made[i].data();
            }
        }
        through.template channels<2>(first, count, [&](int64_t, int64_t n, auto& state, auto& tiles) {
            SaturatedRun runs[2];
            for (int64_t i = 0; i < count; ++i)
                runs[i] = {{through.systems.of(first + i), 0, state[i], tiles[i], n}, output(first + i),
                           feedback[first + i], drive[first + i], table[i]};
            kernels.saturated_by_table[states][count](runs);
        });
    }
};

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
        const Forward<Sample> call = {given, {static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat},
                                      {static_cast<Sample*>(y), y_channel_stride, 1, 1}, state_in, state_out};
        for_channels(channels, samples, threads, [&](int64_t c) { call.channel(c, kernel); });
        return TORCHFX_OK;
    });
}

extern "C" int32_t torchfx_saturated_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* systems, int64_t states, int64_t times, int64_t rows, int64_t repeat,
    const double* outputs, const double* feedback, const double* drive, const double* tables, int64_t table_rows,
    int64_t table_repeat,
    const double* state_in, double* state_out, int32_t threads) {
    using namespace torchfx;
    const Systems given = {systems, states, times, samples, {rows, repeat}};
    const Rows of_tables = {table_rows, table_repeat};
    if (!x || !y || !systems || !feedback || !drive || !valid(dtype, channels, x_repeat, given, threads) ||
        (tables && !of_tables.valid(channels)))
        return TORCHFX_BAD_ARGUMENT;
    if (!given.finite()) return TORCHFX_NOT_FINITE;
    const StateSpaceKernels& kernels = TORCHFX_KERNELS(state_space_kernels);
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        const Saturated<Sample> call = {
            {given, {static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat},
             {static_cast<Sample*>(y), y_channel_stride, 1, 1}, state_in, state_out},
            outputs, feedback, drive, tables, of_tables};
        const int wanted = threads_for(channels * samples, threads);
        const int64_t size = std::clamp<int64_t>(channels / wanted, 1, 2);
        parallel_for_or_throw((channels + size - 1) / size, wanted, [&](int64_t i) {
            call.channels(kernels, i * size, std::min(size, channels - i * size));
        });
        return TORCHFX_OK;
    });
}

extern "C" int32_t torchfx_saturation_tables(const double* loops, int64_t count, double* tables) {
    using namespace torchfx;
    if (!loops || count < 1 || !tables) return TORCHFX_BAD_ARGUMENT;
    for (int64_t i = 0; i < count; ++i)
        TORCHFX_KERNELS(state_space_kernels).tabulate(loops[i], tables + i * TORCHFX_SATURATION_TABLE);
    return TORCHFX_OK;
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
