#include "sos/plan.h"

#include <algorithm>

#include "sos/decay.h"

namespace torchfx {
namespace {

int64_t divide_up(int64_t a, int64_t b) { return (a + b - 1) / b; }

// Section-samples per thread below which waking another one costs more than it saves (about 20 us of work).
constexpr int64_t work_per_thread = 100000;

// What may be left of the past where a piece starts, relative to the cascade's gain. Far below the rounding of
// the samples themselves, because a filter may suppress most of its input and leave an output far below its gain.
double forgotten(int bytes_per_sample) { return bytes_per_sample == 4 ? 1e-13 : 1e-18; }

// decay_samples of the row that takes longest.
int64_t slowest_decay(const SosShape& shape, const double* sos, int64_t at_most) {
    int64_t slowest = 0;
    for (int64_t r = 0; r < shape.rows && slowest <= at_most; ++r, sos += 6 * shape.sections)
        slowest = std::max(slowest, decay_samples(sos, shape.sections, forgotten(shape.bytes_per_sample), at_most));
    return slowest;
}

// What decay_samples costs for one row, in steps: with four sections 1.7 us, and a step 9 ns.
constexpr double steps_per_decay = 200;

int useful_threads(const SosShape& shape) {
    const double work = static_cast<double>(shape.channels) * static_cast<double>(shape.samples) *
                        static_cast<double>(shape.sections);
    return static_cast<int>(std::clamp(work / work_per_thread, 1.0, static_cast<double>(std::max(shape.threads, 1))));
}

// Segments an odd number of cache lines long: with lengths near a power of two, all streams of a group would meet in the
// same few sets of the cache. On a grid an odd number of its coarse steps would cost more than it saves: there only
// lengths that share a large power of two are avoided (512 KiB apart, a mono signal of 2^21 samples took 1.2 to 2 times
// as long; at 128 KiB nothing was lost).
int64_t spread_over_cache(int64_t length, const SosShape& shape) {
    if (shape.grid == 1) {
        const int64_t line = 64 / shape.bytes_per_sample;
        return (divide_up(length, line) | 1) * line;
    }
    const int64_t steps = divide_up(length, shape.grid);
    return (steps + (steps % 32 == 0)) * shape.grid;
}

// What finer pieces may cost, over the cheapest. Where other processes want the processors too, a thread that waits for
// its turn in the middle of a large piece keeps all others waiting; small ones are done by whoever runs.
constexpr double finer_pieces = 1.03;

}  // namespace

SosPlan plan_sos(const SosShape& shape, const double* sos) {
    SosPlan best{1, shape.samples, 0, false, useful_threads(shape)};
    const int64_t whole_groups = divide_up(shape.channels, shape.lanes);
    const int64_t most_groups = int64_t{4} * best.threads;
    if (shape.samples < shape.threshold || whole_groups >= most_groups) return best;

    // Costs count steps of one thread: every step advances one group of lanes by one sample.
    const auto rounds = [&](int64_t groups) { return divide_up(groups, best.threads); };
    double cheapest = static_cast<double>(rounds(whole_groups)) * static_cast<double>(shape.samples), most = cheapest;
    const auto consider = [&](double cost, const SosPlan& plan) {
        if (cost >= most) return;
        best = plan;
        cheapest = std::min(cheapest, cost);
        most = std::min(most, best.threads == 1 ? cheapest : finer_pieces * cheapest);
    };
    int64_t forgets_after = -1;
    for (int64_t groups = best.threads; groups <= most_groups; groups += best.threads) {
        const int64_t wanted = groups * shape.lanes / shape.channels;
        if (wanted < 2) continue;
        const int64_t length = spread_over_cache(divide_up(shape.samples, wanted), shape);
        const int64_t segments = divide_up(shape.samples, length);
        if (segments < 2) continue;
        const int64_t streams = segments * shape.channels;
        const int64_t used_groups = divide_up(streams, shape.lanes);
        // A little more for every extra round, so that it has to pay.
        const double per_round = static_cast<double>(length) + 64;
        const double planning = forgets_after < 0 ? steps_per_decay * static_cast<double>(shape.rows) : 0;
        if (static_cast<double>(rounds(used_groups)) * per_round + planning >= most) continue;
        // No later length is greater.
        if (forgets_after < 0) forgets_after = slowest_decay(shape, sos, length);
        if (forgets_after <= length) {
            const double cost = static_cast<double>(rounds(used_groups)) * (per_round + static_cast<double>(forgets_after));
            consider(cost, {segments, length, forgets_after, false, best.threads});
        } else {
            const int64_t unit_groups = divide_up(2 * shape.sections * shape.rows, shape.lanes);
            const double cost = static_cast<double>(rounds(used_groups + unit_groups) + rounds(used_groups)) * per_round;
            consider(cost, {segments, length, 0, true, best.threads});
        }
    }
    return best;
}

}  // namespace torchfx
