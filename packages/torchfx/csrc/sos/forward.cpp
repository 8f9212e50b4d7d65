// torchfx_sos_forward and torchfx_sos_forward_recording: checks the arguments, prepares the stages, plans, runs.
#include <new>
#include <type_traits>

#include "sos/filter.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

template <class Sample>
int32_t forward(SosCall<Sample> call, const double* sos, int64_t threshold, int threads) {
    const int64_t rows = call.cascades.rows.count, sections = call.sections();
    Scratch<SosStage, 16> stages(static_cast<std::size_t>(rows * sections));
    if (const int32_t status = make_stages(sos, rows * sections, form_for<Sample>, stages.data())) return status;
    call.cascades.stages = stages.data();
    call.use(TORCHFX_KERNELS(sos_kernels));
    call.state_stride = 2 * call.channels;
    call.plan = plan_sos({call.channels, call.samples, sections, rows, sizeof(Sample), call.lanes, threads, threshold,
                          call.checkpoints ? checkpoint_steps : 1}, sos);
    sos_filter(call);
    return TORCHFX_OK;
}

int32_t checked_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* sos, int64_t sections, int64_t sos_rows, int64_t sos_repeat,
    const double* state_in, double* state_out, double* checkpoints,
    int64_t threshold, int32_t threads) {
    if (!x || !y || !sos || channels < 1 || samples < 1 || sections < 1 || threads < 1) return TORCHFX_BAD_ARGUMENT;
    if (dtype != TORCHFX_F32 && dtype != TORCHFX_F64) return TORCHFX_BAD_ARGUMENT;
    if (!valid_rows(channels, x_repeat, {sos_rows, sos_repeat})) return TORCHFX_BAD_ARGUMENT;

    const auto run = [&](auto call) {
        using Sample = std::remove_pointer_t<decltype(call.y)>;
        call.x = static_cast<const Sample*>(x);
        call.x_channel_stride = x_channel_stride;
        call.x_time_stride = x_time_stride;
        call.x_repeat = x_repeat;
        call.y = static_cast<Sample*>(y);
        call.y_channel_stride = y_channel_stride;
        call.channels = channels;
        call.samples = samples;
        call.cascades = {nullptr, sections, {sos_rows, sos_repeat}};
        call.state_in = state_in;
        call.state_out = state_out;
        call.checkpoints = checkpoints;
        return forward(call, sos, threshold, threads);
    };
    try {
        return dtype == TORCHFX_F32 ? run(SosCall<float>{}) : run(SosCall<double>{});
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
}

}  // namespace
}  // namespace torchfx

extern "C" int32_t torchfx_sos_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* sos, int64_t sections, int64_t sos_rows, int64_t sos_repeat,
    const double* state_in, double* state_out,
    int64_t threshold, int32_t threads) {
    return torchfx::checked_forward(dtype, x, x_channel_stride, x_time_stride, x_repeat, y, y_channel_stride, channels,
                                    samples, sos, sections, sos_rows, sos_repeat, state_in, state_out, nullptr,
                                    threshold, threads);
}

extern "C" int32_t torchfx_sos_forward_recording(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* sos, int64_t sections, int64_t sos_rows, int64_t sos_repeat,
    const double* state_in, double* state_out, double* checkpoints,
    int64_t threshold, int32_t threads) {
    if (!checkpoints) return TORCHFX_BAD_ARGUMENT;
    return torchfx::checked_forward(dtype, x, x_channel_stride, x_time_stride, x_repeat, y, y_channel_stride, channels,
                                    samples, sos, sections, sos_rows, sos_repeat, state_in, state_out, checkpoints,
                                    threshold, threads);
}
