// One call of the recursive filter, and the groups of streams it is made of.
#ifndef TORCHFX_SOS_GROUP_H
#define TORCHFX_SOS_GROUP_H

#include <algorithm>
#include <cstdint>

#include "sos/lane_state.h"
#include "sos/kernels.h"
#include "sos/plan.h"
#include "sos/stage.h"

namespace torchfx {

// Whether the channels can share the rows of x and of the coefficients in this way (torchfx_dsp.h).
inline bool valid_rows(int64_t channels, int64_t x_repeat, Rows coefficients) {
    return x_repeat >= 1 && channels % x_repeat == 0 && coefficients.valid(channels);
}

// A segment of a channel, and the row of the cascade that filters it.
struct Stream {
    int64_t channel, row, segment, start, length;
};

template <class In, class Out = In>
struct SosCall {
    const In* x;
    int64_t x_channel_stride, x_time_stride;
    int64_t x_repeat;  // channel c reads row c / x_repeat of x
    Out* y;            // or nullptr
    int64_t y_channel_stride;
    int64_t channels, samples;
    Cascades cascades;
    const double* state_in;  // SciPy's states of channel c and section k at [k * state_stride + 2 * c], or nullptr
    double* state_out;       // the same
    int64_t state_stride;
    double* checkpoints;  // (channels, checkpoints_per_channel, sections, 2), or nullptr; the plan's grid fits them
    SosPlan plan;
    const SosKernels* kernels;
    int lanes;
    SosRun<In, Out> run;
    int64_t y_time_stride = 1;  // or -1

    void use(const SosKernels& chosen) {
        kernels = &chosen;
        lanes = chosen.lanes;
        run = run_of(chosen, x, y);
    }

    int64_t sections() const { return cascades.sections; }
    int64_t streams() const { return channels * plan.segments; }
    int64_t checkpoints_per_channel() const { return (samples + checkpoint_steps - 1) / checkpoint_steps; }
    int64_t groups() const { return (streams() + lanes - 1) / lanes; }

    // Neighbouring streams share a vector: segments of one channel, which lie apart as the plan chose, or, where
    // channels alternate in memory, adjacent channels, whose samples then load as a vector.
    Stream stream(int64_t index) const {
        const bool alternating = x_channel_stride == 1 && x_time_stride != 1;
        const int64_t segment = alternating ? index / channels : index % plan.segments;
        const int64_t channel = alternating ? index % channels : index / plan.segments;
        const int64_t start = segment * plan.length;
        return {channel, cascades.rows.of(channel), segment, start, std::min(plan.length, samples - start)};
    }

    const In* input(int64_t channel, int64_t sample) const {
        const int64_t row = x_repeat == 1 ? channel : channel / x_repeat;
        return x + row * x_channel_stride + sample * x_time_stride;
    }
};

inline int64_t next_checkpoint(int64_t position) { return (position / checkpoint_steps + 1) * checkpoint_steps; }

// Streams that fill one vector, with the constants and the state of the filter in each of its lanes.
template <class In, class Out = In>
class SosGroup {
public:
    SosGroup(const SosCall<In, Out>& call, int64_t index)
        : call_(call), count_(static_cast<int>(std::min<int64_t>(call.lanes, call.streams() - index * call.lanes))),
          stages_(static_cast<std::size_t>(stage_constants * call.sections() * call.lanes)),
          state_(call.sections(), call.lanes) {
        for (int lane = 0; lane < count_; ++lane) streams_[lane] = call.stream(index * call.lanes + lane);
        gather(&call.cascades.stages->b0, stage_constants * call.sections(), stages_.data());
    }

    int count() const { return count_; }
    const Stream& stream(int lane) const { return streams_[lane]; }
    const double* stages() const { return stages_.data(); }
    LaneState& state() { return state_; }

    // From values of every cascade, (rows, count), to vectors (count, lanes), each lane with those of its own cascade.
    // Idle lanes have the first one's.
    void gather(const double* of_cascades, int64_t count, double* vectors) const {
        const double* from[max_lanes];
        std::fill_n(from, max_lanes, of_cascades + stream(0).row * count);
        if (call_.cascades.rows.count > 1)
            for (int lane = 1; lane < count_; ++lane)
                from[lane] = of_cascades + stream(lane).row * count;
        call_.kernels->to_vectors(from, count, vectors);
    }

