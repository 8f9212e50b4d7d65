// From a row of SciPy's sos array to the form the kernels run (SosStage).
#ifndef TORCHFX_SOS_STAGE_H
#define TORCHFX_SOS_STAGE_H

#include <cstdint>

#include "sos/kernels.h"
#include "support/rows.h"

namespace torchfx {

// float32 signals are served by kappa = 0: its error stays far below their own rounding, at 5 operations
// per sample instead of 7.
enum class SosForm { direct, shifted };

template <class Sample>
constexpr SosForm form_for = sizeof(Sample) == sizeof(float) ? SosForm::direct : SosForm::shifted;

// Whether each of `count` rows of b0 b1 b2 a0 a1 a2 makes a stage: TORCHFX_OK, TORCHFX_NOT_FINITE or TORCHFX_UNSTABLE.
int32_t check_stages(const double* sos, int64_t count);

// The stage of each row, after the same check.
int32_t make_stages(const double* sos, int64_t count, SosForm form, SosStage* stages);

// The state, (sections, 2) in SciPy's layout, in which a stable cascade has settled on a constant input of 1.
void settled_state(const double* sos, int64_t sections, double* state);

// Between SciPy's state and the kernel's: only the second one differs.
inline double shift_state(const SosStage& stage, double s1, double s2) { return s2 + stage.kappa * s1; }
inline double unshift_state(const SosStage& stage, double w1, double w2) { return w2 - stage.kappa * w1; }

// The cascades of a call.
struct Cascades {
    const SosStage* stages;  // (rows.count, sections)
    int64_t sections;
    Rows rows;

    const SosStage* row(int64_t index) const { return stages + index * sections; }
    const SosStage* of(int64_t channel) const { return row(rows.of(channel)); }
};

}  // namespace torchfx

#endif
