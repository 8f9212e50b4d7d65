// The phase vocoder's steps, one table per instruction set.
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
    const int32_t* opposite;
    // The bin in each slot. Slots line bins up as they lie in the transform's vectors of odd numbers, from that of value
    // vocoder_few + lanes on, which is slot vocoder_few / 2. The other bins, multiples of size / vocoder_few, have none.
    const int32_t* bin;
    const int32_t* slot;  // of each bin; 0 where it has none
};

// Values of a transform that are looked up one by one. Of the others, those from 2^m to 2^(m + 1) - 1 have the opposite
// frequencies of each other, first and last, second and last but one, and so on: they are turned round by whole vectors.
constexpr int64_t vocoder_few = 64;

// A frame of the input and the one `hop` samples before it.
struct VocoderFrame {
    double* transform;   // the common transform, 2 size; then that of two output frames, then these
    double* rows[4];     // with room for size / 2 + 1 bins and a vector, and two numbers in front
    int32_t* peaks;      // as many as there may be bins
    int64_t found;       // peaks
    double now, before;  // 1/2; 0 of a frame of zeros: what the transform's rounding leaves must not look like a signal
};

constexpr int64_t vocoder_row(int64_t size) { return size / 2 + 32; }

// Doubles that a frame takes.
constexpr int64_t vocoder_frame_room(int64_t size) { return 2 * size + 5 * vocoder_row(size); }

struct PhaseVocoderKernels {
    // Transforms input frame u. Rows 0 and 1 become the spectrum before at the peaks, one after the other.
    void (*analyse)(const PhaseVocoderJob& job, int64_t channel, int64_t u, VocoderFrame& frame);
    // Rows 2 and 3 become what each bin is turned by. The output frame before is `last`, turned, or without one has the
    // spectrum `state`, or without that is 0.
    void (*turn)(const PhaseVocoderJob& job, const VocoderFrame* last, const double* state, VocoderFrame& frame);
    // Writes the output frame's spectrum.
    void (*keep)(const PhaseVocoderJob& job, const VocoderFrame& frame, double* state);
    // The transform of `a` becomes two output frames.
    void (*synthesise)(const PhaseVocoderJob& job, const VocoderFrame& a, const VocoderFrame& b);
    // Adds output frames u and u + 1 to the sum, size + hop, and gives what no later frame adds to.
    void (*lay_down)(const PhaseVocoderJob& job, int64_t channel, int64_t u, const VocoderFrame& pair, double* sum);
};

TORCHFX_DECLARE_KERNELS(PhaseVocoderKernels, phase_vocoder_kernels)

}  // namespace torchfx

#endif
