// The arguments to keep: which, and as what.
#ifndef TORCHWHY_TRACE_KEYS_H
#define TORCHWHY_TRACE_KEYS_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace torchwhy {

enum class TraceKind { integer, real, text };

class TraceKeys {
public:
    void add(std::string_view name, TraceKind kind) {
        entries_.push_back({std::string(name), kind});
        std::size_t slots = 64;
        while (slots < 8 * entries_.size()) slots *= 2;
        slots_.assign(slots, -1);
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            std::size_t place = place_of(entries_[i].name);
            while (slots_[place] >= 0) place = (place + 1) & (slots_.size() - 1);
            slots_[place] = static_cast<int32_t>(i);
        }
    }

    std::size_t size() const { return entries_.size(); }
    TraceKind kind(std::size_t key) const { return entries_[key].kind; }

    // The key of this name, or -1.
    int32_t find(std::string_view name) const {
        if (slots_.empty()) return -1;
        for (std::size_t place = place_of(name);; place = (place + 1) & (slots_.size() - 1)) {
            const int32_t key = slots_[place];
            if (key < 0 || entries_[static_cast<std::size_t>(key)].name == name) return key;
        }
    }

private:
    struct Entry {
        std::string name;
        TraceKind kind;
    };

    // A few characters tell the names apart well enough, and most names asked for are not here.
    std::size_t place_of(std::string_view name) const {
        if (name.empty()) return 0;
        const auto at = [&](std::size_t i) { return static_cast<uint32_t>(static_cast<unsigned char>(name[i])); };
        const std::size_t length = name.size();
        const uint32_t mixed = at(0) | at(length / 2) << 8 | at(length - 1) << 16 | static_cast<uint32_t>(length) << 24;
        return (mixed * 0x9E3779B1u >> 16) & (slots_.size() - 1);
    }

    std::vector<Entry> entries_;
    std::vector<int32_t> slots_;
};

}  // namespace torchwhy

#endif
