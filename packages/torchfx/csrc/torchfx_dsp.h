// The C interface of the DSP library (torchfx_dsp): plain pointers and sizes, no PyTorch, no Python.
//
// Shapes: a signal is (channels, samples); element (c, t) of x lies at x[c * x_channel_stride + t * x_time_stride]
// (strides in elements), y is written with unit time stride at y[c * y_channel_stride + t].
// Memory holds float (TORCHFX_F32) or double (TORCHFX_F64); arithmetic, coefficients and states are double.
// Every function checks its arguments before it writes anything and returns a torchfx_status.
#ifndef TORCHFX_DSP_H
#define TORCHFX_DSP_H

#include "support/api.h"

#ifdef __cplusplus
extern "C" {
#endif

enum torchfx_dtype { TORCHFX_F32 = 0, TORCHFX_F64 = 1 };

// Raised by one whenever a signature below changes; the Python side refuses another number.
TORCHFX_API int32_t torchfx_dsp_abi_version(void);

// "avx512", "avx2", "neon" or "baseline": the instruction set the kernels below run with.
// Chosen at load time from the processor; the environment variable TORCHFX_ISA lowers it.
TORCHFX_API const char* torchfx_isa(void);
// For tests: switch to a named set at run time. Returns 0, or TORCHFX_BAD_ARGUMENT when it is not compiled in
// or the processor lacks it.
TORCHFX_API int32_t torchfx_set_isa(const char* name);

// For a large output nobody has written yet: asks the system to back the whole 2 MiB pages inside it with huge
// pages. Touching 4 KiB pages for the first time costs several times more than the filtering (measured: 1.0 to
// 1.6 ns per float, against 0.3). Does nothing outside Linux and where it is refused.
TORCHFX_API int32_t torchfx_advise_huge_pages(void* p, int64_t bytes);

// A cascade of second-order sections, the same for all channels (sos_rows = 1) or one for each of several.
//   x          each of its rows serves x_repeat channels one behind the other: channel c reads row c / x_repeat
//   sos        (sos_rows, sections, 6), b0 b1 b2 a0 a1 a2 each, C order; channel c is filtered by row
//              c / sos_repeat % sos_rows, and every row has a channel
//   channels   those of y; a multiple of x_repeat
//   state_in   (sections, channels, 2), SciPy's zi layout (transposed direct form II), or NULL for rest
//   state_out  same shape, or NULL; may equal state_in
//   threshold  signals of at least this many samples may be split along time (over lanes and threads); 1024 is
//              where that starts to pay for one or two channels
//   threads    at most this many threads work
// y must not overlap x. From a NaN or an infinity on, all of a channel's output is NaN, as in sosfilt.
// With double samples, subnormal numbers (below 2.2e-308) may count as zero, be they samples, coefficients, states or
// results: x86 takes a hundred times as long for them. Subnormal float samples, normal as doubles, are kept.
// States pass between calls without loss for float signals. For double ones SciPy's layout itself costs digits where
// poles lie next to 1: some 1e-12 of the peak for a 12th-order filter at 20 Hz and 192 kHz in blocks of 16.
TORCHFX_API int32_t torchfx_sos_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* sos, int64_t sections, int64_t sos_rows, int64_t sos_repeat,
    const double* state_in, double* state_out,
    int64_t threshold, int32_t threads);

// The state is kept at every multiple of this many samples: with four sections 3 % of a float signal.
enum { TORCHFX_CHECKPOINT_STEPS = 512 };

// torchfx_sos_forward for a call whose coefficients' gradients are going to be wanted.
//   checkpoints  (channels, ceil(samples / TORCHFX_CHECKPOINT_STEPS), sections, 2): what torchfx_sos_backward asks for,
//                in the kernels' own form
TORCHFX_API int32_t torchfx_sos_forward_recording(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* sos, int64_t sections, int64_t sos_rows, int64_t sos_repeat,
    const double* state_in, double* state_out, double* checkpoints,
    int64_t threshold, int32_t threads);

