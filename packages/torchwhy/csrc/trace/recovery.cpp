#include "trace/recovery.h"

#include <algorithm>

#include "trace/parser.h"

namespace torchwhy {
namespace {

std::size_t skip_blank(std::string_view data, std::size_t i) {
    while (i < data.size() && is_blank(data[i])) ++i;
    return i;
}

bool is_at(std::string_view data, std::size_t i, char c) { return i < data.size() && data[i] == c; }

}  // namespace

std::size_t find_start(std::string_view data, std::size_t from) {
    for (std::size_t i = data.find('{', from); i != nowhere; i = data.find('{', i + 1)) {
        const std::size_t quote = skip_blank(data, i + 1);
        if (!is_at(data, quote, '"')) continue;
        const std::size_t end = data.substr(0, std::min(data.size(), quote + 6)).find('"', quote + 1);
        if (end == nowhere || !is_at(data, skip_blank(data, end + 1), ':')) continue;
        const std::string_view key = data.substr(quote + 1, end - quote - 1);
        if (key == "ph") return i;
        bool known = false;
        for (const char* name : {"name", "cat", "pid", "tid", "ts", "dur", "args", "id"}) known |= key == name;
        if (!known) continue;
        std::size_t before = i;
        bool comma = false;
        for (; before > from && (is_blank(data[before - 1]) || data[before - 1] == ','); --before)
            comma |= data[before - 1] == ',';
        if (comma && before > from && data[before - 1] == '}') return i;
    }
    return nowhere;
}

std::size_t find_end(std::string_view data, std::size_t from) {
    for (std::size_t i = data.find('}', from); i != nowhere; i = data.find('}', i + 1)) {
        const std::size_t bracket = skip_blank(data, i + 1);
        if (!is_at(data, bracket, ']')) continue;
        const std::size_t next = skip_blank(data, bracket + 1);
        if (next == data.size() || data[next] == '}') return bracket;
        if (data[next] == ',' && is_at(data, skip_blank(data, next + 1), '"')) return bracket;
    }
    return nowhere;
}

std::size_t find_events(std::string_view data, std::size_t from) {
    constexpr std::string_view name = "\"traceEvents\"";
    for (std::size_t i = data.find(name, from); i != nowhere; i = data.find(name, i + 1)) {
        const std::size_t colon = skip_blank(data, i + name.size());
        if (!is_at(data, colon, ':')) continue;
        const std::size_t bracket = skip_blank(data, colon + 1);
        if (is_at(data, bracket, '[')) return bracket + 1;
    }
    return nowhere;
}

}  // namespace torchwhy
