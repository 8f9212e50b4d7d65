// A program of a live engine, with all the memory it needs.
#ifndef TORCHFX_LIVE_PROGRAM_H
#define TORCHFX_LIVE_PROGRAM_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "support/arena.h"
#include "torchfx_live.h"
#include "torchfx_program.h"

struct torchfx_live_program {
    torchfx_live_program(const int64_t* program, int64_t size, int64_t channels_, int64_t block_, int64_t bytes,
                         const int64_t* copied, int64_t count, const int64_t* states, int64_t state_count)
        : channels(channels_), block(block_), words(program, program + size), copies(copied, copied + 5 * count),
          y(static_cast<std::size_t>(channels_ * block_)), arena(static_cast<std::size_t>(bytes)) {
        for (int64_t i = 0; i < 3 * state_count; i += 3)
            ranges_.emplace_back(at<unsigned char>(states[i]), states[i + 1], at<const unsigned char>(states[i + 2]));
    }

    // Takes what it needs of the states of the program before, between two blocks.
    void take_over() const {
        for (std::size_t i = 0; i + 4 < copies.size(); i += 5) {
            const int64_t count = copies[i + 3], argument = copies[i + 4];
            switch (copies[i]) {
            case TORCHFX_LIVE_COPY_bytes:
                std::memcpy(at<char>(copies[i + 2]), at<const char>(copies[i + 1]), static_cast<std::size_t>(count));
                break;
            case TORCHFX_LIVE_COPY_matrices:
                multiply(at<const double>(argument), at<const double>(copies[i + 1]), at<double>(copies[i + 2]), count);
                break;
            case TORCHFX_LIVE_COPY_ramp_float: ramp(at<float>(copies[i + 2]), count, argument != 0); break;
            case TORCHFX_LIVE_COPY_ramp_double: ramp(at<double>(copies[i + 2]), count, argument != 0); break;
            default: break;
            }
        }
    }

    // Runs a block of x, (channels, block), into y.
    int32_t run(const float* x) {
        const torchfx::Arena::Use memory(arena);
        return torchfx_program_run(words.data(), static_cast<int64_t>(words.size()), x, block, 1, y.data(), block,
                                   channels, block, threshold, 1);
    }

    void begin_rest() { range_ = 0, byte_ = 0; }
    // Sets the next bytes of its states to rest, at most so many. Returns whether all are.
    bool rest(int64_t most) {
        while (most > 0 && range_ < ranges_.size()) {
            const Range& range = ranges_[range_];
            const int64_t count = std::min(most, range.bytes - byte_);
            if (range.copy.empty()) std::memset(range.memory + byte_, 0, static_cast<std::size_t>(count));
            else std::memcpy(range.memory + byte_, range.copy.data() + byte_, static_cast<std::size_t>(count));
            most -= count;
            byte_ += count;
            if (byte_ < range.bytes) continue;
            ++range_;
            byte_ = 0;
        }
        return range_ == ranges_.size();
    }

private:
    struct Range {
        Range(unsigned char* at, int64_t count, const unsigned char* rest) : memory(at), bytes(count) {
            if (rest && !std::all_of(rest, rest + bytes, [](unsigned char byte) { return byte == 0; }))
                copy.assign(rest, rest + bytes);
        }
        unsigned char* memory;
        int64_t bytes;
        std::vector<unsigned char> copy;  // empty for zeros
    };

    template <class T>
    static T* at(int64_t address) { return reinterpret_cast<T*>(static_cast<intptr_t>(address)); }

    static void multiply(const double* m, const double* from, double* to, int64_t count) {
        for (int64_t k = 0; k < count; ++k, m += 4, from += 2, to += 2) {
            const double a = from[0], b = from[1];
            to[0] = m[0] * a + m[1] * b;
            to[1] = m[2] * a + m[3] * b;
        }
    }

    template <class Sample>
    static void ramp(Sample* samples, int64_t count, bool falls) {
        for (int64_t t = 0; t < count; ++t)
            samples[t] *= static_cast<Sample>(static_cast<double>(falls ? count - t : t + 1) / static_cast<double>(count + 1));
    }

    static constexpr int64_t threshold = 1024;  // as in streams (_ops/program.py)

public:
    const int64_t channels, block;
    const std::vector<int64_t> words, copies;
    std::vector<float> y;
    torchfx::Arena arena;

private:
    std::vector<Range> ranges_;
    std::size_t range_ = 0;
    int64_t byte_ = 0;
};

#endif
