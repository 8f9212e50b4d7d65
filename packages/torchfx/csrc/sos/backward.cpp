// torchfx_sos_backward: checks the arguments, prepares the stages, plans, runs, and turns the kernels' sums into the
// gradients of SciPy's coefficients.
#include <algorithm>
#include <cmath>
#include <new>
#include <type_traits>
#include <vector>

#include "sos/filter.h"
#include "sos/gradient.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

void choose_kernels(const SosGradientKernels& kernels, SosGradientCall<float>& call) {
    call.run_adjoint = kernels.adjoint_f32;
    call.run_gradient = call.unit ? kernels.unit_gradient_f32 : kernels.gradient_f32;
}

void choose_kernels(const SosGradientKernels& kernels, SosGradientCall<double>& call) {
    call.run_adjoint = kernels.adjoint_f64;
    call.run_gradient = kernels.gradient_f64;
}

// Whether a section of a row starts in a state far from any that the row's signals themselves bring about, as after a
// change of its coefficients. What the kernel for UnitCascades does to save multiply-adds would lose digits then: the
// gradient of a small b0 from products of large states.
template <class Sample>
bool starts_far_out(const SosGradientCall<Sample>& call) {
    const SosCall<Sample>& forward = call.forward;
    if (!forward.state_in) return false;
    const int64_t later = forward.checkpoints_per_channel(), sections = forward.sections();
    struct Largest {
        double first, usual;
    };
    std::vector<Largest> largest(static_cast<std::size_t>(forward.cascades.rows.count * sections));
    for (int64_t c = 0; c < forward.channels; ++c) {
        Largest* of_row = largest.data() + forward.cascades.rows.of(c) * sections;
        for (int64_t k = 0; k < sections; ++k) {
            const double* s = forward.state_in + k * forward.state_stride + 2 * c;
            of_row[k].first = std::max({of_row[k].first, std::fabs(s[0]), std::fabs(s[1])});
        }
        for (int64_t i = 1; i < later; ++i) {
            const double* w = call.checkpoints + (c * later + i) * sections * 2;
            for (int64_t k = 0; k < sections; ++k, w += 2)
                of_row[k].usual = std::max({of_row[k].usual, std::fabs(w[0]), std::fabs(w[1])});
        }
    }
    return std::any_of(largest.begin(), largest.end(), [](const Largest& l) { return l.first > 1e3 * l.usual; });
}

// Gradients of b0 b1 b2 a0 a1 a2 in `grad`. First those of the shifted recursion,
//     y = b0 x + w1,  w1' = kappa w1 + w2 + q1 x - p1 y,  w2' = kappa w2 + q0 x - p0 y,
// then back through q1 = 2 kappa b0 + b1, q0 = kappa^2 b0 + kappa b1 + b2, p1 = 2 kappa + a1,
// p0 = kappa^2 + kappa a1 + a2, and the division by a0.
void coefficient_gradients(const double* sos, const SosStage& stage, const double* sums, double* grad) {
    const double kappa = stage.kappa, a0 = sos[3];
    const double q1 = sums[1], q0 = sums[2], p1 = -sums[3], p0 = -sums[4];
    const double b0 = sums[0] - stage.p1 * q1 - stage.p0 * q0;
    grad[0] = (b0 + 2 * kappa * q1 + kappa * kappa * q0) / a0;
    grad[1] = (q1 + kappa * q0) / a0;
    grad[2] = q0 / a0;
    grad[4] = (p1 + kappa * p0) / a0;
    grad[5] = p0 / a0;
    grad[3] = -(sos[0] * grad[0] + sos[1] * grad[1] + sos[2] * grad[2] + sos[4] * grad[4] + sos[5] * grad[5]) / a0;
}

// From the sums of UnitCascades to those of the stages: products with x lack all gains but the stage's own, those with
// y all of them.
void take_gains_back(const Cascades& cascades, const std::vector<double>& gains, double* sums) {
    for (int64_t r = 0; r < cascades.rows.count; ++r) {
        const double gain = gains[static_cast<std::size_t>(r)];
        for (int64_t k = 0; k < cascades.sections; ++k, sums += sums_per_stage) {
            for (int i = 0; i < 3; ++i) sums[i] *= gain / cascades.row(r)[k].b0;
            for (int i = 3; i < sums_per_stage; ++i) sums[i] *= gain;
        }
    }
}

