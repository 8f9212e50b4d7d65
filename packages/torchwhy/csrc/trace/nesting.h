// Who called whom, from the times of events alone. src/torchwhy/trace/model/nesting.py is the same with NumPy, says why,
// and is what results are compared with.
#ifndef TORCHWHY_TRACE_NESTING_H
#define TORCHWHY_TRACE_NESTING_H

#include <cstdint>

namespace torchwhy {

// For rows sorted by lane, then by start, parents before children: the row of the innermost event around each.
// `lane`, `start` and `end` have one entry for each row there is, as has `parent`, of which these rows' are written.
void find_parents(const int32_t* rows, int64_t count, const int32_t* lane, const int64_t* start, const int64_t* end,
                  int64_t bleed, int32_t* parent);

// For rows with each parent before its children: the innermost wanted row around each, itself included, or -1.
void find_nearest(const int32_t* rows, int64_t count, const int32_t* parent, const uint8_t* wanted, int32_t* found);

// How many rows are around each; the same order.
void count_around(const int32_t* rows, int64_t count, const int32_t* parent, int32_t* found);

// How many rows are inside each, at any depth; the same order. `found` holds zeros.
void count_inside(const int32_t* rows, int64_t count, const int32_t* parent, int32_t* found);

}  // namespace torchwhy

#endif
