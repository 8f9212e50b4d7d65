#include "fir/convolution.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>

#include "fft/roots.h"
#include "fir/not_finite.h"
#include "fir/plan.h"
#include "fir/samples.h"
#include "fft/parallel.h"
#include "support/pool.h"
#include "torchfx_dsp.h"
#include "support/workspace.h"

namespace torchfx {
namespace {

// One tile of results of one channel, in a buffer of doubles.
struct Tile {
    double* data;
    int64_t step;   // between vectors
    int64_t first;  // which result comes first
    int64_t count;
};

class Convolver {
public:
    explicit Convolver(const FirConvolution& job)
        : job_(job), fir_(TORCHFX_KERNELS(fir_kernels)), lanes_(fir_.lanes),
          results_(job.output.length + job.output.tail_length) {}

    void run() {
        const FirShape shape = {job_.channels, results_, job_.filters.length, job_.filters.rows.count};
        const FirPlan plan = plan_fir(shape, job_.threads);
        if (plan.fft_size == 0) run_direct(plan.threads);
        else run_fft(plan.fft_size, plan.threads);
        if (!finite_) add_not_finite(job_);
    }

private:
    // --- direct -----------------------------------------------------------------------------------------

    // Two tiles and a moderate filter fit the first-level cache.
    static constexpr int64_t direct_tile = 1024;

    void run_direct(int threads) {
        const int64_t tiles = (results_ + direct_tile - 1) / direct_tile;
        const int64_t capacity = std::min(direct_tile, whole_vectors(results_));
        const int64_t length = job_.filters.length, inputs = whole_vectors(capacity + length - 1);
        Workspaces workspaces(threads, inputs + capacity);
        for_runs(job_.channels * tiles, threads, [&](int64_t begin, int64_t end) {
            const Workspaces::Lease space(workspaces);
            for (int64_t i = begin; i < end; ++i) {
                const int64_t c = i / tiles, first = i % tiles * direct_tile;
                const int64_t count = std::min(direct_tile, results_ - first);
                if (is_plain(first, count)) {
                    fir_.filter_few(signal_of(c), job_.origin, job_.filters.of(c), length,
                                    channel_of(job_.output, job_.output_channel_stride, c), first, count);
                    continue;
                }
                const Tile out = {space.data() + inputs, lanes_, first, count};
                const int64_t computed = whole_vectors(count);
                fir_.load(signal_of(c), first + job_.origin - length + 1, whole_vectors(computed + length - 1),
                          space.data(), lanes_);
                fir_.filter(space.data(), job_.filters.of(c), length, out.data, computed);
                finish(out, c);
            }
        });
    }

    // Whether results [first, first + count) are a few taps' of contiguous samples and nothing else, so that they need
    // no tile.
    bool is_plain(int64_t first, int64_t count) const {
        const int64_t length = job_.filters.length, begin = first + job_.origin;
        return length <= std::min(few_taps, lanes_) && job_.signal.stride == 1 && count % lanes_ == 0 &&
               begin >= length - 1 && begin + count <= job_.signal.length && first >= job_.added_length &&
               first + count <= job_.output.length;
    }

    // --- overlap-save -----------------------------------------------------------------------------------

    // A transform holds two tiles of one channel, one in its real and one in its imaginary parts: the
    // filter's spectrum is that of a real sequence, so they stay apart.
    void run_fft(int64_t size, int threads) {
        history_ = fir_history(job_.filters.length);
        hop_ = size - history_;
        const std::shared_ptr<const FftRootTable> table = fft_roots(size, fir_.lanes);
        const ParallelFft fft = {*fir_.fft, table->view(), size};
        const bool shared = size > largest_private_fft;
        const int sharing = shared ? threads : 1, apart = shared ? 1 : threads;
        if (job_.filters.rows.count == 1) run_fft_of_one_row(fft, apart, sharing);
        else run_fft_of_rows(fft, apart, sharing);
    }

    int64_t pairs_per_channel() const { return (results_ + 2 * hop_ - 1) / (2 * hop_); }

