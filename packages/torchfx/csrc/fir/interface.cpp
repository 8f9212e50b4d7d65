// The C interface of FIR filters: checks, and what to convolve with what.
#include <algorithm>
#include <cmath>
#include <iterator>
#include <new>

#include "fir/convolution.h"
#include "fir/correlation.h"
#include "fir/not_finite.h"
#include "fir/plan.h"
#include "fir/taps.h"
#include "support/arena.h"
#include "support/pool.h"
#include "support/subnormals.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

// One channel of a block shorter than the taps whose state goes on: the taps are then the long signal and the
// block the filter.
void filter_short_channel(const FirConvolution& block) {
    ScratchVector<double> filter(static_cast<size_t>(block.signal.length));
    bool finite = true;
    for (int64_t t = 0; t < block.signal.length; ++t) {
        const double sample = sample_at(block.signal, t);
        finite = finite && std::isfinite(sample);
        filter[static_cast<size_t>(t)] = std::isfinite(sample) ? sample : 0;
    }
    FirConvolution job = block;
    job.signal = {block.filters.data, TORCHFX_F64, 1, block.filters.length, nullptr, 0};
    job.filters = {filter.data(), block.signal.length, 0, {1, 1}};
    convolve(job);
    if (!finite) add_not_finite(block);
}

void filter_short_block(const FirConvolution& block) {
    const int64_t results = block.output.length + block.output.tail_length;
    const FirShape swapped = {block.channels, results, block.signal.length, block.channels};
    const int apart = block.channels == 1 ? 1 : plan_fir(swapped, block.threads).threads;
    parallel_for_or_throw(block.channels, apart, [&](int64_t c) {
        FirConvolution channel = channel_of(block, c);
        if (block.channels > 1) channel.threads = 1;
        filter_short_channel(channel);
    });
}

void forward(FirConvolution job, const double* state_in) {
    const int64_t n_taps = job.filters.length;
    // Of one and the same state the end is written while the start is still to be read.
    ScratchVector<double> state;
    if (state_in && state_in == job.output.tail) {
        state.assign(state_in, state_in + job.channels * (n_taps - 1));
        state_in = state.data();
    }
    job.added = state_in;
    job.added_length = state_in ? n_taps - 1 : 0;
    if (job.output.tail && job.signal.length < n_taps) {
        filter_short_block(job);
        return;
    }
    job.filters.length = std::min(n_taps, job.signal.length);
    convolve(job);
}

// The gradient of the extended output, (channels, samples) and then the state's (channels, n_taps - 1): what
// the block adds to later outputs is an output like any other.
FirSignal extended(const void* grad_y, int32_t dtype, int64_t stride, int64_t samples, const double* grad_state_out,
                   int64_t n_taps) {
    return {grad_y, dtype, stride, samples, grad_state_out, grad_state_out ? n_taps - 1 : 0};
}

// grad_x[t] = sum_k taps[k] g[t + k]: a convolution with the taps in reverse.
void backward_x(FirConvolution job) {
    const FirFilters taps = job.filters;
    job.filters.length = job.filters.stride = job.signal.tail ? taps.length : std::min(taps.length, job.signal.length);
    ScratchVector<double> reversed;
    reversed.reserve(static_cast<size_t>(taps.rows.count * job.filters.length));
    for (int64_t row = 0; row < taps.rows.count; ++row) {
        const double* first = taps.data + row * taps.stride;
        reversed.insert(reversed.end(), std::make_reverse_iterator(first + job.filters.length),
                        std::make_reverse_iterator(first));
    }
    job.filters.data = reversed.data();
    job.origin = job.filters.length - 1;
    convolve(job);
}

// A state only adds to the first outputs: its gradient is theirs.
void backward_state(const FirSignal& g, int64_t g_channel_stride, int64_t channels, int64_t n_taps, double* grad_state) {
    for (int64_t c = 0; c < channels; ++c) {
        const FirSignal channel = channel_of(g, g_channel_stride, c);
        for (int64_t j = 0; j < n_taps - 1; ++j) *grad_state++ = sample_at(channel, j);
    }
}

bool valid(int32_t dtype, const void* in, const void* out, int64_t channels, int64_t samples, int32_t threads) {
    return (dtype == TORCHFX_F32 || dtype == TORCHFX_F64) && in && out && channels >= 1 && samples >= 1 && threads >= 1;
}

