// Numbers of a trace file, read from their decimals: time never passes through a float.
#ifndef TORCHWHY_TRACE_NUMBER_H
#define TORCHWHY_TRACE_NUMBER_H

#include <cstdint>
#include <string_view>

namespace torchwhy {

// Whether a word is a number as JSON has it.
bool is_number(std::string_view word);

// Each writes to `value` and returns true, or returns false where the text is no such number.

// Nanoseconds of a decimal number of microseconds, rounded to the nearest, halves away from zero.
bool parse_nanoseconds(std::string_view text, int64_t* value);
// A whole number, also one written as 3.0, 1e3 or 0x1f.
bool parse_integer(std::string_view text, int64_t* value);
// Infinities may be spelled out; what is too large or too small for a double is no number.
bool parse_real(std::string_view text, double* value);

}  // namespace torchwhy

#endif
