// Weighted sums of signals, the arithmetic of a network of delay lines.
#ifndef TORCHFX_DELAY_NETWORK_KERNELS_H
#define TORCHFX_DELAY_NETWORK_KERNELS_H

#include <stdint.h>

#include "support/dispatch.h"

namespace torchfx {

// to[t] = sum over k < terms of weights[k] sources[k][t]. `to` must not overlap a source.
struct WeightedSum {
    const double* const* sources;
    const double* weights;
    int64_t terms;
};

struct DelayNetworkKernels {
    void (*sum_f32)(const WeightedSum&, int64_t count, float* to);
    void (*sum_f64)(const WeightedSum&, int64_t count, double* to);
    void (*widen)(const float* from, int64_t count, double* to);
};

static inline auto sum_of(const DelayNetworkKernels& kernels, const float*) { return kernels.sum_f32; }
static inline auto sum_of(const DelayNetworkKernels& kernels, const double*) { return kernels.sum_f64; }

TORCHFX_DECLARE_KERNELS(DelayNetworkKernels, delay_network_kernels)

}  // namespace torchfx

#endif
