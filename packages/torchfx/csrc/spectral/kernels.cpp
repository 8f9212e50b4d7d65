// A frame in each lane: no shuffles inside of a transform, and a tile's values stay in the cache from the samples to the
// logarithms.
#include "spectral/kernels.h"

#include "support/transpose.h"
#include "support/vec.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

#if defined(TORCHFX_VECTORS)
typedef int32_t vi __attribute__((vector_size(4 * VF)));
TORCHFX_INLINE vf from_whole(vi v) { return __builtin_convertvector(v, vf); }
#else
typedef int32_t vi;
TORCHFX_INLINE vf from_whole(vi v) { return static_cast<float>(v); }
#endif

struct Complex {
    vf re, im;
};
TORCHFX_INLINE Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
TORCHFX_INLINE Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
TORCHFX_INLINE Complex times_minus_i(Complex a) { return {a.im, -a.re}; }
TORCHFX_INLINE Complex conjugate(Complex a) { return {a.re, -a.im}; }
TORCHFX_INLINE Complex times(Complex a, float re, float im) {
    const vf r = set1(re), i = set1(im);
    return {fnma(a.im, i, a.re * r), fma(a.im, r, a.re * i)};
}
TORCHFX_INLINE Complex load_complex(const float* p) { return {load(p), load(p + VF)}; }
TORCHFX_INLINE void store_complex(float* p, Complex a) {
    store(p, a.re);
    store(p + VF, a.im);
}

// Transforms of `radix` values, in place.
template <int radix>
struct Dft;
template <>
struct Dft<2> {
    static TORCHFX_INLINE_MEMBER void run(Complex (&a)[2]) {
        const Complex sum = a[0] + a[1];
        a[1] = a[0] - a[1];
        a[0] = sum;
    }
};
template <>
struct Dft<3> {
    static TORCHFX_INLINE_MEMBER void run(Complex (&a)[3]) {
        constexpr float sine = 0.86602540378443865f;
        const Complex sum = a[1] + a[2], turned = times_minus_i(a[1] - a[2]);
        const Complex middle = {fnma(sum.re, set1(0.5f), a[0].re), fnma(sum.im, set1(0.5f), a[0].im)};
        a[0] = a[0] + sum;
        a[1] = {fma(turned.re, set1(sine), middle.re), fma(turned.im, set1(sine), middle.im)};
        a[2] = {fnma(turned.re, set1(sine), middle.re), fnma(turned.im, set1(sine), middle.im)};
    }
};
template <>
struct Dft<4> {
    static TORCHFX_INLINE_MEMBER void run(Complex (&a)[4]) {
        const Complex s = a[0] + a[2], d = a[0] - a[2], t = a[1] + a[3], u = times_minus_i(a[1] - a[3]);
        a[0] = s + t;
        a[1] = d + u;
        a[2] = s - t;
        a[3] = d - u;
    }
};
template <>
struct Dft<5> {
    static TORCHFX_INLINE_MEMBER void run(Complex (&a)[5]) {
        const vf c1 = set1(0.30901699437494745f), c2 = set1(-0.80901699437494745f);
        const vf s1 = set1(0.95105651629515353f), s2 = set1(0.58778525229247314f);
        const Complex t1 = a[1] + a[4], t2 = a[2] + a[3];
        const Complex t3 = times_minus_i(a[1] - a[4]), t4 = times_minus_i(a[2] - a[3]);
        const Complex m1 = {fma(t2.re, c2, fma(t1.re, c1, a[0].re)), fma(t2.im, c2, fma(t1.im, c1, a[0].im))};
        const Complex m2 = {fma(t2.re, c1, fma(t1.re, c2, a[0].re)), fma(t2.im, c1, fma(t1.im, c2, a[0].im))};
        const Complex n1 = {fma(t4.re, s2, t3.re * s1), fma(t4.im, s2, t3.im * s1)};
        const Complex n2 = {fnma(t4.re, s1, t3.re * s2), fnma(t4.im, s1, t3.im * s2)};
        a[0] = a[0] + t1 + t2;
        a[1] = m1 + n1;
        a[4] = m1 - n1;
        a[2] = m2 + n2;
        a[3] = m2 - n2;
    }
};

