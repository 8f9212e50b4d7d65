#include "live/engine.h"

#include <algorithm>
#include <cmath>

#include "support/subnormals.h"

namespace {

// PortAudio's flags and results of a callback.
constexpr unsigned long input_overflow = 2, output_underflow = 4;
constexpr int go_on = 0, complete = 1;

// So many calls in a row that take longer than a block lasts are an overload, and not a thread that had to wait once.
constexpr int64_t patience = 3;
constexpr double shed_s = 0.5;

int64_t ns_between(torchfx_live::Clock::time_point begin, torchfx_live::Clock::time_point end) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(end - begin).count();
}

// The states of a program that is not heard are set to rest in pieces of so many bytes: 20 us, 11/2026.
constexpr int64_t rest_bytes = 1 << 18;

// The owner may set it to 0 in between: what it then misses is one block's peak.
void raise(std::atomic<float>& peak, float magnitude) {
    peak.store(std::max(peak.load(std::memory_order_relaxed), magnitude), std::memory_order_relaxed);
}

}  // namespace

torchfx_live::torchfx_live(double rate_, int64_t channels_, int64_t block_, bool interleaved, int64_t source_blocks,
                           int64_t sink_blocks, int64_t delay, int64_t fade, int64_t latency, double ceiling)
    : source(source_blocks, channels_ * block_), sink(sink_blocks, channels_ * block_),
      // The worker may be as late as it is allowed to be twice over before it gets no more blocks.
      work(delay ? 2 * delay + 8 : 0, channels_ * block_), results(delay ? 2 * delay + 8 : 0, channels_ * block_),
      input_peaks(static_cast<std::size_t>(channels_)), output_peaks(static_cast<std::size_t>(channels_)), rate(rate_),
      channels(channels_), block(block_), interleaved_(interleaved), delay_(delay), fade_(fade), latency_(latency),
      guard_(rate_, channels_, block_, ceiling), x_(static_cast<std::size_t>(channels_ * block_)), y_(x_.size()), last_(static_cast<std::size_t>(channels_)),
      levels_(last_.size()), dry_(static_cast<std::size_t>(channels_ * (latency + block_))) {}

bool torchfx_live::ready() const {
    if (source.exists() && source.count() == 0 && !ended) return false;
    if (sink.exists() && sink.full()) return false;
    if (!delay_ || number_ < delay_) return !delay_ || !work.full();
    return !work.full() && results.next() >= number_ - delay_;
}

int torchfx_live::call(const void* input, void* output, int64_t frames, unsigned long flags) {
    const auto begin = Clock::now();
    const torchfx::FlushSubnormals flush(true);
    counters.add(TORCHFX_LIVE_blocks);
    if (flags & output_underflow) counters.add(TORCHFX_LIVE_underflows);
    if (flags & input_overflow) counters.add(TORCHFX_LIVE_overflows);
    if (frames != block) {
        counters.add(TORCHFX_LIVE_failures);
        if (output && interleaved_) std::fill_n(static_cast<float*>(output), channels * frames, 0.0f);
        for (int64_t c = 0; output && !interleaved_ && c < channels; ++c)
            std::fill_n(static_cast<float* const*>(output)[c], frames, 0.0f);
        return go_on;
    }
    load(input);
    process();
    mix();
    for (int64_t c = 0; c < channels; ++c)
        raise(input_peaks[static_cast<std::size_t>(c)], torchfx::largest_magnitude(x_.data() + c * block, block));
    guard();
    hand_out(output);
    if (sink.exists() && !sink.write(y_.data())) counters.add(TORCHFX_LIVE_dropped);
    ++number_;
    const int64_t ns = ns_between(begin, Clock::now());
    counters.note(ns);
    judge(ns);
    if (tail_left_ != 0) return go_on;
    counters.set(TORCHFX_LIVE_finished, 1);
    return complete;
}

void torchfx_live::load(const void* input) {
    if (source.exists()) {
        // Asked before the ring is: what was written before the end must not be missed.
        const bool is_end = ended.load(std::memory_order_acquire);
        if (source.next() >= 0) {
            source.read(x_.data());
            if (is_end && source.count() == 0 && tail_left_ < 0) tail_left_ = tail.load(std::memory_order_relaxed);
            return;
        }
        std::fill(x_.begin(), x_.end(), 0.0f);
        if (!is_end) counters.add(TORCHFX_LIVE_starved);
        else if (tail_left_ < 0) tail_left_ = std::max<int64_t>(0, tail.load(std::memory_order_relaxed) - 1);
        else if (tail_left_ > 0) --tail_left_;
        return;
    }
    if (!input) {
        std::fill(x_.begin(), x_.end(), 0.0f);
    } else if (interleaved_) {
        const auto* samples = static_cast<const float*>(input);
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t t = 0; t < block; ++t) x_[static_cast<std::size_t>(c * block + t)] = samples[t * channels + c];
    } else {
        for (int64_t c = 0; c < channels; ++c)
            std::copy_n(static_cast<const float* const*>(input)[c], block, x_.data() + c * block);
    }
}

void torchfx_live::process() {
    if (!delay_) {
        run_program();
        return;
    }
    if (!work.write(x_.data(), number_)) counters.add(TORCHFX_LIVE_dropped);
    take_result();
}

