// Working memory for the tasks of a parallel loop: as many buffers as threads, made before the loop starts.
#ifndef TORCHFX_SUPPORT_WORKSPACE_H
#define TORCHFX_SUPPORT_WORKSPACE_H

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "support/arena.h"

namespace torchfx {

// Uninitialised memory aligned to a cache line. Blocks of middling size are kept for the next call: fresh ones
// would come from the system, page by page, and cost more than what is computed in them. At most 16 MiB stay
// allocated. Throws std::bad_alloc.
double* take_memory(std::size_t bytes);
void give_memory_back(double* memory);

class Workspaces {
public:
    // Buffers of `size` doubles. Throws std::bad_alloc.
    Workspaces(int count, int64_t size)
        : count_(count), size_((size + 7) / 8 * 8), taken_(static_cast<std::size_t>(count)),
          data_(take_memory(sizeof(double) * static_cast<std::size_t>(size_ * count))) {
        for (std::atomic<bool>& each : taken_) each.store(false, std::memory_order_relaxed);
    }

    // One buffer for as long as this lives. Never more at a time than there are buffers.
    class Lease {
    public:
        explicit Lease(Workspaces& all) : all_(all) {
            while (all_.taken_[static_cast<std::size_t>(index_)].exchange(true, std::memory_order_acquire)) index_ = (index_ + 1) % all_.count_;
        }
        ~Lease() { all_.taken_[static_cast<std::size_t>(index_)].store(false, std::memory_order_release); }
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;
        double* data() const { return all_.data_.get() + index_ * all_.size_; }

    private:
        Workspaces& all_;
        int index_ = 0;
    };

private:
    struct GiveBack {
        void operator()(double* memory) const { give_memory_back(memory); }
    };
    int count_;
    int64_t size_;
    ScratchVector<std::atomic<bool>> taken_;
    std::unique_ptr<double, GiveBack> data_;
};

}  // namespace torchfx

#endif
