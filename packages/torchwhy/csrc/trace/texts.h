// Every distinct text once.
#ifndef TORCHWHY_TRACE_TEXTS_H
#define TORCHWHY_TRACE_TEXTS_H

#include <cstdint>
#include <string_view>
#include <vector>

#include "trace/block.h"
#include "trace/limits.h"

namespace torchwhy {

class Texts {
public:
    explicit Texts(const Limits& limits) : longest_(limits.text), most_(limits.texts) {}

    // The text's number; equal texts have equal numbers, in the order of their first appearance. Throws Excess.
    int32_t intern(std::string_view text);

    std::string_view operator[](int32_t index) const {
        const int64_t start = index ? end(index - 1) : 0;
        return {bytes_.data() + start, static_cast<std::size_t>(end(index) - start)};
    }

    Block& bytes() { return bytes_; }  // one text after the other
    Block& ends() { return ends_; }    // int64: where each one ends

private:
    struct Slot {
        uint32_t hash;
        int32_t index;  // -1 where empty
    };

    int64_t end(int32_t index) const {
        int64_t value;
        std::memcpy(&value, ends_.data() + sizeof value * static_cast<std::size_t>(index), sizeof value);
        return value;
    }
    void grow();

    Block bytes_, ends_;
    std::vector<Slot> slots_;
    std::size_t count_ = 0;
    int64_t longest_, most_;
};

}  // namespace torchwhy

#endif