// Gradients of torchfx_sos_forward for the same x, sos and state_in. Every output may be NULL and is then not
// computed: grad_x alone costs little more than the forward pass, grad_sos about two and a half of them.
//   x               as in forward; NULL is allowed where grad_sos is NULL
//   grad_y          gradient at y, any strides
//   grad_state_out  (sections, channels, 2), gradient at state_out, or NULL for zeros
//   checkpoints     from torchfx_sos_forward_recording, for the same arguments and any number of threads; NULL: where
//                   they are needed, another forward pass finds them
//   grad_x          (channels, samples), unit time stride: where x_repeat > 1, a row of x has the sum over its channels
//   grad_sos        (sos_rows, sections, 6), each row summed over the channels it filters: all six columns, the one of a0
//                   included (sections are divided by it)
//   grad_state_in   (sections, channels, 2); must not overlap grad_state_out
TORCHFX_API int32_t torchfx_sos_backward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    const void* grad_y, int64_t grad_y_channel_stride, int64_t grad_y_time_stride,
    int64_t channels, int64_t samples,
    const double* sos, int64_t sections, int64_t sos_rows, int64_t sos_repeat,
    const double* state_in, const double* grad_state_out,
    const double* checkpoints, void* grad_x, int64_t grad_x_channel_stride, double* grad_sos, double* grad_state_in,
    int64_t threshold, int32_t threads);

// A cascade forwards and then backwards, each time from the state in which it has settled on the first sample it meets, on
// a signal that goes on for `edge` samples beyond both of its ends, which are filtered and left out again.
//   edge       fewer than `samples`
//   extension  beyond an end lie, from the end outwards, the end's sample's double less the samples mirrored at it (odd),
//              these themselves (even), or the end's sample
// The rest is as in torchfx_sos_forward. From a channel with a NaN or an infinity comes NaN.
enum torchfx_extension { TORCHFX_ODD = 0, TORCHFX_EVEN = 1, TORCHFX_CONSTANT = 2 };
TORCHFX_API int32_t torchfx_sos_zero_phase(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* sos, int64_t sections, int64_t sos_rows, int64_t sos_repeat,
    int64_t edge, int32_t extension, int64_t threshold, int32_t threads);

// A transfer function of order >= 1, as it is, stable or not.
//   b, a       (rows, order + 1) each, a0 = 1; channel c has row c / repeat % rows, and every row has a channel
//   state      (channels, order), SciPy's zi; on return the state after; NULL for rest, and nothing is kept
TORCHFX_API int32_t torchfx_lfilter_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples, int64_t order,
    const double* b, int64_t b_rows, int64_t b_repeat, const double* a, int64_t a_rows, int64_t a_repeat,
    double* state, int32_t threads);

// The same both ways, as torchfx_sos_zero_phase; `a` must not sum to zero.
TORCHFX_API int32_t torchfx_lfilter_zero_phase(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples, int64_t order,
    const double* b, int64_t b_rows, int64_t b_repeat, const double* a, int64_t a_rows, int64_t a_repeat,
    int64_t edge, int32_t extension, int32_t threads);

// A finite impulse response.
//   x_repeat   channels that read one row of x: channel c reads row c / x_repeat; divides `channels`
//   taps       (tap_rows, n_taps): channel c has row c / tap_repeat % tap_rows, and every row has a channel
//   state_in   (channels, n_taps - 1), SciPy's lfilter zi layout: what past input still adds to the
//              coming outputs; NULL for rest
//   state_out  same shape, or NULL; may equal state_in
// y must not overlap x. A NaN or an infinity reaches the n_taps outputs that it reaches in lfilter, no others.
// With double samples, subnormal numbers (below 2.2e-308) may count as zero, as in torchfx_sos_forward, here and in the
// gradients. Subnormal float samples, normal as doubles, are kept.
TORCHFX_API int32_t torchfx_fir_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* taps, int64_t n_taps, int64_t tap_rows, int64_t tap_repeat,
    const double* state_in, double* state_out, int32_t threads);

