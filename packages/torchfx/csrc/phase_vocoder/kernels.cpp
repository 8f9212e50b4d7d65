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

#if !defined(TORCHFX_VECTORS)
TORCHFX_INLINE vd reversed(vd v) { return v; }
#elif TORCHFX_VD == 2
TORCHFX_INLINE vd reversed(vd v) { return __builtin_shufflevector(v, v, 1, 0); }
#elif TORCHFX_VD == 4
TORCHFX_INLINE vd reversed(vd v) { return __builtin_shufflevector(v, v, 3, 2, 1, 0); }
#else
TORCHFX_INLINE vd reversed(vd v) { return __builtin_shufflevector(v, v, 7, 6, 5, 4, 3, 2, 1, 0); }
#endif

// body(at, opposite, slot) for all vectors of slots: their bins lie at `at`, and with the lanes reversed, those of the
// opposite frequencies at `opposite`.
template <class Body>
TORCHFX_INLINE void for_vectors(int64_t size, Body&& body) {
    for (int64_t first = vocoder_few; first < size; first *= 2)
        for (int64_t i = first + VD; i < 2 * first; i += 2 * VD) body(2 * i, 2 * (3 * first - VD - i), (i - VD) / 2);
}

// body(k) for the bins that have no slot.
template <class Body>
TORCHFX_INLINE void for_few(int64_t size, Body&& body) {
    for (int64_t k = 0; k <= size / 2; k += size / vocoder_few) body(k);
}

template <class T>
struct Complex {
    T re, im;
};

template <class T>
TORCHFX_INLINE Complex<T> operator*(Complex<T> a, Complex<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}

// Bins of a frame's spectrum, one by one.
struct Bins {
    const double* data;
    double half;
    const int32_t *place, *opposite;

    Bins(const PhaseVocoderJob& job, const VocoderFrame& of)
        : data(of.transform), half(of.now), place(job.place), opposite(job.opposite) {}
    TORCHFX_INLINE_MEMBER Complex<double> operator[](int64_t k) const {
        const double *a = data + place[k], *b = data + opposite[k];
        return {half * (a[0] + b[0]), half * (a[VD] - b[VD])};
    }
};

// Those of the output frame.
struct Turned {
    Bins bins;
    const double *re, *im;

    Turned(const PhaseVocoderJob& job, const VocoderFrame& of) : bins(job, of), re(of.rows[2]), im(of.rows[3]) {}
    TORCHFX_INLINE_MEMBER Complex<double> operator[](int64_t k) const { return bins[k] * Complex<double>{re[k], im[k]}; }
};

// The vectors of bins that for_vectors counts.
TORCHFX_INLINE Complex<vd> bins_of(const VocoderFrame& of, int64_t at, int64_t opposite) {
    const double *a = of.transform + at, *b = of.transform + opposite;
    const vd now = set1(of.now);
    return {now * (load(a) + reversed(load(b))), now * (load(a + VD) - reversed(load(b + VD)))};
}

template <class Sample>
TORCHFX_INLINE vd samples_from(const PhaseVocoderJob& job, const Sample* x, int64_t start) {
    if (start >= 0 && start + VD <= job.samples && job.x_time_stride == 1) return load_samples(x + start);
    double some[VD];
    for (int64_t i = start; i < start + VD; ++i)
        some[i - start] = i >= 0 && i < job.samples ? static_cast<double>(x[i * job.x_time_stride]) : 0;
    return load(some);
}

TORCHFX_INLINE double half_unless_zero(vd magnitudes) {
    double each[VD];
    store(each, magnitudes);
    for (const double v : each)
        if (v != 0) return 0.5;
    return 0;
}

