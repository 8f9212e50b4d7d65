// The phase vocoder's work on one channel, one table per instruction set.
#ifndef TORCHFX_PHASE_VOCODER_KERNELS_H
#define TORCHFX_PHASE_VOCODER_KERNELS_H

#include <stdint.h>

#include "fft/kernels.h"
#include "support/dispatch.h"

namespace torchfx {

// The arguments of torchfx_phase_vocoder_forward, and what all channels share.
struct PhaseVocoderJob {
    int32_t dtype;
    const void* x;
    int64_t x_channel_stride, x_time_stride, samples;
    void* y;
    int64_t channels;
    const int64_t* starts;
    int64_t count;
    const double* window;
    int64_t size, hop;
    const double* state_in;
    double* state_out;
    int threads;

    const FftKernels* fft;
    FftRoots roots;
    // Of bin k <= size / 2: where the real parts of values k and size - k lie in a transform's buffer. The imaginary
    // parts lie `lanes` further on.
    const int32_t* place;
    const int32_t* mirrored;
};

// Doubles that the work on a channel takes: a transform, twelve rows of bins, the frames' sum, and the peaks.
inline int64_t phase_vocoder_room(int64_t size, int64_t hop) { return 2 * size + 14 * (size / 2 + 16) + size + hop; }

struct PhaseVocoderKernels {
    void (*stretch)(const PhaseVocoderJob& job, int64_t channel, double* room);
};

TORCHFX_DECLARE_KERNELS(PhaseVocoderKernels, phase_vocoder_kernels)

}  // namespace torchfx

#endif
