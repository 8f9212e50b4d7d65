// A result's window is the inputs that meet a tap. An infinity in it adds its sign times the sign of its tap, +1, 0 or -1,
// to the result's balance. With n inputs of the window not finite, the direct sum is
//
//     +inf  where the balance is n,
//     -inf  where it is -n,
//     NaN   elsewhere: infinities of both signs meet, or an infinity meets a tap of 0, or there is a NaN.
//
// n is the difference of two running counts. The balance is a convolution of signs with signs, whose results are integers
// far above the rounding of an FFT.
#include "fir/not_finite.h"

#include <algorithm>
#include <utility>

#include "torchfx_dsp.h"
#include "support/pool.h"
#include "support/workspace.h"

namespace torchfx {
namespace {

// Results of one part: several transforms, and little enough for a second-level cache of 1 MiB.
constexpr int64_t part_results = 1 << 15;

int64_t part_length(const FirConvolution& job) {
    return std::min(job.output.length + job.output.tail_length, std::max(part_results, 16 * job.filters.length));
}

// The memory of one part.
struct Part {
    double* signs;      // of the infinities among the inputs, 0 for all others
    double* tap_signs;
    double* balance;
    int32_t* counts;    // of the inputs that are not finite, before each input

    static int64_t size(int64_t count, int64_t taps) { return 3 * count + 3 * taps + 32; }
    Part(double* space, int64_t count, int64_t taps)
        : signs(space), tap_signs(signs + count + taps + 16), balance(tap_signs + taps),
          counts(reinterpret_cast<int32_t*>(balance + count)) {}
};

double sign_of(double v) { return static_cast<double>(v > 0) - static_cast<double>(v < 0); }

// The signs' convolution. Where fewer inputs than taps lie within the signal, the inputs are the filter.
void find_balance(const FirConvolution& job, int64_t start, int64_t inputs, const Part& part, int64_t results,
                  int threads) {
    const int64_t begin = std::max<int64_t>(0, -start);
    const int64_t end = std::min(inputs, job.signal.length + job.signal.tail_length - start);
    const double *longer = part.signs + begin, *shorter = part.tap_signs;
    int64_t longer_length = end - begin, shorter_length = job.filters.length;
    if (longer_length < shorter_length) {
        std::swap(longer, shorter);
        std::swap(longer_length, shorter_length);
    }
    FirConvolution balance = {};
    balance.channels = balance.signal_repeat = 1;
    balance.signal = {longer, TORCHFX_F64, 1, longer_length, nullptr, 0};
    balance.filters = {shorter, shorter_length, 0, {1, 1}};
    balance.origin = job.filters.length - 1 - begin;
    balance.output = {part.balance, TORCHFX_F64, results, nullptr, 0};
    balance.threads = threads;
    convolve(balance);
}

// Results [first, first + count) of one channel.
void add_part(const FirConvolution& job, int64_t first, int64_t count, double* space, int threads) {
    const FirKernels& kernels = TORCHFX_KERNELS(fir_kernels);
    const int64_t taps = job.filters.length, inputs = count + taps - 1, start = first + job.origin - taps + 1;
    const Part part(space, count, taps);
    const int64_t whole_vectors = (inputs + kernels.lanes - 1) / kernels.lanes * kernels.lanes;
    if (kernels.load(job.signal, start, whole_vectors, part.signs, kernels.lanes)) return;
    kernels.take_signs(part.signs, inputs, part.counts);
    std::transform(job.filters.data, job.filters.data + taps, part.tap_signs, sign_of);
    find_balance(job, start, inputs, part, count, threads);
    kernels.add_not_finite(part.balance, part.counts, taps, job.output, first, count);
}

}  // namespace

void add_not_finite(const FirConvolution& job) {
    const int64_t length = part_length(job), results = job.output.length + job.output.tail_length;
    const int64_t per_channel = (results + length - 1) / length, parts = job.channels * per_channel;
    const int apart = parts < job.threads ? 1 : job.threads, sharing = parts < job.threads ? job.threads : 1;
    Workspaces workspaces(apart, Part::size(length, job.filters.length));
    parallel_for_or_throw(parts, apart, [&](int64_t i) {
        const Workspaces::Lease space(workspaces);
        const int64_t first = i % per_channel * length;
        add_part(channel_of(job, i / per_channel), first, std::min(length, results - first), space.data(), sharing);
    });
}

}  // namespace torchfx
