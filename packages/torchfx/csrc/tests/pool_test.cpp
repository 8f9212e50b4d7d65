// The thread pool: every index once, whoever calls, forks or nests.
#include "support/pool.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "support/subnormals.h"
#include "testing.h"

#if !defined(_WIN32)
#include <sys/wait.h>
#include <unistd.h>
#endif

using namespace testing;
using torchfx::FlushSubnormals;
using torchfx::parallel_for;

namespace {

bool every_index_once(int64_t count, int threads) {
    std::vector<int> seen(static_cast<std::size_t>(count));  // plain: two threads on one index would be a data race
    parallel_for(count, threads, [&](int64_t i) { ++seen[static_cast<std::size_t>(i)]; });
    for (const int times : seen)
        if (times != 1) return false;
    return true;
}

void runs_every_index_once() {
    for (const int threads : {1, 2, 3, 8})
        for (const int64_t count : {0, 1, 2, 7, 1000})
            for (int repeat = 0; repeat < 50; ++repeat) expect(every_index_once(count, threads), "every index once");
}

void callers_do_not_disturb_each_other() {
    std::atomic<bool> good{true};
    std::vector<std::thread> callers;
    for (int caller = 0; caller < 4; ++caller)
        callers.emplace_back([&] {
            for (int repeat = 0; repeat < 300; ++repeat)
                if (!every_index_once(20, 3)) good = false;
        });
    for (std::thread& caller : callers) caller.join();
    expect(good, "every index once with four callers");
}

void tasks_may_call_again() {
    std::atomic<int> sum{0};
    parallel_for(4, 3, [&](int64_t) { parallel_for(5, 3, [&](int64_t) { ++sum; }); });
    expect(sum == 20, "nested calls run");
}

void workers_sleep_and_wake() {
    for (int repeat = 0; repeat < 20; ++repeat) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));  // longer than workers spin
        expect(every_index_once(100, 4), "every index once after a pause");
    }
}

void callers_sleep_until_workers_are_done() {
    for (int repeat = 0; repeat < 20; ++repeat) {
        const std::thread::id caller = std::this_thread::get_id();
        std::vector<int> seen(8);
        parallel_for(8, 4, [&](int64_t i) {
            if (std::this_thread::get_id() != caller) std::this_thread::sleep_for(std::chrono::milliseconds(2));
            ++seen[static_cast<std::size_t>(i)];
        });
        expect(seen == std::vector<int>(8, 1), "every index once where workers take longer than a caller spins");
    }
}

// How many of `count` tasks found half of a subnormal number to be zero.
int tasks_that_flush(int64_t count) {
    std::atomic<int> flushing{0};
    parallel_for(count, 3, [&](int64_t) {
        volatile double value = 1e-310;
        for (int i = 0; i < 1000; ++i) value = value * 0.9 / 0.9;  // long enough for workers to come
        if (value * 0.5 == 0) ++flushing;
    });
    return flushing;
}

void subnormals_are_flushed_on_all_threads_and_no_longer_than_wanted() {
    if (torchfx::flush_bits == 0) return;
    for (int repeat = 0; repeat < 20; ++repeat) {
        {
            const FlushSubnormals flush(true);
            const FlushSubnormals no_more_than_before(false);
            expect(tasks_that_flush(200) == 200, "subnormals are flushed in all tasks");
        }
        expect(tasks_that_flush(20) == 0, "and kept in all tasks afterwards");
    }
}

// ThreadSanitizer allows no new threads in a forked child.
#if !defined(_WIN32) && !defined(__SANITIZE_THREAD__)
void a_forked_child_makes_its_own_workers() {
    expect(every_index_once(100, 4), "before the fork");
    const pid_t child = fork();
    if (child == 0) _exit(every_index_once(100, 4) && every_index_once(100, 4) ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    expect(status == 0, "in the child");
    expect(every_index_once(100, 4), "in the parent afterwards");
}
#else
void a_forked_child_makes_its_own_workers() {}
#endif

}  // namespace

int main() {
    runs_every_index_once();
    callers_do_not_disturb_each_other();
    tasks_may_call_again();
    workers_sleep_and_wake();
    callers_sleep_until_workers_are_done();
    subnormals_are_flushed_on_all_threads_and_no_longer_than_wanted();
    a_forked_child_makes_its_own_workers();
    return report();
}