// A long response to a signal that comes in short blocks. The step `partitioned` of a program (torchfx_program.h) filters; these are
// what else it needs.
//
//   width   outputs come in groups of so many channels, which divides `channels`: an output is the sum over the inputs i of
//           its group, each filtered for pair `output * width + i`, to which rows of taps and states belong as to channels
//   taps    (tap_rows, n_taps): pair p has row p / tap_repeat % tap_rows, and every row has a pair
//   size    receives how many doubles `work` holds
//   spectra receives how many of them, at its begin, depend on the taps alone. The others are zeros after `settle`; with a
//           state of zeros they are rest.
//   work    zeros before the first block; the same taps come with it in every call
//   state   (channels, width, n_taps - 1): torchfx_fir_settle makes it what torchfx_fir_forward would have written after
//           the blocks so far. Before the next block it may be read and changed.
TORCHFX_API int32_t torchfx_fir_partitioned_size(int64_t channels, int64_t width, int64_t n_taps, int64_t tap_rows,
                                                 int64_t* size, int64_t* spectra);
TORCHFX_API int32_t torchfx_fir_settle(int64_t channels, int64_t width, const double* taps, int64_t n_taps,
                                       int64_t tap_rows, int64_t tap_repeat, double* state, double* work,
                                       int32_t threads);

// Gradients of torchfx_fir_forward. grad_state_out, (channels, n_taps - 1), is the gradient of its state_out,
// or NULL; grad_y may have any strides, 0 included.
//
//   grad_x         (channels, samples), unit time stride: one row per output channel, whatever x_repeat was. NaNs and
//                  infinities in grad_y act as in the forward pass.
//   grad_state_in  (channels, n_taps - 1), or NULL when not wanted
TORCHFX_API int32_t torchfx_fir_backward_x(
    int32_t dtype, const void* grad_y, int64_t grad_y_channel_stride, int64_t grad_y_time_stride,
    const double* grad_state_out, int64_t channels, int64_t samples,
    const double* taps, int64_t n_taps, int64_t tap_rows, int64_t tap_repeat,
    void* grad_x, int64_t grad_x_channel_stride, double* grad_state_in, int32_t threads);

//   x          the input of the forward call (what came before it acts through state_in alone)
//   grad_taps  (tap_rows, n_taps), each row summed over its channels. A NaN or an infinity in x or grad_y may make all of
//              its row NaN.
TORCHFX_API int32_t torchfx_fir_backward_taps(
    int32_t dtype, const void* grad_y, int64_t grad_y_channel_stride, int64_t grad_y_time_stride,
    const double* grad_state_out, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    int64_t channels, int64_t samples,
    double* grad_taps, int64_t n_taps, int64_t tap_rows, int64_t tap_repeat, int32_t threads);

// An all-pole recursion: y[t] = x[t] - a[1] y[t-1] - ... - a[order] y[t-order].
//   x_repeat    as in torchfx_fir_forward
//   a           (a_rows, samples if per_sample else 1, order) of a_dtype: channel c has row c / a_repeat % a_rows, and
//               every row has a channel. Coefficients that serve all samples must be finite.
//   state_in    (channels, order): the outputs before the first, latest first; NULL for rest
//   state_out   the same after the last, or NULL
// From a NaN or an infinity on, all of a channel's output is NaN, unless all coefficients are zero. Subnormal numbers are
// treated as in torchfx_sos_forward.
TORCHFX_API int32_t torchfx_allpole_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    int32_t a_dtype, const void* a, int64_t order, int32_t per_sample, int64_t a_rows, int64_t a_repeat,
    const double* state_in, double* state_out, int32_t threads);

// Its gradients; each of grad_x, grad_a and grad_state_in may be NULL.
//   y               the output of the forward call
//   grad_state_out  gradient of the forward call's state_out, or NULL for zeros
//   grad_x          (channels, samples), unit time stride: one row per output channel, whatever x_repeat was
//   grad_a          (channels, samples if per_sample else 1, order) of a_dtype, one row per channel whatever a_rows is
TORCHFX_API int32_t torchfx_allpole_backward(
    int32_t dtype, const void* grad_y, int64_t grad_y_channel_stride, int64_t grad_y_time_stride,
    const void* y, int64_t y_channel_stride, int64_t y_time_stride, int64_t channels, int64_t samples,
    int32_t a_dtype, const void* a, int64_t order, int32_t per_sample, int64_t a_rows, int64_t a_repeat,
    const double* state_in, const double* grad_state_out,
    void* grad_x, int64_t grad_x_channel_stride, void* grad_a, double* grad_state_in, int32_t threads);

