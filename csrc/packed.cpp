// The forward calls with their arguments in one array: see torchfx.h.
#include "torchfx.h"

namespace {

template <class T>
T* pointer(int64_t address) {
    return reinterpret_cast<T*>(static_cast<intptr_t>(address));
}

}  // namespace

extern "C" {

int32_t torchfx_sos_forward_packed(const int64_t* a) {
    return torchfx_sos_forward(static_cast<int32_t>(a[0]), pointer<const void>(a[1]), a[2], a[3], pointer<void>(a[4]), a[5],
                               a[6], a[7], pointer<const double>(a[8]), a[9], pointer<const double>(a[10]),
                               pointer<double>(a[11]), a[12], static_cast<int32_t>(a[13]));
}

int32_t torchfx_fir_forward_packed(const int64_t* a) {
    return torchfx_fir_forward(static_cast<int32_t>(a[0]), pointer<const void>(a[1]), a[2], a[3], pointer<void>(a[4]), a[5],
                               a[6], a[7], pointer<const double>(a[8]), a[9], pointer<const double>(a[10]),
                               pointer<double>(a[11]), static_cast<int32_t>(a[12]));
}

}  // extern "C"
