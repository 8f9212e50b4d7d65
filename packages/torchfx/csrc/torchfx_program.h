// Programs, part of the C interface (torchfx_dsp.h): several steps over a block in one call, tile by tile, so that the
// samples that pass between them stay in a cache. A program is an array of 64-bit integers:
//
//   dtype of x and y, number of steps, number of buffers, and for each step, in the order they run,
//   kind, words of this record, source buffer, target buffer, dtype of the source's samples, fields
//
// Buffer 0 is x, 1 is y, those from 2 on are temporaries that the call provides. A step reads a buffer as the dtype it
// was last written with. x is never written. y is written at least once, and holds x's dtype. gain, clamp, add, curve
// and transient may have their source as target.
#ifndef TORCHFX_PROGRAM_H
#define TORCHFX_PROGRAM_H

#include "support/api.h"

#ifdef __cplusplus
extern "C" {
#endif

// The fields of each kind of step, in the order of its record: field(name, type, role, size). C++ takes the places of
// fields from here, and other languages names, types and sizes from torchfx_step_fields.
//
//   type  integer; real, a double by its bits; buffer, the number of one more buffer that the step reads, of the source's
//         dtype; or what an address points to: float64, int64, or samples, of the dtype of the source
//   role  setting; constant, memory that the step reads; state, memory that it also changes; optional_constant and
//         optional_state, which may be NULL where the size, or the prose here, allows it; optional_resting_state, which
//         may be NULL for rest where the step runs once, and of which nothing is kept then
//   size  elements at the address, in terms of other fields and of `channels`, those of the signal; `unchecked`, where
//         fields do not give it; `1` for values
//
// A pair of fields rows and repeat belongs to the address before it: channel c, or group c, has row c / repeat % rows.

// A cascade of second-order sections, as in torchfx_sos_forward. state (sections, channels, 2).
#define TORCHFX_FIELDS_sos(field)                        \
    field(sos, float64, constant, rows * sections * 6)   \
    field(sections, integer, setting, 1)                 \
    field(rows, integer, setting, 1)                     \
    field(repeat, integer, setting, 1)                   \
    field(state, float64, state, sections * channels * 2)

// A finite impulse response, as in torchfx_fir_forward. state (channels, n_taps - 1).
#define TORCHFX_FIELDS_fir(field)                      \
    field(taps, float64, constant, rows * n_taps)      \
    field(n_taps, integer, setting, 1)                 \
    field(rows, integer, setting, 1)                   \
    field(repeat, integer, setting, 1)                 \
    field(state, float64, state, channels * (n_taps - 1))

// A delay. state (channels, delay): the last inputs, oldest first. delay >= 1.
#define TORCHFX_FIELDS_delay(field)      \
    field(delay, integer, setting, 1)    \
    field(state, samples, state, channels * delay)

// A factor for each row, rounded to the step's dtype.
#define TORCHFX_FIELDS_gain(field)             \
    field(factors, float64, constant, rows)    \
    field(rows, integer, setting, 1)           \
    field(repeat, integer, setting, 1)

// min(max(sample, low), high); a NaN stays one.
#define TORCHFX_FIELDS_clamp(field)  \
    field(low, real, setting, 1)     \
    field(high, real, setting, 1)

// source + second.
#define TORCHFX_FIELDS_add(field) field(second, buffer, constant, 1)

// The change from float to double, and back.
#define TORCHFX_FIELDS_widen(field)
#define TORCHFX_FIELDS_narrow(field)

// A response for block after block, see torchfx_fir_settle. n_taps >= 2; work as torchfx_fir_partitioned_size says;
// state (channels, width, n_taps - 1).
#define TORCHFX_FIELDS_partitioned(field)              \
    field(width, integer, setting, 1)                  \
    field(taps, float64, constant, rows * n_taps)      \
    field(n_taps, integer, setting, 1)                 \
    field(rows, integer, setting, 1)                   \
    field(repeat, integer, setting, 1)                 \
    field(state, float64, state, channels * width * (n_taps - 1)) \
    field(work, float64, state, unchecked)

// As in torchfx_delay_network_forward, with as many outputs as inputs, channels / inputs groups. length: the sum of delays;
// held (groups, length): the lines' state; state (sections, groups, lines, 2): the filters'. sections may be 0. passed may
// be NULL, as may kept.
#define TORCHFX_FIELDS_delay_network(field)                                       \
    field(delays, int64, constant, lines)                                         \
    field(lines, integer, setting, 1)                                             \
    field(inputs, integer, setting, 1)                                            \
    field(systems, float64, constant, rows * (lines + inputs) * (lines + inputs)) \
    field(rows, integer, setting, 1)                                              \
    field(repeat, integer, setting, 1)                                            \
    field(sos, float64, optional_constant, sos_rows * lines * sections * 6)       \
    field(sections, integer, setting, 1)                                          \
    field(sos_rows, integer, setting, 1)                                          \
    field(sos_repeat, integer, setting, 1)                                        \
    field(length, integer, setting, 1)                                            \
    field(held, float64, optional_resting_state, channels / inputs * length)      \
    field(state, float64, optional_resting_state, sections * (channels / inputs) * lines * 2) \
    field(passed, int64, optional_state, 1)                                       \
    field(kept, float64, optional_constant, kept_size)                            \
    field(kept_size, integer, setting, 1)

// As in torchfx_dynamics_forward, for groups of `linked` channels side by side. The key is the first of a group's channels
// of a second buffer, or the source, for none.
#define TORCHFX_FIELDS_dynamics(field)               \
    field(key, buffer, constant, 1)                  \
    field(linked, integer, setting, 1)               \
    field(settings, float64, constant, rows * 8)     \
    field(rows, integer, setting, 1)                 \
    field(repeat, integer, setting, 1)               \
    field(state, float64, state, channels / linked)

// As in torchfx_compand_forward, for groups and with a key as in dynamics.
#define TORCHFX_FIELDS_compand(field)                          \
    field(key, buffer, constant, 1)                            \
    field(linked, integer, setting, 1)                         \
    field(settings, float64, constant, rows * (3 + 4 * points)) \
    field(points, integer, setting, 1)                         \
    field(rows, integer, setting, 1)                           \
    field(repeat, integer, setting, 1)                         \
    field(state, float64, state, channels / linked)

// As in torchfx_limiter_forward, for groups as in dynamics, with a window of one sample where peaks is not the source.
#define TORCHFX_FIELDS_limiter(field)                   \
    field(peaks, buffer, constant, 1)                   \
    field(linked, integer, setting, 1)                  \
    field(delay, integer, setting, 1)                   \
    field(ahead, integer, setting, 1)                   \
    field(settings, float64, constant, rows * 2)        \
    field(rows, integer, setting, 1)                    \
    field(repeat, integer, setting, 1)                  \
    field(past, samples, state, channels * delay)       \
    field(state, float64, state, channels / linked)     \
    field(ramp, float64, state, channels / linked * ahead)

// The largest magnitude of the group's channels in this sample and so many before, into the first of its channels. past
// (channels / linked, before): those magnitudes.
#define TORCHFX_FIELDS_maximum(field)     \
    field(linked, integer, setting, 1)    \
    field(before, integer, setting, 1)    \
    field(past, samples, state, channels / linked * before)

// The source at `up` times the rate, as torchfx_resample_forward makes it with taps (up, n_taps), a low-pass whose middle is
// tap `middle`; of that, from the sample `wait` ago to the next one, and of that sample itself the largest magnitude. past
// (channels, 2 wait): the last inputs. wait >= 1.
#define TORCHFX_FIELDS_true_peak(field)              \
    field(taps, float64, constant, up * n_taps)      \
    field(up, integer, setting, 1)                   \
    field(n_taps, integer, setting, 1)               \
    field(middle, integer, setting, 1)               \
    field(wait, integer, setting, 1)                 \
    field(past, samples, state, channels * 2 * wait)

// Each channel of a group of `width` side by side is the sum of the group's channels, times its row of weights (rows, width,
// width).
#define TORCHFX_FIELDS_mix(field)                             \
    field(width, integer, setting, 1)                         \
    field(weights, float64, constant, rows * width * width)   \
    field(rows, integer, setting, 1)                          \
    field(repeat, integer, setting, 1)

// As in torchfx_saturated_forward, with one matrix for all samples. A table has TORCHFX_SATURATION_TABLE elements.
#define TORCHFX_FIELDS_saturated(field)                                       \
    field(systems, float64, constant, rows * (states + 1) * (states + 1))     \
    field(states, integer, setting, 1)                                        \
    field(rows, integer, setting, 1)                                          \
    field(repeat, integer, setting, 1)                                        \
    field(outputs, float64, constant, rows * (states + 1))                    \
    field(feedback, float64, constant, channels)                              \
    field(drive, float64, constant, channels)                                 \
    field(tables, float64, constant, table_rows * 8192)                       \
    field(table_rows, integer, setting, 1)                                    \
    field(table_repeat, integer, setting, 1)                                  \
    field(state, float64, state, channels * states)

// y = curve(x) for each sample, with parameters (rows, length). With up > 1 at so many times the rate: taps (up, n_taps) on
// the way there and (1, n_taps_back) on the way back, each with its middle in tap `middle`; the output is 2 wait samples
// late, past (channels, 2 wait) are the last inputs, and shaped (channels, 2 wait up) the curve's last results there. With
// up = 1 these addresses may be NULL.
#define TORCHFX_FIELDS_curve(field)                                  \
    field(curve, integer, setting, 1)                                \
    field(parameters, float64, constant, rows * length)              \
    field(length, integer, setting, 1)                               \
    field(rows, integer, setting, 1)                                 \
    field(repeat, integer, setting, 1)                               \
    field(up, integer, setting, 1)                                   \
    field(taps, float64, optional_constant, up * n_taps)             \
    field(n_taps, integer, setting, 1)                               \
    field(taps_back, float64, optional_constant, n_taps_back)        \
    field(n_taps_back, integer, setting, 1)                          \
    field(middle, integer, setting, 1)                               \
    field(wait, integer, setting, 1)                                 \
    field(past, samples, optional_state, channels * 2 * wait)        \
    field(shaped, samples, optional_state, channels * 2 * wait * up)

// With L the level in dB of peaks, a second buffer as in limiter, above quietest, at least 0, `rising` follows L with the
// coefficient `attack` up and at once down, `falling` at once up and with `sustain` down. The gain in dB is attack_db
// min(|L - rising| / span, 1) + sustain_db min(|L - falling| / span, 1). settings (rows, 6): attack_db, sustain_db, attack,
// sustain, quietest in dB, span.
#define TORCHFX_FIELDS_transient(field)              \
    field(peaks, buffer, constant, 1)                \
    field(linked, integer, setting, 1)               \
    field(settings, float64, constant, rows * 6)     \
    field(rows, integer, setting, 1)                 \
    field(repeat, integer, setting, 1)               \
    field(rising, float64, state, channels / linked) \
    field(falling, float64, state, channels / linked)

// As in torchfx_modulated_gain_forward, torchfx_modulated_delay_forward and torchfx_phaser_forward.
#define TORCHFX_FIELDS_modulated_gain(field)         \
    field(settings, float64, constant, rows * 3)     \
    field(rows, integer, setting, 1)                 \
    field(repeat, integer, setting, 1)               \
    field(phase, float64, state, channels)

#define TORCHFX_FIELDS_modulated_delay(field)        \
    field(settings, float64, constant, rows * 5)     \
    field(rows, integer, setting, 1)                 \
    field(repeat, integer, setting, 1)               \
    field(phase, float64, state, channels)           \
    field(kept, integer, setting, 1)                 \
    field(past, samples, state, channels * kept)

#define TORCHFX_FIELDS_phaser(field)                 \
    field(settings, float64, constant, rows * 5)     \
    field(rows, integer, setting, 1)                 \
    field(repeat, integer, setting, 1)               \
    field(phase, float64, state, channels)           \
    field(stages, integer, setting, 1)               \
    field(state, float64, state, stages * channels)

// `waiting` samples of the source, then `length` >= 1 along 3 u^2 - 2 u^3 to the second buffer, then that; passed counts the
// samples.
#define TORCHFX_FIELDS_crossfade(field)       \
    field(second, buffer, constant, 1)        \
    field(passed, int64, state, 1)            \
    field(waiting, integer, setting, 1)       \
    field(length, integer, setting, 1)

// All kinds, by number from 0. States are updated in place.
#define TORCHFX_STEPS(declare) \
    declare(sos)               \
    declare(fir)               \
    declare(delay)             \
    declare(gain)              \
    declare(clamp)             \
    declare(add)               \
    declare(widen)             \
    declare(narrow)            \
    declare(partitioned)       \
    declare(delay_network)     \
    declare(dynamics)          \
    declare(limiter)           \
    declare(maximum)           \
    declare(true_peak)         \
    declare(mix)               \
    declare(saturated)         \
    declare(curve)             \
    declare(transient)         \
    declare(modulated_gain)    \
    declare(modulated_delay)   \
    declare(phaser)            \
    declare(crossfade)         \
    declare(compand)

#define TORCHFX_STEP_NUMBER(name) TORCHFX_STEP_##name,
enum torchfx_step { TORCHFX_STEPS(TORCHFX_STEP_NUMBER) };
#undef TORCHFX_STEP_NUMBER

// Curves of the step, by number, and the parameter p of each, or its table:
//   clip min(max(x, -p), p), tanh tanh(p x), cubic (3 v - v^3) / 2 with v = p x within [-1, 1], arctan 2/pi arctan(p x),
//   overdrive with u = p |x| 2 u below 1/3, (3 - (2 - 3 u)^2) / 3 up to 2/3 and 1 above, with the sign of x, round the
//   whole number next to p x over p, square p x^2, table a line between its entries for inputs evenly spaced from -1 to 1, its ends
//   beyond them
#define TORCHFX_CURVES(declare) \
    declare(clip)               \
    declare(tanh)               \
    declare(cubic)              \
    declare(arctan)             \
    declare(overdrive)          \
    declare(round)              \
    declare(square)             \
    declare(table)

#define TORCHFX_CURVE_NUMBER(name) TORCHFX_CURVE_##name,
enum torchfx_curve { TORCHFX_CURVES(TORCHFX_CURVE_NUMBER) TORCHFX_CURVE_COUNT };
#undef TORCHFX_CURVE_NUMBER

// For each kind, in the order of their numbers, a line of its name and its fields: "kind;name,type,role,size;...".
TORCHFX_API const char* torchfx_step_fields(void);
// The names of all curves, in the order of their numbers, with a space behind each.
TORCHFX_API const char* torchfx_curve_names(void);

// Runs a program of `words` integers. y must not overlap x. With 0 samples nothing happens. A program that does not fit
// together, or with coefficients that its steps refuse, is refused before anything is written.
TORCHFX_API int32_t torchfx_program_run(
    const int64_t* program, int64_t words, const void* x, int64_t x_channel_stride, int64_t x_time_stride,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples, int64_t threshold, int32_t threads);

// Runs a program on a signal with `late` samples of silence behind it, and leaves out the first `late` of its output. The
// program's states that lie in the `bytes` at `states` are only read: what changes is a copy. Any number of threads may
// run the same program.
TORCHFX_API int32_t torchfx_program_run_copied(
    const int64_t* program, int64_t words, const void* states, int64_t bytes, int64_t late, const void* x,
    int64_t x_channel_stride, int64_t x_time_stride, void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    int64_t threshold, int32_t threads);

// Either of them on contiguous signals, for a program that fits together: nothing is checked again. What stays the same
// from call to call is in `call`: program, words, states, bytes, late (-1: the states change in place), channels, samples,
// threshold.
TORCHFX_API int32_t torchfx_program_again(const int64_t* call, const void* x, void* y, int32_t threads);

#ifdef __cplusplus
}
#endif
#endif
