// torchfx_program_run: checks all of a program, then runs its steps tile by tile. torchfx_program_run_copied: the same with
// states that are copied first, on a signal and the silence behind it.
#include <algorithm>
#include <cstring>
#include <new>

#include "program/step.h"
#include "support/arena.h"
#include "support/scratch.h"
#include "support/subnormals.h"
#include "support/workspace.h"

namespace torchfx {
namespace {

constexpr int64_t x_buffer = 0, y_buffer = 1, first_temporary = 2, program_header = 3;

// Samples of a tile over all channels and temporaries, for each thread: doubles that stay in a second-level cache of
// 1 MiB.
// For more than four threads the temporaries would exceed the memory that is kept between calls (workspace.h).
constexpr int64_t tile_samples = 1 << 17;
constexpr int most_tile_threads = 4;

struct Program {
    const int64_t* words;
    int64_t size;

    int64_t dtype() const { return words[0]; }
    int64_t steps() const { return words[1]; }
    int64_t buffers() const { return words[2]; }
    int64_t temporaries() const { return buffers() - first_temporary; }

    bool valid_header() const {
        return size >= program_header && (dtype() == TORCHFX_F32 || dtype() == TORCHFX_F64) && steps() >= 1 &&
               steps() <= (size - program_header) / step_header && buffers() >= first_temporary &&
               temporaries() < steps();
    }

