// The scanner of trace files: what it reads does not depend on the chunks, and no bytes whatever hurt it.
#include <algorithm>
#include <cstring>
#include <iterator>

#include "trace/number.h"
#include "trace/scanner.h"
#include "trace/text.h"
#include "testing.h"
#include "torchwhy_trace.h"

using namespace testing;
using torchwhy::absent;
using torchwhy::Block;
using torchwhy::TraceKeys;
using torchwhy::TraceKind;
using torchwhy::TraceScanner;

namespace {

const std::string sample = R"json({
  "schemaVersion": 1, "traceName": "a]b}c", "metadata": {"traceEvents": [1, {"a": "b"}]},
  "traceEvents": [
  {
    "ph": "X", "cat": "cpu_op", "name": "h\u00e9 \ud83d\ude00 \"q\"", "pid": 12, "tid": "stream 7",
    "ts": 1672876799191768.123, "dur": 1.5,
    "args": {"External id": 3, "Input Dims": [[2, 3], [], {"k": null}], "blocks per SM": 0.25, "other": {"a": [1, "x"]}}
  },
  {"ph": "f", "id": 42, "pid": -1, "tid": 1, "ts": 7e3, "cat": "ac2g", "name": "ac2g", "bp": "e"},
  {"ph": "X", "name": "say "hi", now", "ts": NaN, "args": {"External id": "0x1f", "Input Dims": "C:\new\q", }},,
  {"name": "M", "ph": "M", "args": {"name": "thread 1 (python)"}},
  {}
  ],
  "deviceProperties": [{"id": 0, "name": "GPU"}]
}
)json";

TraceKeys keys() {
    TraceKeys made;
    made.add("External id", TraceKind::integer);
    made.add("blocks per SM", TraceKind::real);
    made.add("Input Dims", TraceKind::text);
    return made;
}

constexpr torchwhy::Limits limits{1 << 26, 500, 1 << 25, 1 << 26, 1 << 26, 1 << 20};

std::string contents(const Block& block) { return block.size() ? std::string(block.data(), block.size()) : ""; }

// Everything a scanner found, as one string of bytes.
std::string everything(TraceScanner& scanner) {
    std::string all;
    for (const Block* block : {&scanner.phase, &scanner.ts, &scanner.dur, &scanner.flow, &scanner.offset, &scanner.category,
                               &scanner.name, &scanner.pid, &scanner.tid, &scanner.top_bytes, &scanner.top_ends})
        all += contents(*block) + "|";
    all += contents(scanner.texts.bytes()) + "|" + contents(scanner.texts.ends()) + "|";
    for (std::size_t key = 0; key < scanner.keys(); ++key)
        all += contents(scanner.argument(key).rows) + "|" + contents(scanner.argument(key).values) + "|";
    const torchwhy::Counts& counts = scanner.counts();
    for (const int64_t count :
         {counts.control_characters, counts.invalid_utf8, counts.unescaped_quotes, counts.not_numbers, counts.stray_commas,
          counts.damaged_events, int64_t{scanner.truncated()}, int64_t{scanner.bare_list()}, int64_t{scanner.has_list()},
          scanner.size()})
        all += std::to_string(count) + ",";
    return all;
}

// Every chunk in memory of its own, so that a sanitizer sees a read behind it.
void feed(TraceScanner& scanner, const std::string& data, std::size_t chunk) {
    for (std::size_t i = 0; i < data.size(); i += chunk) {
        const std::vector<char> piece(data.begin() + static_cast<std::ptrdiff_t>(i),
                                      data.begin() + static_cast<std::ptrdiff_t>(std::min(data.size(), i + chunk)));
        scanner.feed(piece.data(), piece.size());
    }
    scanner.finish();
}

std::string scanned(const std::string& data, std::size_t chunk) {
    TraceScanner scanner(keys(), limits);
    feed(scanner, data, chunk);
    return everything(scanner);
}

template <class T>
T entry(const Block& block, std::size_t i) {
    T value;
    std::memcpy(&value, block.data() + i * sizeof value, sizeof value);
    return value;
}

