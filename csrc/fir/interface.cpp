// The C interface of FIR filters: checks, and what to convolve with what.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <iterator>
#include <new>
#include <vector>

#include "fir/convolution.h"
#include "fir/correlation.h"
#include "fir/plan.h"
#include "support/pool.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

// By the bits, as loops over these become vectors: an exponent of all ones, plus one, reaches the sign bit.
bool all_finite(const double* values, int64_t count) {
    constexpr uint64_t exponent = uint64_t{0x7ff} << 52, one = uint64_t{1} << 52;
    uint64_t seen = 0;
    for (int64_t i = 0; i < count; ++i) {
        uint64_t bits;
        std::memcpy(&bits, values + i, sizeof bits);
        seen |= (bits & exponent) + one;
    }
    return seen >> 63 == 0;
}

// One channel of a block shorter than the taps whose state goes on: the taps are then the long signal and the
// block the filter.
void filter_short_channel(const FirConvolution& block, const double* taps, int64_t n_taps, int64_t c, int threads) {
    const FirSignal x = channel_of(block.signal, block.signal_channel_stride, c);
    std::vector<double> filter(static_cast<size_t>(x.length));
    bool finite = true;
    for (int64_t t = 0; t < x.length; ++t) {
        const double sample = sample_at(x, t);
        finite = finite && std::isfinite(sample);
        filter[static_cast<size_t>(t)] = std::isfinite(sample) ? sample : 0;
    }
    FirConvolution job = block;
    job.channels = 1;
    job.signal = {taps, TORCHFX_F64, 1, n_taps, nullptr, 0};
    job.filter = filter.data();
    job.filter_length = x.length;
    job.filter_source = finite ? nullptr : &x;
    job.output = channel_of(block.output, block.output_channel_stride, c);
    if (block.added) job.added = block.added + c * block.added_length;
    job.threads = threads;
    convolve(job);
}

void filter_short_block(const FirConvolution& block, const double* taps, int64_t n_taps) {
    if (block.channels == 1) {
        filter_short_channel(block, taps, n_taps, 0, block.threads);
        return;
    }
    const int64_t results = block.output.length + block.output.tail_length;
    const int threads = plan_fir(block.channels, results, block.signal.length, block.threads).threads;
    std::atomic<bool> out_of_memory{false};
    parallel_for(block.channels, threads, [&](int64_t c) {
        try {
            filter_short_channel(block, taps, n_taps, c, 1);
        } catch (const std::bad_alloc&) {
            out_of_memory.store(true, std::memory_order_relaxed);
        }
    });
    if (out_of_memory) throw std::bad_alloc();
}

void forward(FirConvolution job, const double* taps, int64_t n_taps, const double* state_in) {
    // Of one and the same state the end is written while the start is still to be read.
    std::vector<double> state;
    if (state_in && state_in == job.output.tail) {
        state.assign(state_in, state_in + job.channels * (n_taps - 1));
        state_in = state.data();
    }
    job.added = state_in;
    job.added_length = state_in ? n_taps - 1 : 0;
    if (job.output.tail && job.signal.length < n_taps) {
        filter_short_block(job, taps, n_taps);
        return;
    }
    job.filter = taps;
    job.filter_length = std::min(n_taps, job.signal.length);
    convolve(job);
}

// The gradient of the extended output, (channels, samples) and then the state's (channels, n_taps - 1): what
// the block adds to later outputs is an output like any other.
FirSignal extended(const void* grad_y, int32_t dtype, int64_t stride, int64_t samples, const double* grad_state_out,
                   int64_t n_taps) {
    return {grad_y, dtype, stride, samples, grad_state_out, grad_state_out ? n_taps - 1 : 0};
}

// grad_x[t] = sum_k taps[k] g[t + k]: a convolution with the taps in reverse.
void backward_x(FirConvolution job, const double* taps, int64_t n_taps) {
    job.filter_length = job.signal.tail ? n_taps : std::min(n_taps, job.signal.length);
    const std::vector<double> reversed(std::make_reverse_iterator(taps + job.filter_length),
                                       std::make_reverse_iterator(taps));
    job.filter = reversed.data();
    job.origin = job.filter_length - 1;
    convolve(job);
}

