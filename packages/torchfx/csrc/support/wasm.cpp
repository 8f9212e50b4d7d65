// What WebAssembly lacks: threads, and unwinding. An exception (out of memory, in this library) ends the call as a trap,
// which a page sees as an error.
#if defined(__wasm__)

#include <cstdlib>

#include "support/pool.h"

extern "C" void* __cxa_allocate_exception(std::size_t size) { return std::malloc(size); }
extern "C" [[noreturn]] void __cxa_throw(void*, void*, void (*)(void*)) { __builtin_trap(); }
extern "C" int __cxa_thread_atexit(void (*)(void*), void*, void*) { return 0; }  // the one thread never ends

namespace torchfx {

void parallel_for(int64_t count, int, void (*task)(void*, int64_t), void* context) {
    for (int64_t i = 0; i < count; ++i) task(context, i);
}

}  // namespace torchfx

#endif
