// Working memory of a size known at run time: on the stack while it is small, so that short blocks allocate nothing.
#ifndef TORCHFX_SUPPORT_SCRATCH_H
#define TORCHFX_SUPPORT_SCRATCH_H

#include <cstddef>
#include <memory>
#include <new>

#include "support/arena.h"

namespace torchfx {

// Uninitialised, aligned to a cache line. Throws std::bad_alloc.
template <class T, std::size_t on_stack>
class Scratch {
public:
    explicit Scratch(std::size_t count) : data_(count <= on_stack ? reinterpret_cast<T*>(local_) : allocate(count)) {}
    ~Scratch() {
        if (data_ != reinterpret_cast<T*>(local_) && !is_from_arena(data_)) ::operator delete(data_, std::align_val_t{64});
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    T* data() { return data_; }
    const T* data() const { return data_; }
    T& operator[](std::size_t i) { return data_[i]; }

private:
    static T* allocate(std::size_t count) {
        void* const found = take_from_arena(count * sizeof(T));
        return static_cast<T*>(found ? found : ::operator new(count * sizeof(T), std::align_val_t{64}));
    }
    alignas(64) unsigned char local_[on_stack * sizeof(T)];
    T* data_;
};

}  // namespace torchfx

#endif
