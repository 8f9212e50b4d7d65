#include "trace/text.h"

#include <cstddef>
#include <cstdint>

namespace torchwhy {
namespace {

// How many of the bytes at `i` form a character; where they don't, -n with n how many to replace by one U+FFFD.
int character(std::string_view bytes, std::size_t i) {
    const auto at = [&](std::size_t k) { return static_cast<unsigned char>(bytes[k]); };
    const unsigned char lead = at(i);
    if (lead < 0x80) return 1;
    int length;
    unsigned char low = 0x80, high = 0xBF;  // the range of the second byte
    if (lead >= 0xC2 && lead <= 0xDF) {
        length = 2;
    } else if (lead >= 0xE0 && lead <= 0xEF) {
        length = 3;
        if (lead == 0xE0) low = 0xA0;
        if (lead == 0xED) high = 0x9F;
    } else if (lead >= 0xF0 && lead <= 0xF4) {
        length = 4;
        if (lead == 0xF0) low = 0x90;
        if (lead == 0xF4) high = 0x8F;
    } else {
        return -1;
    }
    for (int k = 1; k < length; ++k) {
        const std::size_t place = i + static_cast<std::size_t>(k);
        if (place >= bytes.size() || at(place) < low || at(place) > high) return -k;
        low = 0x80;
        high = 0xBF;
    }
    return length;
}

void append_code_point(uint32_t code, std::string& out) {
    const auto put = [&](uint32_t byte) { out.push_back(static_cast<char>(byte)); };
    if (code < 0x80) {
        put(code);
    } else if (code < 0x800) {
        put(0xC0 | code >> 6);
        put(0x80 | (code & 0x3F));
    } else if (code < 0x10000) {
        put(0xE0 | code >> 12);
        put(0x80 | (code >> 6 & 0x3F));
        put(0x80 | (code & 0x3F));
    } else {
        put(0xF0 | code >> 18);
        put(0x80 | (code >> 12 & 0x3F));
        put(0x80 | (code >> 6 & 0x3F));
        put(0x80 | (code & 0x3F));
    }
}

// The number in the escape \uXXXX at `i`, or -1 where there is none.
int32_t unit(std::string_view raw, std::size_t i) {
    if (raw.size() < i + 6 || raw[i] != '\\' || raw[i + 1] != 'u') return -1;
    int32_t value = 0;
    for (std::size_t k = i + 2; k < i + 6; ++k) {
        const char c = raw[k], lower = static_cast<char>(c | 0x20);
        if (c >= '0' && c <= '9')
            value = 16 * value + (c - '0');
        else if (lower >= 'a' && lower <= 'f')
            value = 16 * value + (lower - 'a' + 10);
        else
            return -1;
    }
    return value;
}

// What a backslash and this letter mean, or 0.
char short_escape(char letter) {
    switch (letter) {
        case '"': case '\\': case '/': return letter;
        case 'b': return '\b';
        case 'f': return '\f';
        case 'n': return '\n';
        case 'r': return '\r';
        case 't': return '\t';
        default: return 0;
    }
}

}  // namespace

bool is_utf8(std::string_view bytes) {
    for (std::size_t i = 0; i < bytes.size();) {
        const int length = character(bytes, i);
        if (length < 0) return false;
        i += static_cast<std::size_t>(length);
    }
    return true;
}

void append_utf8(std::string_view bytes, std::string& out) {
    for (std::size_t i = 0; i < bytes.size();) {
        const int length = character(bytes, i);
        if (length > 0)
            out.append(bytes, i, static_cast<std::size_t>(length));
        else
            out.append("\xEF\xBF\xBD");
        i += static_cast<std::size_t>(length > 0 ? length : -length);
    }
}

void append_unescaped(std::string_view raw, std::string& out) {
    for (std::size_t i = 0; i < raw.size();) {
        const std::size_t backslash = raw.find('\\', i);
        out.append(raw, i, backslash - i);  // to the end where there is none
        if (backslash == std::string_view::npos) return;
        i = backslash;
        if (const int32_t first = unit(raw, i); first >= 0) {
            const int32_t second = first >= 0xD800 && first < 0xDC00 ? unit(raw, i + 6) : -1;
            if (second >= 0xDC00 && second < 0xE000) {
                append_code_point(0x10000u + (static_cast<uint32_t>(first - 0xD800) << 10) +
                                      static_cast<uint32_t>(second - 0xDC00), out);
                i += 12;
            } else {
                append_code_point(first >= 0xD800 && first < 0xE000 ? 0xFFFDu : static_cast<uint32_t>(first), out);
                i += 6;
            }
        } else if (const char meant = i + 1 < raw.size() ? short_escape(raw[i + 1]) : '\0'; meant) {
            out.push_back(meant);
            i += 2;
        } else {
            out.push_back('\\');
            ++i;
        }
    }
}

void append_quoted(std::string_view text, std::string& out) {
    static const char hexadecimal[] = "0123456789abcdef";
    out.push_back('"');
    for (const char c : text) {
        const unsigned char byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out.push_back('\\');
            out.push_back(c);
        } else if (byte < 0x20) {
            out.append("\\u00");
            out.push_back(hexadecimal[byte >> 4]);
            out.push_back(hexadecimal[byte & 15]);
        } else {
            out.push_back(c);
        }
    }
    out.push_back('"');
}

}  // namespace torchwhy
