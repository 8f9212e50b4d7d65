// The arithmetic of a network of delay lines: weighted sums of signals, and the filters of several lines side by side.
#ifndef TORCHFX_DELAY_NETWORK_KERNELS_H
#define TORCHFX_DELAY_NETWORK_KERNELS_H

#include <stdint.h>

#include "sos/kernels.h"
#include "support/dispatch.h"

namespace torchfx {

// to[t] = sum over k < terms of weights[k] sources[k][t]. `to` must not overlap a source.
struct WeightedSum {
    const double* const* sources;
    const double* weights;
    int64_t terms;
};

// to[lane][t] = added[lane][t] + what the stages make of weights[lane] from[lane][t]. All lanes have samples to read and
// room to write; what is written may be what was read.
struct LoopFilterRun {
    const double* stages;  // (sections, 6, lanes), as in SosRun
    double* state;         // (sections, 2, lanes)
    int64_t sections;
    bool shifted;  // whether any kappa is not 0
    const double* from[max_lanes];
    double weights[max_lanes];
    const double* added[max_lanes];
    double* to[max_lanes];
};

struct DelayNetworkKernels {
    void (*sum_f32)(const WeightedSum&, int64_t count, float* to);
    void (*sum_f64)(const WeightedSum&, int64_t count, double* to);
    void (*filter)(const LoopFilterRun&, int64_t count);
    void (*widen)(const float* from, int64_t count, double* to);
};

static inline auto sum_of(const DelayNetworkKernels& kernels, const float*) { return kernels.sum_f32; }
static inline auto sum_of(const DelayNetworkKernels& kernels, const double*) { return kernels.sum_f64; }

TORCHFX_DECLARE_KERNELS(DelayNetworkKernels, delay_network_kernels)

}  // namespace torchfx

#endif
