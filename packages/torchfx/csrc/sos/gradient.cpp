// Every group of streams goes over its segments tile by tile, from the last to the first: filters the tile again from
// the checkpoint at its start and runs the adjoint over it. What a segment needs from the one after it, the adjoint
// state at its end, is found as in the forward direction, with the plan's warm-up or carried states.
#include "sos/gradient.h"

#include <optional>
#include <vector>

#include "sos/segments.h"
#include "support/subnormals.h"
#include "support/workspace.h"

namespace torchfx {
namespace {

// The checkpoint before this one: the next one wanted, and nothing else would have it in the cache by then.
void prefetch_before(const double* checkpoint, int64_t sections) {
#if defined(__GNUC__)
    for (const double* p = checkpoint - 2 * sections; p < checkpoint; p += 8) __builtin_prefetch(p);
#else
    (void)checkpoint, (void)sections;
#endif
}

template <class Sample>
class AdjointGroup {
public:
    // ends: adjoint states at the end of every segment but a channel's last; nullptr: segments warm up.
    AdjointGroup(const SosGradientCall<Sample>& call, int64_t index, SegmentStates* ends)
        : call_(call), forward_(call.forward, index), ends_(ends), adjoint_(call.forward.sections(), call.forward.lanes) {}

    const SosGroup<Sample>& streams() const { return forward_; }
    LaneState& adjoint() { return adjoint_; }

    // The adjoint alone, over whole segments.
    void run(bool write) {
        warm_up();
        std::vector<int64_t> ends = segment_ends();
        for (std::size_t i = ends.size() - 1; i > 0; --i) {
            begin_lanes(ends[i]);
            backwards(ends[i - 1], ends[i], write);
        }
    }

    // The adjoint, and what the lanes add to the coefficients' sums, (sections, 5, lanes).
    void run_with_sums(double* sums) {
        warm_up();
        Workspaces workspaces(1, gradient_work(call_.forward.sections(), call_.forward.lanes));
        const Workspaces::Lease work(workspaces);
        const std::vector<int64_t> edges = tile_edges();
        take_gains_out();
        for (std::size_t i = edges.size() - 1; i > 0; --i) {
            begin_lanes(edges[i]);
            restore_state(edges[i - 1]);
            run_gradient(edges[i - 1], edges[i], sums, work.data());
        }
    }

    void store_grad_state_in(int lane) {
        if (!call_.grad_state_in) return;
        const SosStage* stages = call_.forward.cascades.row(stream(lane).row);
        for (int64_t k = 0; k < call_.forward.sections(); ++k) {
            double* s = call_.grad_state_in + k * call_.forward.state_stride + 2 * stream(lane).channel;
            s[1] = adjoint_.at(2 * k + 1, lane) / factor(k, lane);
            s[0] = adjoint_.at(2 * k, lane) / factor(k, lane) + stages[k].kappa * s[1];
        }
    }

private:
    const Stream& stream(int lane) const { return forward_.stream(lane); }

    // Positions below count from the start of the segment. The adjoint of a lane begins here: at the end of its
    // segment, or later by the warm-up as far as there is signal.
    int64_t top(int lane) const {
        const Stream& s = stream(lane);
        return std::min(s.length + call_.forward.plan.warm_up, call_.forward.samples - s.start);
    }

    // What a lane's adjoint begins with, for lanes that begin at `position`.
    void begin_lanes(int64_t position) {
        for (int lane = 0; lane < forward_.count(); ++lane) {
            if (top(lane) != position) continue;
            const Stream& s = stream(lane);
            if (s.start + position == call_.forward.samples) load_grad_state_out(lane);
            else if (ends_) load_end(lane, ends_->of(s));
        }
    }

    // The gradients' inner loop may run on stages without their gains (UnitCascades), and then on their states. The
    // adjoint's stays in this form from tile to tile, to the end.
    void take_gains_out() {
        if (!call_.unit) return;
        const int64_t sections = call_.forward.sections();
        without_gains_.emplace(sections, call_.forward.lanes);
        forward_.gather(&call_.unit->stages[0].b0, stage_constants * sections, without_gains_->stages.data());
        forward_.gather(call_.unit->state_factors.data(), sections, without_gains_->state_factors.data());
        forward_.gather(call_.unit->adjoint_factors.data(), sections, without_gains_->adjoint_factors.data());
        forward_.gather(call_.unit->gains.data(), 1, without_gains_->gain);
        adjoint_.scale(without_gains_->adjoint_factors.data());
    }

