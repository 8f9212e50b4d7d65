// Convolution of a long signal with a shorter filter, the work behind every FIR operator.
#ifndef TORCHFX_FIR_CONVOLUTION_H
#define TORCHFX_FIR_CONVOLUTION_H

#include <cstdint>

#include "fir/kernels.h"
#include "support/rows.h"

namespace torchfx {

// Channel c of a batch is the first one with its pointers moved on: `data` by c * channel_stride elements,
// `tail` by c * tail_length.
FirSignal channel_of(FirSignal first, int64_t channel_stride, int64_t c);
FirOutput channel_of(FirOutput first, int64_t channel_stride, int64_t c);

// Sample t of a signal, 0 outside it.
double sample_at(const FirSignal& signal, int64_t t);

// Row r of the filters is data[r * stride .. r * stride + length), all finite.
struct FirFilters {
    const double* data;
    int64_t length;
    int64_t stride;
    Rows rows;

    const double* of(int64_t channel) const { return data + rows.of(channel) * stride; }
};

// output[c][t] = added[c][t] + sum_k filter[k] signal[c / signal_repeat][t + origin - k], `filter` being channel c's
struct FirConvolution {
    int64_t channels;
    FirSignal signal;
    int64_t signal_channel_stride;
    int64_t signal_repeat;
    FirFilters filters;
    int64_t origin;
    FirOutput output;  // its length + tail_length results are computed; must not overlap the signal
    int64_t output_channel_stride;
    const double* added;  // (channels, added_length), or nullptr
    int64_t added_length;
    int threads;
};

// The same for channel c alone.
FirConvolution channel_of(const FirConvolution& all, int64_t c);

// Chooses between a direct sum and an FFT by cost. Throws std::bad_alloc.
void convolve(const FirConvolution& job);

}  // namespace torchfx

#endif