    // The initial state of every channel whose first segment is in this group. The lane must be at rest.
    void load_state_in() {
        if (!call_.state_in) return;
        for (int lane = 0; lane < count_; ++lane) {
            if (stream(lane).segment > 0) continue;
            const SosStage* stages = call_.cascades.row(stream(lane).row);
            const double* s = call_.state_in + 2 * stream(lane).channel;
            for (int64_t k = 0; k < call_.sections(); ++k, s += call_.state_stride) {
                state_.at(2 * k, lane) = s[0];
                state_.at(2 * k + 1, lane) = shift_state(stages[k], s[0], s[1]);
            }
        }
    }

    void store_state_out(int lane) {
        if (!call_.state_out) return;
        const SosStage* stages = call_.cascades.row(stream(lane).row);
        double* s = call_.state_out + 2 * stream(lane).channel;
        for (int64_t k = 0; k < call_.sections(); ++k, s += call_.state_stride) {
            s[0] = state_.at(2 * k, lane);
            s[1] = unshift_state(stages[k], s[0], state_.at(2 * k + 1, lane));
        }
    }

    // The `steps` samples before each segment but a channel's first, for the state they leave behind.
    void warm_up(int64_t steps) {
        SosLanes<In, Out> lanes = silence();
        for (int lane = 0; lane < count_; ++lane)
            if (stream(lane).segment > 0) lanes.x[lane] = input(lane, -steps);
        call_.run(stages_.data(), call_.sections(), state_.data(), lanes, steps);
    }

    // Samples [from, to) of every segment that long; the lanes of shorter ones run idle.
    void advance(int64_t from, int64_t to, bool write) {
        SosLanes<In, Out> lanes = silence();
        for (int lane = 0; lane < count_; ++lane) {
            const Stream& s = stream(lane);
            if (s.length < to) continue;
            lanes.x[lane] = input(lane, from);
            if (write && call_.y)
                lanes.y[lane] = call_.y + s.channel * call_.y_channel_stride + (s.start + from) * call_.y_time_stride;
        }
        call_.run(stages_.data(), call_.sections(), state_.data(), lanes, to - from);
    }

    // The shortest segment longer than `done`, or 0: the last segment of a channel may be shorter than others.
    int64_t next_end(int64_t done) const {
        int64_t end = 0;
        for (int lane = 0; lane < count_; ++lane)
            if (stream(lane).length > done && (end == 0 || stream(lane).length < end)) end = stream(lane).length;
        return end;
    }

    // The segments; `write` is for the output and the checkpoints. finished(lane) is called when a lane's segment has
    // ended and the state is still its own.
    template <class Finished>
    void filter(bool write, Finished&& finished) {
        int64_t done = 0;
        while (const int64_t end = next_end(done)) {
            if (write && call_.checkpoints) advance_recording(done, end);
            else advance(done, end, write);
            for (int lane = 0; lane < count_; ++lane)
                if (stream(lane).length == end) finished(lane);
            done = end;
        }
    }

    // Where a lane's state at `position` of its segment, the start of a tile, belongs among a call's checkpoints.
    int64_t checkpoint_at(int lane, int64_t position) const {
        const Stream& s = stream(lane);
        const int64_t index = (s.start + position) / checkpoint_steps;
        return (s.channel * call_.checkpoints_per_channel() + index) * 2 * call_.sections();
    }

private:
    // Segments start at a checkpoint; `from` may lie between two, where a shorter segment has ended.
    void advance_recording(int64_t from, int64_t to) {
        while (from < to) {
            if (from % checkpoint_steps == 0) {
                double* kept[max_lanes] = {};
                for (int lane = 0; lane < count_; ++lane)
                    if (stream(lane).length > from) kept[lane] = call_.checkpoints + checkpoint_at(lane, from);
                call_.kernels->to_rows(state_.data(), 2 * call_.sections(), kept);
            }
            const int64_t next = std::min(to, next_checkpoint(from));
            advance(from, next, true);
            from = next;
        }
    }

    const In* input(int lane, int64_t offset) const {
        return call_.input(stream(lane).channel, stream(lane).start + offset);
    }

    SosLanes<In, Out> silence() const {
        SosLanes<In, Out> lanes = {};
        lanes.x_stride = call_.x_time_stride;
        lanes.y_stride = call_.y_time_stride;
        return lanes;
    }

    const SosCall<In, Out>& call_;
    int count_;
    Stream streams_[max_lanes];
    Scratch<double, 16 * stage_constants * max_lanes> stages_;
    LaneState state_;
};

}  // namespace torchfx

#endif
