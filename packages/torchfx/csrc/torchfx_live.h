/* Live audio: an engine that a sound device, or a clock thread in its place, calls for block after block. The call takes
 * no lock, allocates nothing and runs no Python. Programs (torchfx_program.h) are exchanged while it runs. */
#ifndef TORCHFX_LIVE_H
#define TORCHFX_LIVE_H

#include "support/api.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One thread, the owner's, starts and stops the engine, and posts programs and takes them back. Each ring has one thread at
 * either end. Counters, peaks and bypass are any thread's. */
typedef struct torchfx_live torchfx_live;
typedef struct torchfx_live_program torchfx_live_program;

/* An engine for blocks of `block` samples of `channels` channels, float; NULL without memory or for sizes out of range.
 *   interleaved   whether the device's samples lie (time, channels); else there is a pointer for each channel
 *   source        blocks that fit into the ring which the input is read from; 0: the device's input is
 *   sink          blocks that fit into the ring which the output is written to besides; 0: to none
 *   delay         blocks that pass before a worker's results are due; 0: there is no worker, programs run
 *   fade          samples that the way to the dry signal and back takes
 *   latency       samples by which the dry signal is delayed, so that it lies where the processed one does
 *   ceiling       magnitude above which a sample of the output is bad, as one that is not finite always is: instead, the output
 *                 is muted by a fade, the program's states are set to rest, and the output comes back by a fade when the
 *                 program has made nothing bad for some time; infinite: all samples pass */
TORCHFX_API torchfx_live* torchfx_live_create(double rate, int64_t channels, int64_t block, int32_t interleaved,
                                              int64_t source, int64_t sink, int64_t delay, int64_t fade, int64_t latency,
                                              double ceiling);
/* Clock and device must have stopped. The programs are not freed. */
TORCHFX_API void torchfx_live_free(torchfx_live* live);

/* What PortAudio calls: PaStreamCallback with `user` an engine. Returns 0, or 1 (paComplete) once the source has ended. */
TORCHFX_API int torchfx_live_callback(const void* input, void* output, unsigned long frames, const void* time,
                                      unsigned long flags, void* user);

/* A thread in the place of a device. With `real_time` it calls when each block is due and takes a block that is ready
 * later than two blocks' time for an underflow; else as soon as source, sink and worker allow. */
TORCHFX_API int32_t torchfx_live_clock_start(torchfx_live* live, int32_t real_time);
TORCHFX_API void torchfx_live_clock_stop(torchfx_live* live);

/* A program of torchfx_program_run, copied; what its addresses lead to must outlive it. `bytes` of working memory are set
 * aside for it. It may share states with the program before. Of others it takes what `copies` says when it takes over: for
 * each of `count` a kind, the addresses of source and target, a number, and an argument.
 *   bytes         copies so many bytes
 *   matrices      multiplies so many pairs of doubles by matrices (2, 2) at the address `argument`
 *   ramp_float, ramp_double  lets so many samples of the target rise from silence, or with an argument of 1 fall to it
 * `states` holds, for each of `state_count`, address and bytes of memory that the program keeps from block to block, and the
 * address of what it holds at rest, or 0 for zeros: that is copied, and copied back when states are to be set to rest.
 * NULL without memory. */
enum torchfx_live_copy {
    TORCHFX_LIVE_COPY_bytes,
    TORCHFX_LIVE_COPY_matrices,
    TORCHFX_LIVE_COPY_ramp_float,
    TORCHFX_LIVE_COPY_ramp_double
};
TORCHFX_API torchfx_live_program* torchfx_live_program_create(
    const int64_t* program, int64_t words, int64_t channels, int64_t block, int64_t bytes,
    const int64_t* copies, int64_t count, const int64_t* states, int64_t state_count);
TORCHFX_API void torchfx_live_program_free(torchfx_live_program* program);
/* Runs a block of silence and returns how many bytes of working memory that took; -status if it fails. */
TORCHFX_API int64_t torchfx_live_program_measure(torchfx_live_program* program);

/* Makes a program the next one. Not while a change is on its way. */
TORCHFX_API int32_t torchfx_live_post(torchfx_live* live, torchfx_live_program* program);
/* Whether a change is on its way. */
TORCHFX_API int32_t torchfx_live_changing(const torchfx_live* live);
/* The program that ran before the last change, or NULL: the caller's to free. */
TORCHFX_API torchfx_live_program* torchfx_live_retired(torchfx_live* live);

/* Whether the dry signal is heard; by a fade. */
TORCHFX_API void torchfx_live_bypass(torchfx_live* live, int32_t bypass);
/* No more blocks come into the source: when those in it, and `tail` blocks of silence behind them, are done, so is the
 * engine. */
TORCHFX_API void torchfx_live_end(torchfx_live* live, int64_t tail);

/* Rings of blocks (channels, block). TORCHFX_FULL or TORCHFX_EMPTY is no error. The worker gives back every block that it
 * takes, with its number. */
enum { TORCHFX_FULL = 100, TORCHFX_EMPTY = 101 };
TORCHFX_API int32_t torchfx_live_write_source(torchfx_live* live, const float* block);
TORCHFX_API int32_t torchfx_live_read_sink(torchfx_live* live, float* block);
TORCHFX_API int32_t torchfx_live_take_work(torchfx_live* live, float* block, int64_t* number);
TORCHFX_API int32_t torchfx_live_give_work(torchfx_live* live, const float* block, int64_t number);

/* What was counted, by place. */
#define TORCHFX_LIVE_COUNTERS(declare)                                              \
    declare(blocks)           /* calls */                                           \
    declare(underflows)       /* of the device's output, as it reports them */       \
    declare(overflows)        /* of its input */                                    \
    declare(deadline_misses)  /* calls that took longer than a block's time */      \
    declare(late_results)     /* blocks that the worker had not ready */            \
    declare(starved)          /* blocks that the source had not ready */            \
    declare(dropped)          /* blocks that the sink, or the worker, had no room for */ \
    declare(sheds)            /* times that an overload was answered with the dry signal */ \
    declare(shed_blocks)      /* blocks in which the program did not run for that reason */ \
    declare(failures)         /* blocks in which it failed, or the device gave a block of another size */ \
    declare(changes)          /* programs that took over */                         \
    declare(longest_ns)       /* call */                                            \
    declare(priority)         /* whether the clock's thread got a real-time priority */ \
    declare(finished)         /* whether the source's end was reached */            \
    declare(allocated)        /* blocks for which the working memory was too small */ \
    declare(mutes)            /* times that the output was muted for bad samples */ \
    declare(muted)            /* whether it is */
#define TORCHFX_LIVE_COUNTER(name) TORCHFX_LIVE_##name,
enum torchfx_live_counter { TORCHFX_LIVE_COUNTERS(TORCHFX_LIVE_COUNTER) TORCHFX_LIVE_COUNTER_COUNT };
#undef TORCHFX_LIVE_COUNTER
TORCHFX_API void torchfx_live_counters(const torchfx_live* live, int64_t* values);

/* How long calls took: bin i counts those from 2^(8 + i / 32) ns on. */
enum { TORCHFX_LIVE_BINS = 32 * 26, TORCHFX_LIVE_BINS_PER_OCTAVE = 32, TORCHFX_LIVE_FIRST_OCTAVE = 8 };
TORCHFX_API void torchfx_live_histogram(const torchfx_live* live, int64_t* counts);
/* The largest magnitudes of each channel since the last call, of input and output. */
TORCHFX_API void torchfx_live_peaks(torchfx_live* live, float* input, float* output);

#ifdef __cplusplus
}
#endif
#endif
