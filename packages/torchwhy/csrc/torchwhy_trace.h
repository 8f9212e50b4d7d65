// The C interface of the library that scans trace files (torchfx_trace): bytes in, columns out.
#ifndef TORCHFX_TRACE_H
#define TORCHFX_TRACE_H

#include "support/api.h"

#ifdef __cplusplus
extern "C" {
#endif

// Raised by one whenever a signature below changes; the Python side refuses another number.
TORCHFX_API int32_t torchfx_trace_abi_version(void);

// One scanner reads one file and is used by one thread at a time.
// src/torchfx/profiler/trace/file/columns.py says what the columns hold, scan_python.py next to it what damage is survived.
typedef struct torchfx_trace torchfx_trace;

enum torchfx_trace_kind { TORCHFX_TRACE_INTEGER = 0, TORCHFX_TRACE_REAL = 1, TORCHFX_TRACE_TEXT = 2 };

enum torchfx_trace_column {
    TORCHFX_TRACE_PHASE = 0,     // uint8, one per event, as up to TID
    TORCHFX_TRACE_TS = 1,        // int64
    TORCHFX_TRACE_DUR = 2,       // int64
    TORCHFX_TRACE_FLOW = 3,      // int64
    TORCHFX_TRACE_OFFSET = 4,    // int64
    TORCHFX_TRACE_CATEGORY = 5,  // int32: a text
    TORCHFX_TRACE_NAME = 6,      // int32: a text
    TORCHFX_TRACE_PID = 7,       // int32: a text
    TORCHFX_TRACE_TID = 8,       // int32: a text
    TORCHFX_TRACE_ROWS = 9,      // int32, of an argument: the events that have it
    TORCHFX_TRACE_VALUES = 10,   // int64, double or int32 (a text), of an argument
    TORCHFX_TRACE_TEXTS = 11,      // UTF-8, one text after the other
    TORCHFX_TRACE_TEXT_ENDS = 12,  // int64: where each text ends
    TORCHFX_TRACE_TOP = 13,        // UTF-8, the top level's keys and values (JSON) by turns
    TORCHFX_TRACE_TOP_ENDS = 14,   // int64
    // int64: control characters, invalid UTF-8, unescaped quotes, not numbers, stray commas, damaged events, truncated,
    // a bare list, there was a list of events, bytes of the file
    TORCHFX_TRACE_SUMMARY = 15
};

// A scanner that keeps the arguments named, each as its kind says. `limits` are the six of trace/limits.h, positive.
// NULL when memory is lacking or an argument is bad.
TORCHFX_API torchfx_trace* torchfx_trace_new(
    const char* const* names, const int32_t* kinds, int64_t count, const int64_t* limits);
// The next bytes of the file. Also after the end of the JSON, where they only count.
TORCHFX_API int32_t torchfx_trace_feed(torchfx_trace* trace, const void* bytes, int64_t count);
// The file has ended: only now are there columns.
TORCHFX_API int32_t torchfx_trace_finish(torchfx_trace* trace);
// After TORCHFX_TOO_LARGE: which limit, the size found, and where in the file the event or value begins; 3 numbers.
TORCHFX_API void torchfx_trace_excess(const torchfx_trace* trace, int64_t* found);
// Hands a column over, to be released with torchfx_trace_release; a second time it is empty. NULL when empty.
// `argument` is the place among the names given, for ROWS and VALUES. `bytes` is the column's size.
TORCHFX_API int32_t torchfx_trace_take(
    torchfx_trace* trace, int32_t column, int64_t argument, void** data, int64_t* bytes);
TORCHFX_API void torchfx_trace_release(void* data);
TORCHFX_API void torchfx_trace_free(torchfx_trace* trace);

#ifdef __cplusplus
}
#endif
#endif
