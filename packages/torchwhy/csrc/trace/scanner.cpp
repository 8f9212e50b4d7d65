#include "trace/scanner.h"

#include <algorithm>
#include <cstring>

#include "trace/number.h"
#include "trace/recovery.h"

namespace torchwhy {
namespace {

bool is_flow(uint8_t phase) { return phase == 's' || phase == 't' || phase == 'f'; }

}  // namespace

void TraceScanner::feed(const char* bytes, std::size_t count) {
    size_ += static_cast<int64_t>(count);
    if (state_ == State::done) return;
    if (place_) {
        filled_ -= place_;
        wanted_ -= std::min(wanted_, place_);
        std::memmove(buffer_.data(), buffer_.data() + place_, filled_);
        before_buffer_ += static_cast<int64_t>(place_);
        place_ = 0;
    }
    buffer_.resize(filled_ + count + Parser::padding);
    if (count) std::memcpy(buffer_.data() + filled_, bytes, count);
    filled_ += count;
    if (filled_ < wanted_) return;
    run();
}

void TraceScanner::finish() {
    if (final_) return;
    final_ = true;
    buffer_.resize(filled_ + Parser::padding);
    run();
    buffer_ = Block();
}

void TraceScanner::run() {
    std::memset(buffer_.data() + filled_, 0, Parser::padding);
    const std::size_t furthest = static_cast<std::size_t>(limits_.element);
    while (state_ != State::done) {
        const Counts before = parser_.counts;
        // No step looks further than that, so what it finds does not depend on the pieces.
        parser_.set(buffer_.data(), std::min(filled_, place_ + furthest));
        parser_.read_plainly();
        try {
            step();
        } catch (const Cut&) {
            parser_.counts = before;
            const bool reached = parser_.size() < filled_;
            if (final_ || reached) {
                truncated_ = true;
                state_ = State::done;
            }
            if (reached) throw Excess{Limit::element, limits_.element + 1};
            // Begun again at every byte, a long value would be read a thousand times.
            wanted_ = std::min(2 * filled_ - place_, place_ + furthest + 1);
            return;
        } catch (const Excess&) {
            state_ = State::done;
            throw;
        }
    }
}

void TraceScanner::step() {
    switch (state_) {
        case State::begin: return begin();
        case State::object: return object();
        case State::events: return events();
        case State::done: return;
    }
}

void TraceScanner::begin() {
    constexpr std::string_view mark = "\xEF\xBB\xBF";
    if (filled_ < mark.size() && !final_) throw Cut{};
    std::size_t i = std::string_view(buffer_.data(), std::min(filled_, mark.size())) == mark ? mark.size() : 0;
    i = parser_.blank(i);
    bare_list_ = parser_[i] == '[';
    state_ = bare_list_ ? State::events : parser_[i] == '{' ? State::object : State::done;
    place_ = i + 1;
}

// The object around

void TraceScanner::object() {
    const Counts before = parser_.counts;
    try {
        return member();
    } catch (const Broken&) {
    }
    parser_.counts = before;
    // The damage may have been one of the events'.
    const std::string_view data = at_hand();
    std::size_t found = has_list_ ? nowhere : find_events(data, place_);
    if (found != nowhere) {
        has_list_ = true;
    } else {
        if (!has_list_ && !whole()) throw Cut{};
        found = find_start(data, place_);
        if (found == nowhere) throw Cut{};
        ++parser_.counts.damaged_events;
    }
    first_ = true;
    place_ = found;
    state_ = State::events;
}

// Reads a key of the top level and its value; of the list of events only its bracket.
void TraceScanner::member() {
    std::size_t i = parser_.separate(place_, '}', first_);
    if (parser_[i] == '}') {
        state_ = State::done;
        return;
    }
    const Raw key = parser_.key(i);
    const bool is_list = key.bytes == "traceEvents";
    if (is_list && parser_[i] == '[') {
        has_list_ = first_ = true;
        place_ = i + 1;
        state_ = State::events;
        return;
    }
    std::string value;
    i = parser_.value(i, Where::object, &value);
    const char c = parser_[parser_.blank(i)];
    if (c != ',' && c != '}') throw Broken{};
    if (is_list) {
        has_list_ = value == "null";
    } else {
        const std::string_view name = Parser::decoded(key, scratch_);
        const int64_t all = static_cast<int64_t>(top_bytes.size() + name.size() + value.size());
        if (all > limits_.top) throw Excess{Limit::top, all};
        top_bytes.append(name.data(), name.size());
        top_ends.append(static_cast<int64_t>(top_bytes.size()));
        top_bytes.append(value.data(), value.size());
        top_ends.append(static_cast<int64_t>(top_bytes.size()));
    }
    place_ = i;
    first_ = false;
}

// The list of events

void TraceScanner::events() {
    const Counts before = parser_.counts;
    int64_t commas = 0;
    std::size_t i = parser_.blank(place_);
    for (; parser_[i] == ','; i = parser_.blank(i + 1)) ++commas;
    const bool ends = parser_[i] == ']';
    parser_.counts.stray_commas += first_ || ends ? commas : commas ? commas - 1 : 0;
    const State outside = bare_list_ ? State::done : State::object;
    if (ends) {
        place_ = i + 1;
        first_ = false;
        state_ = outside;
        return;
    }
    if (parser_[i] == '{') {
        place_ = event(i);
        first_ = false;
        return;
    }
    std::size_t next;
    try {
        next = parser_.value(i, Where::list);
        const char c = parser_[parser_.blank(next)];
        if (c != ',' && c != ']') throw Broken{};
    } catch (const Broken&) {
        parser_.counts = before;
        next = find_start(at_hand(), i);
        if (next == nowhere) {
            if (!whole()) throw Cut{};
            first_ = false;
            state_ = outside;  // the list's bracket is missing
            return;
        }
    }
    place_ = next;
    first_ = false;
    ++parser_.counts.damaged_events;
}

// Reads an event; returns where to go on: behind it, or behind as much as is damaged.
std::size_t TraceScanner::event(std::size_t start) {
    const Counts before = parser_.counts;
    bool cut = false;
    try {
        return fields(start);
    } catch (const Cut&) {
        if (!whole()) throw;
        cut = true;
    } catch (const Broken&) {
    }
    parser_.counts = before;
    std::size_t following = find_start(at_hand(), start + 1);
    if (following == nowhere && (cut || !whole())) throw Cut{};
    if (following == nowhere) following = find_end(at_hand(), start);
    parser_.guess_up_to(following == nowhere ? parser_.size() : following);
    try {
        return fields(start);
    } catch (const Cut&) {
    } catch (const Broken&) {
    }
    parser_.counts = before;
    if (following == nowhere) throw Cut{};
    ++parser_.counts.damaged_events;
    return following;
}

// Reads an event's keys and appends it to the columns; returns the place behind.
std::size_t TraceScanner::fields(std::size_t start) {
    Event event;
    drop_arguments();
    std::size_t i = parser_.separate(start + 1, '}', true);
    while (parser_[i] != '}') {
        event.empty = false;
        const std::string_view key = parser_.key(i).bytes;
        field(event, key, i);
        i = parser_.separate(i, '}', false);
    }
    if (!event.empty) append(event, start);
    return i + 1;
}

void TraceScanner::field(Event& event, std::string_view key, std::size_t& i) {
    switch (key.size()) {
        case 2:
            if (key == "ts") return time(i, event.ts);
            if (key == "ph") {
                event.phase = 0;
                if (parser_[i] != '"') break;
                const std::string_view phase = parser_.string(i, Where::object).bytes;
                event.phase = phase.empty() ? 0 : static_cast<uint8_t>(phase[0]);
                return;
            }
            if (key == "id") {
                if (number(i, parse_integer, &event.flow) != Number::value) event.flow = absent;
                return;
            }
            break;
        case 3:
            if (key == "dur") return time(i, event.dur);
            if (key == "cat") return void(event.category = text(i, last_.category));
            if (key == "pid") return void(event.pid = text(i, last_.pid));
            if (key == "tid") return void(event.tid = text(i, last_.tid));
            break;
        case 4:
            if (key == "name") return void(event.name = text(i, -1));
            if (key == "args") {
                drop_arguments();
                if (parser_[i] == '{') return all_arguments(i);
            }
            break;
        default: break;
    }
    i = parser_.value(i, Where::object);
}

void TraceScanner::drop_arguments() {
    for (const uint32_t key : pending_keys_) pending_[key].state = Pending::none;
    pending_keys_.clear();
}

void TraceScanner::all_arguments(std::size_t& i) {
    i = parser_.separate(i + 1, '}', true);
    while (parser_[i] != '}') {
        const int32_t found = keys_.find(parser_.key(i).bytes);
        if (found < 0) {
            i = parser_.value(i, Where::object);
        } else {
            const std::size_t key = static_cast<std::size_t>(found);
            PendingArgument& argument = pending_[key];
            if (argument.state == Pending::none) pending_keys_.push_back(static_cast<uint32_t>(found));
            bool good;
            switch (keys_.kind(key)) {
                case TraceKind::integer:
                    good = number(i, parse_integer, &argument.value.integer) == Number::value;
                    break;
                case TraceKind::real:
                    good = number(i, parse_real, &argument.value.real) == Number::value;
                    break;
                default:
                    argument.value.integer = text(i, -1);
                    good = argument.value.integer >= 0;
            }
            argument.state = good ? Pending::value : Pending::dropped;
        }
        i = parser_.separate(i, '}', false);
    }
    ++i;
}

// A value

// Reads a number, in quotes or not, and moves `i` behind it.
template <class T>
TraceScanner::Number TraceScanner::number(std::size_t& i, bool (*convert)(std::string_view, T*), T* value) {
    if (parser_[i] == '"')
        return convert(parser_.string(i, Where::object).bytes, value) ? Number::value : Number::none;
    if (parser_[i] == '{' || parser_[i] == '[') {
        i = parser_.value(i, Where::object);
        return Number::none;
    }
    std::string_view word = parser_.word(i, Where::object);
    if (!parser_.is_json(word)) return convert(word, value) ? Number::value : Number::null;  // counted already
    if (word == "null") return Number::null;
    if (word == "true") word = "1";
    if (word == "false") word = "0";
    return convert(word, value) ? Number::value : Number::none;
}

// A time that is neither a number nor null is counted; other keys may well hold texts.
void TraceScanner::time(std::size_t& i, int64_t& value) {
    const Number found = number(i, parse_nanoseconds, &value);
    if (found != Number::value) value = absent;
    parser_.counts.not_numbers += found == Number::none;
}

// Reads a text, or the JSON of another value, and returns its number; -1 for null and what is none.
int32_t TraceScanner::text(std::size_t& i, int32_t likely) {
    if (parser_[i] == '"') {
        const Raw raw = parser_.string(i, Where::object);
        return intern(Parser::decoded(raw, scratch_), likely);
    }
    if (parser_[i] == '{' || parser_[i] == '[') {
        scratch_.clear();
        i = parser_.value(i, Where::object, &scratch_);
        return intern(scratch_, likely);
    }
    const std::string_view word = parser_.word(i, Where::object);
    return !parser_.is_json(word) || word == "null" ? -1 : intern(word, likely);
}

int32_t TraceScanner::intern(std::string_view text, int32_t likely) {
    return likely >= 0 && texts[likely] == text ? likely : texts.intern(text);
}

// What is left of it

void TraceScanner::append(const Event& event, std::size_t start) {
    if (rows_ >= limits_.events) throw Excess{Limit::events, int64_t{rows_} + 1};
    phase.append(event.phase);
    ts.append(event.ts);
    dur.append(event.dur);
    flow.append(is_flow(event.phase) ? event.flow : absent);
    offset.append(before_buffer_ + static_cast<int64_t>(start));
    category.append(event.category);
    name.append(event.name);
    pid.append(event.pid);
    tid.append(event.tid);
    for (const uint32_t key : pending_keys_) {
        const PendingArgument& argument = pending_[key];
        if (argument.state != Pending::value) continue;
        arguments_[key].rows.append(rows_);
        switch (keys_.kind(key)) {
            case TraceKind::integer: arguments_[key].values.append(argument.value.integer); break;
            case TraceKind::real: arguments_[key].values.append(argument.value.real); break;
            case TraceKind::text: arguments_[key].values.append(static_cast<int32_t>(argument.value.integer)); break;
        }
    }
    ++rows_;
    last_ = event;
}

}  // namespace torchwhy