// The results of blocks whose time has passed are of no use any more.
void torchfx_live::take_result() {
    const int64_t due = number_ - delay_;
    has_wet_ = due < 0;
    if (has_wet_) {
        std::fill(y_.begin(), y_.end(), 0.0f);
        return;
    }
    while (results.next() >= 0 && results.next() < due) results.read(nullptr);
    has_wet_ = results.next() == due;
    if (has_wet_) results.read(y_.data());
    else counters.add(TORCHFX_LIVE_late_results);
}

void torchfx_live::run_program() {
    if (resting_) {
        resting_ = !current->rest(rest_bytes);
        has_wet_ = false;
        return;
    }
    if (!retired.load(std::memory_order_acquire))
        if (torchfx_live_program* const next = posted.exchange(nullptr, std::memory_order_acq_rel)) {
            next->take_over();
            retired.store(current, std::memory_order_release);
            current = next;
            counters.add(TORCHFX_LIVE_changes);
            changing.store(false, std::memory_order_release);
        }
    has_wet_ = false;
    if (sheds() && wet_ == 0) {
        counters.add(TORCHFX_LIVE_shed_blocks);
        --shed_left_;
        return;
    }
    if (!current || current->run(x_.data()) != TORCHFX_OK) {
        counters.add(TORCHFX_LIVE_failures);
        return;
    }
    has_wet_ = true;
    if (current->arena.most() > current->arena.size()) counters.add(TORCHFX_LIVE_allocated);
    std::copy(current->y.begin(), current->y.end(), y_.begin());
}

// The processed signal becomes the output, or on the way to the dry signal and back a part of it. Where none is ready, its
// last sample stands for it: the fade from there has no step.
void torchfx_live::mix() {
    const bool wants_wet = has_wet_ && !sheds() && !bypassed.load(std::memory_order_relaxed);
    if (guard_.shut()) wet_ = wants_wet ? 1 : 0;  // nobody hears a fade
    const double step = (wants_wet ? 1.0 : -1.0) / static_cast<double>(fade_), start = wet_;
    const int64_t length = latency_ + block;
    wet_ = std::clamp(start + step * static_cast<double>(block), 0.0, 1.0);
    for (int64_t c = 0; c < channels; ++c) {
        float *const dry = dry_.data() + c * length, *const y = y_.data() + c * block;
        const float* const x = x_.data() + c * block;
        float& last = last_[static_cast<std::size_t>(c)];
        for (int64_t t = 0; t < block; ++t) {
            dry[(dry_at_ + t) % length] = x[t];
            const double wet = std::clamp(start + step * static_cast<double>(t + 1), 0.0, 1.0);
            if (has_wet_) last = y[t];
            if (wet == 1) {
                y[t] = last;
                continue;
            }
            const float old = dry[(dry_at_ + t + block) % length];  // latency_ samples ago
            y[t] = wet == 0 ? old : static_cast<float>(old + wet * (static_cast<double>(last) - old));
        }
    }
    dry_at_ = (dry_at_ + block) % length;
}

// The last thing that happens to the output: what must not be heard is replaced, and the chain starts from rest.
void torchfx_live::guard() {
    const auto measure = [&] {
        bool good = true;
        for (int64_t c = 0; c < channels; ++c) {
            float& level = levels_[static_cast<std::size_t>(c)];
            level = torchfx::largest_magnitude(y_.data() + c * block, block);
            good = good && guard_.allows(level);
        }
        return good;
    };
    const bool good = measure();
    if (good && guard_.open()) {
        guard_.note(y_.data());
    } else {
        const bool was_shut = guard_.shut();
        guard_.apply(y_.data(), good, !resting_);
        if (guard_.shut() && !was_shut) counters.add(TORCHFX_LIVE_mutes);
        counters.set(TORCHFX_LIVE_muted, guard_.shut());
        if (!good) begin_rest();
        measure();
    }
    for (std::size_t c = 0; c < levels_.size(); ++c) raise(output_peaks[c], levels_[c]);
}

void torchfx_live::begin_rest() {
    std::fill(last_.begin(), last_.end(), 0.0f);
    if (delay_ || !current || resting_) return;
    current->begin_rest();
    resting_ = true;
}

void torchfx_live::hand_out(void* output) const {
    if (!output) return;
    for (int64_t c = 0; c < channels; ++c) {
        const float* const y = y_.data() + c * block;
        if (!interleaved_) {
            std::copy_n(y, block, static_cast<float* const*>(output)[c]);
            continue;
        }
        auto* const to = static_cast<float*>(output) + c;
        for (int64_t t = 0; t < block; ++t) to[t * channels] = y[t];
    }
}

// Whether the program takes too long. A clock that waits for nothing knows no deadline.
void torchfx_live::judge(int64_t ns) {
    if (!timed.load(std::memory_order_relaxed)) return;
    if (ns <= block_ns()) {
        misses_ = 0;
        return;
    }
    counters.add(TORCHFX_LIVE_deadline_misses);
    if (++misses_ < patience || sheds() || delay_) return;
    counters.add(TORCHFX_LIVE_sheds);
    shed_left_ = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(shed_s * rate / static_cast<double>(block))));
    misses_ = 0;
}
