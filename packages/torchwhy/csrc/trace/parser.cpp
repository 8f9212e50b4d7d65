#include "trace/parser.h"

#include <algorithm>

#include "trace/number.h"
#include "trace/text.h"

namespace torchwhy {
namespace {

constexpr std::size_t longest_key = 256;  // a guessed key is not longer

struct WordTable {
    bool is[256] = {};
    constexpr WordTable() {
        for (int c = 0x21; c < 0x7F; ++c)
            is[c] = c != ',' && c != ':' && c != '"' && c != '{' && c != '}' && c != '[' && c != ']';
    }
};
constexpr WordTable words;

bool is_one_of(char c, const char* these) { return c && std::strchr(these, c); }

}  // namespace

Raw Parser::noted(Raw raw) {
    counts.control_characters += raw.controls;
    if (raw.high) {
        raw.invalid = !is_utf8(raw.bytes);
        counts.invalid_utf8 += raw.invalid;
    }
    return raw;
}

Raw Parser::guessed_string(std::size_t& i, Where where) {
    Raw raw;
    const std::size_t start = i + 1;
    int64_t inside = 0;
    std::size_t j = start;
    for (;; ++j) {
        if (j >= end_) stop();
        const bool escaped = data_[j] == '\\';
        if (escaped) {
            raw.escapes = true;
            if (++j >= end_) stop();
        }
        raw.controls |= static_cast<unsigned char>(data_[j]) < 0x20;
        raw.high |= static_cast<unsigned char>(data_[j]) >= 0x80;
        if (data_[j] != '"') continue;
        if (closes(j, where)) {
            inside += escaped;
            break;
        }
        inside += !escaped;
    }
    raw.quotes = inside != 0;
    counts.unescaped_quotes += inside;
    raw.bytes = view(start, j);
    i = j + 1;
    return noted(raw);
}

// Whether a string plausibly ends with this quote: what follows must go on like the object or list around.
bool Parser::closes(std::size_t quote, Where where) const {
    const auto blank_or_end = [&](std::size_t i) {
        while (i < end_ && is_blank(data_[i])) ++i;
        return i;
    };
    std::size_t i = blank_or_end(quote + 1);
    if (i >= end_) return true;
    if (where == Where::key) return data_[i] == ':';
    if (data_[i] == ',') {
        i = skip_blank_and_commas(i);
        if (i >= end_) return true;
        if (where == Where::list) return is_one_of(data_[i], "\"-0123456789{[tfnNI");
        if (data_[i] != '"') return data_[i] == '}';
        const std::size_t limit = std::min(end_, i + 1 + longest_key);
        for (++i; i < limit && data_[i] != '"'; ++i) {}
        if (i >= limit) return false;
        i = blank_or_end(i + 1);
        return i >= end_ || data_[i] == ':';
    }
    if (data_[i] != (where == Where::list ? ']' : '}')) return false;
    i = blank_or_end(i + 1);
    return i >= end_ || is_one_of(data_[i], ",}]");
}

std::string_view Parser::word(std::size_t& i, Where where) const {
    const std::size_t start = i;
    while (i < end_ && words.is[static_cast<unsigned char>(data_[i])]) ++i;
    if (i == start) {
        if (where == Where::object && (data_[i] == ',' || data_[i] == '}')) return {};
        throw Broken{};
    }
    if (i >= end_) stop();
    return view(start, i);
}

bool Parser::is_json(std::string_view word) {
    const bool good = is_number(word) || word == "true" || word == "false" || word == "null";
    counts.not_numbers += !good;
    return good;
}

std::string_view Parser::decoded(const Raw& raw, std::string& scratch) {
    if (!raw.escapes && !raw.invalid) return raw.bytes;
    scratch.clear();
    if (!raw.escapes) {
        append_utf8(raw.bytes, scratch);
    } else if (!raw.invalid) {
        append_unescaped(raw.bytes, scratch);
    } else {
        std::string unescaped;
        append_unescaped(raw.bytes, unescaped);
        append_utf8(unescaped, scratch);
    }
    return scratch;
}

void Parser::write_string(const Raw& raw, std::string& out) {
    if (raw.escapes || raw.invalid || raw.controls || raw.quotes) {
        append_quoted(decoded(raw, scratch_), out);
    } else {
        out.push_back('"');
        out.append(raw.bytes);
        out.push_back('"');
    }
}

std::size_t Parser::value(std::size_t i, Where where, std::string* out) {
    closers_.clear();
    for (;;) {
        const char c = data_[i];
        const Where inner = closers_.empty() ? where : closers_.back() == '}' ? Where::object : Where::list;
        bool opened = c == '{' || c == '[';
        if (opened) {
            closers_.push_back(c == '{' ? '}' : ']');
            if (closers_.size() > depth_) throw Excess{Limit::depth, static_cast<int64_t>(closers_.size())};
            if (out) out->push_back(c);
            ++i;
        } else if (c == '"') {
            const Raw raw = string(i, inner);
            if (out) write_string(raw, *out);
        } else {
            const std::string_view bare = word(i, inner);
            const bool good = is_json(bare);
            if (out) out->append(good ? bare : std::string_view("null"));
        }
        for (;; ++i) {
            if (closers_.empty()) return i;
            i = separate(i, closers_.back(), opened);
            if (data_[i] != closers_.back()) break;
            if (out) out->push_back(closers_.back());
            closers_.pop_back();
            opened = false;
        }
        if (out && !opened) out->push_back(',');
        if (closers_.back() == '}') {
            const Raw raw = key(i);
            if (out) {
                write_string(raw, *out);
                out->push_back(':');
            }
        }
    }
}

}  // namespace torchwhy
