#include "support/pool.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#include "support/subnormals.h"

#if !defined(_WIN32)
#include <pthread.h>
#include <signal.h>
#endif

namespace torchfx {
namespace {

constexpr int max_workers = 255;
// How long an idle worker spins before it sleeps: blocks of audio that follow each other directly find it awake, and so
// does a backward pass, which comes 30 to 60 us after its forward pass (asleep, each costs it some 15 us). It burns
// little of a processor between callbacks some milliseconds apart, and gives way to any other thread that wants it: the
// caller may be waiting for this very core.
constexpr std::chrono::microseconds spin_time{100};
// How long a caller without tasks spins for those that workers still have.
constexpr std::chrono::microseconds wait_time{50};

void relax() {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    asm volatile("yield");
#else
    std::this_thread::yield();
#endif
}

// Workers take no signals: Ctrl-C belongs to the thread that runs Python.
#if defined(_WIN32)
struct SignalsBlocked {
    SignalsBlocked() {}
};
#else
class SignalsBlocked {
public:
    SignalsBlocked() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    sigset_t before_;
};
#endif

// A job as the workers see it. The gate holds its number and how many workers may still join; joining is one
// compare-and-swap on it, so a worker that wakes late can never enter a job that its caller has closed.
class Pool {
public:
    void run(int64_t count, int helpers, void (*task)(void*, int64_t), void* context) {
        helpers = std::min(helpers, hire(helpers));
        task_ = task;
        context_ = context;
        count_ = count;
        flush_mode_ = flush_mode();
        next_.store(0, std::memory_order_relaxed);
        left_.store(0, std::memory_order_relaxed);
        const uint64_t job = ++job_;
        gate_.store(job << seat_bits | static_cast<uint64_t>(helpers));
        wake(helpers);
        work();
        // Close the gate: whoever has not come by now is not waited for.
        const int unused = static_cast<int>(gate_.exchange(job << seat_bits) & seat_mask);
        wait_for(helpers - unused);
    }

    std::atomic<bool> busy{false};

private:
    static constexpr int seat_bits = 16;
    static constexpr uint64_t seat_mask = (uint64_t{1} << seat_bits) - 1;

    void work() {
        for (;;) {
            const int64_t i = next_.fetch_add(1, std::memory_order_relaxed);
            if (i >= count_) return;
            task_(context_, i);
        }
    }

    // Takes a seat in a job not served before.
    bool join(uint64_t& served) {
        uint64_t gate = gate_.load();
        while ((gate & seat_mask) != 0 && (gate >> seat_bits) != served) {
            if (gate_.compare_exchange_weak(gate, gate - 1)) {
                served = gate >> seat_bits;
                return true;
            }
        }
        return false;
    }

    void serve() {
        uint64_t served = 0;
        for (;;) {
            wait_and_join(served);
            set_flush_mode(flush_mode_);
            work();
            leave();
        }
    }

    void wait_and_join(uint64_t& served) {
        const auto patience = std::chrono::steady_clock::now() + spin_time;
        do {
            for (int i = 0; i < 64; ++i) {
                if (join(served)) return;
                relax();
            }
            std::this_thread::yield();
        } while (std::chrono::steady_clock::now() < patience);
        std::unique_lock<std::mutex> lock(mutex_);
        // The sleeper announces itself before it looks at the gate, run() sets the gate before it looks for
        // sleepers: one of the two sees the other.
        sleepers_.fetch_add(1);
        wakeup_.wait(lock, [&] { return join(served); });
        sleepers_.fetch_sub(1);
    }

    void wake(int helpers) {
        if (sleepers_.load() == 0) return;
        { std::lock_guard<std::mutex> lock(mutex_); }
        if (helpers == 1) wakeup_.notify_one();
        else wakeup_.notify_all();
    }

    // Returns when `joined` workers have left the job. One that isn't running needs a core: the caller gives its own up by
    // sleeping. To yield would not do: a thread that yields again and again falls behind all others.
    void wait_for(int joined) {
        const auto patience = std::chrono::steady_clock::now() + wait_time;
        do {
            for (int i = 0; i < 64; ++i) {
                if (left_.load() == joined) return;
                relax();
            }
        } while (std::chrono::steady_clock::now() < patience);
        std::unique_lock<std::mutex> lock(mutex_);
        // As with sleepers_: the caller announces itself before it looks, a worker leaves before it looks for the caller.
        caller_sleeps_.store(true);
        done_.wait(lock, [&] { return left_.load() == joined; });
        caller_sleeps_.store(false);
    }

    void leave() {
        left_.fetch_add(1);
        if (!caller_sleeps_.load()) return;
        { std::lock_guard<std::mutex> lock(mutex_); }
        done_.notify_one();
    }

    // Makes sure of that many workers if the system allows it; returns how many there are.
    int hire(int wanted) {
        while (workers_ < wanted) {
            const SignalsBlocked inherited_by_the_worker;
            try {
                std::thread([this] { serve(); }).detach();
            } catch (const std::system_error&) {
                break;  // out of threads: the caller does the work with those there are
            }
            ++workers_;
        }
        return workers_;
    }

    void (*task_)(void*, int64_t) = nullptr;
    void* context_ = nullptr;
    int64_t count_ = 0;
    uint64_t flush_mode_ = 0;
    uint64_t job_ = 0;
    int workers_ = 0;
    alignas(64) std::atomic<uint64_t> gate_{0};
    alignas(64) std::atomic<int64_t> next_{0};
    alignas(64) std::atomic<int> left_{0};
    alignas(64) std::atomic<int> sleepers_{0};
    std::atomic<bool> caller_sleeps_{false};
    std::mutex mutex_;
    std::condition_variable wakeup_, done_;
};

// Never destroyed: detached workers may outlive static destruction. Replaced, not repaired, in a forked
// child, where the workers are gone and the old locks may be held for ever.
std::atomic<Pool*> current{nullptr};

Pool* pool() {
    Pool* found = current.load(std::memory_order_acquire);
    if (found) return found;
    Pool* fresh = new Pool;
    if (current.compare_exchange_strong(found, fresh)) {
#if !defined(_WIN32)
        static const int registered = pthread_atfork(nullptr, nullptr, [] { current.store(nullptr); });
        (void)registered;
#endif
        return fresh;
    }
    delete fresh;
    return found;
}

}  // namespace

void parallel_for(int64_t count, int threads, void (*task)(void*, int64_t), void* context) {
    const int helpers = static_cast<int>(std::min<int64_t>(std::min(threads, max_workers + 1), count)) - 1;
    if (helpers > 0) {
        Pool* workers = pool();
        if (!workers->busy.exchange(true, std::memory_order_acquire)) {
            workers->run(count, helpers, task, context);
            workers->busy.store(false, std::memory_order_release);
            return;
        }
    }
    for (int64_t i = 0; i < count; ++i) task(context, i);
}

}  // namespace torchfx