void reads_what_is_there() {
    TraceScanner scanner(keys(), limits);
    feed(scanner, sample, sample.size());
    expect(scanner.phase.size() == 4, "four events");
    expect(entry<int64_t>(scanner.ts, 0) == 1672876799191768123, "ts in nanoseconds");
    expect(entry<int64_t>(scanner.dur, 0) == 1500 && entry<int64_t>(scanner.dur, 1) == absent, "dur");
    expect(entry<int64_t>(scanner.ts, 1) == 7000000 && entry<int64_t>(scanner.ts, 2) == absent, "ts");
    expect(entry<int64_t>(scanner.flow, 1) == 42 && entry<int64_t>(scanner.flow, 0) == absent, "flow");
    const auto text = [&](const Block& column, std::size_t i) { return scanner.texts[entry<int32_t>(column, i)]; };
    expect(text(scanner.name, 0) == "h\xC3\xA9 \xF0\x9F\x98\x80 \"q\"", "an escaped name");
    expect(text(scanner.name, 2) == "say \"hi\", now", "a name with quotes");
    expect(text(scanner.pid, 0) == "12" && text(scanner.tid, 0) == "stream 7", "pid and tid");
    expect(entry<int64_t>(scanner.argument(0).values, 1) == 31 && entry<int32_t>(scanner.argument(0).rows, 1) == 2, "int");
    expect(entry<double>(scanner.argument(1).values, 0) == 0.25, "real");
    expect(text(scanner.argument(2).values, 0) == "[[2,3],[],{\"k\":null}]", "a list as text");
    expect(text(scanner.argument(2).values, 1) == "C:\new\\q", "an unknown escape stays");
    const torchwhy::Counts& counts = scanner.counts();
    expect(counts.unescaped_quotes == 2 && counts.not_numbers == 1 && counts.stray_commas == 2, "repairs");
    expect(counts.damaged_events == 0 && !scanner.truncated() && scanner.has_list(), "nothing lost");
}

void chunks_make_no_difference() {
    const std::string whole = scanned(sample, sample.size());
    for (std::size_t chunk = 1; chunk <= sample.size(); chunk = chunk < 20 ? chunk + 1 : 2 * chunk)
        expect(scanned(sample, chunk) == whole, "as in one piece");
}

void every_cut_is_survived() {
    std::size_t before = 0;
    for (std::size_t length = 0; length < sample.size(); ++length) {
        TraceScanner scanner(keys(), limits);
        feed(scanner, sample.substr(0, length), 64);
        expect(scanner.phase.size() >= before, "no event is lost by reading further");
        before = scanner.phase.size();
    }
    expect(before == 4, "four events");
}

std::string mangled(std::string data) {
    static const char* const pieces[] = {"\"", "\\", "{", "}", "[", "]", ",", ":", "\xFF", "\x01", "NaN", "}]", "\"}", "\\\"",
                                         "{\"ph\":", "}, {\"name\":", "\"traceEvents\":[", "\\ud800", "-", "e99", "\xE2\x82"};
    for (int64_t change = pick(1, 6); change > 0 && !data.empty(); --change) {
        const std::size_t i = static_cast<std::size_t>(pick(0, static_cast<int64_t>(data.size()) - 1));
        const std::size_t count = static_cast<std::size_t>(pick(1, 40));
        switch (pick(0, 5)) {
            case 0: data.resize(i); break;
            case 1: data[i] = static_cast<char>(pick(0, 255)); break;
            case 2: data.erase(i, count); break;
            case 3: data.insert(i, data.substr(i, count)); break;
            default: data.insert(i, pieces[pick(0, static_cast<int64_t>(std::size(pieces)) - 1)]);
        }
    }
    return data;
}

void no_bytes_hurt() {
    for (int repeat = 0; repeat < 4000; ++repeat) {
        const std::string data = mangled(sample);
        const std::string whole = scanned(data, data.size() + 1);
        expect(scanned(data, static_cast<std::size_t>(pick(1, 80))) == whole, "mangled: as in one piece");
    }
}

