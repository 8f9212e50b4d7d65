#include "resample/transform.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>

#include "fft/roots.h"
#include "fir/kernels.h"
#include "fir/plan.h"
#include "fir/samples.h"
#include "support/pool.h"
#include "support/workspace.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

// Outputs q, q + up, q + 2 up, ... are a sum over p of convolutions: those of inputs p, p + down, p + 2 down, ... with
// every (up down)-th tap of the low-pass h at `up` times the input's rate,
//
//     y[up i + q] = sum over p, l of h[up down l + q down + origin - p up] x[down (i - l) + p]
//
// so `down` transforms of the input and `up` inverse ones serve all outputs, at the lower of all rates involved.
struct Branches {
    int64_t first;   // the least l of all (q, p)
    int64_t n_taps;  // l in [first, first + n_taps)
};

Branches branches_of(const ResampleJob& job) {
    const int64_t period = job.up * job.down, end = job.up * job.n_taps - 1;
    int64_t first = std::numeric_limits<int64_t>::max(), last = std::numeric_limits<int64_t>::min();
    for (const int64_t q : {int64_t{0}, job.up - 1})
        for (const int64_t p : {int64_t{0}, job.down - 1}) {
            const int64_t offset = q * job.down + job.origin - p * job.up;
            first = std::min(first, floor_division(period - 1 - offset, period));
            last = std::max(last, floor_division(end - offset, period));
        }
    return {first, last - first + 1};
}

class TransformResampler {
public:
    TransformResampler(const ResampleJob& job, int64_t size)
        : job_(job), fir_(TORCHFX_KERNELS(fir_kernels)), fft_(*fir_.fft), size_(size), branches_(branches_of(job)),
          history_(fir_history(branches_.n_taps)), hop_(size - history_), outputs_(rounded_up(job.length, job.up)),
          tiles_(rounded_up(outputs_, hop_)), table_(fft_roots(size, fir_.lanes)), roots_(table_->view()) {}

    void run() {
        const int64_t values = 2 * size_, pairs = rounded_up(tiles_, 2);
        Workspaces spectra(1, job_.up * job_.down * values), workspaces(job_.threads, (job_.down + job_.up) * values);
        const Workspaces::Lease held(spectra);
        spectra_ = held.data();
        parallel_for(job_.up * job_.down, 1, [&](int64_t i) { transform_branch(i / job_.down, i % job_.down); });
        parallel_for(job_.channels * pairs, job_.threads, [&](int64_t i) {
            const Workspaces::Lease space(workspaces);
            resample(i / pairs, i % pairs * 2, space.data());
        });
        if (!finite_) add_not_finite();
    }

private:
    double* spectrum(int64_t q, int64_t p) const { return spectra_ + 2 * size_ * (q * job_.down + p); }

    void transform_branch(int64_t q, int64_t p) const {
        const int64_t lanes = fir_.lanes, offset = q * job_.down + job_.origin - p * job_.up;
        const double scale = 1.0 / static_cast<double>(size_);
        double* const data = spectrum(q, p);
        std::fill_n(data, 2 * size_, 0.0);
        for (int64_t t = 0; t < branches_.n_taps; ++t) {
            const int64_t tap = job_.up * job_.down * (branches_.first + t) + offset;
            if (tap < 0 || tap >= job_.up * job_.n_taps) continue;
            data[2 * (t - t % lanes) + t % lanes] = scale * job_.taps[tap % job_.up * job_.n_taps + tap / job_.up];
        }
        fft_.forward(data, size_, 0, roots_);
    }

    // Two tiles at a time, one in the real and one in the imaginary parts: the taps are real. Both are of one channel, so
    // that no channel's rounding depends on another's.
    void resample(int64_t c, int64_t tile, double* space) {
        const double* inputs[most_down];
        for (int64_t p = 0; p < job_.down; ++p) {
            double* const data = space + 2 * size_ * p;
            load(c, tile, p, data);
            load(c, tile + 1, p, data + fir_.lanes);
            fft_.forward(data, size_, 0, roots_);
            inputs[p] = data;
        }
        double* const sums = space + 2 * size_ * job_.down;
        for (int64_t q = 0; q < job_.up; ++q) {
            const double* taps[most_down];
            for (int64_t p = 0; p < job_.down; ++p) taps[p] = spectrum(q, p);
            double* const sum = sums + 2 * size_ * q;
            std::fill_n(sum, 2 * size_, 0.0);
            fft_.add_products(sum, inputs, taps, job_.down, size_);
            fft_.inverse(sum, size_, 0, roots_);
        }
        store(c, tile, sums);
        store(c, tile + 1, sums + fir_.lanes);
    }

    void load(int64_t c, int64_t tile, int64_t p, double* data) {
        const int64_t start = tile * hop_ - history_ - branches_.first;
        const int64_t count = tile < tiles_ && p < job_.samples ? rounded_up(job_.samples - p, job_.down) : 0;
        const void* x = advance(job_.x, job_.dtype, c * job_.x_channel_stride + p * job_.x_time_stride);
        const FirSignal phase = {x, job_.dtype, job_.down * job_.x_time_stride, count, nullptr, 0};
        if (fir_.load(phase, start, size_, data, 2 * fir_.lanes)) return;
        finite_.store(false, std::memory_order_relaxed);
        for (int64_t i = 0; i < size_; i += fir_.lanes)
            for (int64_t lane = 0; lane < fir_.lanes; ++lane) {
                double& value = data[2 * i + lane];
                if (!std::isfinite(value)) value = 0;
            }
    }

