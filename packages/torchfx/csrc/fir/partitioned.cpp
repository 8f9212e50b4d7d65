#include "fir/partitioned.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <memory>
#include <new>

#include "fft/roots.h"
#include "fir/not_finite.h"
#include "fir/taps.h"
#include "support/arena.h"
#include "support/pool.h"
#include "support/workspace.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

constexpr int64_t shortest = 512;       // partition: a transform of it takes some 2 us
constexpr int64_t growth = 8;           // from level to level; 4 to 16 take the same time, 11/2026
constexpr int64_t longest = 1 << 18;    // partition, 4 MiB of spectrum
constexpr int64_t padding = 16;         // spectra a power of two apart would share few places of a cache
constexpr int64_t chunk = 2048;         // doubles of a sum of products that stay in a first-level cache
constexpr int64_t header = 8;

// Calls of at least this many samples, all channels counted, are shared by threads.
constexpr int64_t shared_work = 1 << 13;

struct Level {
    int64_t size;      // of a partition
    int64_t count;     // partitions
    int64_t first_tap;
    double* filters;   // (rows, count, stride): their spectra
    double* inputs;    // (channels, count, stride): spectra of past inputs, that of input block b in place b % count

    int64_t stride() const { return 2 * size + padding; }
    double* filter(int64_t row, int64_t k) const { return filters + (row * count + k) * stride(); }
    double* input(int64_t channel, int64_t block) const {
        return inputs + (channel * count + (block + count) % count) * stride();
    }
};

// A block of `size` real samples and the one before it stand for a polynomial modulo x^(2 size) + 1. Taken as real and
// imaginary parts of half as many complex numbers they stand for it modulo x^size - i: block 2 of the transform's third
// level (fft/kernels.h). In the product with a filter of `size` taps, the imaginary parts are the later block's results.
constexpr int64_t fft_block = 2;

class Partitioned {
public:
    explicit Partitioned(const PartitionedFir& fir)
        : fir_(fir), kernels_(TORCHFX_KERNELS(fir_kernels)), lanes_(kernels_.lanes) {
        const int64_t taps = fir.filters.length, channels = fir.channels;
        double* next = fir.work + header;
        const auto take = [&](int64_t count) {
            double* taken = next;
            next += count;
            return taken;
        };
        for (int64_t size = shortest, tap = 0; tap < taps; size *= growth) {
            Level& level = levels_[static_cast<std::size_t>(depth_++)];
            const int64_t left = (taps - tap + size - 1) / size, most = growth - (tap > 0);
            const bool last = left <= 2 * growth || size * growth > longest;
            level = {size, last ? left : most, tap, nullptr, nullptr};
            level.filters = take(fir.filters.rows.count * level.count * level.stride());
            tap += level.count * size;
        }
        // Filters first, all else behind them: `settle` clears it.
        dynamic_ = take(header);
        for (int64_t i = 0; i < depth_; ++i) levels_[i].inputs = take(channels * levels_[i].count * levels_[i].stride());
        ahead_length_ = levels_[depth_ - 1].size;
        past_length_ = (taps + shortest + 2 * ahead_length_ - 1) / ahead_length_ * ahead_length_;
        sums_ = take(channels * levels_[0].stride());
        ahead_ = take(channels * ahead_length_);
        past_ = take(channels * past_length_);
        size_ = next - fir.work;
    }

    PartitionedSize size() const { return {size_, dynamic_ - fir_.work}; }
    bool prepared() const { return static_cast<int>(fir_.work[0]) == lanes_; }

    void filter(const FirSignal& signal, int64_t signal_stride, const FirOutput& output, int64_t output_stride, int threads) {
        if (!prepared()) {
            settle(threads);  // spectra of another instruction set lie otherwise
            prepare(threads);
        }
        const std::shared_ptr<const FftRootTable> table = fft_roots(4 * ahead_length_, lanes_);
        roots_ = table->view();
        const int64_t groups = fir_.channels / fir_.width;
        threads = signal.length * fir_.channels < shared_work ? 1 : static_cast<int>(std::min<int64_t>(threads, groups));
        Workspaces workspaces(threads, 2 * ahead_length_ + shortest);
        std::atomic<bool> finite{true};
        parallel_for(groups, threads, [&](int64_t group) {
            const Workspaces::Lease space(workspaces);
            if (!filter_group(group, signal, signal_stride, output, output_stride, space.data()))
                finite.store(false, std::memory_order_relaxed);
        });
        position() += static_cast<double>(signal.length);
        used() += static_cast<double>(signal.length);
        if (!finite) add_what_is_not_finite(signal, signal_stride, output, output_stride, threads);
    }

