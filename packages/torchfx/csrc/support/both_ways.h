// A filter forwards and then backwards, each time from the state in which it has settled on the first sample it meets, over
// a signal that goes on beyond its ends.
//
// The extended signal is never written down. What lies beyond an end is a short signal of its own, and states pass from
// one to the next: forwards through the left end, the samples and the right end, backwards through the right end and the
// samples. Between the two ways samples are doubles.
#ifndef TORCHFX_SUPPORT_BOTH_WAYS_H
#define TORCHFX_SUPPORT_BOTH_WAYS_H

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "support/scratch.h"
#include "torchfx_dsp.h"

namespace torchfx {

template <class Sample>
struct BothWays {
    const Sample* x;
    int64_t x_channel_stride, x_time_stride, x_repeat;
    Sample* y;
    int64_t y_channel_stride, channels, samples, edge;
    int32_t extension;

    bool valid() const {
        return x && y && channels >= 1 && samples >= 1 && x_repeat >= 1 && channels % x_repeat == 0 && edge >= 0 &&
               edge < samples && extension >= TORCHFX_ODD && extension <= TORCHFX_CONSTANT;
    }
};

// What a filter's run is given: channels with strides, backwards with negative ones; y is nullptr where only the state counts.
template <class In, class Out>
struct Pass {
    const In* x;
    int64_t x_channel_stride, x_time_stride, x_repeat;
    Out* y;
    int64_t y_channel_stride, y_time_stride, samples;
};

template <class Sample>
class BothWaysChannels {
public:
    // Channels [first, first + count), `first` a multiple of x_repeat; room for `samples` doubles of each in `between`.
    BothWaysChannels(const BothWays<Sample>& call, int64_t first, int64_t count, double* between)
        : call_(call), x_(call.x + first / call.x_repeat * call.x_channel_stride),
          y_(call.y + first * call.y_channel_stride), count_(count), between_(between),
          beyond_(static_cast<std::size_t>(count * call.edge)) {}

    // filter.settle(c, level) makes channel c's state the one settled on a constant input; filter.run(pass) goes on from
    // the state. Passes of fewer samples than the call's may be in place.
    template <class Filter>
    void run(Filter& filter) {
        const int64_t n = call_.samples, edge = call_.edge;
        extend(true);
        for (int64_t c = 0; c < count_; ++c) filter.settle(c, edge ? beyond(c, 0) : sample(c, 0));
        if (edge) filter.run(past_end(false, nullptr));
        filter.run(Pass<Sample, double>{x_, call_.x_channel_stride, call_.x_time_stride, call_.x_repeat, between_, n, 1, n});
        extend(false);
        if (edge) filter.run(past_end(false, beyond_.data()));
        for (int64_t c = 0; c < count_; ++c) filter.settle(c, edge ? beyond(c, edge - 1) : between_[(c + 1) * n - 1]);
        if (edge) filter.run(past_end(true, nullptr));
        filter.run(Pass<double, Sample>{between_ + n - 1, n, -1, 1, y_ + n - 1, call_.y_channel_stride, -1, n});
    }

private:
    double sample(int64_t channel, int64_t t) const {
        return x_[channel / call_.x_repeat * call_.x_channel_stride + t * call_.x_time_stride];
    }
    double& beyond(int64_t channel, int64_t i) { return beyond_[static_cast<std::size_t>(channel * call_.edge + i)]; }

    // What lies beyond an end, in the order of time.
    void extend(bool left) {
        const int64_t edge = call_.edge, end = left ? 0 : call_.samples - 1, inwards = left ? 1 : -1;
        for (int64_t c = 0; c < count_; ++c) {
            const double at_end = sample(c, end);
            for (int64_t i = 1; i <= edge; ++i) {
                const double mirrored = call_.extension == TORCHFX_CONSTANT ? at_end : sample(c, end + inwards * i);
                beyond(c, left ? edge - i : i - 1) = call_.extension == TORCHFX_ODD ? 2 * at_end - mirrored : mirrored;
            }
        }
    }

    Pass<double, double> past_end(bool backwards, double* y) {
        const int64_t edge = call_.edge;
        return {beyond_.data() + (backwards ? edge - 1 : 0), edge, backwards ? -1 : 1, 1, y, edge, 1, edge};
    }

    const BothWays<Sample>& call_;
    const Sample* x_;
    Sample* y_;
    int64_t count_;
    double* between_;
    Scratch<double, 1024> beyond_;  // (count, edge)
};

// make(first, count) returns the filter of some channels; it is run on as many at a time as fill the lanes of all threads:
// more would add to the working memory and save nothing.
template <class Sample, class Make>
void run_both_ways(const BothWays<Sample>& call, int lanes, int threads, Make&& make) {
    const int64_t wanted = int64_t{lanes} * threads;
    const int64_t at_once = std::min(call.channels, (wanted + call.x_repeat - 1) / call.x_repeat * call.x_repeat);
    Scratch<double, 4096> between(static_cast<std::size_t>(at_once * call.samples));
    torchfx_advise_huge_pages(between.data(), at_once * call.samples * static_cast<int64_t>(sizeof(double)));
    for (int64_t first = 0; first < call.channels; first += at_once) {
        const int64_t count = std::min(at_once, call.channels - first);
        auto filter = make(first, count);
        BothWaysChannels<Sample>(call, first, count, between.data()).run(filter);
    }
}

}  // namespace torchfx

#endif
