// The inner loops of the recursive filter's gradients, one table per instruction set.
//
// The adjoint of a stage (SosStage) runs backwards in time. With g the gradient at its output and (l1, l2) that at
// its state, at each sample
//
//     gx  = b0 g + c1 l1 + c0 l2
//     l1' = g + kappa l1 - p1 l1 - p0 l2
//     l2' = l1 + kappa l2
//
// and its coefficients' gradients are the five sums over time of g x, l1 x, l2 x, l1 y and l2 y, with x and y the
// samples that enter and leave the stage at the same instant.
#ifndef TORCHFX_SOS_GRADIENT_KERNELS_H
#define TORCHFX_SOS_GRADIENT_KERNELS_H

#include "sos/kernels.h"

namespace torchfx {

constexpr int sums_per_stage = 5;

template <class Sample>
struct SosGradientLanes {
    const Sample* x[max_lanes];  // nullptr: zeros
    const Sample* g[max_lanes];  // nullptr: zeros
    Sample* gx[max_lanes];       // nullptr: not wanted
    int64_t x_stride, g_stride;
};

// At most `checkpoint_steps` samples of every lane: filters x again from `state` (changed), then runs the adjoint
// backwards over g from `adjoint` (changed) and adds to `sums`, (count, 5, lanes). stages is (count, 6, lanes), state and
// adjoint are (count, 2, lanes); work holds gradient_work(count, lanes) doubles. gain, (lanes,), is for stages with
// b0 = 1 alone: what gx is multiplied by.
template <class Sample>
using SosGradient = void (*)(const double* stages, int64_t count, double* state, double* adjoint, double* sums,
                             const SosGradientLanes<Sample>& lanes, const double* gain, int steps,
                             double* work);

// A tile for the samples before and after every stage, one for the adjoint, and a state.
static inline int64_t gradient_work(int64_t count, int lanes) {
    return ((count + 2) * checkpoint_steps + 2 * count) * lanes;
}

struct SosGradientKernels {
    const SosKernels* filter;  // of the same instruction set
    // As SosRun, backwards: from the last of `steps` samples to the first, with lanes.x the gradient at the output
    // and lanes.y that at the input. For when the coefficients' gradients are not wanted.
    SosRun<float> adjoint_f32;
    SosRun<double> adjoint_f64;
    SosGradient<float> gradient_f32;
    SosGradient<float> unit_gradient_f32;  // for stages with b0 = 1
    SosGradient<double> gradient_f64;
};

TORCHFX_DECLARE_KERNELS(SosGradientKernels, sos_gradient_kernels)

}  // namespace torchfx

#endif
