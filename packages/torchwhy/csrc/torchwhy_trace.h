// The C interface of the library that scans trace files (torchwhy_trace): bytes in, columns out, and who called whom.
#ifndef TORCHWHY_TRACE_H
#define TORCHWHY_TRACE_H

#include <stdint.h>

#if defined(_WIN32)
#define TORCHWHY_API __declspec(dllexport)
#else
#define TORCHWHY_API __attribute__((visibility("default")))
#endif

enum torchwhy_status {
    TORCHWHY_OK = 0,
    TORCHWHY_BAD_ARGUMENT = 1,  // a size or pointer out of range, or a call out of order
    TORCHWHY_NO_MEMORY = 4,
    TORCHWHY_TOO_LARGE = 5      // a part of a trace file is larger than its limit
};

#ifdef __cplusplus
extern "C" {
#endif

// Raised by one whenever a signature below changes; the Python side refuses another number.
TORCHWHY_API int32_t torchwhy_trace_abi_version(void);

// One scanner reads one file and is used by one thread at a time.
// src/torchwhy/trace/file/columns.py says what the columns hold, scan_python.py next to it what damage is survived.
typedef struct torchwhy_trace torchwhy_trace;

enum torchwhy_trace_kind { TORCHWHY_TRACE_INTEGER = 0, TORCHWHY_TRACE_REAL = 1, TORCHWHY_TRACE_TEXT = 2 };

enum torchwhy_trace_column {
    TORCHWHY_TRACE_PHASE = 0,     // uint8, one per event, as up to TID
    TORCHWHY_TRACE_TS = 1,        // int64
    TORCHWHY_TRACE_DUR = 2,       // int64
    TORCHWHY_TRACE_FLOW = 3,      // int64
    TORCHWHY_TRACE_OFFSET = 4,    // int64
    TORCHWHY_TRACE_CATEGORY = 5,  // int32: a text
    TORCHWHY_TRACE_NAME = 6,      // int32: a text
    TORCHWHY_TRACE_PID = 7,       // int32: a text
    TORCHWHY_TRACE_TID = 8,       // int32: a text
    TORCHWHY_TRACE_ROWS = 9,      // int32, of an argument: the events that have it
    TORCHWHY_TRACE_VALUES = 10,   // int64, double or int32 (a text), of an argument
    TORCHWHY_TRACE_TEXTS = 11,      // UTF-8, one text after the other
    TORCHWHY_TRACE_TEXT_ENDS = 12,  // int64: where each text ends
    TORCHWHY_TRACE_TOP = 13,        // UTF-8, the top level's keys and values (JSON) by turns
    TORCHWHY_TRACE_TOP_ENDS = 14,   // int64
    // int64: control characters, invalid UTF-8, unescaped quotes, not numbers, stray commas, damaged events, truncated,
    // a bare list, there was a list of events, bytes of the file
    TORCHWHY_TRACE_SUMMARY = 15
};

// A scanner that keeps the arguments named, each as its kind says. `limits` are the six of trace/limits.h, positive.
// NULL when memory is lacking or an argument is bad.
TORCHWHY_API torchwhy_trace* torchwhy_trace_new(
    const char* const* names, const int32_t* kinds, int64_t count, const int64_t* limits);
// The next bytes of the file. Also after the end of the JSON, where they only count.
TORCHWHY_API int32_t torchwhy_trace_feed(torchwhy_trace* trace, const void* bytes, int64_t count);
// The file has ended: only now are there columns.
TORCHWHY_API int32_t torchwhy_trace_finish(torchwhy_trace* trace);
// After TORCHWHY_TOO_LARGE: which limit, the size found, and where in the file the event or value begins; 3 numbers.
TORCHWHY_API void torchwhy_trace_excess(const torchwhy_trace* trace, int64_t* found);
// Hands a column over, to be released with torchwhy_trace_release; a second time it is empty. NULL when empty.
// `argument` is the place among the names given, for ROWS and VALUES. `bytes` is the column's size.
TORCHWHY_API int32_t torchwhy_trace_take(
    torchwhy_trace* trace, int32_t column, int64_t argument, void** data, int64_t* bytes);
TORCHWHY_API void torchwhy_trace_release(void* data);
TORCHWHY_API void torchwhy_trace_free(torchwhy_trace* trace);

// Who called whom (trace/nesting.h). `rows` are `count` different places in the other arrays, each parent before its
// children. Nothing is checked.
// Writes the row around each of these rows, or -1; they are sorted by lane, start and falling length.
TORCHWHY_API void torchwhy_trace_parents(
    const int32_t* rows, int64_t count, const int32_t* lane, const int64_t* start, const int64_t* end, int64_t bleed,
    int32_t* parent);
// Writes the innermost wanted row around each, itself included, or -1.
TORCHWHY_API void torchwhy_trace_nearest(
    const int32_t* rows, int64_t count, const int32_t* parent, const uint8_t* wanted, int32_t* found);
// Writes how many rows are around each.
TORCHWHY_API void torchwhy_trace_around(const int32_t* rows, int64_t count, const int32_t* parent, int32_t* found);
// Adds to `found` how many rows are inside each.
TORCHWHY_API void torchwhy_trace_inside(const int32_t* rows, int64_t count, const int32_t* parent, int32_t* found);

#ifdef __cplusplus
}
#endif
#endif