// A linear system of 1 to 4 states whose matrices may change from sample to sample:
// [s'; y] = M [s; x] with M = [[A, B], [C, D]], y being the output before the state moves on.
//   systems    (rows, times, states + 1, states + 1): each matrix holds for samples / times samples, a whole number;
//              channel c has row c / repeat % rows, and every row has a channel. Constant systems must be finite.
//   state_in   (channels, states), or NULL for rest; state_out the same, or NULL
TORCHFX_API int32_t torchfx_state_space_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* systems, int64_t states, int64_t times, int64_t rows, int64_t repeat,
    const double* state_in, double* state_out, int32_t threads);

// Its gradients. Each result may be NULL; those are one row per channel, whatever x_repeat and rows are:
//   grad_x (channels, samples), grad_systems (channels, times, states + 1, states + 1), grad_state_in (channels, states)
TORCHFX_API int32_t torchfx_state_space_backward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    const void* grad_y, int64_t grad_y_channel_stride, int64_t grad_y_time_stride, int64_t channels, int64_t samples,
    const double* systems, int64_t states, int64_t times, int64_t rows, int64_t repeat,
    const double* state_in, const double* grad_state_out,
    void* grad_x, int64_t grad_x_channel_stride, double* grad_systems, double* grad_state_in, int32_t threads);

// The same system in a loop with a saturating amplifier: its input is tanh(drive (x - feedback y)) / drive, with y of the
// same instant, or x - feedback y where drive is 0.
//   outputs  (rows, states + 1): what is put out is this row times [s; input], whatever is fed back; NULL: y
//   feedback, drive   (channels,); feedback times M's last element must not be negative
//   tables   (table_rows, TORCHFX_SATURATION_TABLE), what torchfx_saturation_tables writes for each channel's product of
//            these two: channel c has row c / table_repeat % table_rows, and every row has a channel. They save nine tenths
//            of the time. NULL: a call with long signals makes them itself. Systems that change have none.
enum { TORCHFX_SATURATION_TABLE = 8192 };
TORCHFX_API int32_t torchfx_saturated_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* systems, int64_t states, int64_t times, int64_t rows, int64_t repeat,
    const double* outputs, const double* feedback, const double* drive, const double* tables, int64_t table_rows,
    int64_t table_repeat, const double* state_in, double* state_out, int32_t threads);
TORCHFX_API int32_t torchfx_saturation_tables(const double* loops, int64_t count, double* tables);

// A network of delay lines, of feedback delays and reverberators: with r the lines' outputs, s what goes into them and
// F a cascade for each line,
//
//   r_i[t] = s_i[t - delays[i]],    s = F(A r) + B x,    y = C r + D x,    M = [[A, B], [C, D]]
//
// or, with filter_first, s = A F(r) + B x. A group is `inputs` channels of x, side by side, and `outputs` of y.
//   delays     (lines,), >= 1
//   systems    (rows, lines + outputs, lines + inputs): M; group g has row g / repeat % rows, and every row has a group
//   sos        (rows, lines, sections, 6), stable; with 0 sections NULL, and F changes nothing
//   lines_in   (groups, sum of delays): what went into each line last, oldest first; NULL for silence. lines_out the same
//   state_in   (sections, groups, lines, 2), SciPy's zi, or NULL for rest; state_out the same, NULL with 0 sections
// lines_out and state_out may both be NULL: nothing is kept.
//   passed     NULL, or where lines_in and lines_out are the same memory, how many samples went through since each line was
//              oldest first: the oldest one now stands behind as many others, modulo the delay. On return the same, or 0
//   kept       NULL, or memory, zeros at first, where calls with the same delays, systems and sos leave what follows from them
//              to later ones, if there is room. Of several calls at a time one has it
// States before and after may be the same memory. Subnormal numbers count as zero. The caller sees to it that the loops
// decay.
TORCHFX_API int32_t torchfx_delay_network_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t groups, int64_t samples,
    const int64_t* delays, int64_t lines, int64_t inputs, int64_t outputs,
    const double* systems, int64_t system_rows, int64_t system_repeat,
    const double* sos, int64_t sections, int64_t sos_rows, int64_t sos_repeat, int32_t filter_first,
    const double* lines_in, double* lines_out, const double* state_in, double* state_out, int64_t* passed,
    void* kept, int64_t kept_bytes, int32_t threads);

