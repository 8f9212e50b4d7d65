// Rows of bins hold real and imaginary parts apart, so that compilers work on vectors of them.
#include "phase_vocoder/kernels.h"

#include <math.h>
#include <string.h>

#include "support/vec.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

// What a peak has more, as a part of it: rounding makes none.
constexpr double margin = 1e-9;

struct Row {
    double* re;
    double* im;
};

struct Heard {
    bool now, before;
};

template <class Sample>
TORCHFX_INLINE double sample(const PhaseVocoderJob& job, const Sample* x, int64_t i) {
    return i >= 0 && i < job.samples ? static_cast<double>(x[i * job.x_time_stride]) : 0;
}

// The frame from `start` on as real parts, the one `hop` samples before it as imaginary parts. Returns whether each
// holds anything but zeros: what one transform's rounding leaves of the other must not look like a signal.
template <class Sample>
Heard read(const PhaseVocoderJob& job, const Sample* x, int64_t start, double* data) {
    const bool inside = start >= job.hop && start + job.size <= job.samples && job.x_time_stride == 1;
    double now[VD] = {}, before[VD] = {};
    for (int64_t i = 0; i < job.size; i += VD, data += 2 * VD) {
        const double* window = job.window + i;
        const int64_t at = start + i;
        if (inside) {
            const Sample *a = x + at, *b = a - job.hop;
            for (int k = 0; k < VD; ++k) data[k] = window[k] * static_cast<double>(a[k]);
            for (int k = 0; k < VD; ++k) data[VD + k] = window[k] * static_cast<double>(b[k]);
        } else {
            for (int k = 0; k < VD; ++k) data[k] = window[k] * sample(job, x, at + k);
            for (int k = 0; k < VD; ++k) data[VD + k] = window[k] * sample(job, x, at + k - job.hop);
        }
        for (int k = 0; k < VD; ++k) now[k] += fabs(data[k]);
        for (int k = 0; k < VD; ++k) before[k] += fabs(data[VD + k]);
    }
    Heard heard = {false, false};
    for (int k = 0; k < VD; ++k) {
        heard.now = heard.now || now[k] != 0;
        heard.before = heard.before || before[k] != 0;
    }
    return heard;
}

// The spectra of both frames from their common transform, and the power of the first.
void split(const PhaseVocoderJob& job, const double* data, Heard heard, Row now, Row before, double* power) {
    const int64_t bins = job.size / 2 + 1;
    const double half_now = heard.now ? 0.5 : 0, half_before = heard.before ? 0.5 : 0;
    const int32_t *place = job.place, *mirrored = job.mirrored;
    double *now_re = now.re, *now_im = now.im, *before_re = before.re, *before_im = before.im;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
    for (int64_t k = 0; k < bins; ++k) {
        const double a_re = data[place[k]], a_im = data[place[k] + VD];
        const double b_re = data[mirrored[k]], b_im = data[mirrored[k] + VD];
        const double re = half_now * (a_re + b_re), im = half_now * (a_im - b_im);
        now_re[k] = re;
        now_im[k] = im;
        before_re[k] = half_before * (a_im + b_im);
        before_im[k] = half_before * (b_re - a_re);
        power[k] = re * re + im * im;
    }
}

// Bins with more power than the two on each side, around which lie two of -1.
int64_t find_peaks(const double* power, int64_t bins, uint8_t* flags, int32_t* peaks) {
    for (int64_t k = 0; k < bins; ++k) {
        const double p = power[k] * (1 - margin);
        flags[k] = (p > power[k - 1]) & (p > power[k - 2]) & (p > power[k + 1]) & (p > power[k + 2]);
    }
    int64_t found = 0;
    for (int64_t k = 0; k < bins; ++k) {
        peaks[found] = static_cast<int32_t>(k);
        found += flags[k];
    }
    return found;
}

// The output frame: bins turned as their peaks are, all by 0 where there is no peak. Writes VD - 1 turns too many.
void turn(int64_t bins, Row now, Row before, Row last, const double* power, int32_t* peaks, Row turns, Row out) {
    // Until the output is written, its rows hold flags, then what each peak is turned by.
    double *const out_re = out.re, *const out_im = out.im;
    const int64_t found = find_peaks(power, bins, reinterpret_cast<uint8_t*>(out_im), peaks);
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
    for (int64_t i = 0; i < found; ++i) {
        const int64_t p = peaks[i];
        const double a = last.re[p] * before.re[p] + last.im[p] * before.im[p];
        const double b = last.im[p] * before.re[p] - last.re[p] * before.im[p];
        const double square = a * a + b * b;
        const bool valid = square > 0 && square < HUGE_VAL;
        const double scale = 1 / sqrt(valid ? square : 1);
        out_re[i] = valid ? a * scale : 1;
        out_im[i] = valid ? b * scale : 0;
    }
    if (found == 0) {
        out_re[0] = 1;
        out_im[0] = 0;
    }
    for (int64_t i = 0, k = 0; k < bins; ++i) {
        const int64_t end = i + 1 < found ? (peaks[i] + peaks[i + 1]) / 2 + 1 : bins;
        const vd re = set1(out_re[i]), im = set1(out_im[i]);
        for (int64_t at = k; at < end; at += VD) {  // the next peak's bins are written over
            store(turns.re + at, re);
            store(turns.im + at, im);
        }
        k = end;
    }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
    for (int64_t k = 0; k < bins; ++k) {
        out_re[k] = now.re[k] * turns.re[k] - now.im[k] * turns.im[k];
        out_im[k] = now.re[k] * turns.im[k] + now.im[k] * turns.re[k];
    }
}

