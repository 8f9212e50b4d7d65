#include "support/workspace.h"

#include <new>

#include "support/arena.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

// In front of the memory it describes.
struct alignas(64) Block {
    std::size_t bytes;
};

constexpr std::size_t smallest_kept = std::size_t{1} << 16, largest_kept = std::size_t{1} << 22;
constexpr std::align_val_t cache_line{64};

// Without locks: a forked child may find any of them held for ever.
std::atomic<Block*> kept[4];
std::atomic<unsigned> oldest{0};

void release(Block* block) {
    if (block) ::operator delete(block, cache_line);
}

Block* allocate(std::size_t bytes) {
    void* memory = ::operator new(sizeof(Block) + bytes, cache_line);
    // A large transform would spend more time on the first touch of small pages than on its arithmetic.
    if (bytes > largest_kept) torchfx_advise_huge_pages(memory, static_cast<int64_t>(bytes));
    return new (memory) Block{bytes};
}

Block* take_kept(std::size_t bytes) {
    for (std::atomic<Block*>& slot : kept) {
        Block* block = slot.exchange(nullptr, std::memory_order_acquire);
        if (!block) continue;
        if (block->bytes >= bytes && block->bytes / 4 <= bytes) return block;
        Block* empty = nullptr;
        if (!slot.compare_exchange_strong(empty, block, std::memory_order_release)) release(block);
    }
    return nullptr;
}

}  // namespace

double* take_memory(std::size_t bytes) {
    if (void* const found = take_from_arena(bytes)) return static_cast<double*>(found);
    Block* block = bytes < smallest_kept || bytes > largest_kept ? nullptr : take_kept(bytes);
    if (!block) block = allocate(bytes);
    return reinterpret_cast<double*>(block + 1);
}

void give_memory_back(double* memory) {
    if (is_from_arena(memory)) return;
    Block* block = reinterpret_cast<Block*>(memory) - 1;
    if (block->bytes >= smallest_kept && block->bytes <= largest_kept) {
        for (std::atomic<Block*>& slot : kept) {
            Block* empty = nullptr;
            if (slot.compare_exchange_strong(empty, block, std::memory_order_release)) return;
        }
        // All places taken: sizes no longer in use must not keep them.
        block = kept[oldest.fetch_add(1, std::memory_order_relaxed) % 4].exchange(block, std::memory_order_acq_rel);
    }
    release(block);
}

}  // namespace torchfx
