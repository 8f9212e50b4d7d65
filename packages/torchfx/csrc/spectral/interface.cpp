#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "spectral/transform.h"
#include "support/pool.h"
#include "support/subnormals.h"
#include "support/workspace.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

constexpr int64_t tiles_together = 8;     // of one channel, by one thread in a row
constexpr int64_t values_alone = 1 << 15;  // samples in frames that one thread transforms faster than two

constexpr int64_t channels_alone = 4;     // for each thread: then each channel is one thread's

// Whether so many weights, most of which are 0, are all 0.0: their bits are joined in vectors.
constexpr int64_t weights_together = 16;
bool all_zero(const double* weights) {
    uint64_t bits[weights_together], joined = 0;
    std::memcpy(bits, weights, sizeof bits);
    for (const uint64_t each : bits) joined |= each;
    return joined == 0;
}

// Filters without the bins that are 0 at both ends of each, rounded to float.
struct Bands {
    std::vector<Band> bands;
    std::vector<float> weights;

    Bands(const double* filters, int64_t count, int64_t bins) {
        if (!filters) return;
        bands.reserve(static_cast<size_t>(count));
        weights.reserve(static_cast<size_t>(4 * bins));
        for (int64_t m = 0; m < count; ++m, filters += bins) {
            int64_t first = 0, end = bins;
            while (end - first >= weights_together && all_zero(filters + first)) first += weights_together;
            while (first < end && filters[first] == 0) ++first;
            while (end - first >= weights_together && all_zero(filters + end - weights_together))
                end -= weights_together;
            while (end > first && filters[end - 1] == 0) --end;
            bands.push_back({first, end - first, static_cast<int64_t>(weights.size())});
            for (int64_t k = first; k < end; ++k) weights.push_back(static_cast<float>(filters[k]));
        }
    }
};

void run(const MelJob& job, int threads) {
    const MelKernels& kernels = TORCHFX_KERNELS(mel_kernels);
    const int64_t tiles = (job.count + kernels.lanes - 1) / kernels.lanes;
    const int64_t runs = (tiles + tiles_together - 1) / tiles_together;
    if (job.channels * job.count * job.size <= values_alone) threads = 1;
    Workspaces workspaces(threads, (mel_room(job, kernels.lanes) + 1) / 2);
    parallel_for_or_throw(job.channels * runs, threads, [&](int64_t i) {
        const Workspaces::Lease space(workspaces);
        const int64_t first = i % runs * tiles_together, end = std::min(tiles, first + tiles_together);
        for (int64_t t = first; t < end; ++t)
            kernels.tile(job, i / runs, t * kernels.lanes, reinterpret_cast<float*>(space.data()));
    });
}

// Runs of frames that a thread adds to the signal's gradient: every second one, and then the others, so that no two that
// run at a time touch the same samples, and sums are the same however many threads there are.
void run_gradient(const MelGradientJob& job, int threads) {
    const MelKernels& kernels = TORCHFX_KERNELS(mel_kernels);
    const MelJob& of = job.forward;
    const int64_t tiles = (of.count + kernels.lanes - 1) / kernels.lanes;
    const int64_t last = (of.count - 1) * of.hop - of.origin + of.length - of.samples;
    const int64_t reach = of.length + std::max<int64_t>(0, of.origin) + std::max<int64_t>(0, last);
    const int64_t apart = (2 * reach + kernels.lanes * of.hop - 1) / (kernels.lanes * of.hop);  // tiles
    const int64_t together = std::max(tiles_together, apart), runs = (tiles + together - 1) / together;
    if (of.channels * of.count * of.size <= values_alone) threads = 1;
    // Runs of the first kind set samples to 0 before they add to them, each those from `zeroed_from` on: all that it adds
    // to, reflected ends among them, lies there, and a thread has them in its cache.
    const auto zeroed_from = [&](int64_t run) {
        if (run == 0 || run >= runs) return run == 0 ? int64_t{0} : of.samples;
        const int64_t start = run * together * kernels.lanes * of.hop - of.origin;
        return std::max<int64_t>(0, std::min(start, of.samples) - reach);
    };
    Workspaces workspaces(threads, (mel_gradient_room(of, kernels.lanes) + 1) / 2);
    const auto add = [&](int64_t channel, int64_t run) {
        const Workspaces::Lease space(workspaces);
        float* const samples = job.grad_x + channel * of.samples;
        if (run % 2 == 0) std::fill(samples + zeroed_from(run), samples + zeroed_from(run + 2), 0.0f);
        const int64_t first = run * together, end = std::min(tiles, first + together);
        for (int64_t t = first; t < end; ++t)
            kernels.gradient_tile(job, channel, t * kernels.lanes, reinterpret_cast<float*>(space.data()));
    };
    if (of.channels >= channels_alone * threads) {  // a channel's samples are still in the cache for its second runs
        parallel_for_or_throw(of.channels, threads, [&](int64_t channel) {
            for (int64_t run = 0; run < runs; run += 2) add(channel, run);
            for (int64_t run = 1; run < runs; run += 2) add(channel, run);
        });
        return;
    }
    for (int64_t odd = 0; odd < 2; ++odd) {
        const int64_t some = (runs + 1 - odd) / 2;
        parallel_for_or_throw(of.channels * some, threads, [&](int64_t i) { add(i / some, 2 * (i % some) + odd); });
    }
}