    void run_fft_of_one_row(const ParallelFft& fft, int apart, int sharing) {
        Workspaces spectra(1, 2 * fft.size), workspaces(apart, 2 * fft.size);
        const Workspaces::Lease spectrum(spectra);
        transform_filter(fft, 0, spectrum.data(), sharing);
        const int64_t pairs = pairs_per_channel();
        for_runs(job_.channels * pairs, apart, [&](int64_t begin, int64_t end) {
            const Workspaces::Lease space(workspaces);
            for (int64_t i = begin; i < end; ++i)
                convolve_pair(fft, space.data(), spectrum.data(), i / pairs, i % pairs * 2 * hop_, sharing);
        });
    }

    // A thread takes a row's pairs one after the other, so that its spectrum, in this thread's cache, serves them all. Rows
    // are cut into parts only where there are too few of them for the threads: each part transforms the filter again.
    void run_fft_of_rows(const ParallelFft& fft, int apart, int sharing) {
        Workspaces workspaces(apart, 4 * fft.size);
        const Rows& rows = job_.filters.rows;
        const int64_t pairs = pairs_per_channel(), parts = std::max<int64_t>(1, 4 * (apart - 1) / rows.count);
        parallel_for(rows.count * parts, apart, [&](int64_t i) {
            const int64_t row = i / parts, part = i % parts, count = rows.channels(row, job_.channels) * pairs;
            const int64_t begin = part * count / parts, end = (part + 1) * count / parts;
            if (begin == end) return;
            const Workspaces::Lease space(workspaces);
            double* spectrum = space.data() + 2 * fft.size;
            transform_filter(fft, row, spectrum, sharing);
            for (int64_t k = begin; k < end; ++k)
                convolve_pair(fft, space.data(), spectrum, rows.channel(row, k / pairs), k % pairs * 2 * hop_, sharing);
        });
    }

    void transform_filter(const ParallelFft& fft, int64_t row, double* data, int threads) {
        const double* taps = job_.filters.data + row * job_.filters.stride;
        const FirSignal filter = {taps, TORCHFX_F64, 1, job_.filters.length, nullptr, 0};
        const FirSignal nothing = {nullptr, TORCHFX_F64, 1, 0, nullptr, 0};
        const double scale = 1.0 / static_cast<double>(fft.size);
        fft.forward_root(data, threads, [&](int64_t begin, int64_t end) {
            fir_.load(filter, begin, end - begin, data + 2 * begin, 2 * lanes_);
            fir_.load(nothing, begin, end - begin, data + 2 * begin + lanes_, 2 * lanes_);
            for (int64_t i = 2 * begin; i < 2 * end; ++i) data[i] *= scale;
        });
        fft.for_children(threads, [&](int64_t offset, int64_t size, int64_t child) {
            fft.kernels.forward(data + offset, size, child, fft.roots);
        });
    }

    void convolve_pair(const ParallelFft& fft, double* data, const double* spectrum, int64_t c,
                       int64_t first_result, int threads) {
        const FirSignal signal = signal_of(c);
        const int64_t start = first_result + job_.origin - history_;
        fft.forward_root(data, threads, [&](int64_t begin, int64_t end) {
            bool all = fir_.load(signal, start + begin, end - begin, data + 2 * begin, 2 * lanes_);
            all &= fir_.load(signal, start + hop_ + begin, end - begin, data + 2 * begin + lanes_, 2 * lanes_);
            if (all) return;
            // These would reach all results of the transform: add_not_finite adds them where they belong.
            finite_.store(false, std::memory_order_relaxed);
            for (int64_t i = 2 * begin; i < 2 * end; ++i) data[i] = std::isfinite(data[i]) ? data[i] : 0;
        });
        // In the meantime the memory that comes next moves towards the cache: the hardware does not foresee it,
        // tiles being read and written in several short streams. 15 % of the time where signals exceed the L3.
        const bool foresee = fft.size <= largest_private_fft;
        const FirOutput output = channel_of(job_.output, job_.output_channel_stride, c);
        const int64_t next = start + 2 * hop_ + history_;
        fft.for_children(threads, [&](int64_t offset, int64_t size, int64_t child) {
            const int64_t part = 2 * hop_ * size / fft.size;
            if (foresee && signal.stride == 1) prefetch(signal, next + child * part, part);
            if (foresee) prefetch(output, first_result + child * part, part);
            fft.kernels.convolve(data + offset, spectrum + offset, size, child, fft.roots);
        });
        fft.inverse_root(data, threads, [&](int64_t begin, int64_t end) {
            begin = std::max(begin, history_);
            finish_part(data, c, first_result, begin, end);
            finish_part(data + lanes_, c, first_result + hop_, begin, end);
        });
    }

