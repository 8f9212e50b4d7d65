#include "trace/texts.h"

namespace torchwhy {
namespace {

uint32_t hash_of(std::string_view text) {
    constexpr uint64_t odd = 0x9E3779B97F4A7C15u;
    const char* p = text.data();
    std::size_t left = text.size();
    uint64_t hash = left * odd, word;
    for (; left >= 8; p += 8, left -= 8) {
        std::memcpy(&word, p, 8);
        hash = (hash ^ word) * odd;
        hash ^= hash >> 32;
    }
    word = 0;
    if (left) std::memcpy(&word, p, left);
    hash = (hash ^ word) * odd;
    return static_cast<uint32_t>(hash >> 32);
}

}  // namespace

void Texts::grow() {
    const std::vector<Slot> old = std::move(slots_);
    slots_.assign(old.empty() ? 1024 : 2 * old.size(), Slot{0, -1});
    const std::size_t mask = slots_.size() - 1;
    for (const Slot& slot : old) {
        if (slot.index < 0) continue;
        std::size_t place = slot.hash & mask;
        while (slots_[place].index >= 0) place = (place + 1) & mask;
        slots_[place] = slot;
    }
}

int32_t Texts::intern(std::string_view text) {
    if (2 * count_ >= slots_.size()) grow();
    const uint32_t hash = hash_of(text);
    const std::size_t mask = slots_.size() - 1;
    std::size_t place = hash & mask;
    for (; slots_[place].index >= 0; place = (place + 1) & mask)
        if (slots_[place].hash == hash && (*this)[slots_[place].index] == text) return slots_[place].index;
    const int64_t size = static_cast<int64_t>(text.size()), all = static_cast<int64_t>(bytes_.size()) + size;
    if (size > longest_) throw Excess{Limit::text, size};
    if (all > most_) throw Excess{Limit::texts, all};
    const int32_t index = static_cast<int32_t>(count_);
    bytes_.append(text.data(), text.size());
    ends_.append(static_cast<int64_t>(bytes_.size()));
    slots_[place] = Slot{hash, index};
    ++count_;
    return index;
}

}  // namespace torchwhy
