// JSON as trace files have it: strings, values and the damage in both. src/torchwhy/trace/file/tolerant.py is
// the same in Python, says why, and is what results are compared with.
#ifndef TORCHWHY_TRACE_PARSER_H
#define TORCHWHY_TRACE_PARSER_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "trace/limits.h"

namespace torchwhy {

// This is not JSON, even generously read.
struct Broken {};
// The bytes at hand end here.
struct Cut {};

struct Counts {
    int64_t control_characters = 0, invalid_utf8 = 0, unescaped_quotes = 0, not_numbers = 0, stray_commas = 0,
            damaged_events = 0;
};

enum class Where { key, object, list };

// The bytes between two quotes, and what is special about them.
struct Raw {
    std::string_view bytes;
    bool escapes = false, controls = false, high = false, invalid = false, quotes = false;
};

inline bool is_blank(char c) { return static_cast<unsigned char>(c) <= 0x20; }

// Functions throw Cut at the end of the data, Broken at an earlier `end`, and Broken where the form is lost.
class Parser {
public:
    static constexpr std::size_t padding = 16;  // readable bytes behind the data

    explicit Parser(int64_t depth) : depth_(static_cast<std::size_t>(depth)) {}

    Counts counts;

    // Bytes to read from now on, with `padding` more behind them.
    void set(const char* data, std::size_t size) {
        data_ = data;
        size_ = end_ = size;
    }

    char operator[](std::size_t i) const { return data_[i]; }
    std::size_t size() const { return size_; }
    std::string_view view(std::size_t start, std::size_t end) const { return {data_ + start, end - start}; }

    void read_plainly() {
        guess_ = false;
        end_ = size_;
    }
    void guess_up_to(std::size_t end) {
        guess_ = true;
        end_ = end;
    }

    // The place of the next byte that is not blank.
    std::size_t blank(std::size_t i) const {
        if (i < end_ && !is_blank(data_[i])) return i;
        return skip_blank(i);
    }

    // Goes over the commas to the next element or to `closer`, counting those too many.
    std::size_t separate(std::size_t i, char closer, bool first) {
        i = blank(i);
        int64_t commas = 0;
        while (data_[i] == ',') {
            ++commas;
            i = blank(i + 1);
        }
        if (first || data_[i] == closer)
            counts.stray_commas += commas;
        else if (commas == 0)
            throw Broken{};
        else
            counts.stray_commas += commas - 1;
        return i;
    }

    // A string whose first quote is at `i`; moves `i` behind it.
    Raw string(std::size_t& i, Where where) { return guess_ ? guessed_string(i, where) : plain_string(i); }

    // A key; moves `i` from its first quote to its value.
    Raw key(std::size_t& i) {
        if (data_[i] != '"') throw Broken{};
        const Raw raw = string(i, Where::key);
        i = blank(i);
        if (data_[i] != ':') throw Broken{};
        i = blank(i + 1);
        return raw;
    }

    // A number or another bare word; empty where an object lacks a value. Moves `i` behind it.
    std::string_view word(std::size_t& i, Where where) const;

    // Whether a bare word is a number or literal of JSON; others are counted.
    bool is_json(std::string_view word);

    // Goes over a value; returns the place behind. With `out`, appends it there, as proper JSON.
    std::size_t value(std::size_t i, Where where, std::string* out = nullptr);

    // What is meant by a string: its own bytes, or `scratch` where they had to be changed.
    static std::string_view decoded(const Raw& raw, std::string& scratch);

private:
    [[noreturn]] void stop() const {
        if (end_ == size_) throw Cut{};
        throw Broken{};
    }
    std::size_t skip_blank(std::size_t i) const {
        while (i < end_ && is_blank(data_[i])) ++i;
        if (i >= end_) stop();
        return i;
    }
    std::size_t skip_blank_and_commas(std::size_t i) const {
        while (i < end_ && (is_blank(data_[i]) || data_[i] == ',')) ++i;
        return i;
    }
    Raw plain_string(std::size_t& i);
    Raw guessed_string(std::size_t& i, Where where);
    Raw noted(Raw raw);
    bool closes(std::size_t quote, Where where) const;
    void write_string(const Raw& raw, std::string& out);

    const char* data_ = nullptr;
    std::size_t size_ = 0, end_ = 0, depth_;
    bool guess_ = false;
    std::string scratch_;
    std::vector<char> closers_;
};

inline Raw Parser::plain_string(std::size_t& i) {
    Raw raw;
    const std::size_t start = i + 1;
    std::size_t j = start;
    for (;;) {
        // Eight bytes at a time: is one of them a quote, a backslash, a control character or not ASCII? A test may be
        // wrong about bytes above one that it found, so only the lowest byte found counts.
        constexpr uint64_t ones = 0x0101010101010101u, tops = 0x8080808080808080u;
        uint64_t bytes;
        std::memcpy(&bytes, data_ + j, 8);  // perhaps into the padding
        const uint64_t quote = bytes ^ ones * '"', backslash = bytes ^ ones * '\\';
        const uint64_t found =
            (((quote - ones) & ~quote) | ((backslash - ones) & ~backslash) | (bytes - ones * 0x20) | bytes) & tops;
        if (!found) {
            j += 8;
            if (j >= end_) stop();
            continue;
        }
#if defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
        j += static_cast<std::size_t>(__builtin_ctzll(found)) / 8;
#else
        while (data_[j] != '"' && data_[j] != '\\' && static_cast<unsigned char>(data_[j] - 0x20) < 0x60) ++j;
#endif
        if (j >= end_) stop();
        const char c = data_[j];
        if (c == '"') break;
        if (c == '\\') {
            raw.escapes = true;
            if (++j >= end_) stop();
        }
        raw.controls |= static_cast<unsigned char>(data_[j]) < 0x20;
        raw.high |= static_cast<unsigned char>(data_[j]) >= 0x80;
        ++j;
    }
    raw.bytes = view(start, j);
    i = j + 1;
    return raw.controls || raw.high ? noted(raw) : raw;
}

}  // namespace torchwhy

#endif
