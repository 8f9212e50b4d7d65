// The inner loops of recursive filters, one table per instruction set.
#ifndef TORCHFX_SOS_KERNELS_H
#define TORCHFX_SOS_KERNELS_H

#include <stdint.h>

#include "support/dispatch.h"
#include "torchfx_dsp.h"

namespace torchfx {

// One second-order section. With the state (w1, w2), at each sample
//
//     y   = b0 x + w1
//     w1' = kappa w1 + w2 + c1 x - p1 w1
//     w2' = kappa w2      + c0 x - p0 w1
//
// kappa = 0 is transposed direct form II (w = SciPy's zi) with y eliminated from the feedback, which halves
// the chain of dependent operations per sample. A low filter has poles near z = 1 and direct-form
// coefficients near (-2, 1), whose rounding moves the poles; kappa = 1 writes the recursion around z = 1
// instead, where p1 = 2 + a1 and p0 = 1 + a1 + a2 are small and exact to the last digit, as in a cascade of
// two integrators. kappa = -1 does the same around z = -1. In double precision this takes the error of a
// 12th-order filter at 20 Hz from 2e-10 of the peak to 2e-13.
struct SosStage {
    double b0, c1, c0, p1, p0, kappa;
};
constexpr int stage_constants = 6;
static_assert(sizeof(SosStage) == stage_constants * sizeof(double), "read as an array by RowsToVectors");

constexpr int max_lanes = 8;

// For gradients the state may be kept at every multiple of this many samples.
constexpr int checkpoint_steps = TORCHFX_CHECKPOINT_STEPS;

// Streams that are filtered side by side, one in each lane of a vector: channels, or pieces in time of one channel.
template <class In, class Out = In>
struct SosLanes {
    const In* x[max_lanes];  // nullptr: zeros
    Out* y[max_lanes];       // nullptr: computed for the state only
    int64_t x_stride;        // between two samples of a stream
    int64_t y_stride = 1;    // or -1
};

// Filters `steps` samples of every lane through `count` stages of its own. stages is (count, 6, lanes), each stage's
// constants in the order of SosStage; state is (count, 2, lanes).
template <class In, class Out = In>
using SosRun = void (*)(const double* stages, int64_t count, double* state, const SosLanes<In, Out>& lanes,
                        int64_t steps);

// A row of `count` doubles for each lane, at from[lane] or to[lane], into vectors (count, lanes) and out of them.
// nullptr: zeros, or not wanted.
using RowsToVectors = void (*)(const double* const* from, int64_t count, double* vectors);
using VectorsToRows = void (*)(const double* vectors, int64_t count, double* const* to);

struct SosKernels {
    int lanes;
    SosRun<float> run_f32;   // stages in direct form
    SosRun<double> run_f64;  // stages in either form
    SosRun<float, double> run_widening;   // stages in direct form
    SosRun<double, float> run_narrowing;  // the same
    RowsToVectors to_vectors;
    VectorsToRows to_rows;
};

// For input and output of these types.
static inline SosRun<float> run_of(const SosKernels& kernels, const float*, const float*) { return kernels.run_f32; }
static inline SosRun<double> run_of(const SosKernels& kernels, const double*, const double*) { return kernels.run_f64; }
static inline SosRun<float, double> run_of(const SosKernels& kernels, const float*, const double*) {
    return kernels.run_widening;
}
static inline SosRun<double, float> run_of(const SosKernels& kernels, const double*, const float*) {
    return kernels.run_narrowing;
}

TORCHFX_DECLARE_KERNELS(SosKernels, sos_kernels)

}  // namespace torchfx

#endif
