#include "support/arena.h"

#include <algorithm>
#include <cstdint>

namespace torchfx {
namespace {

constexpr std::size_t cache_line = 64;

// With the usual model of thread-local storage, the first access in a thread may allocate.
#if defined(__linux__)
__attribute__((tls_model("initial-exec")))
#endif
thread_local Arena* current = nullptr;

}  // namespace

Arena::Use::Use(Arena& arena) : before_(current) {
    arena.used_ = 0;
    current = &arena;
}

Arena::Use::~Use() { current = before_; }

void* take_from_arena(std::size_t bytes) {
    Arena* const arena = current;
    if (!arena) return nullptr;
    const auto begin = reinterpret_cast<std::uintptr_t>(arena->memory_);
    const std::size_t start = (begin + arena->used_ + cache_line - 1) / cache_line * cache_line - begin;
    arena->used_ = start + bytes;
    arena->most_ = std::max(arena->most_, arena->used_);
    return arena->used_ <= arena->size_ ? arena->memory_ + start : nullptr;
}

bool has_arena() { return current != nullptr; }

bool is_from_arena(const void* memory) {
    const Arena* const arena = current;
    if (!arena) return false;
    const auto at = reinterpret_cast<std::uintptr_t>(memory), begin = reinterpret_cast<std::uintptr_t>(arena->memory_);
    return at >= begin && at < begin + arena->size_;
}

}  // namespace torchfx