// The transform of two real frames, one as real parts and one as imaginary parts, from their spectra.
void join(const PhaseVocoderJob& job, Row a, Row b, double* data) {
    const int64_t half = job.size / 2;
    const int32_t *place = job.place, *mirrored = job.mirrored;
    for (int64_t k = 0; k <= half; k += half) {
        data[place[k]] = a.re[k];
        data[place[k] + VD] = b.re[k];
    }
    // Not asked to be in vectors: scattered stores of AVX-512 are slower than single ones (30 % of this, 11/2026).
    for (int64_t k = 1; k < half; ++k) {
        data[place[k]] = a.re[k] - b.im[k];
        data[place[k] + VD] = a.im[k] + b.re[k];
        data[mirrored[k]] = a.re[k] + b.im[k];
        data[mirrored[k] + VD] = b.re[k] - a.im[k];
    }
}

void add(const PhaseVocoderJob& job, const double* data, double* sum) {
    const double scale = 1 / static_cast<double>(job.size);
    for (int64_t i = 0; i < job.size; i += VD) {
        const double *from = data + 2 * i, *window = job.window + i;
        double *a = sum + i, *b = a + job.hop;
        for (int k = 0; k < VD; ++k) a[k] += window[k] * scale * from[k];
        for (int k = 0; k < VD; ++k) b[k] += window[k] * scale * from[VD + k];
    }
}

template <class Sample>
void stretch(const PhaseVocoderJob& job, int64_t channel, double* room) {
    const int64_t n = job.size, hop = job.hop, bins = n / 2 + 1;
    double* const data = room;
    double* next = room + 2 * n;
    const auto row = [&] {
        double* const found = next + 2;
        next += bins + 5 + VD;
        return found;
    };
    const auto rows = [&] { return Row{row(), row()}; };
    const Row now = rows(), before = rows(), turns = rows();
    const Row out[2] = {rows(), rows()};
    double* const power = row();
    double* const sum = row();
    int32_t* const peaks = reinterpret_cast<int32_t*>(sum + n + hop);
    power[-1] = power[-2] = power[bins] = power[bins + 1] = -1;
    const Sample* x = static_cast<const Sample*>(job.x) + channel * job.x_channel_stride;
    Sample* y = static_cast<Sample*>(job.y) + channel * (job.count * hop + n - hop);
    // The frame before is the second of a pair, or the first one's.
    for (int64_t k = 0; k < bins; ++k) {
        const double* state = job.state_in + 2 * (bins * channel + k);
        out[1].re[k] = job.state_in ? state[0] : 0;
        out[1].im[k] = job.state_in ? state[1] : 0;
    }
    for (int64_t i = 0; i < n + hop; ++i) sum[i] = 0;
    int last = 1;
    for (int64_t u = 0; u < job.count; u += 2) {
        const int together = job.count - u < 2 ? 1 : 2;
        for (int i = 0; i < together; ++i) {
            const Heard heard = read(job, x, job.starts[u + i], data);
            job.fft->forward(data, n, 0, job.roots);
            split(job, data, heard, now, before, power);
            turn(bins, now, before, out[last], power, peaks, turns, out[i]);
            last = i;
        }
        if (together == 1) {
            memset(out[1].re, 0, sizeof(double) * static_cast<size_t>(bins));
            memset(out[1].im, 0, sizeof(double) * static_cast<size_t>(bins));
        }
        join(job, out[0], out[1], data);
        job.fft->inverse(data, n, 0, job.roots);
        add(job, data, sum);
        const int64_t done = together * hop;
        for (int64_t i = 0; i < done; ++i) y[i] = static_cast<Sample>(sum[i]);
        y += done;
        memmove(sum, sum + done, sizeof(double) * static_cast<size_t>(n + hop - done));
        for (int64_t i = n + hop - done; i < n + hop; ++i) sum[i] = 0;
    }
    for (int64_t i = 0; i < n - hop; ++i) y[i] = static_cast<Sample>(sum[i]);
    for (int64_t k = 0; k < bins; ++k) {
        double* state = job.state_out + 2 * (bins * channel + k);
        state[0] = out[last].re[k];
        state[1] = out[last].im[k];
    }
}

void stretch_any(const PhaseVocoderJob& job, int64_t channel, double* room) {
    if (job.dtype == TORCHFX_F32) stretch<float>(job, channel, room);
    else stretch<double>(job, channel, room);
}

}  // namespace

extern const PhaseVocoderKernels phase_vocoder_kernels = {stretch_any};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
