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

// Around z = kappa, which is 1 or -1; at_kappa is A(kappa) / a0.
SosStage shifted_stage(const double* sos, double kappa, double at_kappa) {
    const double b0 = sos[0], b1 = sos[1], b2 = sos[2], a0 = sos[3], a1 = sos[4];
    const double gain = b0 / a0, p1 = (2 * kappa * a0 + a1) / a0, q1 = (2 * kappa * b0 + b1) / a0;
    const double q0 = accurate_sum(b0, b2, kappa * b1) / a0;
    return {gain, std::fma(-p1, gain, q1), std::fma(-at_kappa, gain, q0), p1, at_kappa, kappa};
}

SosStage make_stage(const double* sos, SosForm form) {
    const double a0 = sos[3], gain = sos[0] / a0, b1 = sos[1] / a0, b2 = sos[2] / a0, a1 = sos[4] / a0, a2 = sos[5] / a0;
    if (form == SosForm::shifted) {
        const double at_one = accurate_sum(a0, sos[5], sos[4]) / a0;
        if (at_one < 0.5) return shifted_stage(sos, 1, at_one);
        const double at_minus_one = accurate_sum(a0, sos[5], -sos[4]) / a0;
        if (at_minus_one < 0.5) return shifted_stage(sos, -1, at_minus_one);
    }
    return {gain, std::fma(-a1, gain, b1), std::fma(-a2, gain, b2), a1, a2, 0};
}

// One of the quotients is not finite where a0 is 0.
bool is_finite(const double* sos) {
    for (int i = 0; i < 6; ++i)
        if (!std::isfinite(i == 3 ? sos[i] : sos[i] / sos[3])) return false;
    return true;
}

// Both roots of z^2 + a1 z + a2 lie inside the unit circle exactly when |a2| < 1 and |a1| < 1 + a2.
bool is_stable(const double* sos) {
    const double a1 = sos[4] / sos[3], a2 = sos[5] / sos[3];
    return std::fabs(a2) < 1 && std::fabs(a1) < 1 + a2;
}

}  // namespace

int32_t check_stages(const double* sos, int64_t count) {
    bool stable = true;
    for (int64_t k = 0; k < count; ++k, sos += 6) {
        if (!is_finite(sos)) return TORCHFX_NOT_FINITE;
        stable = stable && is_stable(sos);
    }
    return stable ? TORCHFX_OK : TORCHFX_UNSTABLE;
}

int32_t make_stages(const double* sos, int64_t count, SosForm form, SosStage* stages) {
    if (const int32_t status = check_stages(sos, count)) return status;
    for (int64_t k = 0; k < count; ++k) stages[k] = make_stage(sos + 6 * k, form);
    return TORCHFX_OK;
}

// On a constant input of 1 a section gives `gain`; each state is what the samples so far still add to later outputs.
void settled_state(const double* sos, int64_t sections, double* state) {
    double level = 1;
    for (int64_t k = 0; k < sections; ++k, sos += 6, state += 2) {
        const double b0 = sos[0], b1 = sos[1], b2 = sos[2], a0 = sos[3], a1 = sos[4], a2 = sos[5];
        const double gain = accurate_sum(b0, b2, b1) / accurate_sum(a0, a2, a1);
        const double second = b2 - a2 * gain;
        state[0] = level * (b1 - a1 * gain + second) / a0;
        state[1] = level * second / a0;
        level *= gain;
    }
}

}  // namespace torchfx