template <>
struct Dft<8> {
    static TORCHFX_INLINE_MEMBER void run(Complex (&a)[8]) {
        const vf root = set1(0.70710678118654752f);
        Complex even[4] = {a[0], a[2], a[4], a[6]}, odd[4] = {a[1], a[3], a[5], a[7]};
        Dft<4>::run(even);
        Dft<4>::run(odd);
        odd[1] = {(odd[1].re + odd[1].im) * root, (odd[1].im - odd[1].re) * root};
        odd[2] = times_minus_i(odd[2]);
        odd[3] = {(odd[3].im - odd[3].re) * root, (odd[3].re + odd[3].im) * -root};
        TORCHFX_UNROLL
        for (int k = 0; k < 4; ++k) {
            a[k] = even[k] + odd[k];
            a[k + 4] = even[k] - odd[k];
        }
    }
};

// A pass in place, over `blocks` blocks one behind the other. Roots multiply what goes into its short transforms or what
// comes out of them.
template <int radix, bool into>
void run_pass(const TransformPass& pass, float* values, int64_t blocks) {
    constexpr int64_t row = 2 * VF;
    const int64_t apart = pass.size / radix;
    for (int64_t p = 0; p < apart; ++p) {
        const float* const roots = pass.roots + 2 * p * radix;
        for (int64_t block = 0; block < blocks; ++block) {
            float* const at = values + row * (block * pass.size + p);
            Complex a[radix];
            TORCHFX_UNROLL
            for (int k = 0; k < radix; ++k) {
                a[k] = load_complex(at + row * apart * k);
                if (into && k > 0 && p > 0) a[k] = times(a[k], roots[2 * k], roots[2 * k + 1]);
            }
            Dft<radix>::run(a);
            TORCHFX_UNROLL
            for (int k = 0; k < radix; ++k) {
                if (!into && k > 0 && p > 0) a[k] = times(a[k], roots[2 * k], roots[2 * k + 1]);
                store_complex(at + row * apart * k, a[k]);
            }
        }
    }
}

template <bool into>
void run_pass(const TransformPass& pass, float* values, int64_t blocks) {
    if (pass.radix == 8) run_pass<8, into>(pass, values, blocks);
    else if (pass.radix == 5) run_pass<5, into>(pass, values, blocks);
    else if (pass.radix == 4) run_pass<4, into>(pass, values, blocks);
    else if (pass.radix == 3) run_pass<3, into>(pass, values, blocks);
    else run_pass<2, into>(pass, values, blocks);
}

// Value k of the result lies at plan.order[k].
void transform(const RealTransformView& plan, float* values) {
    for (int64_t i = 0; i < plan.count; ++i) run_pass<false>(plan.passes[i], values, plan.half / plan.passes[i].size);
}

// Of values that lie at plan.order[k]; the result is in order.
void transform_ordered(const RealTransformView& plan, float* values) {
    for (int64_t i = plan.count - 1; i >= 0; --i)
        run_pass<true>(plan.passes[i], values, plan.half / plan.passes[i].size);
}

// Where the frames of a tile lie: in the signal, or, if they reach beyond its ends, in the room.
struct Frames {
    const float* at[VF];

    Frames(const MelJob& job, int64_t channel, int64_t first, float* room) {
        const float* const x = job.x + channel * job.x_channel_stride;
        for (int i = 0; i < VF; ++i) {
            const int64_t frame = first + i < job.count ? first + i : job.count - 1;
            const int64_t start = frame * job.hop - job.origin;
            if (start >= 0 && start + job.length <= job.samples && job.x_time_stride == 1) {
                at[i] = x + start;
                continue;
            }
            float* const own = room + i * job.length;
            for (int64_t n = 0; n < job.length; ++n) {
                int64_t t = start + n;
                if (job.reflect) t = t < 0 ? -t : t >= job.samples ? 2 * (job.samples - 1) - t : t;
                own[n] = t >= 0 && t < job.samples ? x[t * job.x_time_stride] : 0.0f;
            }
            at[i] = own;
        }
    }
};

// Whether frames are only multiplied by the window.
TORCHFX_INLINE bool is_plain(const MelJob& job) { return !job.centred && job.preemphasis == 0; }

