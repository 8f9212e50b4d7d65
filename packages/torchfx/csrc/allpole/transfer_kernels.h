// Transfer functions in the transposed direct form II, a channel in each lane.
#ifndef TORCHFX_ALLPOLE_TRANSFER_KERNELS_H
#define TORCHFX_ALLPOLE_TRANSFER_KERNELS_H

#include <stdint.h>

#include "support/dispatch.h"

namespace torchfx {

constexpr int most_transfer_lanes = 8;

// y = b[0] x + z[0], then z[k] = z[k + 1] + b[k + 1] x - a[k + 1] y for k < order, with z[order] = 0.
template <class In, class Out = In>
struct TransferLanes {
    const In* x[most_transfer_lanes];  // nullptr: zeros
    Out* y[most_transfer_lanes];       // nullptr: computed for the state only
    int64_t stride, count;             // of x's samples; of samples
    int64_t order;
    const double *b, *a;   // (order + 1, lanes)
    double* state;         // (order, lanes): z
    int64_t y_stride = 1;  // or -1
};

struct TransferKernels {
    int lanes;
    void (*forward_f32)(const TransferLanes<float>&);
    void (*forward_f64)(const TransferLanes<double>&);
    void (*forward_widening)(const TransferLanes<float, double>&);
    void (*forward_narrowing)(const TransferLanes<double, float>&);
};

TORCHFX_DECLARE_KERNELS(TransferKernels, transfer_kernels)

}  // namespace torchfx

#endif
