// How large parts of a trace file may be; src/torchwhy/trace/file/limits.py says what each one is and holds the
// numbers.
#ifndef TORCHWHY_TRACE_LIMITS_H
#define TORCHWHY_TRACE_LIMITS_H

#include <cstdint>

namespace torchwhy {

struct Limits {
    int64_t element, depth, text, texts, top, events;
};

enum class Limit : int64_t { element, depth, text, texts, top, events };

// A part is larger: thrown with the size found, at least.
struct Excess {
    Limit limit;
    int64_t value;
};

}  // namespace torchwhy

#endif