    // For the steps in order, until body(step, kind) returns a status.
    template <class Body>
    int32_t for_steps(Body&& body) const {
        const int64_t* record = words + program_header;
        for (int64_t i = 0; i < steps(); ++i) {
            const Step step = {record};
            if (const int32_t status = body(step, *step_kind(step.kind()))) return status;
            record += step.size();
        }
        return TORCHFX_OK;
    }
};

// A record at words[0 .. left): its kind, or nullptr where its size is not that of its kind.
const StepKind* checked_kind(const int64_t* words, int64_t left) {
    if (left < step_header) return nullptr;
    const StepKind* kind = step_kind(words[0]);
    return kind && words[1] == step_header + step_fields(words[0]) && words[1] <= left ? kind : nullptr;
}

int32_t check_step(const Step& step, const StepKind& kind, const Program& program, int64_t channels, int32_t* dtypes) {
    const StepCheck check = {channels, program.buffers(), dtypes};
    const int64_t target = step.target();
    if (!check.holds(step.source(), step.words[4])) return TORCHFX_BAD_ARGUMENT;
    if (target < y_buffer || target >= program.buffers()) return TORCHFX_BAD_ARGUMENT;
    if (target == step.source() && !kind.in_place) return TORCHFX_BAD_ARGUMENT;
    const int32_t written = kind.converts ? TORCHFX_F32 + TORCHFX_F64 - step.dtype() : step.dtype();
    if (target == y_buffer && written != program.dtype()) return TORCHFX_BAD_ARGUMENT;
    if (const int32_t status = kind.check(step, check)) return status;
    dtypes[target] = written;
    return TORCHFX_OK;
}

int32_t check_program(const Program& program, int64_t channels) {
    if (!program.valid_header()) return TORCHFX_BAD_ARGUMENT;
    Scratch<int32_t, 32> dtypes(static_cast<std::size_t>(program.buffers()));
    std::fill_n(dtypes.data(), program.buffers(), -1);
    dtypes[x_buffer] = static_cast<int32_t>(program.dtype());
    const int64_t* record = program.words + program_header;
    int64_t left = program.size - program_header;
    for (int64_t i = 0; i < program.steps(); ++i) {
        const StepKind* kind = checked_kind(record, left);
        if (!kind) return TORCHFX_BAD_ARGUMENT;
        const Step step = {record};
        if (const int32_t status = check_step(step, *kind, program, channels, dtypes.data())) return status;
        record += step.size();
        left -= step.size();
    }
    return left == 0 && dtypes[y_buffer] == program.dtype() ? TORCHFX_OK : TORCHFX_BAD_ARGUMENT;
}

int64_t tile_length(const Program& program, int64_t channels, int64_t samples, int threads) {
    if (program.steps() == 1) return samples;
    const int64_t rows = channels * std::max<int64_t>(2, program.temporaries());
    int64_t length = std::max<int64_t>(1024, std::min(threads, most_tile_threads) * tile_samples / rows);
    program.for_steps([&](const Step& step, const StepKind& kind) {
        if (kind.shortest_tile) length = std::max(length, kind.shortest_tile(step));
        return TORCHFX_OK;
    });
    return std::min(length, samples);
}

// Temporaries, each of `size` doubles.
class Temporaries {
public:
    Temporaries(int64_t count, int64_t size)
        : size_(size), memory_(count ? take_memory(sizeof(double) * static_cast<std::size_t>(count * size)) : nullptr) {}
    ~Temporaries() {
        if (memory_) give_memory_back(memory_);
    }
    Temporaries(const Temporaries&) = delete;
    Temporaries& operator=(const Temporaries&) = delete;
    double* operator[](int64_t index) const { return memory_ + index * size_; }

private:
    int64_t size_;
    double* memory_;
};

Samples advanced(Samples samples, int32_t dtype, int64_t time) {
    const int64_t elements = time * samples.time_stride;
    if (dtype == TORCHFX_F32) samples.data = static_cast<float*>(samples.data) + elements;
    else samples.data = static_cast<double*>(samples.data) + elements;
    return samples;
}

int32_t run_program(const Program& program, const Samples& x, const Samples& y, int64_t channels, int64_t samples,
                    int64_t threshold, int threads) {
    const int32_t dtype = static_cast<int32_t>(program.dtype());
    const int64_t tile = tile_length(program, channels, samples, threads);
    const Temporaries temporaries(program.temporaries(), channels * tile);
    Scratch<Samples, 32> buffers(static_cast<std::size_t>(program.buffers()));
    for (int64_t start = 0; start < samples; start += tile) {
        const int64_t length = std::min(tile, samples - start);
        buffers[x_buffer] = advanced(x, dtype, start);
        buffers[y_buffer] = advanced(y, dtype, start);
        for (int64_t i = 0; i < program.temporaries(); ++i)
            buffers[static_cast<std::size_t>(first_temporary + i)] = {temporaries[i], length, 1};
        const int32_t status = program.for_steps([&](const Step& step, const StepKind& kind) {
            const Samples& source = buffers[static_cast<std::size_t>(step.source())];
            const Samples& target = buffers[static_cast<std::size_t>(step.target())];
            return kind.run(step, {source, target, buffers.data(), channels, length, threshold, threads});
        });
        if (status) return status;
    }
    return TORCHFX_OK;
}

// A program and a copy of the states that lie in some memory, to which the program's addresses lead.
class Copied {
public:
    Copied(const Program& program, const void* states, int64_t bytes)
        : size_(program.size), words_(static_cast<std::size_t>(program.size)), states_(static_cast<std::size_t>(bytes)) {
        std::copy_n(program.words, program.size, words_.data());
        if (bytes) std::memcpy(states_.data(), states, static_cast<std::size_t>(bytes));
        const auto begin = static_cast<int64_t>(reinterpret_cast<intptr_t>(states));
        const auto moved = static_cast<int64_t>(reinterpret_cast<intptr_t>(states_.data())) - begin;
        program.for_steps([&](const Step& step, const StepKind&) {
            const bool* const is_state = step_states(step.kind());
            int64_t* const fields = words_.data() + (step.words - program.words) + step_header;
            for (int64_t i = 0; i < step.size() - step_header; ++i)
                if (is_state[i] && fields[i] >= begin && fields[i] < begin + bytes) fields[i] += moved;
            return TORCHFX_OK;
        });
    }