template <class Sample>
int32_t backward(SosGradientCall<Sample> call, const double* sos, double* grad_sos, int64_t threshold, int threads) {
    SosCall<Sample>& forward = call.forward;
    const int64_t rows = forward.cascades.rows.count, sections = forward.sections();
    std::vector<SosStage> stages(static_cast<std::size_t>(rows * sections));
    if (const int32_t status = make_stages(sos, rows * sections, form_for<Sample>, stages.data())) return status;
    std::vector<double> sums(grad_sos ? static_cast<std::size_t>(rows * sections * sums_per_stage) : 0);

    const SosGradientKernels& kernels = TORCHFX_KERNELS(sos_gradient_kernels);
    call.sums = grad_sos ? sums.data() : nullptr;
    forward.cascades.stages = stages.data();
    forward.use(*kernels.filter);
    forward.state_stride = 2 * forward.channels;
    forward.plan = plan_sos({forward.channels, forward.samples, sections, rows, sizeof(Sample), forward.lanes, threads,
                             threshold, grad_sos ? checkpoint_steps : 1}, sos);
    const bool missing = grad_sos && !call.checkpoints;
    Scratch<double, 64> found(static_cast<std::size_t>(
        missing ? forward.channels * forward.checkpoints_per_channel() * 2 * sections : 0));
    if (missing) {
        SosCall<Sample> recording = forward;
        recording.checkpoints = found.data();
        sos_filter(recording);
        call.checkpoints = found.data();
    }
    UnitCascades unit;
    if (grad_sos && form_for<Sample> == SosForm::direct && !starts_far_out(call)) unit = unit_cascades(forward.cascades);
    call.unit = unit.stages.empty() ? nullptr : &unit;
    choose_kernels(kernels, call);
    sos_gradient(call);
    if (!grad_sos) return TORCHFX_OK;
    if (call.unit) take_gains_back(forward.cascades, unit.gains, sums.data());
    for (int64_t i = 0; i < rows * sections; ++i)
        coefficient_gradients(sos + 6 * i, stages[static_cast<std::size_t>(i)], sums.data() + i * sums_per_stage,
                              grad_sos + 6 * i);
    return TORCHFX_OK;
}

}  // namespace
}  // namespace torchfx

extern "C" int32_t torchfx_sos_backward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    const void* grad_y, int64_t grad_y_channel_stride, int64_t grad_y_time_stride, int64_t channels, int64_t samples,
    const double* sos, int64_t sections, int64_t sos_rows, int64_t sos_repeat,
    const double* state_in, const double* grad_state_out,
    const double* checkpoints, void* grad_x, int64_t grad_x_channel_stride, double* grad_sos, double* grad_state_in,
    int64_t threshold, int32_t threads) {
    using namespace torchfx;
    if (!grad_y || !sos || (grad_sos && !x)) return TORCHFX_BAD_ARGUMENT;
    if (channels < 1 || samples < 1 || sections < 1 || threads < 1) return TORCHFX_BAD_ARGUMENT;
    if (dtype != TORCHFX_F32 && dtype != TORCHFX_F64) return TORCHFX_BAD_ARGUMENT;
    if (!valid_rows(channels, x_repeat, {sos_rows, sos_repeat})) return TORCHFX_BAD_ARGUMENT;

    const auto run = [&](auto call) {
        using Sample = std::remove_pointer_t<decltype(call.grad_x)>;
        call.forward.x = static_cast<const Sample*>(x);
        call.forward.x_channel_stride = x_channel_stride;
        call.forward.x_time_stride = x_time_stride;
        call.forward.x_repeat = x_repeat;
        call.forward.channels = channels;
        call.forward.samples = samples;
        call.forward.cascades = {nullptr, sections, {sos_rows, sos_repeat}};
        call.forward.state_in = state_in;
        call.grad_y = static_cast<const Sample*>(grad_y);
        call.grad_y_channel_stride = grad_y_channel_stride;
        call.grad_y_time_stride = grad_y_time_stride;
        call.grad_x = static_cast<Sample*>(grad_x);
        call.grad_x_channel_stride = grad_x_channel_stride;
        call.grad_state_out = grad_state_out;
        call.grad_state_in = grad_state_in;
        call.checkpoints = checkpoints;
        return backward(call, sos, grad_sos, threshold, threads);
    };
    try {
        return dtype == TORCHFX_F32 ? run(SosGradientCall<float>{}) : run(SosGradientCall<double>{});
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
}
