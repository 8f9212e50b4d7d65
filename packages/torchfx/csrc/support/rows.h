// Coefficients in rows, each for some of the channels.
#ifndef TORCHFX_SUPPORT_ROWS_H
#define TORCHFX_SUPPORT_ROWS_H

#include <algorithm>
#include <cstdint>

namespace torchfx {

// Channel c has row c / repeat % count.
struct Rows {
    int64_t count;
    int64_t repeat;

    int64_t of(int64_t channel) const { return count == 1 ? 0 : channel / repeat % count; }
    // How many of `all` channels have this row.
    int64_t channels(int64_t row, int64_t all) const {
        const int64_t period = count * repeat;
        return all / period * repeat + std::clamp<int64_t>(all % period - row * repeat, 0, repeat);
    }
    // The channel that comes k-th among those of a row.
    int64_t channel(int64_t row, int64_t k) const { return (k / repeat * count + row) * repeat + k % repeat; }
    // Whether every row has a channel.
    bool valid(int64_t channels) const { return count >= 1 && repeat >= 1 && count - 1 <= (channels - 1) / repeat; }
};

}  // namespace torchfx

#endif