// The frames' samples times the window, sample n of all lanes at to[n * VF].
void gather(const MelJob& job, const Frames& frames, float* to) {
    const bool plain = is_plain(job);
    for (int64_t n = 0; n < job.length; n += 4) {
        const int64_t some = job.length - n < 4 ? job.length - n : 4;
        vf r[4];
        if (some == 4) {
            load_four(frames.at, n, r);
        } else {
            float ends[VF][4] = {};
            const float* rows[VF];
            for (int i = 0; i < VF; ++i) {
                memcpy(ends[i], frames.at[i] + n, sizeof(float) * static_cast<size_t>(some));
                rows[i] = ends[i];
            }
            load_four(*reinterpret_cast<const float* const(*)[VF]>(&rows), 0, r);
        }
        for (int64_t j = 0; j < some; ++j) store(to + (n + j) * VF, plain ? r[j] * set1(job.window[n + j]) : r[j]);
    }
    if (!plain) {
        vf mean = set1(0.0f);
        if (job.centred) {
            for (int64_t n = 0; n < job.length; ++n) mean += load(to + n * VF);
            mean = mean * set1(1.0f / static_cast<float>(job.length));
        }
        vf before = load(to) - mean;
        for (int64_t n = 0; n < job.length; ++n) {
            const vf now = load(to + n * VF) - mean;
            store(to + n * VF, fnma(before, set1(job.preemphasis), now) * set1(job.window[n]));
            before = now;
        }
    }
    for (int64_t n = job.length; n < job.size; ++n) store(to + n * VF, set1(0.0f));
}

// body(k, k', X[k], X[k']), k' = half - k, for all bins of the real transform that the complex one stands for.
template <class Body>
TORCHFX_INLINE void for_bins(const RealTransformView& plan, const float* values, Body&& body) {
    const int64_t half = plan.half;
    const vf scale = set1(0.5f);
    for (int64_t k = 0; k <= half / 2; ++k) {
        const int64_t other = half - k;
        const Complex z = load_complex(values + 2 * VF * plan.order[k]);
        const Complex y = conjugate(load_complex(values + 2 * VF * plan.order[k == 0 ? 0 : other]));
        const Complex even = z + y, odd = times(times_minus_i(z - y), plan.split[2 * k], plan.split[2 * k + 1]);
        const Complex up = even + odd, down = conjugate(even - odd);
        body(k, other, Complex{up.re * scale, up.im * scale}, Complex{down.re * scale, down.im * scale});
    }
}

TORCHFX_INLINE vf square_root(vf v) {
#if defined(TORCHFX_VECTORS) && defined(__AVX512F__)
    return (vf)_mm512_maskz_sqrt_ps(0xffff, (__m512)v);
#elif defined(TORCHFX_VECTORS) && defined(__AVX2__)
    return (vf)_mm256_sqrt_ps((__m256)v);
#elif defined(TORCHFX_VECTORS)
    for (int i = 0; i < VF; ++i) v[i] = __builtin_sqrtf(v[i]);
    return v;
#else
    return __builtin_sqrtf(v);
#endif
}

// log2 of normal numbers: that of 2^e m, m from sqrt(1/2) on, by the series of log(m) = 2 artanh((m - 1) / (m + 1)); what
// is left out is below 1e-8. Infinities and NaN are returned as they are.
TORCHFX_INLINE vf log2_of(vf v) {
    vi bits;
    memcpy(&bits, &v, sizeof bits);
    const vi e = (bits - 0x3f3504f3) >> 23, without = bits - (e << 23);
    vf m;
    memcpy(&m, &without, sizeof m);
    const vf s = (m - set1(1.0f)) / (m + set1(1.0f)), z = s * s;
    vf p = fma(z, set1(0.32059890f), set1(0.41219858f));
    p = fma(z, p, set1(0.57707802f));
    p = fma(z, p, set1(0.96179669f));
    p = fma(z, p, set1(2.88539008f));
    const vf found = fma(s, p, from_whole(e));
    return v < set1(__builtin_inff()) ? found : v;
}

TORCHFX_INLINE vf level(const MelJob& job, vf v) {
    if (!job.logarithm) return v;
    v += set1(job.offset);
    return log2_of(v < set1(job.floor) ? set1(job.floor) : v) * set1(job.scale);  // a NaN stays one
}

TORCHFX_INLINE void put(const MelJob& job, float* to, int64_t first, vf v) {
    if (job.count - first < VF) {
        memcpy(to, &v, sizeof(float) * static_cast<size_t>(job.count - first));
        return;
    }
    store(to, v);
    __builtin_prefetch(to + VF, 1);  // for the next tile: bands lie too far apart to be foreseen
}

