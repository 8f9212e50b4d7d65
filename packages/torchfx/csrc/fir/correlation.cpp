#include "fir/correlation.h"

#include <algorithm>
#include <memory>

#include "fft/roots.h"
#include "fir/convolution.h"
#include "fir/plan.h"
#include "fir/samples.h"
#include "fft/parallel.h"
#include "support/pool.h"
#include "torchfx_dsp.h"
#include "support/workspace.h"

namespace torchfx {
namespace {

class Correlator {
public:
    explicit Correlator(const FirCorrelation& job)
        : job_(job), fir_(TORCHFX_KERNELS(fir_kernels)), lanes_(fir_.lanes) {}

    void run() {
        const FirPlan plan = plan_fir({job_.channels, job_.a.length, job_.lags, job_.rows.count}, job_.threads);
        // Many rows are summed side by side, few rows one after the other, by all threads each.
        const bool shared = plan.fft_size > largest_private_fft;
        const bool apart = job_.rows.count >= 4 * plan.threads && !shared;
        const int rows_at_once = apart ? plan.threads : 1, threads = apart ? 1 : plan.threads;
        if (plan.fft_size == 0) run_direct(rows_at_once, threads);
        else run_fft(plan.fft_size, rows_at_once, shared ? 1 : threads, shared ? threads : 1);
    }

private:
    // Tiles are summed in groups, then the groups in order, whichever thread was first: enough of them that no thread
    // waits long for another, and no more, since each has sums of its own, as large as a transform.
    static int64_t groups_of(int64_t tiles, int threads) {
        return threads == 1 ? 1 : std::min({tiles, int64_t{4} * threads, int64_t{32}});
    }
    static constexpr int64_t direct_tile = 1024;

    // Runs body(group, tile) for all tiles, those of a group one after the other.
    template <class Body>
    static void for_groups(int64_t groups, int64_t tiles, int threads, Body&& body) {
        parallel_for(groups, threads, [&](int64_t group) {
            for (int64_t i = group * tiles / groups; i < (group + 1) * tiles / groups; ++i) body(group, i);
        });
    }

    int64_t most_channels() const { return job_.rows.channels(0, job_.channels); }
    int64_t whole_vectors(int64_t count) const { return (count + lanes_ - 1) / lanes_ * lanes_; }
    FirSignal a(int64_t c) const { return channel_of(job_.a, job_.a_channel_stride, c / job_.a_repeat); }
    FirSignal b(int64_t c) const { return channel_of(job_.b, job_.b_channel_stride, c); }

    // Runs body(row, its result, space for its sums).
    template <class Body>
    void for_rows(int rows_at_once, int64_t sums_size, Body&& body) const {
        Workspaces spaces(rows_at_once, sums_size);
        parallel_for(job_.rows.count, rows_at_once, [&](int64_t row) {
            const Workspaces::Lease sums(spaces);
            std::fill_n(sums.data(), sums_size, 0.0);
            body(row, job_.result + row * job_.result_stride, sums.data());
        });
    }

    void run_direct(int rows_at_once, int threads) {
        const int64_t per_channel = (job_.a.length + direct_tile - 1) / direct_tile;
        const int64_t groups = groups_of(most_channels() * per_channel, threads);
        const int64_t b_count = whole_vectors(direct_tile + job_.lags - 1);
        Workspaces workspaces(rows_at_once * threads, direct_tile + b_count);
        for_rows(rows_at_once, groups * job_.lags, [&](int64_t row, double* result, double* sums) {
            const int64_t tiles = job_.rows.channels(row, job_.channels) * per_channel;
            for_groups(groups, tiles, threads, [&](int64_t group, int64_t i) {
                const Workspaces::Lease space(workspaces);
                const int64_t c = job_.rows.channel(row, i / per_channel), first = i % per_channel * direct_tile;
                const int64_t count = whole_vectors(std::min(direct_tile, job_.a.length - first));
                double* b_tile = space.data() + direct_tile;
                fir_.load(a(c), first, count, space.data(), lanes_);
                fir_.load(b(c), first, whole_vectors(count + job_.lags - 1), b_tile, lanes_);
                fir_.correlate(space.data(), b_tile, count, sums + group * job_.lags, job_.lags);
            });
            add_groups(sums, groups, job_.lags);
            std::copy_n(sums, job_.lags, result);
        });
    }

