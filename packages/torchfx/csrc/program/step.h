// The steps of a program, see torchfx_program.h: what a kind of step provides, and what it is given.
#ifndef TORCHFX_PROGRAM_STEP_H
#define TORCHFX_PROGRAM_STEP_H

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "support/pool.h"
#include "support/signal.h"
#include "torchfx_dsp.h"
#include "torchfx_program.h"

namespace torchfx {

// The samples of a tile, (channels, time), float or double. Strides are in samples.
struct Samples {
    void* data;
    int64_t channel_stride;
    int64_t time_stride;  // 1 but for x

    template <class Sample>
    Sample* channel(int64_t c) const {
        return static_cast<Sample*>(data) + c * channel_stride;
    }
};

// A record of the program.
struct Step {
    const int64_t* words;

    int64_t kind() const { return words[0]; }
    int64_t size() const { return words[1]; }
    int64_t source() const { return words[2]; }
    int64_t target() const { return words[3]; }
    int32_t dtype() const { return static_cast<int32_t>(words[4]); }  // of the source

    int64_t integer(int64_t field) const { return words[5 + field]; }
    double real(int64_t field) const {
        double value;
        std::memcpy(&value, words + 5 + field, sizeof value);
        return value;
    }
    template <class T>
    T* pointer(int64_t field) const {
        return reinterpret_cast<T*>(static_cast<intptr_t>(integer(field)));
    }
};

constexpr int64_t step_header = 5;

// The places of a kind's fields, by their names in torchfx_program.h.
#define TORCHFX_FIELD_NAME(name, type, role, size) name,
#define TORCHFX_FIELDS(kind) enum Field { TORCHFX_FIELDS_##kind(TORCHFX_FIELD_NAME) }

// What a step may look at before anything has run.
struct StepCheck {
    int64_t channels;
    int64_t buffers;
    const int32_t* dtypes;  // of what the buffers hold when the step comes, -1 for nothing

    bool holds(int64_t buffer, int64_t dtype) const {
        return buffer >= 0 && buffer < buffers && dtypes[buffer] == dtype && dtype >= 0;
    }
};

// One tile.
struct StepRun {
    Samples source, target;
    const Samples* buffers;
    int64_t channels, samples;
    int64_t threshold;
    int threads;
};

struct StepKind {
    bool in_place;  // whether the target may be the source
    bool converts;  // whether the target holds the other dtype
    // A status; of the fields, the rest having been checked.
    int32_t (*check)(const Step& step, const StepCheck& check);
    int32_t (*run)(const Step& step, const StepRun& run);
    // Shorter tiles would make the step slow; nullptr where none would.
    int64_t (*shortest_tile)(const Step& step);
};

// Calls body(channel, first, count) for parts of all channels, for steps whose samples depend on those at the same time
// only. Threads share what does not stay in a cache.
template <class Body>
void for_parts(const StepRun& run, Body&& body) {
    constexpr int64_t part = 1 << 14, cached = 1 << 16;
    const int threads = run.channels * run.samples > cached ? run.threads : 1;
    const int64_t parts = (run.samples + part - 1) / part;
    parallel_for(run.channels * parts, threads, [&](int64_t i) {
        const int64_t first = i % parts * part;
        body(i / parts, first, std::min(part, run.samples - first));
    });
}

// `count` samples from x on.
// nullptr for an unknown kind.
const StepKind* step_kind(int64_t kind);
int64_t step_fields(int64_t kind);  // how many a known kind has
const bool* step_states(int64_t kind);  // which of them are addresses of states

}  // namespace torchfx

#endif
