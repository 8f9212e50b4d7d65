// The little these tests need: expectations that name what was being tried, and repeatable noise.
#ifndef TORCHFX_TESTING_H
#define TORCHFX_TESTING_H

#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "torchfx_dsp.h"
#include "torchfx_program.h"

namespace testing {

inline int failures = 0;
inline std::string context;

inline void expect(bool holds, const char* what) {
    if (holds) return;
    if (++failures <= 20) std::fprintf(stderr, "FAILED: %s [%s]\n", what, context.c_str());
}

inline int report() {
    if (failures) std::fprintf(stderr, "%d failures\n", failures);
    return failures != 0;
}

inline std::mt19937_64 random_bits(20240601);

// Uniform in [-1, 1).
inline double noise() { return static_cast<double>(static_cast<int64_t>(random_bits())) * 0x1p-63; }

inline int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_bits() % static_cast<uint64_t>(high - low + 1));
}

inline std::vector<double> noises(int64_t count) {
    std::vector<double> values(static_cast<std::size_t>(count));
    for (double& v : values) v = noise();
    return values;
}

// The sum of a[i * a_stride] * b[i * b_stride]. Sanitizers, which watch the library, would make it ten times as slow.
template <class Sum, class A, class B>
[[gnu::no_sanitize("address", "thread", "undefined")]] Sum dot(const A* a, int64_t a_stride, const B* b, int64_t b_stride,
                                                               int64_t count) {
    Sum sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += static_cast<Sum>(a[i * a_stride]) * static_cast<Sum>(b[i * b_stride]);
    return sum;
}

// body() once with every instruction set this machine has, on the same noise; under the thread sanitizer with one
// alone, as all share the work among threads in the same way.
template <class Body>
void with_every_isa(Body&& body) {
    const std::string best = torchfx_isa();
    for (const char* isa : {"avx512", "avx2", "neon", "baseline"})
        if (torchfx_set_isa(isa) == TORCHFX_OK) {
            random_bits.seed(20240601);
            body();
#ifdef __SANITIZE_THREAD__
            break;
#endif
        }
    torchfx_set_isa(best.c_str());
}

}  // namespace testing

#endif