    // Adds groups 1, 2, ... to group 0.
    static void add_groups(double* sums, int64_t groups, int64_t size) {
        for (int64_t group = 1; group < groups; ++group)
            for (int64_t i = 0; i < size; ++i) sums[i] += sums[group * size + i];
    }

    // Two tiles at a time, z = a1 + i a2 and w = b1 + i b2: the real part of the inverse transform of
    // w conj(z) is the correlation of a1 with b1 plus that of a2 with b2. Only sums of products are kept, so
    // there is one inverse transform per row.
    void run_fft(int64_t size, int rows_at_once, int apart, int sharing) {
        const std::shared_ptr<const FftRootTable> table = fft_roots(size, fir_.lanes);
        const ParallelFft fft = {*fir_.fft, table->view(), size};
        const int64_t hop = size - fir_history(job_.lags);
        const int64_t per_channel = (job_.a.length + 2 * hop - 1) / (2 * hop);
        const int64_t groups = groups_of(most_channels() * per_channel, apart);
        Workspaces workspaces(rows_at_once * apart, 4 * size);
        for_rows(rows_at_once, groups * 2 * size, [&](int64_t row, double* result, double* sums) {
            const int64_t pairs = job_.rows.channels(row, job_.channels) * per_channel;
            for_groups(groups, pairs, apart, [&](int64_t group, int64_t i) {
                const Workspaces::Lease space(workspaces);
                add_pair(fft, space.data(), sums + group * 2 * size, job_.rows.channel(row, i / per_channel),
                         i % per_channel * 2 * hop, hop, sharing);
            });
            add_groups(sums, groups, 2 * size);
            take_result(fft, sums, result, sharing);
        });
    }

    void add_pair(const ParallelFft& fft, double* z, double* sum, int64_t c, int64_t first, int64_t hop, int threads) {
        double* w = z + 2 * fft.size;
        FirSignal a1 = a(c), a2 = a1;
        a1.length = std::min(a1.length, first + hop);
        a2.length = std::min(a2.length, first + 2 * hop);
        fft.forward_root(z, threads, [&](int64_t begin, int64_t end) {
            load_pair(a1, first + begin, a2, first + hop + begin, z, begin, end);
        });
        fft.forward_root(w, threads, [&](int64_t begin, int64_t end) {
            load_pair(b(c), first + begin, b(c), first + hop + begin, w, begin, end);
        });
        // What comes next moves towards the cache in the meantime, as in a convolution.
        const bool foresee = fft.size <= largest_private_fft;
        const int64_t next = first + 2 * hop;
        fft.for_children(threads, [&](int64_t offset, int64_t size, int64_t child) {
            const int64_t part = 2 * hop * size / fft.size;
            if (foresee && job_.a.stride == 1) prefetch(a(c), next + child * part, part);
            if (foresee && job_.b.stride == 1) prefetch(b(c), next + child * part, part);
            fft.kernels.forward(z + offset, size, child, fft.roots);
            fft.kernels.forward(w + offset, size, child, fft.roots);
            fft.kernels.add_conjugate_product(sum + offset, w + offset, z + offset, size);
        });
    }

    void load_pair(const FirSignal& real, int64_t real_first, const FirSignal& imaginary, int64_t imaginary_first,
                   double* data, int64_t begin, int64_t end) const {
        fir_.load(real, real_first, end - begin, data + 2 * begin, 2 * lanes_);
        fir_.load(imaginary, imaginary_first, end - begin, data + 2 * begin + lanes_, 2 * lanes_);
    }

    void take_result(const ParallelFft& fft, double* sum, double* result, int threads) {
        fft.for_children(threads, [&](int64_t offset, int64_t size, int64_t child) {
            fft.kernels.inverse(sum + offset, size, child, fft.roots);
        });
        const FirOutput output = {result, TORCHFX_F64, job_.lags, nullptr, 0};
        fft.inverse_root(sum, threads, [&](int64_t begin, int64_t end) {
            for (int64_t i = 2 * begin; i < 2 * end; ++i) sum[i] /= static_cast<double>(fft.size);
            fir_.store(sum + 2 * begin, 2 * lanes_, output, begin, std::min(end, job_.lags) - begin);
        });
    }

    const FirCorrelation& job_;
    const FirKernels& fir_;
    const int64_t lanes_;
};

}  // namespace

void correlate(const FirCorrelation& job) { Correlator(job).run(); }

}  // namespace torchfx