    // What the adjoint's state is multiplied by.
    double factor(int64_t section, int lane) {
        if (!without_gains_) return 1;
        return without_gains_->adjoint_factors[static_cast<std::size_t>(section * call_.forward.lanes + lane)];
    }

    void load_end(int lane, const double* l) {
        for (int64_t i = 0; i < 2 * call_.forward.sections(); ++i) adjoint_.at(i, lane) = factor(i / 2, lane) * l[i];
    }

    void load_grad_state_out(int lane) {
        if (!call_.grad_state_out) return;
        const SosStage* stages = call_.forward.cascades.row(stream(lane).row);
        for (int64_t k = 0; k < call_.forward.sections(); ++k) {
            const double* s = call_.grad_state_out + k * call_.forward.state_stride + 2 * stream(lane).channel;
            adjoint_.at(2 * k, lane) = factor(k, lane) * (s[0] - stages[k].kappa * s[1]);
            adjoint_.at(2 * k + 1, lane) = factor(k, lane) * s[1];
        }
    }

    // From the lanes' tops down to the end of their segments.
    void warm_up() {
        if (call_.forward.plan.warm_up == 0) return;
        const int64_t end = call_.forward.plan.length;
        int64_t position = 0;
        for (int lane = 0; lane < forward_.count(); ++lane) position = std::max(position, top(lane));
        while (position > end) {
            begin_lanes(position);
            int64_t next = end;
            for (int lane = 0; lane < forward_.count(); ++lane)
                if (top(lane) < position) next = std::max(next, top(lane));
            backwards(next, position, false);
            position = next;
        }
    }

    // The adjoint over [from, to), for lanes that reach that far.
    void backwards(int64_t from, int64_t to, bool write) {
        SosLanes<Sample> lanes = {};
        lanes.x_stride = call_.grad_y_time_stride;
        for (int lane = 0; lane < forward_.count(); ++lane) {
            if (top(lane) < to) continue;
            lanes.x[lane] = grad_y(lane, from);
            if (write) lanes.y[lane] = grad_x(lane, from);
        }
        call_.run_adjoint(forward_.stages(), call_.forward.sections(), adjoint_.data(), lanes, to - from);
    }

    void run_gradient(int64_t from, int64_t to, double* sums, double* work) {
        const double* stages = without_gains_ ? without_gains_->stages.data() : forward_.stages();
        call_.run_gradient(stages, call_.forward.sections(), forward_.state().data(), adjoint_.data(), sums,
                           gradient_lanes(from, to), without_gains_ ? without_gains_->gain : nullptr,
                           static_cast<int>(to - from), work);
    }

    SosGradientLanes<Sample> gradient_lanes(int64_t from, int64_t to) const {
        const SosCall<Sample>& forward = call_.forward;
        SosGradientLanes<Sample> lanes = {};
        lanes.x_stride = forward.x_time_stride;
        lanes.g_stride = call_.grad_y_time_stride;
        for (int lane = 0; lane < forward_.count(); ++lane) {
            const Stream& s = stream(lane);
            if (s.length < to) continue;
            lanes.x[lane] = forward.input(s.channel, s.start + from);
            lanes.g[lane] = grad_y(lane, from);
            lanes.gx[lane] = grad_x(lane, from);
        }
        return lanes;
    }

    const Sample* grad_y(int lane, int64_t position) const {
        const Stream& s = stream(lane);
        return call_.grad_y + s.channel * call_.grad_y_channel_stride + (s.start + position) * call_.grad_y_time_stride;
    }

    Sample* grad_x(int lane, int64_t position) const {
        const Stream& s = stream(lane);
        return call_.grad_x ? call_.grad_x + s.channel * call_.grad_x_channel_stride + s.start + position : nullptr;
    }

    // 0 and the lengths of the segments, ascending.
    std::vector<int64_t> segment_ends() const {
        std::vector<int64_t> ends{0};
        while (const int64_t end = forward_.next_end(ends.back())) ends.push_back(end);
        return ends;
    }

    // The same, with the checkpoints between them.
    std::vector<int64_t> tile_edges() const {
        std::vector<int64_t> edges{0};
        while (const int64_t end = forward_.next_end(edges.back()))
            while (edges.back() < end) edges.push_back(std::min(next_checkpoint(edges.back()), end));
        return edges;
    }