// Another sample rate: x is a signal of `samples` samples a channel, zero outside of them, and
//
//   y[m] = sum over k < n_taps of taps[p][k] x[q - k], with q * up + p = m * down + origin, 0 <= p < up
//
//   taps    (up, n_taps): the phases of a low-pass at `up` times x's rate
//   length  outputs of each channel
//   origin  of any sign: where output 0 lies, in steps of x's sampling interval over `up`
// y must not overlap x. A NaN or an infinity in x reaches the outputs whose windows it lies in, and may reach five
// outputs before and after them. With double samples, subnormal numbers may count as zero.
TORCHFX_API int32_t torchfx_resample_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t samples,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t length,
    const double* taps, int64_t up, int64_t n_taps, int64_t down, int64_t origin, int32_t threads);

// A phase vocoder with identity phase locking: x is a signal of `samples` samples a channel, zero outside of them, and y,
// of (count - 1) * hop + size samples a channel, the sum of `count` windowed frames, frame u from u * hop on. With P the
// spectrum of the windowed input from starts[u] on, Q that from starts[u] - hop on, and Y' that of the frame before,
// frame u has the spectrum
//
//   Y[k] = P[k] r, r = Y'[p] conj(Q[p]) / |Y'[p] conj(Q[p])|, with p the peak of |P| nearest to k, the lower one of two
//
// r is 1 where that is 0 / 0, and where there is no peak: a bin with more power than the two on each side, by a part of
// 1e-9.
//   size   a power of two >= 256; window (size), for reading and laying down
//   state  (channels, size / 2 + 1, 2): Y of the last frame; state_in may be NULL: zeros
TORCHFX_API int32_t torchfx_phase_vocoder_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t samples,
    void* y, int64_t channels, const int64_t* starts, int64_t count, const double* window, int64_t size, int64_t hop,
    const double* state_in, double* state_out, int32_t threads);

// Bands of the power spectra of frames, and their logarithms: of float samples in float.
//
//   frame f begins at sample f * hop - origin and has `length` samples, times the window, then zeros up to `size`
//   y[m][f] = sum over k of filters[m][k] |X_f[k]|^power, or with gain != 0
//   y[m][f] = gain log(max(y[m][f] + offset, floor))
//
//   y         (channels, bands, count), C order
//   window    (length,), length <= size
//   size      even, with no factors but 2, 3 and 5
//   reflect   whether what lies beyond the signal's ends is the signal reflected there, fewer samples than it has; else
//             zeros
//   filters   (bands, size / 2 + 1), or NULL: each bin is a band
//   settings  power (1 or 2); preemphasis p: x[n] - p x[n - 1] within each frame, x[0] - p x[0] at its start; whether the
//             frame's mean is subtracted before that (0 or 1); gain, floor and offset
// A NaN or an infinity in x reaches the frames that hold it, and no others.
TORCHFX_API int32_t torchfx_mel_forward(
    const float* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t samples,
    float* y, int64_t channels, int64_t count, const double* window, int64_t length, int64_t size, int64_t hop,
    int64_t origin, int32_t reflect, const double* filters, int64_t bands, const double* settings, int32_t threads);

// The gradient of the samples, (channels, samples) in C order, from that of y; the other arguments are the same. The slope
// of a magnitude is taken for 0 where it is 0.
TORCHFX_API int32_t torchfx_mel_backward(
    const float* grad_y, const float* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t samples,
    float* grad_x, int64_t channels, int64_t count, const double* window, int64_t length, int64_t size, int64_t hop,
    int64_t origin, int32_t reflect, const double* filters, int64_t bands, const double* settings, int32_t threads);

// What a detector follows: y[t] = y[t-1] + c (x[t] - y[t-1]), with c = rise where x[t] > y[t-1] and c = fall elsewhere.
//   coefficients  (rows, 2): rise and fall in [0, 1]; channel c has row c / repeat % rows, and every row has a channel
//   state_in      (channels,): the output before the first, or NULL for 0; state_out the same after the last, or NULL
// From a NaN on, all of a channel's output is NaN; from an infinity on, it is infinite or NaN.
TORCHFX_API int32_t torchfx_ballistics_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* coefficients, int64_t rows, int64_t repeat,
    const double* state_in, double* state_out, int32_t threads);

