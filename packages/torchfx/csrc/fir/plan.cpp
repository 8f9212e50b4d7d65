#include "fir/plan.h"

#include <algorithm>
#include <cmath>

#include "fft/kernels.h"

namespace torchfx {
namespace {

// Nanoseconds on one AVX-512 core (AMD Zen 5, 1 MiB L2, 32 MiB L3) with float32 samples, loading and storing
// included, fitted to calls with 24 to 480 000 taps, 11/2026. Narrower vectors slow both ways down alike.
constexpr double direct_per_product = 0.0166;
constexpr double direct_per_result = 0.25;

double fft_per_value(int64_t size) {
    const double levels = std::log2(static_cast<double>(size));
    if (size <= largest_private_fft) return 0.9 + 0.075 * levels;
    const double beyond_l3 = std::min(2.8, std::max(0.0, 1.4 * (levels - 19)));
    return 2.1 + 0.32 * (levels - 15) + beyond_l3;
}

double fft_cost(int64_t size) { return 60 + fft_per_value(size) * static_cast<double>(size); }

// The filter's own transform, as a part of fft_cost.
constexpr double spectrum_share = 0.5;

// 16 MiB, and as much again for the spectrum; exceeded only by filters of more than half as many taps.
constexpr int64_t largest_fft = int64_t{1} << 20;

// Work for each thread that pays for waking it.
constexpr double work_per_thread = 30000;

int useful_threads(double cost, int threads) {
    return std::max(1, static_cast<int>(std::min<double>(threads, cost / work_per_thread)));
}

}  // namespace

int64_t fir_history(int64_t filter_length) { return (filter_length - 1 + 7) / 8 * 8; }

FirPlan plan_fir(const FirShape& shape, int threads) {
    const double direct = static_cast<double>(shape.channels) * static_cast<double>(shape.results) *
                          (direct_per_product * static_cast<double>(shape.filter_length) + direct_per_result);
    FirPlan best = {0, useful_threads(direct, threads)};
    double best_time = direct / best.threads;
    const int64_t history = fir_history(shape.filter_length);
    for (int64_t size = fft_min_size;; size *= 2) {
        if (size <= history) continue;
        const int64_t pair = 2 * (size - history);
        const int64_t pairs_per_channel = (shape.results + pair - 1) / pair;
        const int64_t pairs = shape.channels * pairs_per_channel;
        const double transforms = static_cast<double>(pairs) + spectrum_share * static_cast<double>(shape.rows);
        const int workers = useful_threads(fft_cost(size) * transforms, threads);
        // One row's spectrum is computed before the threads start; those of several rows by the threads.
        const double share = shape.rows == 1 ? spectrum_share + static_cast<double>((pairs + workers - 1) / workers)
                                             : transforms / workers;
        const double time = fft_cost(size) * (size <= largest_private_fft ? share : transforms / workers);
        if (time < best_time) {
            best_time = time;
            best = {size, workers};
        }
        // Larger ones would only hold more zeros, or more memory for little gain in time.
        if (pairs_per_channel == 1 || (size >= 2 * history && size >= largest_fft)) return best;
    }
}

}  // namespace torchfx