    // The filter's state at a tile's start. A tile may start between two checkpoints, where a shorter segment ended.
    void restore_state(int64_t position) {
        const int64_t kept = position / checkpoint_steps * checkpoint_steps, sections = call_.forward.sections();
        LaneState& state = forward_.state();
        const double* checkpoints[max_lanes] = {};
        for (int lane = 0; lane < forward_.count(); ++lane) {
            if (stream(lane).length <= position) continue;
            checkpoints[lane] = call_.checkpoints + forward_.checkpoint_at(lane, kept);
            if (stream(lane).start + kept > 0) prefetch_before(checkpoints[lane], sections);
        }
        call_.forward.kernels->to_vectors(checkpoints, 2 * sections, state.data());
        if (position > kept) forward_.advance(kept, position, false);
        if (without_gains_) state.scale(without_gains_->state_factors.data());
    }

    // As UnitCascades, in every lane.
    struct WithoutGains {
        Scratch<double, 16 * stage_constants * max_lanes> stages;        // (sections, 6, lanes)
        Scratch<double, 16 * max_lanes> state_factors, adjoint_factors;  // (sections, lanes)
        double gain[max_lanes];

        WithoutGains(int64_t sections, int lanes)
            : stages(static_cast<std::size_t>(stage_constants * sections * lanes)),
              state_factors(static_cast<std::size_t>(sections * lanes)),
              adjoint_factors(static_cast<std::size_t>(sections * lanes)) {}
    };

    const SosGradientCall<Sample>& call_;
    SosGroup<Sample> forward_;
    SegmentStates* ends_;
    LaneState adjoint_;
    std::optional<WithoutGains> without_gains_;
};

// The adjoint states at the segments' ends, from a pass from rest and the transitions, as carry_states for the states
// at their starts.
template <class Sample>
void carry_adjoints(const SosGradientCall<Sample>& call, Transitions<Sample>& transitions, SegmentStates& ends) {
    const int64_t last = call.forward.plan.segments - 1;
    for (int64_t c = 0; c < call.forward.channels; ++c)
        for (int64_t i = 0; i <= last; ++i) std::fill_n(ends.of(c, i), 2 * call.forward.sections(), 0.0);
    for_each_group(call.forward.groups(), call.forward.plan.threads, [&](int64_t index) {
        AdjointGroup<Sample> group(call, index, nullptr);
        group.run(false);
        for (int lane = 0; lane < group.streams().count(); ++lane) {
            const Stream& s = group.streams().stream(lane);
            if (s.segment > 0) group.adjoint().get(lane, ends.of(s.channel, s.segment - 1));
        }
    });
    for (int64_t c = 0; c < call.forward.channels; ++c)
        for (int64_t i = last - 1; i > 0; --i) transitions.backwards(c, ends.of(c, i), ends.of(c, i - 1));
}

}  // namespace

template <class Sample>
void sos_gradient(const SosGradientCall<Sample>& call) {
    const FlushSubnormals flush(sizeof(Sample) == sizeof(double));
    const SosCall<Sample>& forward = call.forward;
    const bool carried = forward.plan.carried;
    const int64_t remembered = carried ? forward.plan.segments : 0;
    SegmentStates ends(forward.sections(), remembered, forward.channels);
    if (carried) {
        Transitions<Sample> transitions(forward);
        for_each_group(transitions.groups(), forward.plan.threads, [&](int64_t i) { transitions.compute(i); });
        carry_adjoints(call, transitions, ends);
    }

    const int64_t sums_size = forward.sections() * sums_per_stage, lanes = forward.lanes;
    std::vector<double> lane_sums(call.sums ? static_cast<std::size_t>(forward.groups() * sums_size * lanes) : 0);
    for_each_group(forward.groups(), forward.plan.threads, [&](int64_t index) {
        AdjointGroup<Sample> group(call, index, carried ? &ends : nullptr);
        if (call.sums) group.run_with_sums(lane_sums.data() + index * sums_size * lanes);
        else group.run(call.grad_x != nullptr);
        for (int lane = 0; lane < group.streams().count(); ++lane)
            if (group.streams().stream(lane).segment == 0) group.store_grad_state_in(lane);
    });
    if (!call.sums) return;
    std::fill_n(call.sums, forward.cascades.rows.count * sums_size, 0.0);
    for (int64_t i = 0; i < forward.streams(); ++i) {
        const double* from = lane_sums.data() + i / lanes * sums_size * lanes + i % lanes;
        double* to = call.sums + forward.stream(i).row * sums_size;
        for (int64_t j = 0; j < sums_size; ++j) to[j] += from[j * lanes];
    }
}

template void sos_gradient(const SosGradientCall<float>&);
template void sos_gradient(const SosGradientCall<double>&);

}  // namespace torchfx
