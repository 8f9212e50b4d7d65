// Where the samples of a FirSignal or FirOutput lie.
#ifndef TORCHFX_FIR_SAMPLES_H
#define TORCHFX_FIR_SAMPLES_H

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "fir/kernels.h"
#include "torchfx_dsp.h"

namespace torchfx {

template <class Pointer>
Pointer advance(Pointer data, int32_t dtype, int64_t elements) {
    using Bytes = std::conditional_t<std::is_const_v<std::remove_pointer_t<Pointer>>, const char*, char*>;
    return static_cast<Bytes>(data) + elements * (dtype == TORCHFX_F32 ? sizeof(float) : sizeof(double));
}

// Asks for samples [first, first + count), as far as they exist, to be brought near the processor.
#if defined(__GNUC__)
template <class Samples>
__attribute__((always_inline))  // or GCC takes it for a function without effect and drops the calls
inline void prefetch(const Samples& samples, int64_t first, int64_t count) {
    const int64_t begin = std::max<int64_t>(first, 0), end = std::min(first + count, samples.length);
    const char* line = static_cast<const char*>(advance(samples.data, samples.dtype, begin));
    const char* last = static_cast<const char*>(advance(samples.data, samples.dtype, end));
    for (; line < last; line += 64) __builtin_prefetch(line);
}
#else
template <class Samples>
inline void prefetch(const Samples&, int64_t, int64_t) {}
#endif

}  // namespace torchfx

#endif