// A state only adds to the first outputs: its gradient is theirs.
void backward_state(const FirSignal& g, int64_t g_channel_stride, int64_t channels, int64_t n_taps, double* grad_state) {
    for (int64_t c = 0; c < channels; ++c) {
        const FirSignal channel = channel_of(g, g_channel_stride, c);
        for (int64_t j = 0; j < n_taps - 1; ++j) *grad_state++ = sample_at(channel, j);
    }
}

bool valid(int32_t dtype, const void* in, const void* other, const void* out, int64_t channels, int64_t samples,
           int64_t n_taps, int32_t threads) {
    return (dtype == TORCHFX_F32 || dtype == TORCHFX_F64) && in && other && out && channels >= 1 && samples >= 1 &&
           n_taps >= 1 && threads >= 1;
}

}  // namespace
}  // namespace torchfx

using namespace torchfx;

extern "C" {

int32_t torchfx_fir_forward(int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, void* y,
                            int64_t y_channel_stride, int64_t channels, int64_t samples, const double* taps,
                            int64_t n_taps, const double* state_in, double* state_out, int32_t threads) {
    if (!valid(dtype, x, taps, y, channels, samples, n_taps, threads)) return TORCHFX_BAD_ARGUMENT;
    if (!all_finite(taps, n_taps)) return TORCHFX_NOT_FINITE;
    FirConvolution job = {};
    job.channels = channels;
    job.signal = {x, dtype, x_time_stride, samples, nullptr, 0};
    job.signal_channel_stride = x_channel_stride;
    job.output = {y, dtype, samples, state_out, state_out ? n_taps - 1 : 0};
    job.output_channel_stride = y_channel_stride;
    job.threads = threads;
    try {
        forward(job, taps, n_taps, state_in);
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
    return TORCHFX_OK;
}

int32_t torchfx_fir_backward_x(int32_t dtype, const void* grad_y, int64_t grad_y_channel_stride,
                               int64_t grad_y_time_stride, const double* grad_state_out, int64_t channels,
                               int64_t samples, const double* taps, int64_t n_taps, void* grad_x,
                               int64_t grad_x_channel_stride, double* grad_state_in, int32_t threads) {
    if (!valid(dtype, grad_y, taps, grad_x, channels, samples, n_taps, threads)) return TORCHFX_BAD_ARGUMENT;
    if (!all_finite(taps, n_taps)) return TORCHFX_NOT_FINITE;
    FirConvolution job = {};
    job.channels = channels;
    job.signal = extended(grad_y, dtype, grad_y_time_stride, samples, grad_state_out, n_taps);
    job.signal_channel_stride = grad_y_channel_stride;
    job.output = {grad_x, dtype, samples, nullptr, 0};
    job.output_channel_stride = grad_x_channel_stride;
    job.threads = threads;
    try {
        backward_x(job, taps, n_taps);
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
    if (grad_state_in) backward_state(job.signal, grad_y_channel_stride, channels, n_taps, grad_state_in);
    return TORCHFX_OK;
}

int32_t torchfx_fir_backward_taps(int32_t dtype, const void* grad_y, int64_t grad_y_channel_stride,
                                  int64_t grad_y_time_stride, const double* grad_state_out, const void* x,
                                  int64_t x_channel_stride, int64_t x_time_stride, int64_t channels, int64_t samples,
                                  double* grad_taps, int64_t n_taps, int32_t threads) {
    if (!valid(dtype, grad_y, x, grad_taps, channels, samples, n_taps, threads)) return TORCHFX_BAD_ARGUMENT;
    FirCorrelation job = {};
    job.channels = channels;
    job.a = {x, dtype, x_time_stride, samples, nullptr, 0};
    job.a_channel_stride = x_channel_stride;
    job.b = extended(grad_y, dtype, grad_y_time_stride, samples, grad_state_out, n_taps);
    job.b_channel_stride = grad_y_channel_stride;
    job.result = grad_taps;
    // Without a state, taps beyond the block met no sample.
    job.lags = grad_state_out ? n_taps : std::min(n_taps, samples);
    job.threads = threads;
    try {
        correlate(job);
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
    std::fill(grad_taps + job.lags, grad_taps + n_taps, 0.0);
    return TORCHFX_OK;
}

}  // extern "C"
