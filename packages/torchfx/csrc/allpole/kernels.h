// All-pole recursions y[t] = x[t] - a[1] y[t-1] - ... - a[n] y[t-n], on doubles, in place.
#ifndef TORCHFX_ALLPOLE_KERNELS_H
#define TORCHFX_ALLPOLE_KERNELS_H

#include <stdint.h>

#include "support/dispatch.h"

namespace torchfx {

template <class Coefficient>
struct AllpoleGradient {
    const Coefficient* a;  // (count, order)
    int64_t order;
    const double* y;  // from `order` outputs before the first on
    double* pending;  // (order,): what later samples add to the gradients of the samples before `count`, latest first;
                      // on return to those before 0
    Coefficient* grad_a;  // (count, order), or NULL
};

struct AllpoleKernels {
    // samples[-order ... -1] are the outputs before; one row of `order` coefficients for all samples (step 0) or each
    // (step = order). Sample by sample: in blocks, by the block's own inverse, rounding grows a hundredfold for low cutoffs.
    void (*forward_f32)(const float* a, int64_t step, int64_t order, double* samples, int64_t count);
    void (*forward_f64)(const double* a, int64_t step, int64_t order, double* samples, int64_t count);
    // From gradients of the outputs to those of the samples, in place, with a row of coefficients for each sample.
    void (*backward_f32)(const AllpoleGradient<float>&, double* samples, int64_t count);
    void (*backward_f64)(const AllpoleGradient<double>&, double* samples, int64_t count);
    // sums[k] -= sum of w[i] y[i + 1 + k] over i < count, for k < order.
    void (*correlate)(const double* w, const double* y, int64_t count, double* sums, int64_t order);
};

TORCHFX_DECLARE_KERNELS(AllpoleKernels, allpole_kernels)

}  // namespace torchfx

#endif
