// The C interface of live audio, see torchfx_live.h.
#include <cmath>
#include <new>
#include <system_error>

#include "live/engine.h"

namespace {

constexpr int64_t most_samples = int64_t{1} << 24;  // of a block, over all channels

int32_t write(torchfx::BlockRing& ring, const float* block, int64_t number) {
    if (!block || number < 0 || !ring.exists()) return TORCHFX_BAD_ARGUMENT;
    if (ring.write(block, number)) return TORCHFX_OK;
    return TORCHFX_FULL;
}

int32_t read(torchfx::BlockRing& ring, float* block, int64_t* number) {
    if (!block || !ring.exists()) return TORCHFX_BAD_ARGUMENT;
    *number = ring.next();
    if (*number < 0) return TORCHFX_EMPTY;
    ring.read(block);
    return TORCHFX_OK;
}

}  // namespace

extern "C" {

torchfx_live* torchfx_live_create(double rate, int64_t channels, int64_t block, int32_t interleaved, int64_t source,
                                  int64_t sink, int64_t delay, int64_t fade, int64_t latency, double ceiling) {
    if (!(rate > 0) || !std::isfinite(rate) || channels < 1 || block < 1 || channels > most_samples / block || source < 0 ||
        sink < 0 || delay < 0 || fade < 1 || latency < 0 || !(ceiling > 0))
        return nullptr;
    try {
        return new torchfx_live(rate, channels, block, interleaved != 0, source, sink, delay, fade, latency, ceiling);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void torchfx_live_free(torchfx_live* live) {
    if (live) torchfx_live_clock_stop(live);
    delete live;
}

int torchfx_live_callback(const void* input, void* output, unsigned long frames, const void*, unsigned long flags,
                          void* user) {
    return static_cast<torchfx_live*>(user)->call(input, output, static_cast<int64_t>(frames), flags);
}

int32_t torchfx_live_clock_start(torchfx_live* live, int32_t real_time) {
    if (live->clock.joinable()) return TORCHFX_BAD_ARGUMENT;
    live->stopped = false;
    try {
        live->clock = std::thread([live, real_time] { live->run_clock(real_time != 0); });
    } catch (const std::system_error&) {
        return TORCHFX_NO_MEMORY;
    }
    return TORCHFX_OK;
}

void torchfx_live_clock_stop(torchfx_live* live) {
    live->stopped.store(true, std::memory_order_release);
    if (live->clock.joinable()) live->clock.join();
}

torchfx_live_program* torchfx_live_program_create(const int64_t* program, int64_t words, int64_t channels, int64_t block,
                                                  int64_t bytes, const int64_t* copies, int64_t count,
                                                  const int64_t* states, int64_t state_count) {
    if (!program || words < 1 || channels < 1 || block < 1 || channels > most_samples / block || bytes < 0 || count < 0 ||
        (count && !copies) || state_count < 0 || (state_count && !states))
        return nullptr;
    try {
        return new torchfx_live_program(program, words, channels, block, bytes, copies, count, states, state_count);
    } catch (const std::bad_alloc&) {
        return nullptr;
    }
}

void torchfx_live_program_free(torchfx_live_program* program) { delete program; }

int64_t torchfx_live_program_measure(torchfx_live_program* program) {
    std::vector<float> silence(program->y.size());
    const int32_t status = program->run(silence.data());
    return status ? -status : static_cast<int64_t>(program->arena.most());
}

int32_t torchfx_live_post(torchfx_live* live, torchfx_live_program* program) {
    if (!program || live->changing || program->channels != live->channels || program->block != live->block)
        return TORCHFX_BAD_ARGUMENT;
    if (!live->has_program) {  // nothing runs yet
        live->has_program = true;
        live->current = program;
        return TORCHFX_OK;
    }
    live->changing.store(true, std::memory_order_release);
    live->posted.store(program, std::memory_order_release);
    return TORCHFX_OK;
}

int32_t torchfx_live_changing(const torchfx_live* live) { return live->changing.load(std::memory_order_acquire); }

torchfx_live_program* torchfx_live_retired(torchfx_live* live) {
    return live->retired.exchange(nullptr, std::memory_order_acq_rel);
}

void torchfx_live_bypass(torchfx_live* live, int32_t bypass) { live->bypassed = bypass != 0; }

void torchfx_live_end(torchfx_live* live, int64_t tail) {
    live->tail.store(tail, std::memory_order_relaxed);
    live->ended.store(true, std::memory_order_release);
}

int32_t torchfx_live_write_source(torchfx_live* live, const float* block) { return write(live->source, block, 0); }

int32_t torchfx_live_read_sink(torchfx_live* live, float* block) {
    int64_t number;
    return read(live->sink, block, &number);
}

int32_t torchfx_live_take_work(torchfx_live* live, float* block, int64_t* number) {
    return number ? read(live->work, block, number) : TORCHFX_BAD_ARGUMENT;
}

int32_t torchfx_live_give_work(torchfx_live* live, const float* block, int64_t number) {
    return write(live->results, block, number);
}

void torchfx_live_counters(const torchfx_live* live, int64_t* values) {
    for (int i = 0; i < TORCHFX_LIVE_COUNTER_COUNT; ++i)
        values[i] = live->counters.get(static_cast<torchfx_live_counter>(i));
}

void torchfx_live_histogram(const torchfx_live* live, int64_t* counts) {
    for (int64_t i = 0; i < TORCHFX_LIVE_BINS; ++i) counts[i] = live->counters.bin(i);
}

void torchfx_live_peaks(torchfx_live* live, float* input, float* output) {
    for (std::size_t c = 0; c < live->input_peaks.size(); ++c) {
        input[c] = live->input_peaks[c].exchange(0, std::memory_order_relaxed);
        output[c] = live->output_peaks[c].exchange(0, std::memory_order_relaxed);
    }
}

}  // extern "C"