bool valid_repeat(int64_t channels, int64_t repeat) { return repeat >= 1 && channels % repeat == 0; }

}  // namespace
}  // namespace torchfx

using namespace torchfx;

extern "C" {

int32_t torchfx_fir_forward(int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride,
                            int64_t x_repeat, void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
                            const double* taps, int64_t n_taps, int64_t tap_rows, int64_t tap_repeat,
                            const double* state_in, double* state_out, int32_t threads) {
    const Rows rows = {tap_rows, tap_repeat};
    if (!valid(dtype, x, y, channels, samples, threads) || !valid_repeat(channels, x_repeat)) return TORCHFX_BAD_ARGUMENT;
    if (const int32_t status = check_taps(taps, n_taps, rows, channels)) return status;
    FirConvolution job = {};
    job.channels = channels;
    job.signal = {x, dtype, x_time_stride, samples, nullptr, 0};
    job.signal_channel_stride = x_channel_stride;
    job.signal_repeat = x_repeat;
    job.filters = {taps, n_taps, n_taps, rows};
    job.output = {y, dtype, samples, state_out, state_out ? n_taps - 1 : 0};
    job.output_channel_stride = y_channel_stride;
    job.threads = threads;
    const FlushSubnormals flush(dtype == TORCHFX_F64);
    try {
        forward(job, state_in);
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
    return TORCHFX_OK;
}

int32_t torchfx_fir_backward_x(int32_t dtype, const void* grad_y, int64_t grad_y_channel_stride,
                               int64_t grad_y_time_stride, const double* grad_state_out, int64_t channels,
                               int64_t samples, const double* taps, int64_t n_taps, int64_t tap_rows,
                               int64_t tap_repeat, void* grad_x, int64_t grad_x_channel_stride, double* grad_state_in,
                               int32_t threads) {
    const Rows rows = {tap_rows, tap_repeat};
    if (!valid(dtype, grad_y, grad_x, channels, samples, threads)) return TORCHFX_BAD_ARGUMENT;
    if (const int32_t status = check_taps(taps, n_taps, rows, channels)) return status;
    FirConvolution job = {};
    job.channels = channels;
    job.signal = extended(grad_y, dtype, grad_y_time_stride, samples, grad_state_out, n_taps);
    job.signal_channel_stride = grad_y_channel_stride;
    job.signal_repeat = 1;
    job.filters = {taps, n_taps, n_taps, rows};
    job.output = {grad_x, dtype, samples, nullptr, 0};
    job.output_channel_stride = grad_x_channel_stride;
    job.threads = threads;
    const FlushSubnormals flush(dtype == TORCHFX_F64);
    try {
        backward_x(job);
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
    if (grad_state_in) backward_state(job.signal, grad_y_channel_stride, channels, n_taps, grad_state_in);
    return TORCHFX_OK;
}

int32_t torchfx_fir_backward_taps(int32_t dtype, const void* grad_y, int64_t grad_y_channel_stride,
                                  int64_t grad_y_time_stride, const double* grad_state_out, const void* x,
                                  int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat, int64_t channels,
                                  int64_t samples, double* grad_taps, int64_t n_taps, int64_t tap_rows,
                                  int64_t tap_repeat, int32_t threads) {
    const Rows rows = {tap_rows, tap_repeat};
    if (!valid(dtype, grad_y, grad_taps, channels, samples, threads) || !x || !valid_repeat(channels, x_repeat) ||
        n_taps < 1 || !rows.valid(channels))
        return TORCHFX_BAD_ARGUMENT;
    FirCorrelation job = {};
    job.channels = channels;
    job.a = {x, dtype, x_time_stride, samples, nullptr, 0};
    job.a_channel_stride = x_channel_stride;
    job.a_repeat = x_repeat;
    job.b = extended(grad_y, dtype, grad_y_time_stride, samples, grad_state_out, n_taps);
    job.b_channel_stride = grad_y_channel_stride;
    job.rows = rows;
    job.result = grad_taps;
    job.result_stride = n_taps;
    // Without a state, taps beyond the block met no sample.
    job.lags = grad_state_out ? n_taps : std::min(n_taps, samples);
    job.threads = threads;
    const FlushSubnormals flush(dtype == TORCHFX_F64);
    try {
        correlate(job);
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
    for (int64_t row = 0; row < tap_rows; ++row)
        std::fill(grad_taps + row * n_taps + job.lags, grad_taps + (row + 1) * n_taps, 0.0);
    return TORCHFX_OK;
}

}  // extern "C"
