// The C interface of resampling, and how the work is cut.
//
// Output m is a sum over the taps of phase (m * down + origin) % up: `up` outputs later the phase is the same, and the
// inputs lie `down` further on. So a channel is cut into stretches of `up` outputs (or a multiple), and as many
// stretches as there are lanes are filtered side by side, each tap multiplying a vector. Where `up` and `down` are small
// numbers, transforms take less time (transform.cpp).
#include <algorithm>
#include <atomic>
#include <new>

#include "fir/taps.h"
#include "resample/job.h"
#include "resample/kernels.h"
#include "resample/transform.h"
#include "support/pool.h"
#include "support/subnormals.h"
#include "support/workspace.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

constexpr int64_t J = resample_group;

int64_t greatest_divisor(int64_t a, int64_t b) { return b == 0 ? a : greatest_divisor(b, a % b); }

class Resampler {
public:
    explicit Resampler(const ResampleJob& job)
        : job_(job), kernels_(TORCHFX_KERNELS(resample_kernels)),
          width_(job.n_taps + ((J - 1) * job.down + job.up - 1) / job.up),
          periods_(periods_in_a_stretch()), outputs_(std::min(job.length, job.up * periods_)),
          stretches_(rounded_up(job.length, job.up * periods_)), groups_(rounded_up(outputs_, J)),
          // From this group on the phases repeat.
          patterns_(std::min(groups_, job.up / greatest_divisor(job.up, J))),
          lanes_(job.channels * stretches_ > kernels_.lanes / 2 ? kernels_.lanes : kernels_.lanes / 2),
          tiles_(rounded_up(job.channels * stretches_, lanes_)),
          run_(std::min(groups_, std::max<int64_t>(1, advance() * job.up / (job.down * J)))) {}

    int32_t run() {
        const double cost = 0.05 * static_cast<double>(tiles_ * groups_ * J) * static_cast<double>(width_ * lanes_);
        const int threads = std::max(1, static_cast<int>(std::min<double>(job_.threads, cost / work_per_thread)));
        Workspaces packed(1, patterns_ * width_ * J);
        const Workspaces::Lease taps(packed);
        if (!pack(taps.data(), threads)) return TORCHFX_NOT_FINITE;
        const int64_t runs = rounded_up(groups_, run_), rows = run_inputs(run_), size = (rows + run_ * J) * lanes_;
        Workspaces workspaces(threads, size);
        parallel_for(tiles_ * runs, threads, [&](int64_t i) {
            const Workspaces::Lease space(workspaces);
            filter(i / runs, i % runs * run_, taps.data(), space.data(), space.data() + rows * lanes_);
        });
        return TORCHFX_OK;
    }

private:
    static constexpr int most_lanes = 16;
    // Work for each thread that pays for waking it, nanoseconds.
    static constexpr double work_per_thread = 30000;

    // A tile's first inputs are loaded only as history: it advances by at least as many as a window has.
    int64_t advance() const { return std::max<int64_t>(256, job_.n_taps); }

    // As many as advance asks for, if the signal has stretches of that length for all lanes and threads.
    int64_t periods_in_a_stretch() const {
        int64_t periods = std::max<int64_t>(1, advance() / job_.down);
        const int64_t wanted = kernels_.lanes * job_.threads;
        while (periods > 1 && job_.up * (periods / 2) >= J &&
               job_.channels * rounded_up(job_.length, job_.up * periods) < wanted)
            periods /= 2;
        // A stretch of few outputs is a whole number of groups.
        const int64_t whole = J / greatest_divisor(job_.up, J);
        return job_.up * periods < 8 * J ? rounded_up(periods, whole) * whole : periods;
    }

    // The last input that output m of the first stretch depends on.
    int64_t last_input(int64_t m) const { return floor_division(m * job_.down + job_.origin, job_.up); }
    int64_t run_inputs(int64_t groups) const { return (groups - 1) * J * job_.down / job_.up + 1 + width_; }

