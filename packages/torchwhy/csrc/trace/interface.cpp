// torchfx_trace_*.
#include <new>
#include <utility>

#include "torchfx_trace.h"
#include "trace/scanner.h"

struct torchfx_trace {
    torchfx::TraceScanner scanner;
    bool finished = false;
    torchfx::Excess excess{};
};

namespace {

using torchfx::Block;

template <class Body>
int32_t guarded(Body&& body) {
    try {
        body();
        return TORCHFX_OK;
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
}

template <class Body>
int32_t limited(torchfx_trace* trace, Body&& body) {
    try {
        return guarded(body);
    } catch (const torchfx::Excess& found) {
        trace->excess = found;
        return TORCHFX_TOO_LARGE;
    }
}

Block summary(const torchfx::TraceScanner& scanner) {
    const torchfx::Counts& counts = scanner.counts();
    Block block;
    for (const int64_t count :
         {counts.control_characters, counts.invalid_utf8, counts.unescaped_quotes, counts.not_numbers,
          counts.stray_commas, counts.damaged_events, int64_t{scanner.truncated()}, int64_t{scanner.bare_list()},
          int64_t{scanner.has_list()}, scanner.size()})
        block.append(count);
    return block;
}

Block* column_of(torchfx::TraceScanner& scanner, int32_t column, std::size_t argument) {
    switch (column) {
        case TORCHFX_TRACE_PHASE: return &scanner.phase;
        case TORCHFX_TRACE_TS: return &scanner.ts;
        case TORCHFX_TRACE_DUR: return &scanner.dur;
        case TORCHFX_TRACE_FLOW: return &scanner.flow;
        case TORCHFX_TRACE_OFFSET: return &scanner.offset;
        case TORCHFX_TRACE_CATEGORY: return &scanner.category;
        case TORCHFX_TRACE_NAME: return &scanner.name;
        case TORCHFX_TRACE_PID: return &scanner.pid;
        case TORCHFX_TRACE_TID: return &scanner.tid;
        case TORCHFX_TRACE_ROWS: return &scanner.argument(argument).rows;
        case TORCHFX_TRACE_VALUES: return &scanner.argument(argument).values;
        case TORCHFX_TRACE_TEXTS: return &scanner.texts.bytes();
        case TORCHFX_TRACE_TEXT_ENDS: return &scanner.texts.ends();
        case TORCHFX_TRACE_TOP: return &scanner.top_bytes;
        case TORCHFX_TRACE_TOP_ENDS: return &scanner.top_ends;
        default: return nullptr;
    }
}

}  // namespace

extern "C" {

int32_t torchfx_trace_abi_version(void) { return 2; }

torchfx_trace* torchfx_trace_new(
    const char* const* names, const int32_t* kinds, int64_t count, const int64_t* limits) {
    if (count < 0 || (count && (!names || !kinds)) || !limits) return nullptr;
    for (int i = 0; i < 6; ++i)
        if (limits[i] < 1) return nullptr;
    if (limits[5] > INT32_MAX) return nullptr;  // rows are counted in 32 bits
    const torchfx::Limits allowed{limits[0], limits[1], limits[2], limits[3], limits[4], limits[5]};
    for (int64_t i = 0; i < count; ++i)
        if (!names[i] || kinds[i] < TORCHFX_TRACE_INTEGER || kinds[i] > TORCHFX_TRACE_TEXT) return nullptr;
    torchfx_trace* trace = nullptr;
    guarded([&] {
        torchfx::TraceKeys keys;
        for (int64_t i = 0; i < count; ++i) keys.add(names[i], static_cast<torchfx::TraceKind>(kinds[i]));
        trace = new torchfx_trace{torchfx::TraceScanner(std::move(keys), allowed)};
    });
    return trace;
}

int32_t torchfx_trace_feed(torchfx_trace* trace, const void* bytes, int64_t count) {
    if (!trace || trace->finished || count < 0 || (count && !bytes)) return TORCHFX_BAD_ARGUMENT;
    return limited(trace, [&] {
        trace->scanner.feed(static_cast<const char*>(bytes), static_cast<std::size_t>(count));
    });
}

int32_t torchfx_trace_finish(torchfx_trace* trace) {
    if (!trace) return TORCHFX_BAD_ARGUMENT;
    trace->finished = true;
    return limited(trace, [&] { trace->scanner.finish(); });
}

void torchfx_trace_excess(const torchfx_trace* trace, int64_t* found) {
    found[0] = static_cast<int64_t>(trace->excess.limit);
    found[1] = trace->excess.value;
    found[2] = trace->scanner.place();
}

int32_t torchfx_trace_take(torchfx_trace* trace, int32_t column, int64_t argument, void** data, int64_t* bytes) {
    if (!trace || !trace->finished || !data || !bytes) return TORCHFX_BAD_ARGUMENT;
    const bool of_argument = column == TORCHFX_TRACE_ROWS || column == TORCHFX_TRACE_VALUES;
    if (of_argument && (argument < 0 || argument >= static_cast<int64_t>(trace->scanner.keys())))
        return TORCHFX_BAD_ARGUMENT;
    return guarded([&] {
        Block made = column == TORCHFX_TRACE_SUMMARY ? summary(trace->scanner) : Block();
        Block* block = column == TORCHFX_TRACE_SUMMARY
                           ? &made
                           : column_of(trace->scanner, column, static_cast<std::size_t>(argument));
        *bytes = block ? static_cast<int64_t>(block->size()) : 0;
        *data = block ? block->take() : nullptr;
    });
}

void torchfx_trace_release(void* data) { std::free(data); }

void torchfx_trace_free(torchfx_trace* trace) { delete trace; }

}  // extern "C"
