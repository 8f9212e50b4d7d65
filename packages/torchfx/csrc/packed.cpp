// Calls with their arguments in one array: see torchfx_dsp.h.
#include <atomic>
#include <cstddef>
#include <type_traits>
#include <utility>

#include "support/pool.h"
#include "torchfx_dsp.h"
#include "torchfx_program.h"

namespace {

template <class T>
T unpacked(int64_t argument) {
    if constexpr (std::is_pointer_v<T>) return reinterpret_cast<T>(static_cast<intptr_t>(argument));
    else return static_cast<T>(argument);
}

template <class... Arguments, std::size_t... I>
int32_t call(int32_t (*function)(Arguments...), const int64_t* a, std::index_sequence<I...>) {
    return function(unpacked<Arguments>(a[I])...);
}

template <class... Arguments>
int32_t call(int32_t (*function)(Arguments...), const int64_t* a) {
    constexpr auto count = static_cast<int32_t>(sizeof...(Arguments));
    if (!a) return count;
    if (a[0] != count) return TORCHFX_BAD_ARGUMENT;
    return call(function, a + 1, std::index_sequence_for<Arguments...>());
}

}  // namespace

extern "C" int32_t torchfx_packed_each(int32_t (*function)(const int64_t*), const int64_t* arguments, int64_t size,
                                       int64_t count, int32_t threads) {
    if (!function || !arguments || size < 1 || count < 0 || threads < 1) return TORCHFX_BAD_ARGUMENT;
    std::atomic<int32_t> status{TORCHFX_OK};
    torchfx::parallel_for(count, threads, [&](int64_t i) {
        const int32_t found = function(arguments + i * size);
        if (found != TORCHFX_OK) status.store(found, std::memory_order_relaxed);
    });
    return status;
}

#define TORCHFX_DEFINE_PACKED(name) \
    extern "C" int32_t torchfx_##name##_packed(const int64_t* a) { return call(torchfx_##name, a); }
TORCHFX_PACKED_CALLS(TORCHFX_DEFINE_PACKED)

#define TORCHFX_NAME(name) #name " "
extern "C" const char* torchfx_packed_names(void) { return TORCHFX_PACKED_CALLS(TORCHFX_NAME); }
