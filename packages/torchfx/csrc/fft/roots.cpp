#include "fft/roots.h"

#include <algorithm>
#include <atomic>
#include <cmath>

namespace torchfx {
namespace {

// Larger tables are made for one call and freed: this one keeps 4 MiB with AVX-512.
constexpr int64_t kept_size = int64_t{1} << 20;

// The binary digits of b mirrored at the point, exactly.
double mirrored(int64_t b) {
    double fraction = 0, digit = 0.5;
    for (; b != 0; b >>= 1, digit /= 2)
        if (b & 1) fraction += digit;
    return fraction;
}

struct Root {
    double re, im;
};

// e^(2 pi i turns) for turns in [0, 1), by angles of at most an eighth of a turn.
Root root_of_unity(double turns) {
    constexpr double two_pi = 6.283185307179586477;
    const int quarter = static_cast<int>(4 * turns + 0.5);
    const double angle = two_pi * (turns - 0.25 * quarter);
    const double c = std::cos(angle), s = std::sin(angle);
    switch (quarter % 4) {
        case 0: return {c, s};
        case 1: return {-s, c};
        case 2: return {-c, -s};
        default: return {s, -c};
    }
}

Root operator*(Root a, Root b) { return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }

// Calls put(b, e^(2 pi i mirrored(b) power / 8)) for b < count. Sines are slow: after the first `period` every
// root is one of those times another, the same for `period` of them.
template <class Get, class Put>
void for_roots(int64_t count, int power, Get&& get, Put&& put) {
    constexpr int64_t period = 1024;
    Root turn = {};
    for (int64_t b = 0; b < count; ++b) {
        const bool first = b % period == 0;
        if (b < period) put(b, root_of_unity(mirrored(b) * power / 8));
        else if (first) put(b, turn = root_of_unity(mirrored(b) * power / 8));
        else put(b, get(b % period) * turn);
    }
}

}  // namespace

FftRootTable::FftRootTable(int64_t lane_blocks, int64_t blocks, const FftRootTable* smaller)
    : lane_blocks_(smaller ? std::max(lane_blocks, smaller->lane_blocks_) : lane_blocks),
      blocks_(smaller ? std::max(blocks, smaller->blocks_) : blocks),
      re_(new double[static_cast<size_t>(lane_blocks_)]),
      im_(new double[static_cast<size_t>(lane_blocks_)]),
      powers_(new double[static_cast<size_t>(14 * blocks_)]),
      smaller_(smaller) {
    for_roots(
        lane_blocks_, 1, [&](int64_t b) { return Root{re_[b], im_[b]}; },
        [&](int64_t b, Root root) {
            re_[b] = root.re;
            im_[b] = root.im;
        });
    for (int power = 1; power < 8; ++power) {
        double* column = powers_.get() + 2 * (power - 1);
        for_roots(
            blocks_, power, [&](int64_t b) { return Root{column[14 * b], column[14 * b + 1]}; },
            [&](int64_t b, Root root) {
                column[14 * b] = root.re;
                column[14 * b + 1] = root.im;
            });
    }
}

std::shared_ptr<const FftRootTable> fft_roots(int64_t size, int lanes) {
    const int64_t leaf = lanes == 1 ? 4 : lanes * lanes;
    const int64_t lane_blocks = size / lanes, blocks = size / leaf;
    // Tables are only ever replaced by larger ones, and never freed, since others may be reading them: together
    // they are hardly longer than the last. No lock, which a forked child might find held for ever.
    static std::atomic<const FftRootTable*> kept{nullptr};
    const auto borrow = [](const FftRootTable* table) {
        return std::shared_ptr<const FftRootTable>(std::shared_ptr<void>(), table);
    };
    const FftRootTable* found = kept.load(std::memory_order_acquire);
    if (found && found->serves(lane_blocks, blocks)) return borrow(found);
    auto fresh = std::make_unique<FftRootTable>(lane_blocks, blocks, found);
    if (size > kept_size || !kept.compare_exchange_strong(found, fresh.get(), std::memory_order_acq_rel)) return fresh;
    return borrow(fresh.release());
}

}  // namespace torchfx
