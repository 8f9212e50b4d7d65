#include "sos/stage.h"

#include <cmath>

#include "torchfx_dsp.h"

namespace torchfx {
namespace {

// a + b + c with the rounding error of the first addition added back: the sums wanted here cancel.
double accurate_sum(double a, double b, double c) {
    const double sum = a + b;
    const double b_part = sum - a;
    const double error = (a - (sum - b_part)) + (b - b_part);
    return (sum + c) + error;
}

SosStage make_stage(const double* sos, SosForm form) {
    const double b0 = sos[0], b1 = sos[1], b2 = sos[2], a0 = sos[3], a1 = sos[4], a2 = sos[5];
    const double at_one = accurate_sum(a0, a2, a1) / a0;         // A(z) at z = 1
    const double at_minus_one = accurate_sum(a0, a2, -a1) / a0;  // and at z = -1
    double kappa = 0;
    if (form == SosForm::shifted) {
        if (at_one < 0.5) kappa = 1;
        else if (at_minus_one < 0.5) kappa = -1;
    }
    double p1, p0, q1, q0;
    if (kappa == 0) {
        p1 = a1 / a0;
        p0 = a2 / a0;
        q1 = b1 / a0;
        q0 = b2 / a0;
    } else {
        p1 = (2 * kappa * a0 + a1) / a0;
        p0 = kappa > 0 ? at_one : at_minus_one;
        q1 = (2 * kappa * b0 + b1) / a0;
        q0 = accurate_sum(b0, b2, kappa * b1) / a0;
    }
    const double gain = b0 / a0;
    return {gain, std::fma(-p1, gain, q1), std::fma(-p0, gain, q0), p1, p0, kappa};
}

}  // namespace

int32_t check_sos(const double* sos, int64_t sections) {
    int32_t status = TORCHFX_OK;
    for (int64_t k = 0; k < sections; ++k, sos += 6) {
        for (int i = 0; i < 6; ++i)
            if (!std::isfinite(sos[i])) return TORCHFX_NOT_FINITE;
        if (sos[3] == 0) return TORCHFX_NOT_FINITE;
        const double a1 = sos[4] / sos[3], a2 = sos[5] / sos[3];
        for (int i = 0; i < 6; ++i)
            if (!std::isfinite(sos[i] / sos[3])) return TORCHFX_NOT_FINITE;
        // Both roots of z^2 + a1 z + a2 lie inside the unit circle exactly when |a2| < 1 and |a1| < 1 + a2.
        if (!(std::fabs(a2) < 1 && std::fabs(a1) < 1 + a2)) status = TORCHFX_UNSTABLE;
    }
    return status;
}

void make_stages(const double* sos, int64_t count, SosForm form, SosStage* stages) {
    for (int64_t k = 0; k < count; ++k) stages[k] = make_stage(sos + 6 * k, form);
}

}  // namespace torchfx