// Powers or magnitudes of all bins, from what the transform has left.
void measure(const MelJob& job, const float* values, float* power) {
    for_bins(job.transform, values, [&](int64_t k, int64_t other, Complex up, Complex down) TORCHFX_INLINE_LAMBDA {
        store(power + VF * k, fma(up.re, up.re, up.im * up.im));
        store(power + VF * other, fma(down.re, down.re, down.im * down.im));
    });
    if (job.magnitude)
        for (int64_t k = 0; k <= job.transform.half; ++k) store(power + VF * k, square_root(load(power + VF * k)));
}

TORCHFX_INLINE vf weighted_sum(const float* weights, const float* bins, int64_t count) {
    vf sums[2] = {set1(0.0f), set1(0.0f)};
    int64_t k = 0;
    for (; k + 1 < count; k += 2) {
        sums[0] = fma(load(bins + VF * k), set1(weights[k]), sums[0]);
        sums[1] = fma(load(bins + VF * (k + 1)), set1(weights[k + 1]), sums[1]);
    }
    if (k < count) sums[0] = fma(load(bins + VF * k), set1(weights[k]), sums[0]);
    return sums[0] + sums[1];
}

void tile(const MelJob& job, int64_t channel, int64_t first, float* room) {
    float *const values = room, *const power = values + VF * job.size;
    gather(job, Frames(job, channel, first, power + VF * (job.transform.half + 1)), values);
    transform(job.transform, values);
    measure(job, values, power);
    float* to = job.y + channel * job.band_count * job.count + first;
    for (int64_t m = 0; m < job.band_count; ++m, to += job.count) {
        if (!job.bands) {
            put(job, to, first, level(job, load(power + VF * m)));
            continue;
        }
        const Band band = job.bands[m];
        put(job, to, first, level(job, weighted_sum(job.weights + band.at, power + VF * band.first, band.count)));
    }
}

// --- the gradient of the samples ---------------------------------------------------------------------------------

// The gradient of a band, from that of its result: of gain log(max(v + offset, floor)) it is gain / (v + offset), and 0
// where the floor counts.
TORCHFX_INLINE vf band_gradient(const MelJob& job, vf grad, vf v) {
    if (!job.logarithm) return grad;
    constexpr float log2_e = 1.4426950408889634f;
    v += set1(job.offset);
    const vf slope = set1(job.scale * log2_e) / v;
    return v < set1(job.floor) ? set1(0.0f) : grad * slope;
}

// The gradients of all bins' powers or magnitudes, from those of the results.
void bin_gradients(const MelGradientJob& job, int64_t channel, int64_t first, const float* power, float* grads) {
    const MelJob& of = job.forward;
    const int64_t some = of.count - first < VF ? of.count - first : VF;
    const float* from = job.grad_y + channel * of.band_count * of.count + first;
    if (of.bands)
        for (int64_t k = 0; k <= of.transform.half; ++k) store(grads + VF * k, set1(0.0f));
    for (int64_t m = 0; m < of.band_count; ++m, from += of.count) {
        vf grad = set1(0.0f);
        if (some == VF) {
            grad = load(from);
            __builtin_prefetch(from + VF);  // for the next tile: bands lie too far apart to be foreseen
        } else {
            memcpy(&grad, from, sizeof(float) * static_cast<size_t>(some));
        }
        if (!of.bands) {
            store(grads + VF * m, band_gradient(of, grad, load(power + VF * m)));
            continue;
        }
        const Band band = of.bands[m];
        const float* const weights = of.weights + band.at;
        if (of.logarithm) grad = band_gradient(of, grad, weighted_sum(weights, power + VF * band.first, band.count));
        float* const bins = grads + VF * band.first;
        for (int64_t k = 0; k < band.count; ++k) store(bins + VF * k, fma(grad, set1(weights[k]), load(bins + VF * k)));
    }
}