void giants_take_linear_time() {
    std::string nested;
    for (int i = 0; i < 20'000; ++i) nested += "{\"ph\": " + std::string(490, '[') + "{\"ph\": 5 5";
    scanned("[" + nested, 4096);
    scanned("[{\"ph\": \"X\", \"name\": \"" + std::string(20'000'000, 'x') + "\"}]", 4096);
    std::string quotes = "[{\"ph\": \"X\", \"name\": \"";
    for (int i = 0; i < 200'000; ++i) quotes += "\"x\", ";
    scanned(quotes + "\"}]", 4096);
}

void what_is_too_large_is_refused() {
    const auto excess = [](const std::string& data, std::size_t chunk, const torchwhy::Limits& allowed) {
        TraceScanner scanner(keys(), allowed);
        try {
            feed(scanner, data, chunk);
        } catch (const torchwhy::Excess& found) {
            return std::to_string(static_cast<int64_t>(found.limit)) + " " + std::to_string(found.value) + " " +
                   std::to_string(scanner.place());
        }
        return std::string("read");
    };
    for (int repeat = 0; repeat < 4000; ++repeat) {
        const std::string data = mangled(sample);
        const torchwhy::Limits allowed{pick(10, 900), pick(1, 4), pick(3, 60), pick(20, 300), pick(20, 200), pick(1, 6)};
        expect(excess(data, static_cast<std::size_t>(pick(1, 80)), allowed) == excess(data, data.size() + 1, allowed),
               "too large: as in one piece");
    }
}

void numbers_are_exact() {
    for (int repeat = 0; repeat < 20000; ++repeat) {
        const int64_t value = pick(-(int64_t{1} << 61), int64_t{1} << 61) >> pick(0, 60);
        const std::string size = std::to_string(value < 0 ? -value : value);
        const std::string padded = std::string(size.size() < 4 ? 4 - size.size() : 0, '0') + size;
        const std::string text = (value < 0 ? "-" : "") + padded.substr(0, padded.size() - 3) + "." + padded.substr(padded.size() - 3);
        int64_t found = 0;
        context = text;
        expect(torchwhy::parse_nanoseconds(text, &found) && found == value, "nanoseconds");
        expect(torchwhy::parse_integer(std::to_string(value), &found) && found == value, "an integer");
        const std::string hundredfold = std::to_string(value) + (value ? "00e-2" : "e-2");
        expect(torchwhy::parse_integer(hundredfold, &found) && found == value, "with an exponent");
    }
    int64_t found;
    for (const char* text : {"", "-", "1.", ".5", "01", "1e", "1e+", "+1", "1x", "9223372036854775808", "1e400", "0x"})
        expect(!torchwhy::parse_integer(text, &found), text);
    context.clear();
}

void the_interface_checks_its_arguments() {
    const char* names[] = {"a"};
    int32_t kinds[] = {3};
    int64_t allowed[] = {100, 10, 10, 20, 100, 2};
    expect(!torchwhy_trace_new(names, kinds, 1, allowed) && !torchwhy_trace_new(nullptr, nullptr, 1, allowed), "a bad kind, no names");
    kinds[0] = TORCHWHY_TRACE_INTEGER;
    allowed[5] = 0;
    expect(!torchwhy_trace_new(names, kinds, 1, allowed) && !torchwhy_trace_new(names, kinds, 1, nullptr), "bad limits");
    allowed[5] = 2;
    torchwhy_trace* large = torchwhy_trace_new(names, kinds, 1, allowed);
    int64_t found[3];
    expect(torchwhy_trace_feed(large, "[{\"ph\":\"X\",\"name\":\"abcdefghijk\"}]", 34) == TORCHWHY_TOO_LARGE, "a long name");
    torchwhy_trace_excess(large, found);
    expect(found[0] == 2 && found[1] == 11 && found[2] == 1, "which limit, how much, where");
    torchwhy_trace_free(large);
    torchwhy_trace* trace = torchwhy_trace_new(names, kinds, 1, allowed);
    void* data = nullptr;
    int64_t bytes = 0;
    expect(torchwhy_trace_feed(trace, "[{\"ph\":\"X\"}]", 12) == TORCHWHY_OK, "fed");
    expect(torchwhy_trace_feed(trace, nullptr, 1) == TORCHWHY_BAD_ARGUMENT, "no bytes");
    expect(torchwhy_trace_take(trace, TORCHWHY_TRACE_TS, 0, &data, &bytes) == TORCHWHY_BAD_ARGUMENT, "too early");
    expect(torchwhy_trace_finish(trace) == TORCHWHY_OK, "finished");
    expect(torchwhy_trace_feed(trace, "x", 1) == TORCHWHY_BAD_ARGUMENT, "too late");
    expect(torchwhy_trace_take(trace, TORCHWHY_TRACE_ROWS, 1, &data, &bytes) == TORCHWHY_BAD_ARGUMENT, "no such argument");
    expect(torchwhy_trace_take(trace, TORCHWHY_TRACE_PHASE, 0, &data, &bytes) == TORCHWHY_OK && bytes == 1, "a column");
    torchwhy_trace_free(trace);
    expect(*static_cast<char*>(data) == 'X', "outlives the scanner");
    torchwhy_trace_release(data);
}

}  // namespace

int main() {
    reads_what_is_there();
    chunks_make_no_difference();
    every_cut_is_survived();
    no_bytes_hurt();
    giants_take_linear_time();
    what_is_too_large_is_refused();
    numbers_are_exact();
    the_interface_checks_its_arguments();
    return report();
}