    void settle(int threads) {
        shift_state();
        const int64_t reach = fir_.filters.length - 1, end = now(), count = std::min(end, reach);
        if (count > 0) {
            ScratchVector<double> past(static_cast<std::size_t>(count)), before(static_cast<std::size_t>(reach));
            for (int64_t pair = 0; pair < fir_.channels * fir_.width; ++pair) {
                for (int64_t t = 0; t < count; ++t)
                    past[static_cast<std::size_t>(t)] = past_of(input_of(pair))[(end - count + t) % past_length_];
                double* state = fir_.state + pair * reach;
                std::copy_n(state, reach, before.begin());
                // The taps are the longer signal.
                FirConvolution job = {};
                job.channels = job.signal_repeat = 1;
                job.signal = {fir_.filters.of(pair), TORCHFX_F64, 1, fir_.filters.length, nullptr, 0};
                job.filters = {past.data(), count, 0, {1, 1}};
                job.origin = count;
                job.output = {state, TORCHFX_F64, reach, nullptr, 0};
                job.added = before.data();
                job.added_length = reach;
                job.threads = threads;
                convolve(job);
            }
        }
        if (end > 0) std::fill(dynamic_, fir_.work + size_, 0.0);
        position() = 0;
    }

private:
    double& position() const { return dynamic_[0]; }  // how many samples came since the last `settle`
    double& used() const { return dynamic_[1]; }      // how many of the state have become output
    int64_t now() const { return static_cast<int64_t>(position()); }

    double* past_of(int64_t channel) const { return past_ + channel * past_length_; }
    double* ahead_of(int64_t channel) const { return ahead_ + channel * ahead_length_; }
    int64_t input_of(int64_t pair) const { return pair / fir_.width / fir_.width * fir_.width + pair % fir_.width; }

    void prepare(int threads) {
        const std::shared_ptr<const FftRootTable> table = fft_roots(4 * ahead_length_, lanes_);
        roots_ = table->view();
        for (int64_t i = 0; i < depth_; ++i) {
            const Level& level = levels_[i];
            parallel_for(fir_.filters.rows.count * level.count, threads, [&](int64_t j) {
                const int64_t row = j / level.count, k = j % level.count, tap = level.first_tap + k * level.size;
                const double* taps = fir_.filters.data + row * fir_.filters.stride + tap;
                double* spectrum = level.filter(row, k);
                transform(level, taps, std::min(level.size, fir_.filters.length - tap), nullptr, 0, spectrum);
                const double scale = 1.0 / static_cast<double>(level.size);
                for (int64_t v = 0; v < 2 * level.size; ++v) spectrum[v] *= scale;
            });
        }
        fir_.work[0] = lanes_;
    }

    // Of two blocks, the earlier one first, each with zeros behind it up to the level's size.
    void transform(const Level& level, const double* first, int64_t first_count, const double* second, int64_t second_count,
                   double* spectrum) const {
        kernels_.load({first, TORCHFX_F64, 1, first_count, nullptr, 0}, 0, level.size, spectrum, 2 * lanes_);
        kernels_.load({second, TORCHFX_F64, 1, second_count, nullptr, 0}, 0, level.size, spectrum + lanes_, 2 * lanes_);
        kernels_.fft->forward(spectrum, level.size, fft_block, roots_);
    }

    // sum += for the inputs of an output's group, their spectra of the blocks up to `block`, times partitions [first, last).
    void add_products(const Level& level, int64_t output, int64_t block, int64_t first, int64_t last, double* sum) const {
        for (int64_t begin = 0; begin < 2 * level.size; begin += chunk) {
            const int64_t size = std::min(chunk, 2 * level.size - begin);
            const double *inputs[4], *filters[4];
            int64_t count = 0;
            const auto add = [&] {
                kernels_.fft->add_products(sum + begin, inputs, filters, count, size / 2);
                count = 0;
            };
            for (int64_t pair = output * fir_.width; pair < (output + 1) * fir_.width; ++pair)
                for (int64_t k = first; k < last; ++k) {
                    inputs[count] = level.input(input_of(pair), block - k) + begin;
                    filters[count] = level.filter(fir_.filters.rows.of(pair), k) + begin;
                    if (++count == 4) add();
                }
            add();
        }
    }

