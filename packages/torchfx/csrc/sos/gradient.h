// Gradients of a checked and planned call of the recursive filter.
#ifndef TORCHFX_SOS_GRADIENT_H
#define TORCHFX_SOS_GRADIENT_H

#include "sos/gradient_kernels.h"
#include "sos/group.h"
#include "sos/unit.h"

namespace torchfx {

template <class Sample>
struct SosGradientCall {
    SosCall<Sample> forward;  // nothing of it is written; x is unused where sums is null
    const Sample* grad_y;
    int64_t grad_y_channel_stride, grad_y_time_stride;
    Sample* grad_x;  // or nullptr
    int64_t grad_x_channel_stride;
    const double* grad_state_out;  // SciPy's layout, (sections, channels, 2), or nullptr
    double* grad_state_in;         // the same
    const double* checkpoints;     // as in SosCall, needed for sums
    double* sums;                  // (rows, sections, 5), see gradient_kernels.h, or nullptr
    SosRun<Sample> run_adjoint;
    SosGradient<Sample> run_gradient;
    const UnitCascades* unit;  // what run_gradient runs on, or nullptr: the stages as they are
};

// Throws std::bad_alloc.
template <class Sample>
void sos_gradient(const SosGradientCall<Sample>& call);

extern template void sos_gradient(const SosGradientCall<float>&);
extern template void sos_gradient(const SosGradientCall<double>&);

}  // namespace torchfx

#endif
