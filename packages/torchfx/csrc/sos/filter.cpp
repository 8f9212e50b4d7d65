#include "sos/filter.h"

#include "sos/segments.h"
#include "support/subnormals.h"

namespace torchfx {
namespace {

template <class In, class Out>
void filter_whole(const SosCall<In, Out>& call) {
    for_each_group(call.groups(), call.plan.threads, [&](int64_t index) {
        SosGroup<In, Out> group(call, index);
        group.load_state_in();
        group.filter(true, [&](int lane) { group.store_state_out(lane); });
    });
}

template <class In, class Out>
void store_state_out(const SosCall<In, Out>& call, SegmentStates& ends, int64_t channel) {
    if (!call.state_out) return;
    const double* w = ends.of(channel, call.plan.segments - 1);
    const SosStage* stages = call.cascades.of(channel);
    for (int64_t k = 0; k < call.sections(); ++k, w += 2) {
        double* s = call.state_out + k * call.state_stride + 2 * channel;
        s[0] = w[0];
        s[1] = unshift_state(stages[k], w[0], w[1]);
    }
}

// A channel on its own, uncut.
template <class In, class Out>
SosCall<In, Out> single_channel(const SosCall<In, Out>& call, int64_t channel) {
    SosCall<In, Out> single = call;
    single.x = call.input(channel, 0);
    single.x_repeat = 1;
    single.cascades = {call.cascades.of(channel), call.sections(), {1, 1}};
    if (call.y) single.y += channel * call.y_channel_stride;
    if (call.checkpoints) single.checkpoints += channel * call.checkpoints_per_channel() * 2 * call.sections();
    if (call.state_in) single.state_in += 2 * channel;
    if (call.state_out) single.state_out += 2 * channel;
    single.channels = 1;
    single.plan = {1, call.samples, 0, false, 1};
    return single;
}

// An infinite or NaN sample, unlike a finite one, is never forgotten: where a segment ends in such a state the
// segments after it, started afresh, are wrong. That channel is filtered again in one piece.
template <class In, class Out>
bool lost_a_nan(const SosCall<In, Out>& call, SegmentStates& ends, int64_t channel) {
    for (int64_t i = 0; i + 1 < call.plan.segments; ++i)
        if (!ends.finite(channel, i)) return true;
    return false;
}

template <class In, class Out>
void filter_warmed_up(const SosCall<In, Out>& call) {
    SegmentStates ends(call.sections(), call.plan.segments, call.channels);
    for_each_group(call.groups(), call.plan.threads, [&](int64_t index) {
        SosGroup<In, Out> group(call, index);
        group.warm_up(call.plan.warm_up);
        group.load_state_in();
        group.filter(true, [&](int lane) { group.state().get(lane, ends.of(group.stream(lane))); });
    });
    // state_out is written only now: it may be the memory of state_in, which a channel done again reads again.
    for (int64_t c = 0; c < call.channels; ++c) {
        if (lost_a_nan(call, ends, c)) filter_whole(single_channel(call, c));
        else store_state_out(call, ends, c);
    }
}

template <class In, class Out>
void filter_carried(const SosCall<In, Out>& call) {
    SegmentStates starts(call.sections(), call.plan.segments, call.channels);
    Transitions<In, Out> transitions(call);
    carry_states(call, transitions, starts);
    SegmentStates ends(call.sections(), call.plan.segments, call.channels);
    for_each_group(call.groups(), call.plan.threads, [&](int64_t index) {
        SosGroup<In, Out> group(call, index);
        for (int lane = 0; lane < group.count(); ++lane) group.state().set(lane, starts.of(group.stream(lane)));
        group.filter(true, [&](int lane) { group.state().get(lane, ends.of(group.stream(lane))); });
    });
    for (int64_t c = 0; c < call.channels; ++c) store_state_out(call, ends, c);
}

}  // namespace

template <class In, class Out>
void sos_filter(const SosCall<In, Out>& call) {
    const FlushSubnormals flush(sizeof(In) == sizeof(double) && sizeof(Out) == sizeof(double));
    if (call.plan.segments == 1) filter_whole(call);
    else if (call.plan.carried) filter_carried(call);
    else filter_warmed_up(call);
}

template void sos_filter(const SosCall<float>&);
template void sos_filter(const SosCall<double>&);
template void sos_filter(const SosCall<float, double>&);
template void sos_filter(const SosCall<double, float>&);

}  // namespace torchfx
