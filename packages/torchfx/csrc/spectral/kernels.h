// From samples to bands of power spectra and their logarithms, a tile of frames at a time: each lane has a frame.
#ifndef TORCHFX_SPECTRAL_KERNELS_H
#define TORCHFX_SPECTRAL_KERNELS_H

#include <stdint.h>

#include "support/dispatch.h"

namespace torchfx {

// One pass of a transform in place: blocks of `size` values become `radix` blocks each; roots [p][j],
// e^(-2 pi i p j / size), real and imaginary part.
struct TransformPass {
    int64_t radix, size;
    const float* roots;
};

// A transform of 2 `half` real values; `split` has e^(-2 pi i k / (2 half)) for k <= half / 2, `order` where value k of
// the complex transform lies after the passes.
struct RealTransformView {
    int64_t half;
    const TransformPass* passes;
    int64_t count;
    const float* split;
    const int64_t* order;
};

// A band is the sum of `count` bins from `first` on, times weights from `at` on.
struct Band {
    int64_t first, count, at;
};

// torchfx_dsp.h says what is computed.
struct MelJob {
    const float* x;
    int64_t x_channel_stride, x_time_stride, samples;
    float* y;
    int64_t channels, count;
    const float* window;
    int64_t length, size, hop, origin;
    bool reflect;
    const Band* bands;  // null: all bins
    int64_t band_count;
    const float* weights;
    bool magnitude, centred, logarithm;
    float preemphasis, scale, floor, offset;  // scale: of a logarithm to base 2
    RealTransformView transform;
};

// What a gradient of all bands makes of the signal's samples: `forward` as it was, its y is not written.
struct MelGradientJob {
    MelJob forward;
    const float* grad_y;  // (channels, band_count, count)
    float* grad_x;        // (channels, samples), to be added to
};

struct MelKernels {
    int64_t lanes;
    // Frames [first, first + lanes) of a channel, as far as there are so many.
    void (*tile)(const MelJob& job, int64_t channel, int64_t first, float* room);
    // The same frames' part of the samples' gradient.
    void (*gradient_tile)(const MelGradientJob& job, int64_t channel, int64_t first, float* room);
};

// Floats of a frame's row in the room: whole groups of four.
constexpr int64_t row_room(const MelJob& job) { return (job.length + 3) / 4 * 4; }

// Floats that a tile works in.
inline int64_t mel_room(const MelJob& job, int64_t lanes) {
    return lanes * (job.size + job.transform.half + 1 + row_room(job)) + 64;
}
inline int64_t mel_gradient_room(const MelJob& job, int64_t lanes) {
    return mel_room(job, lanes) + lanes * (job.transform.half + 1);
}

TORCHFX_DECLARE_KERNELS(MelKernels, mel_kernels)

}  // namespace torchfx

#endif
