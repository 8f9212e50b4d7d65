// Calls with their arguments in one array: see torchfx.h.
#include <cstddef>
#include <type_traits>
#include <utility>

#include "torchfx.h"

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
    return call(function, a, std::index_sequence_for<Arguments...>());
}

}  // namespace

extern "C" {

int32_t torchfx_sos_forward_packed(const int64_t* a) { return call(torchfx_sos_forward, a); }
int32_t torchfx_sos_forward_recording_packed(const int64_t* a) { return call(torchfx_sos_forward_recording, a); }
int32_t torchfx_sos_backward_packed(const int64_t* a) { return call(torchfx_sos_backward, a); }
int32_t torchfx_fir_forward_packed(const int64_t* a) { return call(torchfx_fir_forward, a); }

}  // extern "C"
