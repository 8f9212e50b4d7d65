// Curves that map each sample by itself, see TORCHFX_CURVES in torchfx_program.h.
#ifndef TORCHFX_CURVES_KERNELS_H
#define TORCHFX_CURVES_KERNELS_H

#include <stdint.h>

#include "support/dispatch.h"
#include "torchfx_program.h"

namespace torchfx {

// Parameters as the curve has them, `length` of them; x and y may be the same.
template <class Sample>
using CurveKernel = void (*)(const double* parameters, int64_t length, const Sample* x, int64_t count, Sample* y);

// By the number of the curve.
struct CurveKernels {
    CurveKernel<float> of_floats[TORCHFX_CURVE_COUNT];
    CurveKernel<double> of_doubles[TORCHFX_CURVE_COUNT];
    const CurveKernel<float>* of(float) const { return of_floats; }
    const CurveKernel<double>* of(double) const { return of_doubles; }
};

TORCHFX_DECLARE_KERNELS(CurveKernels, curve_kernels)

}  // namespace torchfx

#endif