// The frame from `start` on as real parts, the one `hop` samples before it as imaginary parts.
template <class Sample>
void read(const PhaseVocoderJob& job, const Sample* x, int64_t start, VocoderFrame& to) {
    vd now = set1(0.0), before = now;
    for (int64_t i = 0; i < job.size; i += VD) {
        const vd window = load(job.window + i);
        const vd a = window * samples_from(job, x, start + i), b = window * samples_from(job, x, start + i - job.hop);
        store(to.transform + 2 * i, a);
        store(to.transform + 2 * i + VD, b);
        now += a < 0.0 ? -a : a;
        before += b < 0.0 ? -b : b;
    }
    to.now = half_unless_zero(now);
    to.before = half_unless_zero(before);
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

void analyse(const PhaseVocoderJob& job, int64_t channel, int64_t u, VocoderFrame& frame) {
    const int64_t start = job.starts[u], offset = channel * job.x_channel_stride, bins = job.size / 2 + 1;
    if (job.dtype == TORCHFX_F32) read(job, static_cast<const float*>(job.x) + offset, start, frame);
    else read(job, static_cast<const double*>(job.x) + offset, start, frame);
    job.fft->forward(frame.transform, job.size, 0, job.roots);

    double *const in_slots = frame.rows[0], *const power = frame.rows[1];
    for_vectors(job.size, [&](int64_t at, int64_t opposite, int64_t slot) TORCHFX_INLINE_LAMBDA {
        const Complex<vd> p = bins_of(frame, at, opposite);
        store(in_slots + slot, p.re * p.re + p.im * p.im);
    });
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
    for (int64_t k = 0; k < bins; ++k) power[k] = in_slots[job.slot[k]];
    for_few(job.size, [&](int64_t k) TORCHFX_INLINE_LAMBDA {
        const Complex<double> p = Bins(job, frame)[k];
        power[k] = p.re * p.re + p.im * p.im;
    });
    power[-1] = power[-2] = power[bins] = power[bins + 1] = -1;
    frame.found = find_peaks(power, bins, reinterpret_cast<uint8_t*>(frame.rows[2]), frame.peaks);

    double *const re = frame.rows[0], *const im = frame.rows[1];
    const double *const data = frame.transform, half = frame.before;
    const int32_t *const peaks = frame.peaks, *const place = job.place, *const opposite = job.opposite;
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
    for (int64_t i = 0; i < frame.found; ++i) {
        const double *a = data + place[peaks[i]], *b = data + opposite[peaks[i]];
        re[i] = half * (a[VD] + b[VD]);
        im[i] = half * (b[0] - a[0]);
    }
}

// Peaks of the spectrum before become what they turn by, y(p) being bin p of the output frame before.
template <class Before>
TORCHFX_INLINE void turn_peaks(const VocoderFrame& frame, Before&& y) {
    double *const re = frame.rows[0], *const im = frame.rows[1];
    const int32_t* const peaks = frame.peaks;
    for (int64_t i = 0; i < frame.found; ++i) {
        const Complex<double> last = y(peaks[i]);
        const double a = last.re * re[i] + last.im * im[i], b = last.im * re[i] - last.re * im[i];
        re[i] = a;
        im[i] = b;
    }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
    for (int64_t i = 0; i < frame.found; ++i) {
        const double square = re[i] * re[i] + im[i] * im[i];
        const bool valid = (square > 0) & (square < HUGE_VAL);
        const double scale = 1 / sqrt(valid ? square : 1);
        re[i] = valid ? re[i] * scale : 1;
        im[i] = valid ? im[i] * scale : 0;
    }
}

void turn(const PhaseVocoderJob& job, const VocoderFrame* last, const double* state, VocoderFrame& frame) {
    const int64_t bins = job.size / 2 + 1;
    const int32_t* const peaks = frame.peaks;
    double *const peak_re = frame.rows[0], *const peak_im = frame.rows[1];
    double *const re = frame.rows[2], *const im = frame.rows[3];
    if (last) {
        const Turned before(job, *last);
        turn_peaks(frame, [=](int64_t p) TORCHFX_INLINE_LAMBDA { return before[p]; });
    } else if (state) {
        turn_peaks(
            frame, [=](int64_t p) TORCHFX_INLINE_LAMBDA { return Complex<double>{state[2 * p], state[2 * p + 1]}; });
    } else {
        turn_peaks(frame, [](int64_t) TORCHFX_INLINE_LAMBDA { return Complex<double>{0, 0}; });
    }
    if (frame.found == 0) {
        peak_re[0] = 1;
        peak_im[0] = 0;
    }
    for (int64_t i = 0, k = 0; k < bins; ++i) {
        const int64_t end = i + 1 < frame.found ? (peaks[i] + peaks[i + 1]) / 2 + 1 : bins;
        const vd each_re = set1(peak_re[i]), each_im = set1(peak_im[i]);
        for (int64_t at = k; at < end; at += VD) {  // the next peak's bins are written over
            store(re + at, each_re);
            store(im + at, each_im);
        }
        k = end;
    }
}

void keep(const PhaseVocoderJob& job, const VocoderFrame& frame, double* state) {
    for (int64_t k = 0; k <= job.size / 2; ++k) {
        const Complex<double> y = Turned(job, frame)[k];
        state[2 * k] = y.re;
        state[2 * k + 1] = y.im;
    }
}

void turns_to_slots(const PhaseVocoderJob& job, const VocoderFrame& frame) {
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
    for (int64_t s = vocoder_few / 2; s < job.size / 2; ++s) {
        frame.rows[0][s] = frame.rows[2][job.bin[s]];
        frame.rows[1][s] = frame.rows[3][job.bin[s]];
    }
}

void synthesise(const PhaseVocoderJob& job, const VocoderFrame& a, const VocoderFrame& b) {
    turns_to_slots(job, a);
    turns_to_slots(job, b);
    double* const data = a.transform;
    for_few(job.size, [&](int64_t k) TORCHFX_INLINE_LAMBDA {
        Complex<double> p = Turned(job, a)[k], q = Turned(job, b)[k];
        if (k == 0 || 2 * k == job.size) p.im = q.im = 0;
        double *const at = data + job.place[k], *const opposite = data + job.opposite[k];
        at[0] = p.re - q.im;
        at[VD] = p.im + q.re;
        opposite[0] = p.re + q.im;
        opposite[VD] = q.re - p.im;
    });
    for_vectors(job.size, [&](int64_t at, int64_t opposite, int64_t slot) TORCHFX_INLINE_LAMBDA {
        const Complex<vd> p = bins_of(a, at, opposite) * Complex<vd>{load(a.rows[0] + slot), load(a.rows[1] + slot)};
        const Complex<vd> q = bins_of(b, at, opposite) * Complex<vd>{load(b.rows[0] + slot), load(b.rows[1] + slot)};
        store(data + at, p.re - q.im);
        store(data + at + VD, p.im + q.re);
        store(data + opposite, reversed(p.re + q.im));
        store(data + opposite + VD, reversed(q.re - p.im));
    });
    job.fft->inverse(data, job.size, 0, job.roots);
}

template <class Sample>
void lay_down(const PhaseVocoderJob& job, const VocoderFrame& pair, int64_t together, double* sum, Sample* y, bool last) {
    const int64_t done = together * job.hop, left = job.size + job.hop - done;
    const vd scale = set1(1 / static_cast<double>(job.size));
    for (int64_t i = 0; i < together; ++i)
        for (int64_t t = 0; t < job.size; t += VD) {
            double* const to = sum + i * job.hop + t;
            store(to, load(to) + load(job.window + t) * scale * load(pair.transform + 2 * t + i * VD));
        }
    for (int64_t t = 0; t < (last ? done + job.size - job.hop : done); ++t) y[t] = static_cast<Sample>(sum[t]);
    memmove(sum, sum + done, sizeof(double) * static_cast<size_t>(left));
    memset(sum + left, 0, sizeof(double) * static_cast<size_t>(done));
}

void lay_down_any(const PhaseVocoderJob& job, int64_t channel, int64_t u, const VocoderFrame& pair, double* sum) {
    const int64_t length = (job.count - 1) * job.hop + job.size, at = channel * length + u * job.hop;
    const int64_t together = job.count - u < 2 ? 1 : 2;
    const bool last = u + together == job.count;
    if (job.dtype == TORCHFX_F32) lay_down(job, pair, together, sum, static_cast<float*>(job.y) + at, last);
    else lay_down(job, pair, together, sum, static_cast<double*>(job.y) + at, last);
}

}  // namespace

extern const PhaseVocoderKernels phase_vocoder_kernels = {analyse, turn, keep, synthesise, lay_down_any};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
