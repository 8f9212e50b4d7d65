// Blocks from one thread to another, without locks.
#ifndef TORCHFX_LIVE_RING_H
#define TORCHFX_LIVE_RING_H

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <vector>

namespace torchfx {

class BlockRing {
public:
    // With 0 blocks there is no ring: it is always full, and empty.
    BlockRing(int64_t blocks, int64_t size)
        : blocks_(blocks), size_(size), samples_(static_cast<std::size_t>(blocks * size)),
          numbers_(static_cast<std::size_t>(blocks)) {}

    bool exists() const { return blocks_ > 0; }
    int64_t count() const { return written_.load(std::memory_order_acquire) - read_.load(std::memory_order_acquire); }
    bool full() const { return count() >= blocks_; }

    // One thread writes,
    bool write(const float* block, int64_t number = 0) {
        const int64_t at = written_.load(std::memory_order_relaxed);
        if (at - read_.load(std::memory_order_acquire) >= blocks_) return false;
        std::copy_n(block, size_, place(at));
        numbers_[static_cast<std::size_t>(at % blocks_)] = number;
        written_.store(at + 1, std::memory_order_release);
        return true;
    }

    // and one reads: the number of the oldest block, or -1 if there is none,
    int64_t next() const {
        const int64_t at = read_.load(std::memory_order_relaxed);
        if (at == written_.load(std::memory_order_acquire)) return -1;
        return numbers_[static_cast<std::size_t>(at % blocks_)];
    }
    // and the block, where there is one.
    void read(float* block) {
        const int64_t at = read_.load(std::memory_order_relaxed);
        if (block) std::copy_n(place(at), size_, block);
        read_.store(at + 1, std::memory_order_release);
    }

private:
    float* place(int64_t at) { return samples_.data() + at % blocks_ * size_; }

    int64_t blocks_, size_;
    std::vector<float> samples_;
    std::vector<int64_t> numbers_;
    alignas(64) std::atomic<int64_t> written_{0};
    alignas(64) std::atomic<int64_t> read_{0};
};

}  // namespace torchfx

#endif
