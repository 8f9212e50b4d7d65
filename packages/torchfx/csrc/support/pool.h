// A small persistent pool of worker threads.
#ifndef TORCHFX_SUPPORT_POOL_H
#define TORCHFX_SUPPORT_POOL_H

#include <atomic>
#include <cstdint>
#include <new>

namespace torchfx {

// Runs task(context, i) for every i in [0, count), on at most `threads` threads, the caller's being one of
// them; returns when all are done. Indices are handed out in ascending order, one at a time.
//
// Callers on several threads at once are safe: the first gets the workers, the others run inline, as does a
// call from inside a task. Workers flush subnormal numbers where their caller does (subnormals.h). A forked child
// starts with no workers and makes its own. Waking a worker costs some 5 to 50 us: pass threads = 1 for work shorter
// than that.
void parallel_for(int64_t count, int threads, void (*task)(void* context, int64_t index), void* context);

// The same for a callable: parallel_for(n, threads, [&](int64_t i) { ... });
template <class F>
void parallel_for(int64_t count, int threads, F&& body) {
    parallel_for(count, threads, [](void* context, int64_t index) { (*static_cast<F*>(context))(index); }, &body);
}

// The same where the body may throw std::bad_alloc: thrown on when all are done.
template <class F>
void parallel_for_or_throw(int64_t count, int threads, F&& body) {
    std::atomic<bool> out_of_memory{false};
    parallel_for(count, threads, [&](int64_t i) {
        try {
            body(i);
        } catch (const std::bad_alloc&) {
            out_of_memory.store(true, std::memory_order_relaxed);
        }
    });
    if (out_of_memory) throw std::bad_alloc();
}

}  // namespace torchfx

#endif
