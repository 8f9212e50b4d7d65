// What stands last in an engine: samples that are not finite, or above a ceiling, never leave it.
#ifndef TORCHFX_LIVE_GUARD_H
#define TORCHFX_LIVE_GUARD_H

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <vector>

namespace torchfx {

// Infinite where a sample is not finite. In integers, whose order is that of magnitudes: vectors find the largest.
inline float largest_magnitude(const float* samples, int64_t count) {
    constexpr int32_t infinite = 0x7f800000;
    int32_t most = 0;
    for (int64_t t = 0; t < count; ++t) {
        int32_t bits;
        std::memcpy(&bits, samples + t, sizeof bits);
        most = std::max(most, bits & 0x7fffffff);
    }
    most = std::min(most, infinite);
    float found;
    std::memcpy(&found, &most, sizeof found);
    return found;
}

// A bad sample mutes all channels: from the sample before it, the output falls to 0 in 5 ms. The chain goes on unheard. When it
// has made nothing bad for the hold time, the output rises in 5 ms. The hold is 20 ms, and four times the last one, up to 10 s,
// if the output was heard for less than 10 s in between. A chain that bursts every few seconds therefore stays muted.
class Guard {
public:
    // An infinite ceiling lets everything pass.
    Guard(double rate, int64_t channels, int64_t block, double ceiling);

    bool allows(float magnitude) const { return magnitude <= ceiling_; }
    bool open() const { return state_ == State::open; }
    bool shut() const { return state_ == State::shut; }

    // Each block, (channels, block), is either heard as it is: all of it is allowed, and the guard open;
    void note(const float* y);
    // or changed as the guard's state wants it. `good`: all of it is allowed; `ran`: it comes from a chain that ran.
    void apply(float* y, bool good, bool ran);

private:
    enum class State { open, shut, rising };

    int64_t first_bad(const float* y) const;

    const float ceiling_;
    const int64_t channels_, block_, ramp_, least_hold_, longest_hold_;
    State state_ = State::open;
    int64_t at_ = 0;     // samples of the ramp that are done
    int64_t hold_;       // samples without a bad one until the output rises
    int64_t left_ = 0;   // of them
    int64_t heard_;      // samples since the output rose last, at most longest_hold_
    std::vector<float> from_, last_;  // what the ramp falls from, and the last outputs
};

}  // namespace torchfx

#endif