// A signal multiplied by a gain that follows its level, or another one's. Channels in groups share a gain: group g has
// the channels (g / inner * width + i) inner + g % inner of x and y, for i < width.
//   key        a row for each group, or NULL: the largest magnitude of the group's channels of x. Its level, 20 log10(|key|)
//              but at least -300 dB, becomes a gain in dB by a static curve, smoothed as in torchfx_ballistics_forward.
//   settings   (rows, TORCHFX_DYNAMICS_SETTINGS): threshold, above, below, knee, lowest, makeup, rise, fall. With
//              o = level - threshold and k(o) = 0 for o <= -knee / 2, o for o >= knee / 2 and
//              (o + knee / 2)^2 / (2 knee) between, the curve is max(above k(o) + below k(-o), lowest) dB. Group g has
//              row g / repeat % rows, and every row has a group
//   state_in   (groups,): the smoothed gain in dB before the first sample, or NULL for 0; state_out likewise
// The factor is 10^((smoothed gain + makeup) / 20), with a relative error below 1e-13, or 1e-11 for floats. From a NaN or an
// infinity on, all of a group's output is NaN.
enum { TORCHFX_DYNAMICS_SETTINGS = 8 };
TORCHFX_API int32_t torchfx_dynamics_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    const void* key, int64_t key_channel_stride, int64_t key_time_stride, int64_t key_repeat,
    void* y, int64_t y_channel_stride, int64_t groups, int64_t width, int64_t inner, int64_t samples,
    const double* settings, int64_t rows, int64_t repeat,
    const double* state_in, double* state_out, int32_t threads);

// A compander, groups and key as above: the level of what torchfx_ballistics_forward makes of |key|, at least -300 dB,
// becomes a gain in dB by a curve of straight lines between points, the first one level and the last ones going on.
//   settings   (rows, 3 + 4 points): rise, fall, half the knee's width in dB, and for each point, levels ascending: its
//              level and gain in dB, the slope s of the line behind it, and the bend b there. b (half - |level - point|)^2
//              is added to the gain within the knee of each point
//   state_in   (groups,): the smoothed magnitude before the first sample, or NULL for 0; state_out likewise
// Errors of the factor and samples that are not finite are as in torchfx_dynamics_forward, but for the level's logarithm,
// which is as exact as doubles.
TORCHFX_API int32_t torchfx_compand_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    const void* key, int64_t key_channel_stride, int64_t key_time_stride, int64_t key_repeat,
    void* y, int64_t y_channel_stride, int64_t groups, int64_t width, int64_t inner, int64_t samples,
    const double* settings, int64_t points, int64_t rows, int64_t repeat,
    const double* state_in, double* state_out, int32_t threads);

// A limiter, groups as above: with z the signal `past` followed by x,
//
//   y[t] = z[t] (1 - (r[t - ahead] + ... + r[t]) / (ahead + 1)), within [-threshold, threshold]
//
// where r follows 1 - threshold / max(largest of peaks[t ... t + window - 1], threshold): up at once, down with the
// coefficient `fall`.
//   past       (channels, delay): what came before x
//   peaks      window - 1 samples more than x, a row for each group; NULL for the largest magnitudes of z in the group's
//              channels, and then window = delay + 1
//   settings   (rows, 2): threshold and fall
//   state      (groups,): r before the first sample and after the last; ramp (groups, ahead): the last ones of r, which
//              are kept as multiples of 2^-52 times a power of two that is no smaller than ahead + 1
TORCHFX_API int32_t torchfx_limiter_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    const void* past, int64_t delay,
    const void* peaks, int64_t peaks_channel_stride, int64_t peaks_time_stride, int64_t peaks_repeat,
    void* y, int64_t y_channel_stride, int64_t groups, int64_t width, int64_t inner, int64_t samples,
    int64_t window, int64_t ahead, const double* settings, int64_t rows, int64_t repeat,
    const double* state_in, double* state_out, const double* ramp_in, double* ramp_out, int32_t threads);

