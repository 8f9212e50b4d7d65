#include "trace/nesting.h"

namespace torchwhy {
namespace {

// Wraps around where it overflows, as NumPy does.
int64_t sum(int64_t a, int64_t b) { return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b)); }

}  // namespace

void find_parents(const int32_t* rows, int64_t count, const int32_t* lane, const int64_t* start, const int64_t* end,
                  int64_t bleed, int32_t* parent) {
    int32_t before = -1;
    for (int64_t i = 0; i < count; ++i) {
        const int32_t row = rows[i];
        const int64_t begins = start[row], ends = end[row];
        if (before >= 0 && lane[before] != lane[row]) before = -1;
        // What does not reach around this one is around none of the following ones either: each is passed once.
        while (before >= 0 && (end[before] <= begins || sum(end[before], bleed) < ends)) before = parent[before];
        parent[row] = before;
        before = row;
    }
}

void find_nearest(const int32_t* rows, int64_t count, const int32_t* parent, const uint8_t* wanted, int32_t* found) {
    for (int64_t i = 0; i < count; ++i) {
        const int32_t row = rows[i], above = parent[row];
        found[row] = wanted[row] ? row : above >= 0 ? found[above] : -1;
    }
}

void count_around(const int32_t* rows, int64_t count, const int32_t* parent, int32_t* found) {
    for (int64_t i = 0; i < count; ++i) {
        const int32_t row = rows[i], above = parent[row];
        found[row] = above >= 0 ? found[above] + 1 : 0;
    }
}

void count_inside(const int32_t* rows, int64_t count, const int32_t* parent, int32_t* found) {
    for (int64_t i = count - 1; i >= 0; --i) {
        const int32_t row = rows[i], above = parent[row];
        if (above >= 0) found[above] += found[row] + 1;
    }
}

}  // namespace torchwhy