    // taps[(pattern * width + i) * J + j]: what input i of a group's window adds to its output j. Returns whether all
    // are finite.
    bool pack(double* packed, int threads) const {
        std::atomic<bool> finite{true};
        parallel_for(patterns_, patterns_ * width_ < 10000 ? 1 : threads, [&](int64_t pattern) {
            double* group = packed + pattern * width_ * J;
            std::fill_n(group, width_ * J, 0.0);
            const int64_t start = last_input(pattern * J) - (job_.n_taps - 1);
            for (int64_t j = 0; j < J; ++j) {
                const int64_t m = pattern * J + j, last = last_input(m);
                const double* phase = job_.taps + (m * job_.down + job_.origin - last * job_.up) * job_.n_taps;
                double* to = group + (last - start) * J + j;
                for (int64_t k = 0; k < job_.n_taps; ++k, to -= J) *to = phase[k];
                if (check_taps(phase, job_.n_taps, {1, 1}, 1)) finite.store(false, std::memory_order_relaxed);
            }
        });
        return finite;
    }

    // Groups [first, first + run_) of a tile's stretches.
    void filter(int64_t tile, int64_t first, const double* taps, double* inputs, double* outputs) const {
        const int64_t groups = std::min(run_, groups_ - first), start = last_input(first * J) - (job_.n_taps - 1);
        const int64_t rows = last_input((first + groups - 1) * J) - last_input(first * J) + width_;
        ResampleLane lanes[most_lanes];
        for (int64_t k = 0; k < lanes_; ++k) lanes[k] = lane(tile * lanes_ + k, start);
        const int n_lanes = static_cast<int>(lanes_);
        kernels_.load(lanes, n_lanes, job_.dtype, job_.x_time_stride, job_.samples, rows, inputs);
        for (int64_t g = first; g < first + groups; ++g)
            kernels_.filter(inputs + (last_input(g * J) - last_input(first * J)) * lanes_, n_lanes,
                            taps + g % patterns_ * width_ * J, width_, outputs + (g - first) * J * lanes_);
        kernels_.store(outputs, lanes, n_lanes, job_.dtype, first * J, std::min(groups * J, outputs_ - first * J));
    }

    // Stretch i of all channels', or one without samples.
    ResampleLane lane(int64_t i, int64_t start) const {
        if (i >= job_.channels * stretches_) return {job_.x, -job_.samples - run_inputs(run_), job_.y, 0};
        const int64_t c = i / stretches_, stretch = i % stretches_, done = stretch * job_.up * periods_;
        const int64_t bytes = job_.dtype == TORCHFX_F32 ? 4 : 8;
        return {static_cast<const char*>(job_.x) + c * job_.x_channel_stride * bytes,
                start + stretch * job_.down * periods_,
                static_cast<char*>(job_.y) + (c * job_.y_channel_stride + done) * bytes,
                std::min(outputs_, job_.length - done)};
    }

    const ResampleJob& job_;
    const ResampleKernels& kernels_;
    const int64_t width_;     // inputs that a group of outputs depends on
    const int64_t periods_;   // of `up` outputs, in a stretch
    const int64_t outputs_;   // of a stretch
    const int64_t stretches_; // of a channel
    const int64_t groups_;    // of a stretch
    const int64_t patterns_;  // groups of taps
    const int64_t lanes_;
    const int64_t tiles_;
    const int64_t run_;       // groups that share a tile of inputs
};

bool valid(const ResampleJob& job) {
    return (job.dtype == TORCHFX_F32 || job.dtype == TORCHFX_F64) && job.x && job.y && job.taps && job.channels >= 1 &&
           job.samples >= 1 && job.length >= 1 && job.up >= 1 && job.n_taps >= 1 && job.down >= 1 && job.threads >= 1;
}

}  // namespace
}  // namespace torchfx

using namespace torchfx;

extern "C" int32_t torchfx_resample_forward(int32_t dtype, const void* x, int64_t x_channel_stride,
                                            int64_t x_time_stride, int64_t samples, void* y, int64_t y_channel_stride,
                                            int64_t channels, int64_t length, const double* taps, int64_t up,
                                            int64_t n_taps, int64_t down, int64_t origin, int32_t threads) {
    const ResampleJob job = {dtype,    x,      x_channel_stride, x_time_stride, samples, y,    y_channel_stride, channels,
                     length, taps,   up,               n_taps,        down,    origin, threads};
    if (!valid(job)) return TORCHFX_BAD_ARGUMENT;
    const FlushSubnormals flush(dtype == TORCHFX_F64);
    try {
        const int64_t size = transform_size(job);
        if (size == 0) return Resampler(job).run();
        if (const int32_t status = check_taps(taps, n_taps, {up, 1}, up)) return status;
        resample_by_transforms(job, size);
        return TORCHFX_OK;
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
}
