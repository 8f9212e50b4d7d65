// Calls with their arguments in one array: see torchfx_dsp.h.
#include <cstddef>
#include <type_traits>
#include <utility>

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

#define TORCHFX_DEFINE_PACKED(name) \
    extern "C" int32_t torchfx_##name##_packed(const int64_t* a) { return call(torchfx_##name, a); }
TORCHFX_PACKED_CALLS(TORCHFX_DEFINE_PACKED)

#define TORCHFX_NAME(name) #name " "
extern "C" const char* torchfx_packed_names(void) { return TORCHFX_PACKED_CALLS(TORCHFX_NAME); }