// The conjugate of what the transform, run once more, turns into the conjugates of pairs of samples' gradients. With the
// spectrum's gradient H on both halves, sample 2 m and i times the next one are the sum over k < half of
//   (H[k] + H[k + half] + i e^(2 pi i k / size) (H[k] - H[k + half])) e^(2 pi i m k / half),  H[k + half] = H[half - k]*.
void spread(const MelJob& job, float* values, const float* power, const float* grads) {
    const auto weight = [&](int64_t k) TORCHFX_INLINE_LAMBDA {
        const vf grad = load(grads + VF * k), ends = set1(k == 0 || k == job.transform.half ? 2.0f : 1.0f);
        if (!job.magnitude) return grad * ends;
        const vf size = load(power + VF * k);
        return size == set1(0.0f) ? set1(0.0f) : grad * ends * set1(0.5f) / size;
    };
    for_bins(job.transform, values, [&](int64_t k, int64_t other, Complex up, Complex down) TORCHFX_INLINE_LAMBDA {
        const vf one = weight(k), two = weight(other);
        const Complex h = {up.re * one, up.im * one}, g = {down.re * two, down.im * two};
        const Complex sum = h + conjugate(g);
        const Complex turned = times(h - conjugate(g), job.transform.split[2 * k], -job.transform.split[2 * k + 1]);
        const Complex next = {-turned.im, turned.re};  // i times it
        store_complex(values + 2 * VF * job.transform.order[k], conjugate(sum + next));
        if (k > 0) store_complex(values + 2 * VF * job.transform.order[other], sum - next);
    });
}

// The gradients of the frames' samples, from those of what the window has given: sample n of all lanes at values[n * VF].
// The transform has left conjugates: the sign of every second sample is wrong.
TORCHFX_INLINE vf windowed(const MelJob& job, const float* values, int64_t n) {
    return load(values + n * VF) * set1(n % 2 ? -job.window[n] : job.window[n]);
}
void unwindow(const MelJob& job, float* values) {
    vf later = set1(0.0f), sum = set1(0.0f);
    const vf less = set1(job.preemphasis);
    for (int64_t n = job.length - 1; n >= 0; --n) {
        const vf now = windowed(job, values, n);
        vf grad = fnma(less, later, now);
        if (n == 0) grad = fnma(less, now, grad);
        later = now;
        sum += grad;
        store(values + n * VF, grad);
    }
    if (!job.centred) return;
    const vf mean = sum * set1(1.0f / static_cast<float>(job.length));
    for (int64_t n = 0; n < job.length; ++n) store(values + n * VF, load(values + n * VF) - mean);
}

// Adds the frames' gradients to the signal's, frame by frame.
void overlap_add(const MelGradientJob& job, int64_t channel, int64_t first, const float* values, float* room) {
    const MelJob& of = job.forward;
    const bool plain = is_plain(of);
    for (int64_t n = 0; n < of.length; n += 4) {
        vf r[4];
        for (int64_t j = 0; j < 4; ++j) {
            const int64_t at = n + j < of.length ? n + j : of.length - 1;
            r[j] = plain ? windowed(of, values, at) : load(values + at * VF);
        }
        store_four(r, room + n, row_room(of));
    }
    float* const to = job.grad_x + channel * of.samples;
    for (int i = 0; i < VF && first + i < of.count; ++i) {
        const float* const row = room + i * row_room(of);
        const int64_t start = (first + i) * of.hop - of.origin;
        if (start >= 0 && start + of.length <= of.samples) {
            float* const TORCHFX_RESTRICT inside = to + start;
            int64_t n = 0;
            for (; n + VF <= of.length; n += VF) store(inside + n, load(inside + n) + load(row + n));
            for (; n < of.length; ++n) inside[n] += row[n];
            continue;
        }
        for (int64_t n = 0; n < of.length; ++n) {
            int64_t t = start + n;
            if (of.reflect) t = t < 0 ? -t : t >= of.samples ? 2 * (of.samples - 1) - t : t;
            if (t >= 0 && t < of.samples) to[t] += row[n];
        }
    }
}

void gradient_tile(const MelGradientJob& job, int64_t channel, int64_t first, float* room) {
    const MelJob& of = job.forward;
    float *const values = room, *const power = values + VF * of.size;
    float *const grads = power + VF * (of.transform.half + 1), *const rows = grads + VF * (of.transform.half + 1);
    gather(of, Frames(of, channel, first, rows), values);
    transform(of.transform, values);
    measure(of, values, power);
    bin_gradients(job, channel, first, power, grads);
    spread(of, values, power, grads);
    transform_ordered(of.transform, values);
    if (!is_plain(of)) unwindow(of, values);
    overlap_add(job, channel, first, values, rows);
}

}  // namespace

extern const MelKernels mel_kernels = {VF, tile, gradient_tile};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
