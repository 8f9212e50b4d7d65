#include "trace/number.h"

#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>

namespace torchwhy {
namespace {

constexpr uint64_t largest = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
// Beyond the digits any file has: with such an exponent a number is 0 or out of range.
constexpr int64_t far = 1'000'000'000'000;

bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

struct Decimal {
    bool negative = false;
    std::string_view whole, fraction;
    int64_t exponent = 0;
};

std::string_view digits(std::string_view text, std::size_t& i) {
    const std::size_t start = i;
    while (i < text.size() && is_digit(text[i])) ++i;
    return text.substr(start, i - start);
}

int64_t exponent_of(std::string_view all, bool negative) {
    std::size_t zeros = 0;
    while (zeros < all.size() && all[zeros] == '0') ++zeros;
    all.remove_prefix(zeros);
    int64_t size = far;
    if (all.size() <= 12) {
        size = 0;
        for (const char c : all) size = 10 * size + (c - '0');
    }
    return negative ? -size : size;
}

bool split(std::string_view text, Decimal& out) {
    std::size_t i = 0;
    if (i < text.size() && text[i] == '-') {
        out.negative = true;
        ++i;
    }
    out.whole = digits(text, i);
    if (out.whole.empty() || (out.whole.size() > 1 && out.whole[0] == '0')) return false;
    if (i < text.size() && text[i] == '.') {
        ++i;
        out.fraction = digits(text, i);
        if (out.fraction.empty()) return false;
    }
    if (i < text.size() && (text[i] == 'e' || text[i] == 'E')) {
        ++i;
        bool negative = false;
        if (i < text.size() && (text[i] == '+' || text[i] == '-')) negative = text[i++] == '-';
        const std::string_view all = digits(text, i);
        if (all.empty()) return false;
        out.exponent = exponent_of(all, negative);
    }
    return i == text.size();
}

// A number times 10^power, rounded half away from zero; `exact` says whether it was a whole one before.
bool scaled(std::string_view text, int power, int64_t* value, bool* exact) {
    Decimal decimal;
    if (!split(text, decimal)) return false;
    // The digits in one row, without leading zeros: digit(0) is not 0.
    const std::size_t count = decimal.whole.size() + decimal.fraction.size();
    const auto digit = [&](std::size_t i) {
        return i < decimal.whole.size() ? decimal.whole[i] : decimal.fraction[i - decimal.whole.size()];
    };
    std::size_t first = 0;
    while (first < count && digit(first) == '0') ++first;
    *exact = true;
    if (first == count) {
        *value = 0;
        return true;
    }
    const int64_t significant = static_cast<int64_t>(count - first);
    // How many of them stand before the point.
    const int64_t before =
        significant + decimal.exponent + power - static_cast<int64_t>(decimal.fraction.size());
    if (before > 19) return false;
    uint64_t size = 0;
    for (int64_t i = 0; i < before; ++i)
        size = 10 * size + static_cast<uint64_t>(i < significant ? digit(first + static_cast<std::size_t>(i)) - '0' : 0);
    if (before >= 0 && before < significant && digit(first + static_cast<std::size_t>(before)) >= '5') ++size;
    if (size > largest) return false;
    for (int64_t i = before < 0 ? 0 : before; i < significant && *exact; ++i)
        *exact = digit(first + static_cast<std::size_t>(i)) == '0';
    *value = decimal.negative ? -static_cast<int64_t>(size) : static_cast<int64_t>(size);
    return true;
}

// The common form, [-]digits[.digits], where 19 digits are enough and nothing is rounded.
bool plain(std::string_view text, int power, int64_t* value) {
    const char* p = text.data();
    const char* const end = p + text.size();
    const bool negative = p < end && *p == '-';
    p += negative;
    if (p == end || (*p == '0' && end - p > 1 && p[1] != '.')) return false;
    uint64_t size = 0;
    const char* const start = p;
    while (p < end && is_digit(*p)) size = 10 * size + static_cast<uint64_t>(*p++ - '0');
    if (p == start || p - start + power > 19) return false;
    if (p < end) {
        if (*p != '.' || end - p < 2 || end - p - 1 > power) return false;
        for (++p; p < end; ++p, --power) {
            if (!is_digit(*p)) return false;
            size = 10 * size + static_cast<uint64_t>(*p - '0');
        }
    }
    for (; power > 0; --power) size *= 10;
    if (size > largest) return false;
    *value = negative ? -static_cast<int64_t>(size) : static_cast<int64_t>(size);
    return true;
}

bool parse_hexadecimal(std::string_view text, int64_t* value) {
    uint64_t size = 0;
    for (const char c : text.substr(2)) {
        const char lower = static_cast<char>(c | 0x20);
        int digit;
        if (is_digit(c))
            digit = c - '0';
        else if (lower >= 'a' && lower <= 'f')
            digit = lower - 'a' + 10;
        else
            return false;
        if (size > largest / 16) return false;
        size = 16 * size + static_cast<uint64_t>(digit);
    }
    *value = static_cast<int64_t>(size);
    return true;
}

bool is_infinity(std::string_view text) {
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
    const std::string_view name = "infinity";
    if (text.size() != 3 && text.size() != 8) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if ((c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c) != name[i]) return false;
    }
    return true;
}

// From JSON's form, so there are no surprises of hexadecimal or locale in the text itself.
double to_double(std::string_view text) {
#if defined(__cpp_lib_to_chars) && __cpp_lib_to_chars >= 201611L
    double value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    return result.ec == std::errc() ? value : std::numeric_limits<double>::infinity();
#else
    return std::strtod(std::string(text).c_str(), nullptr);
#endif
}

}  // namespace

bool is_number(std::string_view word) {
    Decimal decimal;
    return split(word, decimal);
}

bool parse_nanoseconds(std::string_view text, int64_t* value) {
    bool exact;
    return plain(text, 3, value) || scaled(text, 3, value, &exact);
}

bool parse_integer(std::string_view text, int64_t* value) {
    if (text.size() > 2 && text[0] == '0' && (text[1] | 0x20) == 'x') return parse_hexadecimal(text, value);
    bool exact;
    return plain(text, 0, value) || (scaled(text, 0, value, &exact) && exact);
}

bool parse_real(std::string_view text, double* value) {
    if (is_infinity(text)) {
        *value = text[0] == '-' ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
        return true;
    }
    Decimal decimal;
    if (!split(text, decimal)) return false;
    *value = to_double(text);
    if (std::isinf(*value)) return false;
    if (*value != 0) return true;
    for (const std::string_view part : {decimal.whole, decimal.fraction})
        for (const char c : part)
            if (c != '0') return false;
    return true;
}

}  // namespace torchwhy
