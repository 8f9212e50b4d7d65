// What a live engine counts: one thread writes, any may read.
#ifndef TORCHFX_LIVE_COUNTERS_H
#define TORCHFX_LIVE_COUNTERS_H

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>

#include "torchfx_live.h"

namespace torchfx {

class Counters {
public:
    void add(torchfx_live_counter which, int64_t count = 1) {
        set(which, values_[which].load(std::memory_order_relaxed) + count);
    }
    void set(torchfx_live_counter which, int64_t value) { values_[which].store(value, std::memory_order_relaxed); }
    int64_t get(torchfx_live_counter which) const { return values_[which].load(std::memory_order_relaxed); }

    // A call of so many nanoseconds.
    void note(int64_t ns) {
        set(TORCHFX_LIVE_longest_ns, std::max(get(TORCHFX_LIVE_longest_ns), ns));
        const double octaves = std::log2(static_cast<double>(std::max<int64_t>(ns, 1))) - TORCHFX_LIVE_FIRST_OCTAVE;
        const auto bin = static_cast<int64_t>(octaves * TORCHFX_LIVE_BINS_PER_OCTAVE);
        auto& counted = bins_[static_cast<std::size_t>(std::clamp<int64_t>(bin, 0, TORCHFX_LIVE_BINS - 1))];
        counted.store(counted.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
    }
    int64_t bin(int64_t i) const { return bins_[static_cast<std::size_t>(i)].load(std::memory_order_relaxed); }

private:
    std::array<std::atomic<int64_t>, TORCHFX_LIVE_COUNTER_COUNT> values_{};
    std::array<std::atomic<int64_t>, TORCHFX_LIVE_BINS> bins_{};
};

}  // namespace torchfx

#endif
