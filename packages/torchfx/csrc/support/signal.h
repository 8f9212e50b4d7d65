// Samples in memory, and tiles of them as doubles.
#ifndef TORCHFX_SUPPORT_SIGNAL_H
#define TORCHFX_SUPPORT_SIGNAL_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <new>
#include <type_traits>

#include "support/subnormals.h"
#include "torchfx_dsp.h"

namespace torchfx {

// Channel c has row c / repeat.
template <class Sample>
struct Signal {
    Sample* data;
    int64_t channel_stride, time_stride, repeat;

    Sample* of(int64_t channel) const { return data + channel / repeat * channel_stride; }

    // Samples [start, start + count) of a channel, in a row: there, or copied to `room`.
    Sample* in_a_row(int64_t channel, int64_t start, int64_t count, std::remove_const_t<Sample>* room) const {
        Sample* const from = of(channel) + start * time_stride;
        if (time_stride == 1) return from;
        for (int64_t t = 0; t < count; ++t) room[t] = from[t * time_stride];
        return room;
    }
    void load(int64_t channel, int64_t start, int64_t count, double* to) const {
        const Sample* from = of(channel) + start * time_stride;
        if (time_stride == 1) std::copy_n(from, count, to);
        else
            for (int64_t i = 0; i < count; ++i) to[i] = from[i * time_stride];
    }
    // Of unit time stride.
    void store(int64_t channel, int64_t start, int64_t count, const double* from) const {
        std::transform(from, from + count, of(channel) + start, [](double v) { return static_cast<Sample>(v); });
    }
};

// What run(float{}) or run(double{}) returns, a status, for samples of a dtype; TORCHFX_NO_MEMORY where it throws.
template <class F>
int32_t with_type(int32_t dtype, F&& run) {
    const FlushSubnormals flush(dtype == TORCHFX_F64);
    try {
        return dtype == TORCHFX_F32 ? run(float{}) : run(double{});
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
}

template <class Sample>
void copy(const Sample* x, int64_t stride, int64_t count, Sample* to) {
    if (stride == 1) std::copy_n(x, count, to);
    else
        for (int64_t t = 0; t < count; ++t) to[t] = x[t * stride];
}

// The last `kept` samples before a tile become those after it.
template <class Sample>
void keep(const Sample* tile, int64_t stride, int64_t count, Sample* past, int64_t kept) {
    const int64_t fresh = std::min(count, kept);
    std::copy(past + fresh, past + kept, past);
    copy(tile + (count - fresh) * stride, stride, fresh, past + kept - fresh);
}

// A state that decays would end among the subnormal numbers, which some processors handle a hundred times slower.
inline void flush_tiny(double* state, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
        if (std::fabs(state[i]) < 1e-300) state[i] = 0;
}

}  // namespace torchfx

#endif
