#include <algorithm>

#include "median/kernels.h"
#include "support/pool.h"
#include "support/signal.h"
#include "support/workspace.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

constexpr int64_t part_samples = 4096;     // at a time, and at least as many as are in 8 windows: each begins with a window
constexpr int64_t values_alone = 1 << 14;  // samples times window that one thread sorts faster than two

}  // namespace
}  // namespace torchfx

extern "C" int32_t torchfx_sliding_median(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples, int64_t window, int32_t threads) {
    using namespace torchfx;
    if (!x || !y || (dtype != TORCHFX_F32 && dtype != TORCHFX_F64) || channels < 1 || samples < 1 || window < 1 ||
        window % 2 == 0 || threads < 1)
        return TORCHFX_BAD_ARGUMENT;
    const int64_t part = std::min(samples, std::max(part_samples, 8 * window)), parts = (samples + part - 1) / part;
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        const MedianSampleKernels<Sample>& kernels = TORCHFX_KERNELS(median_kernels).of(sample);
        const int64_t lanes = kernels.lanes, groups = (channels + lanes - 1) / lanes;
        if (channels * samples <= values_alone / window) threads = 1;
        Workspaces workspaces(threads, lanes * window);
        parallel_for(groups * parts, threads, [&](int64_t i) {
            const Workspaces::Lease space(workspaces);
            const int64_t first = i / parts * lanes, start = i % parts * part;
            kernels.median(static_cast<const Sample*>(x) + first * x_channel_stride + start * x_time_stride,
                           x_channel_stride, x_time_stride,
                           static_cast<Sample*>(y) + first * y_channel_stride + start, y_channel_stride,
                           std::min(lanes, channels - first), std::min(part, samples - start), window,
                           reinterpret_cast<Sample*>(space.data()));
        });
        return TORCHFX_OK;
    });
}