    // Returns whether all samples are finite.
    bool filter_group(int64_t group, const FirSignal& signal, int64_t signal_stride, const FirOutput& output,
                      int64_t output_stride, double* space) const {
        const int64_t first = group * fir_.width, last = first + fir_.width;
        bool finite = true;
        for (int64_t done = 0, count; done < signal.length; done += count) {
            const int64_t at = now() + done, fill = at % shortest;
            count = std::min(shortest - fill, signal.length - done);
            for (int64_t c = first; c < last; ++c)
                finite &= keep(channel_of(signal, signal_stride, c), done, count, space, past_of(c) + at % past_length_);
            filter_block(first, last, at, count, done, output, output_stride, space);
            for (int64_t i = 1; i < depth_ && (at + count) % levels_[i].size == 0; ++i)
                filter_ahead(levels_[i], first, last, at + count, space);
        }
        return finite;
    }

    // Samples [first, first + count) of a channel, what is not finite as 0. Returns whether all are finite.
    bool keep(const FirSignal& channel, int64_t first, int64_t count, double* space, double* to) const {
        const bool finite = kernels_.load(channel, first, (count + lanes_ - 1) / lanes_ * lanes_, space, lanes_);
        std::copy_n(space, count, to);
        if (!finite) std::replace_if(to, to + count, [](double v) { return !std::isfinite(v); }, 0.0);
        return finite;
    }

    // The outputs at [at, at + count), within one block of level 0.
    void filter_block(int64_t first, int64_t last, int64_t at, int64_t count, int64_t done, const FirOutput& output,
                      int64_t output_stride, double* space) const {
        const Level& level = levels_[0];
        const int64_t fill = at % shortest, begin = at - fill, block = begin / shortest;
        const int64_t reach = fir_.filters.length - 1, used = static_cast<int64_t>(this->used()) + done;
        for (int64_t c = first; c < last; ++c)
            transform(level, past_of(c) + (begin + past_length_ - shortest) % past_length_, shortest,
                      past_of(c) + begin % past_length_, fill + count, level.input(c, block));
        for (int64_t c = first; c < last; ++c) {
            double *sum = sums_ + c * level.stride(), *results = space + 2 * ahead_length_;
            if (fill == 0) {
                std::fill_n(sum, 2 * shortest, 0.0);
                add_products(level, c, block, 1, level.count, sum);
            }
            std::copy_n(sum, 2 * shortest, space);
            add_products(level, c, block, 0, 1, space);
            kernels_.fft->inverse(space, shortest, fft_block, roots_);
            double* ahead = ahead_of(c) + at % ahead_length_;
            std::copy_n(ahead, count, results);
            std::fill_n(ahead, count, 0.0);
            kernels_.fft->add_imaginary_parts(results, space, fill, count);
            for (int64_t pair = c * fir_.width; pair < (c + 1) * fir_.width && used < reach; ++pair)
                for (int64_t t = 0; t < std::min(count, reach - used); ++t)
                    results[t] += fir_.state[pair * reach + used + t];
            kernels_.store(results, lanes_, channel_of(output, output_stride, c), done, count);
        }
    }

    // What the last `size` inputs before `at` add to the `size` outputs from there on.
    void filter_ahead(const Level& level, int64_t first, int64_t last, int64_t at, double* space) const {
        const int64_t block = at / level.size - 1, begin = at + past_length_ - 2 * level.size;
        for (int64_t c = first; c < last; ++c)
            transform(level, past_of(c) + begin % past_length_, level.size,
                      past_of(c) + (begin + level.size) % past_length_, level.size, level.input(c, block));
        for (int64_t c = first; c < last; ++c) {
            std::fill_n(space, 2 * level.size, 0.0);
            add_products(level, c, block, 0, level.count, space);
            kernels_.fft->inverse(space, level.size, fft_block, roots_);
            kernels_.fft->add_imaginary_parts(ahead_of(c) + at % ahead_length_, space, 0, level.size);
        }
    }