// y[t] is the largest of x[t] ... x[t + window - 1], or a NaN among them: x has `window - 1` samples more than y.
TORCHFX_API int32_t torchfx_sliding_max(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples, int64_t window, int32_t threads);

// Likewise y[t] is their median, of an odd number, or a NaN.
TORCHFX_API int32_t torchfx_sliding_median(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples, int64_t window, int32_t threads);

// A quantiser whose errors come back through a filter, so that their spectrum is shaped:
//
//   v[t] = x[t] - taps[0] e[t-1] - ... - taps[order-1] e[t-order],   y[t] = round(v[t] + dither[t]),   e[t] = y[t] - v[t]
//
//   dither     (channels, samples) of x's dtype, its rows repeated as x's are
//   taps       (rows, order): channel c has row c / repeat % rows, and every row has a channel
//   state_in   (channels, order): the errors before the first sample, latest first; NULL for rest. state_out the same, or NULL
// From a NaN or an infinity on, all of a channel's output is NaN.
TORCHFX_API int32_t torchfx_error_feedback_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    const void* dither, int64_t dither_channel_stride, int64_t dither_time_stride, int64_t dither_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* taps, int64_t order, int64_t rows, int64_t repeat,
    const double* state_in, double* state_out, int32_t threads);

// Random numbers that depend on a key and on their place alone: channel c has those from places[c / repeat % rows] on.
// Places and keys count modulo 2^64. Let w[n] be word n of SplitMix64 seeded with 0, and u[n] = 2^-53 floor(w[n] / 2^11).
//
//   TORCHFX_RECTANGULAR   u[place + key] - 1/2, within [-1/2, 1/2)
//   TORCHFX_TRIANGULAR    the sum of two such numbers, the second with key + 2^20
//   TORCHFX_DIFFERENCES   the rectangular number less that of the place before: triangular, of high frequencies
//   TORCHFX_NORMAL        of mean 0 and variance 1, by Box and Muller, in single precision. Word
//                         n = 16 floor(place / 32) + place mod 16 + key gives a radius from its upper 31 bits, a cosine and
//                         a sine of the lower 32 and the cosine's sign from the bit between; those are the numbers of
//                         the places 32 floor(place / 32) + i and + 16 + i for i = place mod 16
//
//   y[t] = x[t] + gain noise[t], or gain round(x[t] / gain + noise[t]), halves to the even number, if `rounded`
//   gains      (gain_rows), channel c has row c / gain_repeat % gain_rows
enum torchfx_noise_density { TORCHFX_NORMAL = 0, TORCHFX_RECTANGULAR = 1, TORCHFX_TRIANGULAR = 2, TORCHFX_DIFFERENCES = 3 };
TORCHFX_API int32_t torchfx_noise_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* gains, int64_t gain_rows, int64_t gain_repeat,
    const int64_t* places, int64_t rows, int64_t repeat, int64_t key, int32_t density, int32_t rounded, int32_t threads);

// The root of the sum of squares of each channel's normal numbers; channel c has those from places[c] on.
TORCHFX_API int32_t torchfx_noise_magnitude(const int64_t* places, int64_t channels, int64_t samples, int64_t key,
                                            double* magnitudes, int32_t threads);

// The root of the sum of squares of each row of x.
TORCHFX_API int32_t torchfx_magnitude(int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride,
                                      int64_t channels, int64_t samples, double* magnitudes, int32_t threads);

// Gains, delays and all-pass filters that swing with an oscillator s[n] = sin(2 pi (phase + turns n)), n counting the
// call's samples.
//   settings   (rows, TORCHFX_*_SETTINGS), the first of each `turns`: channel c has row c / repeat % rows, and every row
//              has a channel
//   phase_in   (channels,): at the first sample; phase_out the same behind the last one, in [0, 1]; may be one memory
// Phases of calls up to 2^29 samples long are exact but for the roundings of a few sums.
//
// y[n] = x[n] (middle + depth s[n]); settings: turns, middle, depth
enum { TORCHFX_MODULATED_GAIN_SETTINGS = 3 };
TORCHFX_API int32_t torchfx_modulated_gain_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* settings, int64_t rows, int64_t repeat, const double* phase_in, double* phase_out, int32_t threads);

