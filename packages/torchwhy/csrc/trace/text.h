// Texts of a trace file: which bytes are UTF-8, and what escapes mean.
#ifndef TORCHWHY_TRACE_TEXT_H
#define TORCHWHY_TRACE_TEXT_H

#include <string>
#include <string_view>

namespace torchwhy {

bool is_utf8(std::string_view bytes);

// Appends bytes as UTF-8: what is none becomes U+FFFD, one for each longest piece that could have begun a character
// (as Unicode recommends and Python does).
void append_utf8(std::string_view bytes, std::string& out);

// Replaces the escapes of JSON; others stay as they are. Halves of a surrogate pair alone become U+FFFD.
void append_unescaped(std::string_view raw, std::string& out);

// Appends a text in quotes, as JSON has it.
void append_quoted(std::string_view text, std::string& out);

}  // namespace torchwhy

#endif