    Program program() { return {words_.data(), size_}; }

private:
    int64_t size_;
    Scratch<int64_t, 256> words_;
    Scratch<unsigned char, 8192> states_;
};

// Runs a program on x with `late` samples of silence behind it, and leaves out the first `late` of its output.
int32_t run_late(const Program& program, const Samples& x, const Samples& y, int64_t channels, int64_t samples, int64_t late,
                 int64_t threshold, int threads) {
    const auto dtype = static_cast<int32_t>(program.dtype());
    Scratch<double, 2048> room(static_cast<std::size_t>(late * (1 + channels)));
    std::fill_n(room.data(), late, 0.0);
    const Samples silence = {room.data(), 0, 1}, dropped = {room.data() + late, late, 1};
    for (int64_t start = 0, end; start < samples + late; start = end) {
        const bool heard = start < samples, kept = start >= late;
        end = std::min(heard ? samples : samples + late, kept ? samples + late : late);
        const Samples in = heard ? advanced(x, dtype, start) : silence, out = kept ? advanced(y, dtype, start - late) : dropped;
        if (const int32_t status = run_program(program, in, out, channels, end - start, threshold, threads)) return status;
    }
    return TORCHFX_OK;
}

// Calls body(threads). Blocks so short that no thread is worth waking take their working memory from an arena of the
// calling thread: asking the system for each piece costs more than what is computed in it.
template <class Body>
int32_t with_memory(int64_t samples, int32_t threads, Body&& body) {
    constexpr int64_t short_block = 1 << 12;
    constexpr std::size_t bytes = std::size_t{1} << 17;
    if (samples > short_block) return body(threads);
    if (has_arena()) return body(1);
    thread_local Arena arena(bytes);
    const Arena::Use memory(arena);
    return body(1);
}

// body(threads) where a program fits together, which is checked unless it is known.
template <class Body>
int32_t with_checked(const Program& program, bool fits, const void* x, const void* y, int64_t channels, int64_t samples,
                     int32_t threads, Body&& body) {
    if (!program.words || channels < 1 || samples < 0 || threads < 1 || (samples > 0 && (!x || !y)))
        return TORCHFX_BAD_ARGUMENT;
    try {
        const int32_t status = fits ? TORCHFX_OK : check_program(program, channels);
        if (status) return status;
        if (samples == 0) return TORCHFX_OK;
        const FlushSubnormals flush(program.dtype() == TORCHFX_F64);
        return with_memory(channels * samples, threads, body);
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
}

int32_t run(const Program& program, bool fits, const Samples& x, const Samples& y, int64_t channels, int64_t samples,
            int64_t threshold, int32_t threads) {
    return with_checked(program, fits, x.data, y.data, channels, samples, threads,
                        [&](int32_t used) { return run_program(program, x, y, channels, samples, threshold, used); });
}

int32_t run_copied(const Program& program, bool fits, const void* states, int64_t bytes, int64_t late, const Samples& x,
                   const Samples& y, int64_t channels, int64_t samples, int64_t threshold, int32_t threads) {
    if (bytes < 0 || late < 0 || (bytes && !states)) return TORCHFX_BAD_ARGUMENT;
    return with_checked(program, fits, x.data, y.data, channels, samples, threads, [&](int32_t used) {
        Copied copied(program, states, bytes);
        return run_late(copied.program(), x, y, channels, samples, late, threshold, used);
    });
}

// No step writes x: a target is never buffer 0.
Samples input(const void* x, int64_t channel_stride, int64_t time_stride) {
    return {const_cast<void*>(x), channel_stride, time_stride};
}

}  // namespace
}  // namespace torchfx

extern "C" int32_t torchfx_program_run(
    const int64_t* program, int64_t words, const void* x, int64_t x_channel_stride, int64_t x_time_stride, void* y,
    int64_t y_channel_stride, int64_t channels, int64_t samples, int64_t threshold, int32_t threads) {
    using namespace torchfx;
    return run({program, words}, false, input(x, x_channel_stride, x_time_stride), {y, y_channel_stride, 1}, channels,
               samples, threshold, threads);
}

extern "C" int32_t torchfx_program_run_copied(
    const int64_t* program, int64_t words, const void* states, int64_t bytes, int64_t late, const void* x,
    int64_t x_channel_stride, int64_t x_time_stride, void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    int64_t threshold, int32_t threads) {
    using namespace torchfx;
    return run_copied({program, words}, false, states, bytes, late, input(x, x_channel_stride, x_time_stride),
                      {y, y_channel_stride, 1}, channels, samples, threshold, threads);
}

extern "C" int32_t torchfx_program_again(const int64_t* call, const void* x, void* y, int32_t threads) {
    using namespace torchfx;
    if (!call) return TORCHFX_BAD_ARGUMENT;
    const Program program = {reinterpret_cast<const int64_t*>(static_cast<intptr_t>(call[0])), call[1]};
    const auto* const states = reinterpret_cast<const void*>(static_cast<intptr_t>(call[2]));
    const int64_t bytes = call[3], late = call[4], channels = call[5], samples = call[6], threshold = call[7];
    const Samples in = input(x, samples, 1), out = {y, samples, 1};
    if (late < 0) return run(program, true, in, out, channels, samples, threshold, threads);
    return run_copied(program, true, states, bytes, late, in, out, channels, samples, threshold, threads);
}
