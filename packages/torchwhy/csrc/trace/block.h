// A growing block of memory that can be given away: what a trace's columns are made of.
#ifndef TORCHWHY_TRACE_BLOCK_H
#define TORCHWHY_TRACE_BLOCK_H

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace torchwhy {

// Grows by realloc, which moves large blocks by remapping pages rather than by copying: a vector would hold the old and
// the new one at a time. All functions that grow throw std::bad_alloc.
class Block {
public:
    Block() = default;
    ~Block() { std::free(data_); }
    Block(Block&& other) noexcept { swap(other); }
    Block& operator=(Block&& other) noexcept {
        swap(other);
        return *this;
    }

    char* data() { return data_; }
    const char* data() const { return data_; }
    std::size_t size() const { return size_; }

    template <class T>
    void append(T value) {
        if (capacity_ - size_ < sizeof(T)) reserve(size_ + sizeof(T));
        std::memcpy(data_ + size_, &value, sizeof(T));
        size_ += sizeof(T);
    }

    void append(const char* bytes, std::size_t count) {
        if (!count) return;
        if (capacity_ - size_ < count) reserve(size_ + count);
        std::memcpy(data_ + size_, bytes, count);
        size_ += count;
    }

    // Room for `bytes` in all.
    void reserve(std::size_t bytes) {
        if (bytes <= capacity_) return;
        std::size_t wanted = capacity_ < 4096 ? 4096 : 2 * capacity_;
        if (wanted < bytes) wanted = bytes;
        void* grown = std::realloc(data_, wanted);
        if (!grown) throw std::bad_alloc();
        data_ = static_cast<char*>(grown);
        capacity_ = wanted;
    }

    void resize(std::size_t bytes) {
        reserve(bytes);
        size_ = bytes;
    }

    // Hands the memory over, cut to its size; std::free releases it. NULL when empty.
    char* take() {
        char* taken = data_;
        if (taken && size_ && size_ < capacity_)
            if (void* cut = std::realloc(taken, size_)) taken = static_cast<char*>(cut);
        if (taken && !size_) {
            std::free(taken);
            taken = nullptr;
        }
        data_ = nullptr;
        size_ = capacity_ = 0;
        return taken;
    }

private:
    void swap(Block& other) {
        std::swap(data_, other.data_);
        std::swap(size_, other.size_);
        std::swap(capacity_, other.capacity_);
    }

    char* data_ = nullptr;
    std::size_t size_ = 0, capacity_ = 0;
};

}  // namespace torchwhy

#endif
