// The little these tests need: expectations that name what was being tried, and repeatable noise.
#ifndef TORCHWHY_TESTING_H
#define TORCHWHY_TESTING_H

#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

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

inline int64_t pick(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(random_bits() % static_cast<uint64_t>(high - low + 1));
}

}  // namespace testing

#endif
