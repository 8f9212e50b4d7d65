#include "fir/taps.h"

#include <cstring>

#include "torchfx_dsp.h"

namespace torchfx {
namespace {

// By the bits, as loops over these become vectors: an exponent of all ones, plus one, reaches the sign bit.
bool all_finite(const double* values, int64_t count) {
    constexpr uint64_t exponent = uint64_t{0x7ff} << 52, one = uint64_t{1} << 52;
    uint64_t seen = 0;
    for (int64_t i = 0; i < count; ++i) {
        uint64_t bits;
        std::memcpy(&bits, values + i, sizeof bits);
        seen |= (bits & exponent) + one;
    }
    return seen >> 63 == 0;
}

}  // namespace

int32_t check_taps(const double* taps, int64_t n_taps, Rows rows, int64_t channels) {
    if (!taps || n_taps < 1 || !rows.valid(channels)) return TORCHFX_BAD_ARGUMENT;
    return all_finite(taps, rows.count * n_taps) ? TORCHFX_OK : TORCHFX_NOT_FINITE;
}

}  // namespace torchfx
