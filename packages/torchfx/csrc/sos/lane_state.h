// The filter's state in every lane of a group: (sections, 2, lanes), as the kernels take it.
#ifndef TORCHFX_SOS_LANE_STATE_H
#define TORCHFX_SOS_LANE_STATE_H

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "support/scratch.h"
#include "sos/kernels.h"

namespace torchfx {

class LaneState {
public:
    LaneState(int64_t sections, int lanes)
        : pairs_(2 * sections), lanes_(lanes), values_(static_cast<std::size_t>(pairs_ * lanes)) {
        std::fill_n(values_.data(), pairs_ * lanes_, 0.0);
    }

    double* data() { return values_.data(); }
    int64_t size() const { return pairs_ * lanes_; }

    // One lane's state, w1 and w2 of each section in turn.
    double& at(int64_t i, int lane) { return values_[static_cast<std::size_t>(i * lanes_ + lane)]; }
    void set(int lane, const double* w) {
        for (int64_t i = 0; i < pairs_; ++i) at(i, lane) = w[i];
    }
    void get(int lane, double* w) {
        for (int64_t i = 0; i < pairs_; ++i) w[i] = at(i, lane);
    }

    // factors, (sections, lanes): one for each section and lane.
    void scale(const double* factors) {
        for (int64_t i = 0; i < pairs_; ++i)
            for (int lane = 0; lane < lanes_; ++lane) at(i, lane) *= factors[i / 2 * lanes_ + lane];
    }

private:
    int64_t pairs_;
    int lanes_;
    Scratch<double, 16 * 2 * max_lanes> values_;
};

}  // namespace torchfx

#endif
