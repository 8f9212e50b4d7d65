// Memory for a thread that must not ask the system for any, such as one that a sound device calls: what the operators
// take while they work comes from one piece that was made before.
#ifndef TORCHFX_SUPPORT_ARENA_H
#define TORCHFX_SUPPORT_ARENA_H

#include <cstddef>
#include <memory>
#include <vector>

namespace torchfx {

// A piece of memory that is used up from its begin to its end, and then anew.
class Arena {
public:
    explicit Arena(std::size_t bytes) : own_(std::make_unique<unsigned char[]>(bytes)), memory_(own_.get()), size_(bytes) {}
    // In memory of somebody else's.
    Arena(void* memory, std::size_t bytes) : memory_(static_cast<unsigned char*>(memory)), size_(bytes) {}

    // While one lives, this thread takes its working memory from the arena, from its begin on.
    class Use {
    public:
        explicit Use(Arena& arena);
        ~Use();
        Use(const Use&) = delete;
        Use& operator=(const Use&) = delete;

    private:
        Arena* before_;
    };

    // How many bytes were in use at most, those that did not fit counted too.
    std::size_t most() const { return most_; }
    std::size_t size() const { return size_; }

private:
    friend void* take_from_arena(std::size_t bytes);
    friend bool is_from_arena(const void* memory);

    std::unique_ptr<unsigned char[]> own_;
    unsigned char* memory_;
    std::size_t size_;
    std::size_t used_ = 0, most_ = 0;
};

// From this thread's arena, aligned to a cache line; nullptr where it has none, or none with room.
void* take_from_arena(std::size_t bytes);
// Whether this thread has an arena now.
bool has_arena();
// Whether memory lies in this thread's arena: it is given back with all the rest.
bool is_from_arena(const void* memory);

// Of what lives no longer than an operator works.
template <class T>
struct ScratchAllocator {
    using value_type = T;
    ScratchAllocator() = default;
    template <class U>
    ScratchAllocator(const ScratchAllocator<U>&) {}
    T* allocate(std::size_t count) {
        void* const found = take_from_arena(count * sizeof(T));
        return found ? static_cast<T*>(found) : std::allocator<T>().allocate(count);
    }
    void deallocate(T* memory, std::size_t count) {
        if (!is_from_arena(memory)) std::allocator<T>().deallocate(memory, count);
    }
    template <class U>
    bool operator==(const ScratchAllocator<U>&) const { return true; }
    template <class U>
    bool operator!=(const ScratchAllocator<U>&) const { return false; }
};

template <class T>
using ScratchVector = std::vector<T, ScratchAllocator<T>>;

}  // namespace torchfx

#endif