    void shift_state() {
        const int64_t reach = fir_.filters.length - 1, shift = std::min(static_cast<int64_t>(used()), reach);
        for (int64_t pair = 0; pair < fir_.channels * fir_.width && shift > 0; ++pair) {
            double* state = fir_.state + pair * reach;
            std::copy(state + shift, state + reach, state);
            std::fill(state + reach - shift, state + reach, 0.0);
        }
        used() = 0;
    }

    void add_what_is_not_finite(const FirSignal& signal, int64_t signal_stride, const FirOutput& output,
                                int64_t output_stride, int threads) {
        shift_state();
        const int64_t reach = fir_.filters.length - 1;
        for (int64_t pair = 0; pair < fir_.channels * fir_.width; ++pair) {
            FirConvolution job = {};
            job.channels = job.signal_repeat = 1;
            job.signal = channel_of(signal, signal_stride, input_of(pair));
            job.filters = {fir_.filters.of(pair), fir_.filters.length, 0, {1, 1}};
            job.output = channel_of(output, output_stride, pair / fir_.width);
            job.output.tail = fir_.state + pair * reach;
            job.output.tail_length = reach;
            job.threads = threads;
            add_not_finite(job);
        }
    }

    const PartitionedFir& fir_;
    const FirKernels& kernels_;
    const int64_t lanes_;
    FftRoots roots_ = {};
    std::array<Level, 8> levels_;
    int64_t depth_ = 0;
    int64_t size_ = 0;
    double* dynamic_;
    double* sums_;          // (channels, stride of level 0): the current block's sum but for partition 0
    double* ahead_;         // (channels, ahead_length): what all other levels add to coming outputs, a ring
    double* past_;          // (channels, past_length): the inputs, a ring
    int64_t ahead_length_;  // the largest level's size, so that no level's blocks are cut by a ring's end
    int64_t past_length_;
};

}  // namespace

PartitionedSize partitioned_size(const PartitionedFir& fir) { return Partitioned(fir).size(); }

int32_t check_partitioned(const PartitionedFir& fir) {
    const FirFilters& filters = fir.filters;
    if (fir.channels < 1 || fir.width < 1 || fir.channels % fir.width || filters.length < 2 ||
        !filters.rows.valid(fir.channels * fir.width) || !filters.data || !fir.state || !fir.work)
        return TORCHFX_BAD_ARGUMENT;
    if (Partitioned(fir).prepared()) return TORCHFX_OK;
    return check_taps(filters.data, filters.length, filters.rows, fir.channels * fir.width);
}

void filter_partitioned(const PartitionedFir& fir, const FirSignal& signal, int64_t signal_channel_stride,
                        const FirOutput& output, int64_t output_channel_stride, int threads) {
    Partitioned(fir).filter(signal, signal_channel_stride, output, output_channel_stride, threads);
}

void settle(const PartitionedFir& fir, int threads) { Partitioned(fir).settle(threads); }

}  // namespace torchfx

extern "C" {

int32_t torchfx_fir_partitioned_size(int64_t channels, int64_t width, int64_t n_taps, int64_t tap_rows, int64_t* size,
                                     int64_t* spectra) {
    if (channels < 1 || width < 1 || n_taps < 2 || tap_rows < 1 || !size || !spectra) return TORCHFX_BAD_ARGUMENT;
    const auto found = torchfx::partitioned_size({channels, width, {nullptr, n_taps, n_taps, {tap_rows, 1}}, nullptr, nullptr});
    *size = found.doubles;
    *spectra = found.spectra;
    return TORCHFX_OK;
}

int32_t torchfx_fir_settle(int64_t channels, int64_t width, const double* taps, int64_t n_taps, int64_t tap_rows,
                           int64_t tap_repeat, double* state, double* work, int32_t threads) {
    const torchfx::PartitionedFir fir = {channels, width, {taps, n_taps, n_taps, {tap_rows, tap_repeat}}, state, work};
    if (threads < 1) return TORCHFX_BAD_ARGUMENT;
    if (const int32_t status = torchfx::check_partitioned(fir)) return status;
    try {
        torchfx::settle(fir, threads);
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
    return TORCHFX_OK;
}

}  // extern "C"
