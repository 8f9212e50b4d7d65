// torchwhy_trace_*.
#include <new>
#include <utility>

#include "torchwhy_trace.h"
#include "trace/nesting.h"
#include "trace/scanner.h"

struct torchwhy_trace {
    torchwhy::TraceScanner scanner;
    bool finished = false;
    torchwhy::Excess excess{};
};

namespace {

using torchwhy::Block;

template <class Body>
int32_t guarded(Body&& body) {
    try {
        body();
        return TORCHWHY_OK;
    } catch (const std::bad_alloc&) {
        return TORCHWHY_NO_MEMORY;
    }
}

template <class Body>
int32_t limited(torchwhy_trace* trace, Body&& body) {
    try {
        return guarded(body);
    } catch (const torchwhy::Excess& found) {
        trace->excess = found;
        return TORCHWHY_TOO_LARGE;
    }
}

Block summary(const torchwhy::TraceScanner& scanner) {
    const torchwhy::Counts& counts = scanner.counts();
    Block block;
    for (const int64_t count :
         {counts.control_characters, counts.invalid_utf8, counts.unescaped_quotes, counts.not_numbers,
          counts.stray_commas, counts.damaged_events, int64_t{scanner.truncated()}, int64_t{scanner.bare_list()},
          int64_t{scanner.has_list()}, scanner.size()})
        block.append(count);
    return block;
}

Block* column_of(torchwhy::TraceScanner& scanner, int32_t column, std::size_t argument) {
    switch (column) {
        case TORCHWHY_TRACE_PHASE: return &scanner.phase;
        case TORCHWHY_TRACE_TS: return &scanner.ts;
        case TORCHWHY_TRACE_DUR: return &scanner.dur;
        case TORCHWHY_TRACE_FLOW: return &scanner.flow;
        case TORCHWHY_TRACE_OFFSET: return &scanner.offset;
        case TORCHWHY_TRACE_CATEGORY: return &scanner.category;
        case TORCHWHY_TRACE_NAME: return &scanner.name;
        case TORCHWHY_TRACE_PID: return &scanner.pid;
        case TORCHWHY_TRACE_TID: return &scanner.tid;
        case TORCHWHY_TRACE_ROWS: return &scanner.argument(argument).rows;
        case TORCHWHY_TRACE_VALUES: return &scanner.argument(argument).values;
        case TORCHWHY_TRACE_TEXTS: return &scanner.texts.bytes();
        case TORCHWHY_TRACE_TEXT_ENDS: return &scanner.texts.ends();
        case TORCHWHY_TRACE_TOP: return &scanner.top_bytes;
        case TORCHWHY_TRACE_TOP_ENDS: return &scanner.top_ends;
        default: return nullptr;
    }
}

}  // namespace

extern "C" {

int32_t torchwhy_trace_abi_version(void) { return 3; }

torchwhy_trace* torchwhy_trace_new(
    const char* const* names, const int32_t* kinds, int64_t count, const int64_t* limits) {
    if (count < 0 || (count && (!names || !kinds)) || !limits) return nullptr;
    for (int i = 0; i < 6; ++i)
        if (limits[i] < 1) return nullptr;
    if (limits[5] > INT32_MAX) return nullptr;  // rows are counted in 32 bits
    const torchwhy::Limits allowed{limits[0], limits[1], limits[2], limits[3], limits[4], limits[5]};
    for (int64_t i = 0; i < count; ++i)
        if (!names[i] || kinds[i] < TORCHWHY_TRACE_INTEGER || kinds[i] > TORCHWHY_TRACE_TEXT) return nullptr;
    torchwhy_trace* trace = nullptr;
    guarded([&] {
        torchwhy::TraceKeys keys;
        for (int64_t i = 0; i < count; ++i) keys.add(names[i], static_cast<torchwhy::TraceKind>(kinds[i]));
        trace = new torchwhy_trace{torchwhy::TraceScanner(std::move(keys), allowed)};
    });
    return trace;
}

int32_t torchwhy_trace_feed(torchwhy_trace* trace, const void* bytes, int64_t count) {
    if (!trace || trace->finished || count < 0 || (count && !bytes)) return TORCHWHY_BAD_ARGUMENT;
    return limited(trace, [&] {
        trace->scanner.feed(static_cast<const char*>(bytes), static_cast<std::size_t>(count));
    });
}

int32_t torchwhy_trace_finish(torchwhy_trace* trace) {
    if (!trace) return TORCHWHY_BAD_ARGUMENT;
    trace->finished = true;
    return limited(trace, [&] { trace->scanner.finish(); });
}

void torchwhy_trace_excess(const torchwhy_trace* trace, int64_t* found) {
    found[0] = static_cast<int64_t>(trace->excess.limit);
    found[1] = trace->excess.value;
    found[2] = trace->scanner.place();
}

int32_t torchwhy_trace_take(torchwhy_trace* trace, int32_t column, int64_t argument, void** data, int64_t* bytes) {
    if (!trace || !trace->finished || !data || !bytes) return TORCHWHY_BAD_ARGUMENT;
    const bool of_argument = column == TORCHWHY_TRACE_ROWS || column == TORCHWHY_TRACE_VALUES;
    if (of_argument && (argument < 0 || argument >= static_cast<int64_t>(trace->scanner.keys())))
        return TORCHWHY_BAD_ARGUMENT;
    return guarded([&] {
        Block made = column == TORCHWHY_TRACE_SUMMARY ? summary(trace->scanner) : Block();
        Block* block = column == TORCHWHY_TRACE_SUMMARY
                           ? &made
                           : column_of(trace->scanner, column, static_cast<std::size_t>(argument));
        *bytes = block ? static_cast<int64_t>(block->size()) : 0;
        *data = block ? block->take() : nullptr;
    });
}

void torchwhy_trace_release(void* data) { std::free(data); }

void torchwhy_trace_free(torchwhy_trace* trace) { delete trace; }

void torchwhy_trace_parents(
    const int32_t* rows, int64_t count, const int32_t* lane, const int64_t* start, const int64_t* end, int64_t bleed,
    int32_t* parent) {
    torchwhy::find_parents(rows, count, lane, start, end, bleed, parent);
}

void torchwhy_trace_nearest(
    const int32_t* rows, int64_t count, const int32_t* parent, const uint8_t* wanted, int32_t* found) {
    torchwhy::find_nearest(rows, count, parent, wanted, found);
}

void torchwhy_trace_around(const int32_t* rows, int64_t count, const int32_t* parent, int32_t* found) {
    torchwhy::count_around(rows, count, parent, found);
}

void torchwhy_trace_inside(const int32_t* rows, int64_t count, const int32_t* parent, int32_t* found) {
    torchwhy::count_inside(rows, count, parent, found);
}

}  // extern "C"
