// Convolution of a long signal with a shorter filter, the work behind every FIR operator.
#ifndef TORCHFX_FIR_CONVOLUTION_H
#define TORCHFX_FIR_CONVOLUTION_H

#include <cstdint>

#include "fir/kernels.h"

namespace torchfx {

// Channel c of a batch is the first one with its pointers moved on: `data` by c * channel_stride elements,
// `tail` by c * tail_length.
FirSignal channel_of(FirSignal first, int64_t channel_stride, int64_t c);
FirOutput channel_of(FirOutput first, int64_t channel_stride, int64_t c);

// Sample t of a signal, 0 outside it.
double sample_at(const FirSignal& signal, int64_t t);

// output[c][t] = added[c][t] + sum_k filter[k] signal[c][t + origin - k]
struct FirConvolution {
    int64_t channels;
    FirSignal signal;
    int64_t signal_channel_stride;
    const double* filter;  // finite
    int64_t filter_length;
    int64_t origin;
    FirOutput output;  // its length + tail_length results are computed; must not overlap the signal
    int64_t output_channel_stride;
    const double* added;  // (channels, added_length), or nullptr
    int64_t added_length;
    int threads;
    // Where the filter was made from an input with its NaNs and infinities set to 0: that input. What they
    // add is `signal`, one channel of doubles, times each of them.
    const FirSignal* filter_source;
};

// Chooses between a direct sum and an FFT by cost. Throws std::bad_alloc before anything is written.
void convolve(const FirConvolution& job);

}  // namespace torchfx

#endif
