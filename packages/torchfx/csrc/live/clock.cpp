// A thread that calls an engine as a sound device would.
#include "live/engine.h"

#if defined(__linux__)
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <time.h>
#endif

namespace {

using Clock = torchfx_live::Clock;

constexpr unsigned long output_underflow = 4;
constexpr int buffered = 2;  // blocks that a device plays while the next one is made

// As sound systems do for the threads that call back; refused without the right to it.
bool take_priority() {
#if defined(__linux__)
    sched_param wanted = {};
    wanted.sched_priority = 70;
    return pthread_setschedparam(pthread_self(), SCHED_FIFO, &wanted) == 0;
#else
    return false;
#endif
}

void sleep_until(Clock::time_point time) {
#if defined(__linux__)  // whose steady clock is CLOCK_MONOTONIC
    const int64_t ns = std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
    const timespec at = {static_cast<time_t>(ns / 1000000000), static_cast<long>(ns % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, nullptr) == EINTR) {}
#else
    std::this_thread::sleep_until(time);
#endif
}

}  // namespace

void torchfx_live::run_clock(bool real_time) {
    timed = real_time;
    counters.set(TORCHFX_LIVE_priority, real_time && take_priority());
    const std::chrono::duration<double> period(static_cast<double>(block) / rate);
    auto first = Clock::now();
    int64_t due = 0;  // blocks since then
    unsigned long flags = 0;
    while (!stopped.load(std::memory_order_acquire)) {
        if (real_time) {
            const auto time_of = [&](int64_t count) {
                return first + std::chrono::duration_cast<Clock::duration>(static_cast<double>(count) * period);
            };
            sleep_until(time_of(due));
            if (torchfx_live_callback(nullptr, nullptr, static_cast<unsigned long>(block), nullptr, flags, this)) return;
            flags = 0;
            ++due;
            if (Clock::now() <= time_of(due + buffered - 1)) continue;
            flags = output_underflow;
            first = Clock::now();
            due = 0;
        } else if (!ready()) {
            std::this_thread::sleep_for(std::chrono::microseconds(50));
        } else if (torchfx_live_callback(nullptr, nullptr, static_cast<unsigned long>(block), nullptr, 0, this)) {
            return;
        }
    }
}
