#include "live/guard.h"

#include <cmath>

namespace torchfx {
namespace {

constexpr double ramp_s = 0.005, least_hold_s = 0.02, longest_hold_s = 10;
constexpr int64_t growth = 4;

int64_t samples_of(double seconds, double rate) { return std::max<int64_t>(1, std::llround(seconds * rate)); }

}  // namespace

Guard::Guard(double rate, int64_t channels, int64_t block, double ceiling)
    : ceiling_(static_cast<float>(ceiling)), channels_(channels), block_(block), ramp_(samples_of(ramp_s, rate)),
      least_hold_(samples_of(least_hold_s, rate)), longest_hold_(samples_of(longest_hold_s, rate)), hold_(least_hold_),
      heard_(longest_hold_), from_(static_cast<std::size_t>(channels)), last_(from_.size()) {}

void Guard::note(const float* y) {
    for (int64_t c = 0; c < channels_; ++c) last_[static_cast<std::size_t>(c)] = y[(c + 1) * block_ - 1];
    heard_ = std::min(heard_ + block_, longest_hold_);
}

int64_t Guard::first_bad(const float* y) const {
    int64_t first = block_;
    for (int64_t c = 0; c < channels_; ++c)
        for (int64_t t = 0; t < first; ++t)
            if (!(std::abs(y[c * block_ + t]) <= ceiling_)) first = t;
    return first;
}

void Guard::apply(float* y, bool good, bool ran) {
    int64_t begin = 0;  // of the ramp down, or of what is silent behind it
    if (state_ != State::shut) {
        begin = good ? block_ : first_bad(y);
        if (state_ == State::rising) {
            for (int64_t c = 0; c < channels_; ++c)
                for (int64_t t = 0; t < std::min(begin, ramp_ - at_); ++t)
                    y[c * block_ + t] *= static_cast<float>(at_ + t + 1) / static_cast<float>(ramp_);
            at_ += begin;
            if (good && at_ >= ramp_) state_ = State::open;
        }
        if (good) {
            note(y);
            return;
        }
        for (int64_t c = 0; c < channels_; ++c) {
            const auto i = static_cast<std::size_t>(c);
            from_[i] = begin > 0 ? y[c * block_ + begin - 1] : last_[i];
        }
        hold_ = heard_ < longest_hold_ ? std::min(growth * hold_, longest_hold_) : least_hold_;
        left_ = hold_;
        at_ = 0;
        state_ = State::shut;
    } else if (!good) {
        left_ = hold_;
    } else if (ran) {
        left_ -= block_;
    }
    for (int64_t c = 0; c < channels_; ++c)
        for (int64_t t = begin; t < block_; ++t) {
            const int64_t along = std::min(at_ + t - begin + 1, ramp_);
            const float left = static_cast<float>(ramp_ - along) / static_cast<float>(ramp_);
            y[c * block_ + t] = from_[static_cast<std::size_t>(c)] * left;
        }
    at_ = std::min(at_ + block_ - begin, ramp_);
    note(y);
    if (left_ > 0 || at_ < ramp_) return;
    state_ = State::rising;
    at_ = heard_ = 0;
}

}  // namespace torchfx