    // The results of all branches: those of branch q lie 2 size q further on.
    void store(int64_t c, int64_t tile, const double* results) const {
        if (tile >= tiles_) return;
        const int64_t first = tile * hop_;
        void* const y = advance(job_.y, job_.dtype, c * job_.y_channel_stride);
        if (job_.up == 1) {
            const FirOutput output = {y, job_.dtype, job_.length, nullptr, 0};
            fir_.store(results + 2 * history_, 2 * fir_.lanes, output, first, std::min(hop_, job_.length - first));
        } else if (job_.dtype == TORCHFX_F32) {
            interleave(results, first * job_.up, static_cast<float*>(y));
        } else {
            interleave(results, first * job_.up, static_cast<double*>(y));
        }
    }

    // Outputs [first, first + hop up), as far as there are such. Pairs are written out for the compiler: joined in
    // vectors, they take a quarter of the time.
    template <class Sample>
    void interleave(const double* results, int64_t first, Sample* y) const {
        const int64_t lanes = fir_.lanes, branch = 2 * size_, end = std::min(first + hop_ * job_.up, job_.length);
        const double* vector = results + 2 * history_;
        int64_t m = first;
        for (; m + lanes * job_.up <= end; vector += 2 * lanes) {
            if (job_.up == 2) {
                const double *const even = vector, *const odd = vector + branch;
                Sample* const pairs = y + m;
                for (int64_t lane = 0; lane < lanes; ++lane) {
                    pairs[2 * lane] = static_cast<Sample>(even[lane]);
                    pairs[2 * lane + 1] = static_cast<Sample>(odd[lane]);
                }
                m += 2 * lanes;
            } else {
                for (int64_t lane = 0; lane < lanes; ++lane)
                    for (int64_t q = 0; q < job_.up; ++q) y[m++] = static_cast<Sample>(vector[q * branch + lane]);
            }
        }
        for (int64_t i = 0; m < end; ++i, ++m)
            y[m] = static_cast<Sample>(vector[i % job_.up * branch + i / job_.up]);
    }

    // Infinities and NaNs were left out of the transforms, all of whose results they would have reached. Sums over the
    // windows in which they lie are computed as they are defined.
    void add_not_finite() const {
        parallel_for(job_.channels, job_.threads, [&](int64_t c) {
            if (job_.dtype == TORCHFX_F32) add_not_finite<float>(c);
            else add_not_finite<double>(c);
        });
    }

    template <class Sample>
    void add_not_finite(int64_t c) const {
        const Sample* const x = static_cast<const Sample*>(job_.x) + c * job_.x_channel_stride;
        Sample* const y = static_cast<Sample*>(job_.y) + c * job_.y_channel_stride;
        int64_t seen = 0, last_seen = -1;  // inputs before `seen` were looked at
        for (int64_t m = 0; m < job_.length; ++m) {
            const int64_t place = m * job_.down + job_.origin, last = floor_division(place, job_.up);
            for (; seen <= std::min(last, job_.samples - 1); ++seen)
                if (!std::isfinite(x[seen * job_.x_time_stride])) last_seen = seen;
            if (last_seen < 0 || last_seen <= last - job_.n_taps) continue;
            const double* const taps = job_.taps + (place - last * job_.up) * job_.n_taps;
            double sum = 0;
            for (int64_t k = std::max<int64_t>(0, last - job_.samples + 1); k < std::min(job_.n_taps, last + 1); ++k)
                sum += taps[k] * static_cast<double>(x[(last - k) * job_.x_time_stride]);
            y[m] = static_cast<Sample>(sum);
        }
    }

public:
    static constexpr int64_t most_down = 16;

private:
    const ResampleJob& job_;
    const FirKernels& fir_;
    const FftKernels& fft_;
    const int64_t size_;
    const Branches branches_;
    const int64_t history_, hop_;  // of a transform: values without a result of their own, and results
    const int64_t outputs_;        // of each of a channel's `up` branches
    const int64_t tiles_;
    const std::shared_ptr<const FftRootTable> table_;
    const FftRoots roots_;
    double* spectra_ = nullptr;
    std::atomic<bool> finite_{true};
};

// Nanoseconds on one AVX-512 core (AMD Zen 4, 11/2026).
double direct_cost(const ResampleJob& job) {
    return static_cast<double>(job.channels * job.length) * (0.0375 * static_cast<double>(job.n_taps) + 1.9);
}

double transform_cost(const ResampleJob& job, int64_t size) {
    const int64_t hop = size - fir_history(branches_of(job).n_taps), branches = job.up * job.down;
    const double one = (0.6 + 0.05 * std::log2(static_cast<double>(size))) * static_cast<double>(size);
    const double products = 0.25 * static_cast<double>(branches * size);
    const int64_t pairs = job.channels * rounded_up(rounded_up(rounded_up(job.length, job.up), hop), 2);
    return static_cast<double>(branches) * one +
           static_cast<double>(pairs) * (static_cast<double>(job.up + job.down) * one + products);
}

// Working memory of this size stays in a second-level cache.
constexpr int64_t most_values = 1 << 16;

}  // namespace

int64_t transform_size(const ResampleJob& job) {
    if (job.down > TransformResampler::most_down || job.up > TransformResampler::most_down) return 0;
    const int64_t history = fir_history(branches_of(job).n_taps);
    int64_t best = 0;
    double least = direct_cost(job);
    for (int64_t size = fft_min_size; size * (job.up * job.down + job.down + job.up) <= most_values; size *= 2) {
        if (size < 2 * history) continue;
        const double cost = transform_cost(job, size);
        if (cost < least) {
            least = cost;
            best = size;
        }
    }
    return best;
}

void resample_by_transforms(const ResampleJob& job, int64_t size) { TransformResampler(job, size).run(); }

}  // namespace torchfx
