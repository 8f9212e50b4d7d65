// Reads a trace file fed in pieces into columns. src/torchwhy/trace/file/scan_python.py is the same in Python,
// says why, and is what results are compared with.
#ifndef TORCHWHY_TRACE_SCANNER_H
#define TORCHWHY_TRACE_SCANNER_H

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trace/block.h"
#include "trace/keys.h"
#include "trace/limits.h"
#include "trace/parser.h"
#include "trace/texts.h"

namespace torchwhy {

constexpr int64_t absent = INT64_MIN;

class TraceScanner {
public:
    TraceScanner(TraceKeys keys, const Limits& limits)
        : texts(limits), limits_(limits), keys_(std::move(keys)), arguments_(keys_.size()), pending_(keys_.size()),
          parser_(limits.depth) {}

    // Both throw Excess; the scanner is done then.
    void feed(const char* bytes, std::size_t count);
    void finish();

    // One entry per event.
    Block phase, ts, dur, flow, offset, category, name, pid, tid;
    // Of each key the rows that have it, and its values there.
    struct Argument {
        Block rows, values;
    };
    Argument& argument(std::size_t key) { return arguments_[key]; }
    std::size_t keys() const { return keys_.size(); }

    Texts texts;
    // Keys and values of the top level by turns, one after the other, and where each one ends.
    Block top_bytes, top_ends;

    const Counts& counts() const { return parser_.counts; }
    bool truncated() const { return truncated_; }
    bool bare_list() const { return bare_list_; }
    bool has_list() const { return has_list_; }
    int64_t size() const { return size_; }
    // Where in the file the step at hand begins: an event, or a key of the top level with its value.
    int64_t place() const { return before_buffer_ + static_cast<int64_t>(place_); }

private:
    enum class State { begin, object, events, done };
    enum class Pending : uint8_t { none, value, dropped };

    // The event at hand.
    struct Event {
        bool empty = true;
        uint8_t phase = 0;
        int64_t ts = absent, dur = absent, flow = absent;
        int32_t category = -1, name = -1, pid = -1, tid = -1;
    };
    struct PendingArgument {
        Pending state = Pending::none;
        union {
            int64_t integer;
            double real;
        } value{};
    };
    enum class Number { none, null, value };

    void run();
    void step();
    void begin();
    void object();
    void member();
    void events();
    std::size_t event(std::size_t start);
    std::size_t fields(std::size_t start);
    void field(Event& event, std::string_view key, std::size_t& i);
    void all_arguments(std::size_t& i);
    void drop_arguments();
    template <class T>
    Number number(std::size_t& i, bool (*convert)(std::string_view, T*), T* value);
    void time(std::size_t& i, int64_t& value);
    int32_t text(std::size_t& i, int32_t likely);
    int32_t intern(std::string_view text, int32_t likely);
    void append(const Event& event, std::size_t start);

    // Whether the step at hand sees all that is left of the file.
    bool whole() const { return final_ && parser_.size() == filled_; }
    std::string_view at_hand() const { return parser_.view(0, parser_.size()); }

    Limits limits_;
    TraceKeys keys_;
    std::vector<Argument> arguments_;
    std::vector<PendingArgument> pending_;
    std::vector<uint32_t> pending_keys_;
    Event last_;  // texts tend to repeat those of the event before
    int32_t rows_ = 0;

    Parser parser_;
    Block buffer_;
    std::size_t filled_ = 0;      // bytes of the buffer in use
    std::size_t place_ = 0;       // where in the buffer to go on
    std::size_t wanted_ = 0;      // not before it has this many bytes
    int64_t before_buffer_ = 0;   // bytes of the file before the buffer
    int64_t size_ = 0;
    State state_ = State::begin;
    bool first_ = true;  // nothing of the object or list has been read yet
    bool final_ = false;
    bool truncated_ = false, bare_list_ = false, has_list_ = false;
    std::string scratch_;
};

}  // namespace torchwhy

#endif