// Whether the arguments describe a pass.
bool is_pass(int64_t samples, int64_t channels, int64_t count, int64_t length, int64_t size, int64_t hop,
             int64_t origin, int32_t reflect, const double* filters, int64_t bands, int32_t threads) {
    if (samples < 1 || channels < 1 || count < 1 || length < 1 || length > size || hop < 1 || bands < 1 ||
        (!filters && bands != size / 2 + 1) || threads < 1 || !has_real_transform(size))
        return false;
    const int64_t last = (count - 1) * hop - origin + length - samples;  // samples behind the end
    return !reflect || (origin < samples && last < samples);
}

// A job, and what it points to.
struct Pass {
    std::shared_ptr<const RealTransform> plan;
    Bands sparse;
    std::vector<float> taps;
    MelJob job;

    Pass(const float* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t samples, float* y, int64_t channels,
         int64_t count, const double* window, int64_t length, int64_t size, int64_t hop, int64_t origin,
         int32_t reflect, const double* filters, int64_t bands, const double* settings)
        : plan(real_transform(size)), sparse(filters, bands, size / 2 + 1), taps(window, window + length),
          job{x, x_channel_stride, x_time_stride, samples, y, channels, count, taps.data(), length, size, hop, origin,
              reflect != 0, filters ? sparse.bands.data() : nullptr, bands, sparse.weights.data(), settings[0] == 1,
              settings[2] != 0, settings[3] != 0, static_cast<float>(settings[1]),
              static_cast<float>(settings[3] * 0.6931471805599453), static_cast<float>(settings[4]),
              static_cast<float>(settings[5]), plan->view()} {}
};

}  // namespace
}  // namespace torchfx

using namespace torchfx;

extern "C" int32_t torchfx_mel_forward(const float* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t samples,
                                       float* y, int64_t channels, int64_t count, const double* window, int64_t length,
                                       int64_t size, int64_t hop, int64_t origin, int32_t reflect,
                                       const double* filters, int64_t bands, const double* settings, int32_t threads) {
    if (!x || !y || !window || !settings ||
        !is_pass(samples, channels, count, length, size, hop, origin, reflect, filters, bands, threads))
        return TORCHFX_BAD_ARGUMENT;
    try {
        const FlushSubnormals flush(true);
        const Pass pass(x, x_channel_stride, x_time_stride, samples, y, channels, count, window, length, size, hop,
                        origin, reflect, filters, bands, settings);
        run(pass.job, threads);
        return TORCHFX_OK;
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
}

extern "C" int32_t torchfx_mel_backward(const float* grad_y, const float* x, int64_t x_channel_stride,
                                        int64_t x_time_stride, int64_t samples, float* grad_x, int64_t channels,
                                        int64_t count, const double* window, int64_t length, int64_t size, int64_t hop,
                                        int64_t origin, int32_t reflect, const double* filters, int64_t bands,
                                        const double* settings, int32_t threads) {
    if (!grad_y || !x || !grad_x || !window || !settings ||
        !is_pass(samples, channels, count, length, size, hop, origin, reflect, filters, bands, threads))
        return TORCHFX_BAD_ARGUMENT;
    try {
        const FlushSubnormals flush(true);
        const Pass pass(x, x_channel_stride, x_time_stride, samples, nullptr, channels, count, window, length, size,
                        hop, origin, reflect, filters, bands, settings);
        run_gradient({pass.job, grad_y, grad_x}, threads);
        return TORCHFX_OK;
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
}
