// Random numbers by their places, and what is done with a tile of them.
#ifndef TORCHFX_NOISE_KERNELS_H
#define TORCHFX_NOISE_KERNELS_H

#include <stdint.h>

#include "support/dispatch.h"

namespace torchfx {

constexpr int64_t noise_block = 32;  // normal numbers are made in blocks that begin at multiples of it
constexpr int64_t noise_tile = 512;  // samples at a time, at most

template <class Sample>
struct NoiseSampleKernels {
    // y[t] = x[t] + gain noise[t]
    void (*add)(const Sample* x, double gain, const double* noise, int64_t count, Sample* y);
    // y[t] = gain round(x[t] / gain + noise[t]), halves to the even number
    void (*round)(const Sample* x, double gain, const double* noise, int64_t count, Sample* y);
    double (*energy)(const Sample* x, int64_t count);
};

struct NoiseKernels {
    // Indexed by torchfx_noise_density. Makes the numbers of `count` samples from `place` on, writes to `room`, of noise_tile +
    // 2 noise_block doubles, and returns where the first one lies.
    const double* (*noise[4])(uint64_t place, uint64_t key, int64_t count, double* room);
    NoiseSampleKernels<float> of_floats;
    NoiseSampleKernels<double> of_doubles;
    const NoiseSampleKernels<float>& of(float) const { return of_floats; }
    const NoiseSampleKernels<double>& of(double) const { return of_doubles; }
};

TORCHFX_DECLARE_KERNELS(NoiseKernels, noise_kernels)

}  // namespace torchfx

#endif
