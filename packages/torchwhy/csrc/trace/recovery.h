// Where reading goes on behind damage.
#ifndef TORCHWHY_TRACE_RECOVERY_H
#define TORCHWHY_TRACE_RECOVERY_H

#include <cstddef>
#include <string_view>

namespace torchwhy {

constexpr std::size_t nowhere = std::string_view::npos;

// Where the first event from `from` on plausibly begins: an object whose first key is "ph"; with another key, only
// behind an object that ended.
std::size_t find_start(std::string_view data, std::size_t from);

// The bracket with which the list of events plausibly ends.
std::size_t find_end(std::string_view data, std::size_t from);

// The place behind the bracket that opens the list of events.
std::size_t find_events(std::string_view data, std::size_t from);

}  // namespace torchwhy

#endif
