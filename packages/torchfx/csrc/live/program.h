// A program of a live engine, with all the memory it needs.
#ifndef TORCHFX_LIVE_PROGRAM_H
#define TORCHFX_LIVE_PROGRAM_H

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "support/arena.h"
#include "torchfx_dsp.h"
#include "torchfx_live.h"

struct torchfx_live_program {
    torchfx_live_program(const int64_t* program, int64_t size, int64_t channels_, int64_t block_, int64_t bytes,
                         const int64_t* moved, int64_t count, int64_t wait)
        : waiting(wait), channels(channels_), block(block_), words(program, program + size),
          moves(moved, moved + 4 * count), y(static_cast<std::size_t>(channels_ * block_)),
          arena(static_cast<std::size_t>(bytes)) {}

    // Takes the states of the program before, of which nothing else is running at this time.
    void take_over() const {
        for (std::size_t i = 0; i + 3 < moves.size(); i += 4) {
            const auto* from = at<const double>(moves[i]);
            auto* to = at<double>(moves[i + 1]);
            const auto* m = at<const double>(moves[i + 3]);
            if (!m) std::memcpy(to, from, static_cast<std::size_t>(moves[i + 2]));
            for (int64_t k = 0; m && k < moves[i + 2]; ++k, m += 4, from += 2, to += 2) {
                const double a = from[0], b = from[1];
                to[0] = m[0] * a + m[1] * b;
                to[1] = m[2] * a + m[3] * b;
            }
        }
    }

    // Runs a block of x, (channels, block), into y.
    int32_t run(const float* x) {
        const torchfx::Arena::Use memory(arena);
        return torchfx_program_run(words.data(), static_cast<int64_t>(words.size()), x, block, 1, y.data(), block,
                                   channels, block, threshold, 1);
    }

    const int64_t waiting;

private:
    template <class T>
    static T* at(int64_t address) { return reinterpret_cast<T*>(static_cast<intptr_t>(address)); }

    static constexpr int64_t threshold = 1024;  // as in streams (_ops/program.py)

public:
    const int64_t channels, block;
    const std::vector<int64_t> words, moves;
    std::vector<float> y;
    torchfx::Arena arena;
};

#endif
