// What a sound device, or a clock in its place, calls for every block.
#ifndef TORCHFX_LIVE_ENGINE_H
#define TORCHFX_LIVE_ENGINE_H

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "live/counters.h"
#include "live/guard.h"
#include "live/program.h"
#include "live/ring.h"

struct torchfx_live {
    using Clock = std::chrono::steady_clock;

    torchfx_live(double rate, int64_t channels, int64_t block, bool interleaved, int64_t source, int64_t sink,
                 int64_t delay, int64_t fade, int64_t latency, double ceiling);

    int call(const void* input, void* output, int64_t frames, unsigned long flags);
    // Whether a call would find all it needs.
    bool ready() const;
    void run_clock(bool real_time);

    // --- between the owner's thread and the device's ---
    torchfx::Counters counters;
    torchfx::BlockRing source, sink, work, results;
    std::atomic<torchfx_live_program*> posted{nullptr}, retired{nullptr};
    std::atomic<bool> changing{false}, bypassed{false}, ended{false}, stopped{false}, timed{true};
    std::atomic<int64_t> tail{0};
    std::vector<std::atomic<float>> input_peaks, output_peaks;

    // --- the owner's thread ---
    std::thread clock;
    bool has_program = false;

    // --- the device's thread, or the owner's before it runs ---
    torchfx_live_program* current = nullptr;
    const double rate;
    const int64_t channels, block;

private:
    void load(const void* input);
    void process();
    void run_program();
    void take_result();
    void mix();
    void guard();
    void begin_rest();
    void hand_out(void* output) const;
    void judge(int64_t ns);
    bool sheds() const { return shed_left_ > 0; }
    int64_t block_ns() const { return static_cast<int64_t>(1e9 * static_cast<double>(block) / rate); }

    const bool interleaved_;
    const int64_t delay_, fade_, latency_;
    int64_t number_ = 0;     // of this block
    int64_t tail_left_ = -1;
    int64_t misses_ = 0;     // one behind the other
    int64_t shed_left_ = 0;  // blocks until the program is tried again
    double wet_ = 1;         // how much of the processed signal is heard
    bool has_wet_ = false;   // whether there is one for this block
    int64_t dry_at_ = 0;
    torchfx::Guard guard_;
    bool resting_ = false;   // whether the program's states are on their way to rest
    std::vector<float> x_, y_, last_, levels_, dry_;
};

#endif
