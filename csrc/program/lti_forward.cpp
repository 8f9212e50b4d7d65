// torchfx_lti_forward: a finite impulse response, then a cascade, tile by tile, in double between the two.
#include <algorithm>
#include <new>

#include "torchfx_dsp.h"
#include "support/workspace.h"

namespace torchfx {
namespace {

// Samples of a tile over all channels: two buffers of doubles that stay in a second-level cache of 1 MiB.
constexpr int64_t tile_samples = 1 << 16;

// Long responses want longer tiles, or each tile would cost a transform of the whole response.
int64_t tile_length(int64_t channels, int64_t samples, int64_t n_taps) {
    return std::min(samples, std::max({int64_t{1024}, tile_samples / channels, 4 * n_taps}));
}

struct Buffers {
    explicit Buffers(int64_t count)
        : first(take_memory(sizeof(double) * static_cast<std::size_t>(count))),
          second(take_memory(sizeof(double) * static_cast<std::size_t>(count))) {}
    ~Buffers() {
        give_memory_back(first);
        give_memory_back(second);
    }
    Buffers(const Buffers&) = delete;
    Buffers& operator=(const Buffers&) = delete;
    double* first;
    double* second;
};

template <class Sample>
void read_tile(const Sample* x, int64_t channel_stride, int64_t time_stride, int64_t channels, int64_t length, double* to) {
    for (int64_t c = 0; c < channels; ++c, x += channel_stride)
        for (int64_t t = 0; t < length; ++t) *to++ = static_cast<double>(x[t * time_stride]);
}

template <class Sample>
void write_tile(const double* from, int64_t channels, int64_t length, Sample* y, int64_t channel_stride) {
    for (int64_t c = 0; c < channels; ++c, y += channel_stride)
        for (int64_t t = 0; t < length; ++t) y[t] = static_cast<Sample>(*from++);
}

struct Response {
    const double* taps;
    int64_t count;
    const double* state_in;
    double* state_out;
};

struct Cascade {
    const double* sos;
    int64_t sections;
    const double* state_in;
    double* state_out;
    int64_t threshold;
};

template <class Sample>
int32_t forward(const Sample* x, int64_t x_channel_stride, int64_t x_time_stride, Sample* y, int64_t y_channel_stride,
                int64_t channels, int64_t samples, Response response, Cascade cascade, int32_t threads) {
    const int64_t tile = tile_length(channels, samples, response.count);
    const Buffers buffers(tile * channels);
    for (int64_t start = 0; start < samples; start += tile) {
        const int64_t length = std::min(tile, samples - start);
        read_tile(x + start * x_time_stride, x_channel_stride, x_time_stride, channels, length, buffers.first);
        int32_t status = torchfx_fir_forward(TORCHFX_F64, buffers.first, length, 1, 1, buffers.second, length, channels, length,
                                             response.taps, response.count, 1, 1, response.state_in, response.state_out, threads);
        if (status != TORCHFX_OK) return status;
        status = torchfx_sos_forward(TORCHFX_F64, buffers.second, length, 1, buffers.first, length, channels, length,
                                     cascade.sos, cascade.sections, cascade.state_in, cascade.state_out,
                                     cascade.threshold, threads);
        if (status != TORCHFX_OK) return status;
        write_tile(buffers.first, channels, length, y + start, y_channel_stride);
        response.state_in = response.state_out;
        cascade.state_in = cascade.state_out;
    }
    return TORCHFX_OK;
}

}  // namespace
}  // namespace torchfx

extern "C" int32_t torchfx_lti_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, void* y, int64_t y_channel_stride,
    int64_t channels, int64_t samples, const double* taps, int64_t n_taps, const double* taps_state_in,
    double* taps_state_out, const double* sos, int64_t sections, const double* state_in, double* state_out,
    int64_t threshold, int32_t threads) {
    using namespace torchfx;
    const bool sizes = channels >= 1 && samples >= 1 && n_taps >= 1 && sections >= 1 && threads >= 1;
    if (!sizes || !x || !y || !taps || !sos || !state_out || (n_taps > 1 && !taps_state_out)) return TORCHFX_BAD_ARGUMENT;
    const Response response = {taps, n_taps, taps_state_in, taps_state_out};
    const Cascade cascade = {sos, sections, state_in, state_out, threshold};
    try {
        if (dtype == TORCHFX_F32)
            return forward(static_cast<const float*>(x), x_channel_stride, x_time_stride, static_cast<float*>(y),
                           y_channel_stride, channels, samples, response, cascade, threads);
        if (dtype == TORCHFX_F64)
            return forward(static_cast<const double*>(x), x_channel_stride, x_time_stride, static_cast<double*>(y),
                           y_channel_stride, channels, samples, response, cascade, threads);
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
    return TORCHFX_BAD_ARGUMENT;
}
