// A small persistent pool of worker threads.
#ifndef TORCHFX_SUPPORT_POOL_H
#define TORCHFX_SUPPORT_POOL_H

#include <cstdint>

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

}  // namespace torchfx

#endif
