// What segments of a channel have to know of each other: states, and how a state evolves over a segment.
#ifndef TORCHFX_SOS_SEGMENTS_H
#define TORCHFX_SOS_SEGMENTS_H

#include <atomic>
#include <cmath>
#include <cstddef>
#include <new>

#include "support/pool.h"
#include "sos/group.h"

namespace torchfx {

// body(index) for every group, over the threads; exceptions must not leave a worker, so this one is passed on.
template <class Body>
void for_each_group(int64_t groups, int threads, Body&& body) {
    std::atomic<bool> no_memory{false};
    parallel_for(groups, threads, [&](int64_t index) {
        try {
            body(index);
        } catch (const std::bad_alloc&) {
            no_memory = true;
        }
    });
    if (no_memory) throw std::bad_alloc();
}

// One state per segment and channel, as LaneState::get and set move them.
class SegmentStates {
public:
    SegmentStates(int64_t sections, int64_t segments, int64_t channels)
        : size_(2 * sections), segments_(segments),
          values_(static_cast<std::size_t>(channels * segments * size_)) {}

    double* of(int64_t channel, int64_t segment) { return values_.data() + (channel * segments_ + segment) * size_; }
    double* of(const Stream& s) { return of(s.channel, s.segment); }

    bool finite(int64_t channel, int64_t segment) {
        const double* w = of(channel, segment);
        return std::all_of(w, w + size_, [](double v) { return std::isfinite(v); });
    }

private:
    int64_t size_, segments_;
    Scratch<double, 1024> values_;
};

// What a segment's length of silence turns a state into: for each cascade a matrix of order 2 * sections, one column per
// unit state, computed by the very kernel that filters, whose accuracy it shares.
template <class In, class Out = In>
class Transitions {
public:
    explicit Transitions(const SosCall<In, Out>& call)
        : call_(call), order_(2 * call.sections()), count_(call.cascades.rows.count * order_),
          columns_(static_cast<std::size_t>(count_ * order_)) {}

    int64_t groups() const { return (count_ + call_.lanes - 1) / call_.lanes; }

    void compute(int64_t group) {
        const int64_t first = group * call_.lanes, constants = stage_constants * call_.sections();
        const int count = static_cast<int>(std::min<int64_t>(call_.lanes, count_ - first));
        LaneState state(call_.sections(), call_.lanes);
        const double* from[max_lanes] = {};
        for (int lane = 0; lane < count; ++lane) {
            from[lane] = &call_.cascades.row((first + lane) / order_)->b0;
            state.at((first + lane) % order_, lane) = 1;
        }
        Scratch<double, 16 * stage_constants * max_lanes> stages(static_cast<std::size_t>(constants * call_.lanes));
        call_.kernels->to_vectors(from, constants, stages.data());
        SosLanes<In, Out> silence = {};
        silence.x_stride = 1;
        call_.run(stages.data(), call_.sections(), state.data(), silence, call_.plan.length);
        for (int lane = 0; lane < count; ++lane) state.get(lane, column(first + lane));
    }

    // later += matrix * earlier, in this channel
    void forwards(int64_t channel, const double* earlier, double* later) {
        const int64_t first = first_column(channel);
        for (int64_t j = 0; j < order_; ++j)
            for (int64_t i = 0; i < order_; ++i) later[i] += column(first + j)[i] * earlier[j];
    }

    // earlier += transposed matrix * later, for gradients
    void backwards(int64_t channel, const double* later, double* earlier) {
        const int64_t first = first_column(channel);
        for (int64_t j = 0; j < order_; ++j)
            for (int64_t i = 0; i < order_; ++i) earlier[j] += column(first + j)[i] * later[i];
    }

private:
    int64_t first_column(int64_t channel) const { return call_.cascades.rows.of(channel) * order_; }
    double* column(int64_t j) { return columns_.data() + j * order_; }

    const SosCall<In, Out>& call_;
    int64_t order_, count_;
    Scratch<double, 256> columns_;
};

// The state every segment starts with, without filtering one after the other: a pass from rest gives what each adds
// of its own, the transitions what it passes on.
template <class In, class Out>
void carry_states(const SosCall<In, Out>& call, Transitions<In, Out>& transitions, SegmentStates& starts) {
    const int64_t groups = call.groups(), segments = call.plan.segments;
    for_each_group(groups + transitions.groups(), call.plan.threads, [&](int64_t index) {
        if (index >= groups) return transitions.compute(index - groups);
        SosGroup<In, Out> group(call, index);
        group.load_state_in();
        for (int lane = 0; lane < group.count(); ++lane)
            if (group.stream(lane).segment == 0) group.state().get(lane, starts.of(group.stream(lane)));
        group.filter(false, [&](int lane) {
            const Stream& s = group.stream(lane);
            if (s.segment + 1 < segments) group.state().get(lane, starts.of(s.channel, s.segment + 1));
        });
    });
    for (int64_t c = 0; c < call.channels; ++c)  // the first segment started with its true state: nothing to add
        for (int64_t i = 1; i + 1 < segments; ++i) transitions.forwards(c, starts.of(c, i), starts.of(c, i + 1));
}

}  // namespace torchfx

#endif
