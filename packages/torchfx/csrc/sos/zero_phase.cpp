// torchfx_sos_zero_phase: a cascade both ways.
#include <algorithm>
#include <vector>

#include "sos/filter.h"
#include "support/both_ways.h"
#include "support/signal.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

struct Sections {
    const double* sos;
    int64_t count;
    Rows rows;
    int64_t threshold;
    int threads;
};

// The cascades of some channels, each with its own or all with the same, and their states.
template <class Sample>
class Cascade {
public:
    // The sections are finite and stable.
    Cascade(const Sections& sections, int64_t first, int64_t channels, int64_t samples)
        : count_(sections.count), rows_(sections.rows.count == 1 ? 1 : channels), channels_(channels), samples_(samples),
          sos_(size(rows_ * 6 * count_)), stages_(size(rows_ * count_)), settled_(size(rows_ * 2 * count_)),
          state_(size(channels * 2 * count_)) {
        for (int64_t i = 0; i < rows_; ++i) {
            double* const sos = sos_.data() + i * 6 * count_;
            std::copy_n(sections.sos + sections.rows.of(first + i) * 6 * count_, 6 * count_, sos);
            settled_state(sos, count_, settled_.data() + i * 2 * count_);
        }
        make_stages(sos_.data(), rows_ * count_, form_for<Sample>, stages_.data());
        plan_ = plan_sos({channels, samples, count_, rows_, sizeof(Sample), TORCHFX_KERNELS(sos_kernels).lanes,
                          sections.threads, sections.threshold}, sos_.data());
    }

    void settle(int64_t channel, double level) {
        const double* settled = settled_.data() + (rows_ == 1 ? 0 : channel) * 2 * count_;
        for (int64_t k = 0; k < count_; ++k)
            for (int64_t i = 0; i < 2; ++i) state_[size((k * channels_ + channel) * 2 + i)] = level * settled[2 * k + i];
    }

    template <class In, class Out>
    void run(const Pass<In, Out>& pass) {
        SosCall<In, Out> call = {};
        call.x = pass.x;
        call.x_channel_stride = pass.x_channel_stride;
        call.x_time_stride = pass.x_time_stride;
        call.x_repeat = pass.x_repeat;
        call.y = pass.y;
        call.y_channel_stride = pass.y_channel_stride;
        call.y_time_stride = pass.y_time_stride;
        call.channels = channels_;
        call.samples = pass.samples;
        call.cascades = {stages_.data(), count_, {rows_, 1}};
        call.state_in = call.state_out = state_.data();
        call.state_stride = 2 * channels_;
        call.plan = pass.samples == samples_ ? plan_ : SosPlan{1, pass.samples, 0, false, plan_.threads};
        call.use(TORCHFX_KERNELS(sos_kernels));
        sos_filter(call);
    }

private:
    static std::size_t size(int64_t count) { return static_cast<std::size_t>(count); }

    int64_t count_, rows_, channels_, samples_;
    std::vector<double> sos_;
    std::vector<SosStage> stages_;
    std::vector<double> settled_, state_;
    SosPlan plan_;
};

}  // namespace
}  // namespace torchfx

extern "C" int32_t torchfx_sos_zero_phase(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* sos, int64_t sections, int64_t sos_rows, int64_t sos_repeat,
    int64_t edge, int32_t extension, int64_t threshold, int32_t threads) {
    using namespace torchfx;
    const Rows rows = {sos_rows, sos_repeat};
    if (!sos || sections < 1 || threads < 1 || !rows.valid(channels)) return TORCHFX_BAD_ARGUMENT;
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        const BothWays<Sample> call = {static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat,
                                       static_cast<Sample*>(y), y_channel_stride, channels, samples, edge, extension};
        if (!call.valid()) return TORCHFX_BAD_ARGUMENT;
        if (const int32_t status = check_stages(sos, sos_rows * sections)) return status;
        run_both_ways(call, TORCHFX_KERNELS(sos_kernels).lanes, threads, [&](int64_t first, int64_t count) {
            return Cascade<Sample>({sos, sections, rows, threshold, threads}, first, count, samples);
        });
        return TORCHFX_OK;
    });
}