    void finish_part(double* data, int64_t c, int64_t first_result, int64_t begin, int64_t end) {
        const int64_t first = first_result + begin - history_;
        const int64_t count = std::min(end - begin, results_ - first);
        if (count > 0) finish({data + 2 * begin, 2 * lanes_, first, count}, c);
    }

    // --- both -------------------------------------------------------------------------------------------

    // Runs body(begin, end) for runs of [0, count). A thread takes several neighbours in a row, but not so many
    // that another would wait for it at the end.
    template <class Body>
    static void for_runs(int64_t count, int threads, Body&& body) {
        const int64_t run = std::min<int64_t>(8, std::max<int64_t>(1, count / (8 * threads)));
        parallel_for((count + run - 1) / run, threads,
                     [&](int64_t i) { body(i * run, std::min(count, (i + 1) * run)); });
    }

    FirSignal signal_of(int64_t c) const {
        return channel_of(job_.signal, job_.signal_channel_stride, c / job_.signal_repeat);
    }

    int64_t whole_vectors(int64_t count) const { return (count + lanes_ - 1) / lanes_ * lanes_; }

    void finish(const Tile& tile, int64_t c) {
        add_state(tile, c);
        fir_.store(tile.data, tile.step, channel_of(job_.output, job_.output_channel_stride, c), tile.first,
                   tile.count);
    }

    void add_state(const Tile& tile, int64_t c) {
        const int64_t end = std::min(tile.first + tile.count, job_.added_length);
        const double* added = job_.added + c * job_.added_length;
        double* vector = tile.data;
        for (int64_t t = tile.first; t < end; t += lanes_, vector += tile.step)
            for (int64_t lane = 0; lane < std::min(lanes_, end - t); ++lane) vector[lane] += added[t + lane];
    }

    const FirConvolution& job_;
    const FirKernels& fir_;
    const int64_t lanes_;
    const int64_t results_;
    int64_t history_ = 0, hop_ = 0;  // of a transform: samples of its tiles that give no results, and that do
    std::atomic<bool> finite_{true};  // what the transforms met of the signal
};

}  // namespace

FirSignal channel_of(FirSignal first, int64_t channel_stride, int64_t c) {
    first.data = advance(first.data, first.dtype, c * channel_stride);
    if (first.tail) first.tail += c * first.tail_length;
    return first;
}

FirOutput channel_of(FirOutput first, int64_t channel_stride, int64_t c) {
    first.data = advance(first.data, first.dtype, c * channel_stride);
    if (first.tail) first.tail += c * first.tail_length;
    return first;
}

FirConvolution channel_of(const FirConvolution& all, int64_t c) {
    FirConvolution job = all;
    job.channels = 1;
    job.signal = channel_of(all.signal, all.signal_channel_stride, c / all.signal_repeat);
    job.signal_repeat = 1;
    job.filters.data = all.filters.of(c);
    job.filters.rows = {1, 1};
    job.output = channel_of(all.output, all.output_channel_stride, c);
    if (all.added) job.added = all.added + c * all.added_length;
    return job;
}

double sample_at(const FirSignal& signal, int64_t t) {
    if (t < 0) return 0;
    if (t < signal.length) {
        const int64_t i = t * signal.stride;
        return signal.dtype == TORCHFX_F32 ? static_cast<const float*>(signal.data)[i]
                                           : static_cast<const double*>(signal.data)[i];
    }
    t -= signal.length;
    return t < signal.tail_length ? signal.tail[t] : 0;
}

void convolve(const FirConvolution& job) { Convolver(job).run(); }

}  // namespace torchfx