// y[n] = (1 - mix) x[n] + mix v[n], v[n] = w(n - d), w[n] = x[n] + feedback v[n], d = centre + depth s[n] samples, at least
// TORCHFX_LEAST_DELAY and at most as many less than are kept; w is interpolated by Catmull-Rom cubics.
// settings: turns, centre, depth, mix, feedback
//   past_in    (channels, kept), of x's dtype: what w was before x; kept >= 2 TORCHFX_LEAST_DELAY
//   past_out   the same after x, or the same memory
enum { TORCHFX_MODULATED_DELAY_SETTINGS = 5, TORCHFX_LEAST_DELAY = 2 };
TORCHFX_API int32_t torchfx_modulated_delay_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    const void* past_in, void* past_out, int64_t kept, void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    const double* settings, int64_t rows, int64_t repeat, const double* phase_in, double* phase_out, int32_t threads);

// y = (1 - mix) x + mix v, v being x + feedback v behind `stages` all-pass filters (a + 1/z) / (1 + a/z), a = (w - 1) / (w + 1) with
// w = tan(pi f), f = centre 2^(octaves s[n]) cycles per sample, at most 0.49. settings: turns, centre, octaves, mix, feedback
//   state_in   (stages, channels): of each filter, v' of v = a u + v', v' = u - a v; state_out the same, or the same memory
enum { TORCHFX_PHASER_SETTINGS = 5 };
TORCHFX_API int32_t torchfx_phaser_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples, int64_t stages,
    const double* settings, int64_t rows, int64_t repeat, const double* phase_in, double* phase_out,
    const double* state_in, double* state_out, int32_t threads);

// Independent calls of one function of the second form (below), side by side.
//   arguments  (count, size): those of each call, the first to be started first
// Returns TORCHFX_OK, or the status of a call that failed; the others have run.
TORCHFX_API int32_t torchfx_packed_each(int32_t (*function)(const int64_t*), const int64_t* arguments, int64_t size,
                                        int64_t count, int32_t threads);

// Each function above that filters has a second form, torchfx_NAME_packed, with its arguments, in the same order, in one
// array of 64-bit integers (addresses for pointers), after their number: converting 14 arguments one by one takes
// Python's ctypes 0.9 us, one array 0.2 us, and a block of 64 samples 0.7 us. Another number than the function's own is
// TORCHFX_BAD_ARGUMENT, and nothing behind it is read. For NULL it returns how many arguments the function takes.
#define TORCHFX_PACKED_CALLS(declare) \
    declare(sos_forward)              \
    declare(sos_forward_recording)    \
    declare(sos_backward)             \
    declare(sos_zero_phase)           \
    declare(lfilter_forward)          \
    declare(lfilter_zero_phase)       \
    declare(fir_forward)              \
    declare(fir_partitioned_size)     \
    declare(fir_settle)               \
    declare(fir_backward_x)           \
    declare(fir_backward_taps)        \
    declare(allpole_forward)          \
    declare(allpole_backward)         \
    declare(state_space_forward)      \
    declare(state_space_backward)     \
    declare(saturated_forward)        \
    declare(saturation_tables)        \
    declare(delay_network_forward)    \
    declare(resample_forward)         \
    declare(phase_vocoder_forward)    \
    declare(mel_forward)              \
    declare(mel_backward)             \
    declare(ballistics_forward)       \
    declare(dynamics_forward)         \
    declare(limiter_forward)          \
    declare(sliding_max)              \
    declare(sliding_median)           \
    declare(error_feedback_forward)   \
    declare(noise_forward)            \
    declare(noise_magnitude)          \
    declare(magnitude)                \
    declare(modulated_gain_forward)   \
    declare(modulated_delay_forward)  \
    declare(phaser_forward)           \
    declare(program_run)              \
    declare(program_run_copied)       \
    declare(packed_each)              \
    declare(advise_huge_pages)

#define TORCHFX_DECLARE_PACKED(name) TORCHFX_API int32_t torchfx_##name##_packed(const int64_t* arguments);
TORCHFX_PACKED_CALLS(TORCHFX_DECLARE_PACKED)
#undef TORCHFX_DECLARE_PACKED

// The names of these functions, with a space behind each.
TORCHFX_API const char* torchfx_packed_names(void);

#ifdef __cplusplus
}
#endif
#endif
