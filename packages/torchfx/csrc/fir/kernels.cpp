#include "fir/kernels.h"

#include "torchfx_dsp.h"
#include "support/vec.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

template <class Sample>
TORCHFX_INLINE double sample_at(const FirSignal& signal, int64_t t) {
    if (t < 0) return 0;
    if (t < signal.length) return static_cast<const Sample*>(signal.data)[t * signal.stride];
    t -= signal.length;
    return t < signal.tail_length ? signal.tail[t] : 0;
}

template <class Sample>
TORCHFX_INLINE vd vector_at(const FirSignal& signal, int64_t t) {
    if (t + VD <= 0 || t >= signal.length + signal.tail_length) return set1(0.0);
    if (t >= 0 && t + VD <= signal.length)
        return gather_samples(static_cast<const Sample*>(signal.data) + t * signal.stride, signal.stride);
    double lanes[VD];
    for (int i = 0; i < VD; ++i) lanes[i] = sample_at<Sample>(signal, t + i);
    return load(lanes);
}

// Remembers whether an infinity or NaN came by. For these alone v - v is not +0, whose bits are all clear.
class FiniteCheck {
public:
    TORCHFX_INLINE_MEMBER void add(vd v) {
        const vd difference = v - v;
        Bits bits;
        memcpy(&bits, &difference, sizeof bits);
        seen_ = seen_ | bits;
    }
    TORCHFX_INLINE_MEMBER bool all_finite() const {
        int64_t lanes[VD], any = 0;
        memcpy(lanes, &seen_, sizeof lanes);
        for (int i = 0; i < VD; ++i) any |= lanes[i];
        return any == 0;
    }

private:
#if defined(TORCHFX_VECTORS)
    typedef int64_t Bits __attribute__((vector_size(8 * VD)));
#else
    typedef int64_t Bits;
#endif
    Bits seen_ = {};
};

TORCHFX_INLINE int64_t clamped(int64_t v, int64_t low, int64_t high) { return v < low ? low : v > high ? high : v; }

template <class Sample>
bool load_tile(const FirSignal& signal, int64_t first, int64_t count, double* tile, int64_t step) {
    // Vectors [inside, outside) lie within contiguous samples.
    const int64_t vectors = count / VD;
    int64_t inside = vectors, outside = vectors;
    if (signal.stride == 1) {
        inside = first >= 0 ? 0 : clamped((VD - 1 - first) / VD, 0, vectors);
        outside = first > signal.length ? inside : clamped((signal.length - first) / VD, inside, vectors);
    }
    FiniteCheck check;
    const auto put = [&](int64_t i, vd v) {
        check.add(v);
        store(tile + i * step, v);
    };
    for (int64_t i = 0; i < inside; ++i) put(i, vector_at<Sample>(signal, first + i * VD));
    const Sample* data = static_cast<const Sample*>(signal.data) + (inside < outside ? first : 0);
    for (int64_t i = inside; i < outside; ++i) put(i, load_samples(data + i * VD));
    for (int64_t i = outside; i < vectors; ++i) put(i, vector_at<Sample>(signal, first + i * VD));
    return check.all_finite();
}

bool load_any(const FirSignal& signal, int64_t first, int64_t count, double* tile, int64_t step) {
    return signal.dtype == TORCHFX_F32 ? load_tile<float>(signal, first, count, tile, step)
                                       : load_tile<double>(signal, first, count, tile, step);
}

template <class Sample>
void store_tile(const double* tile, int64_t step, const FirOutput& output, int64_t first, int64_t count) {
    Sample* data = static_cast<Sample*>(output.data);
    for (int64_t i = 0; i < count; i += VD, tile += step) {
        const int64_t t = first + i;
        if (i + VD <= count && t + VD <= output.length) {
            store_samples(data + t, load(tile));
            continue;
        }
        for (int lane = 0; lane < VD && i + lane < count; ++lane) {
            const int64_t u = t + lane;
            if (u < output.length) data[u] = static_cast<Sample>(tile[lane]);
            else if (u - output.length < output.tail_length) output.tail[u - output.length] = tile[lane];
        }
    }
}

void store_any(const double* tile, int64_t step, const FirOutput& output, int64_t first, int64_t count) {
    if (output.dtype == TORCHFX_F32) store_tile<float>(tile, step, output, first, count);
    else store_tile<double>(tile, step, output, first, count);
}

// A group of `reach` taps that lie VD apart meets `width` vectors of output in width + reach - 1 vectors of
// input: so few unaligned loads that the multiplications decide the time.
template <int width, int reach>
TORCHFX_INLINE void add_taps(vd (&sum)[width], const double* in, const double* taps) {
    TORCHFX_UNROLL
    for (int m = 1 - reach; m < width; ++m) {
        const vd x = load(in + m * VD);
        TORCHFX_UNROLL
        for (int q = 0; q < reach; ++q) {
            const int j = m + q;
            if (j >= 0 && j < width) sum[j] = fma(set1(taps[q * VD]), x, sum[j]);
        }
    }
}

template <int width>
TORCHFX_INLINE void filter_vectors(const double* in, const double* taps, int64_t n_taps, double* out) {
    constexpr int reach = 4;
    vd sum[width];
    TORCHFX_UNROLL
    for (int j = 0; j < width; ++j) sum[j] = set1(0.0);
    const double* newest = in + n_taps - 1;
    for (int64_t phase = 0; phase < VD && phase < n_taps; ++phase) {
        int64_t k = phase;
        for (; k + (reach - 1) * VD < n_taps; k += reach * VD) add_taps<width, reach>(sum, newest - k, taps + k);
        const int64_t left = (n_taps - k + VD - 1) / VD;
        if (left == 3) add_taps<width, 3>(sum, newest - k, taps + k);
        if (left == 2) add_taps<width, 2>(sum, newest - k, taps + k);
        if (left == 1) add_taps<width, 1>(sum, newest - k, taps + k);
    }
    TORCHFX_UNROLL
    for (int j = 0; j < width; ++j) store(out + j * VD, sum[j]);
}

void filter(const double* in, const double* taps, int64_t n_taps, double* out, int64_t count) {
    constexpr int width = 8;
    int64_t i = 0;
    for (; i + width * VD <= count; i += width * VD) filter_vectors<width>(in + i, taps, n_taps, out + i);
    for (; i < count; i += VD) filter_vectors<1>(in + i, taps, n_taps, out + i);
}

template <class Sample, int n_taps>
void filter_samples(const Sample* x, const double* taps, Sample* y, int64_t count) {
    for (int64_t i = 0; i < count; i += VD) {
        vd sum = set1(0.0);
        TORCHFX_UNROLL
        for (int k = 0; k < n_taps; ++k) sum = fma(set1(taps[k]), load_samples(x + i - k), sum);
        store_samples(y + i, sum);
    }
}

template <class Sample>
void filter_samples(const Sample* x, const double* taps, int64_t n_taps, Sample* y, int64_t count) {
    if (n_taps == 1) filter_samples<Sample, 1>(x, taps, y, count);
    if (n_taps == 2) filter_samples<Sample, 2>(x, taps, y, count);
    if (n_taps == 3) filter_samples<Sample, 3>(x, taps, y, count);
    if (n_taps == 4) filter_samples<Sample, 4>(x, taps, y, count);
}

void filter_few(const FirSignal& signal, int64_t origin, const double* taps, int64_t n_taps, const FirOutput& output,
                int64_t first, int64_t count) {
    if (signal.dtype == TORCHFX_F32)
        filter_samples(static_cast<const float*>(signal.data) + first + origin, taps, n_taps,
                       static_cast<float*>(output.data) + first, count);
    else
        filter_samples(static_cast<const double*>(signal.data) + first + origin, taps, n_taps,
                       static_cast<double*>(output.data) + first, count);
}

TORCHFX_INLINE double sum_of_lanes(vd v) {
    double lanes[VD], sum = 0;
    store(lanes, v);
    for (int i = 0; i < VD; ++i) sum += lanes[i];
    return sum;
}

template <int width>
TORCHFX_INLINE void correlate_lags(const double* a, const double* b, int64_t count, double* sum) {
    vd partial[width];
    TORCHFX_UNROLL
    for (int k = 0; k < width; ++k) partial[k] = set1(0.0);
    for (int64_t i = 0; i < count; i += VD) {
        const vd x = load(a + i);
        TORCHFX_UNROLL
        for (int k = 0; k < width; ++k) partial[k] = fma(x, load(b + i + k), partial[k]);
    }
    TORCHFX_UNROLL
    for (int k = 0; k < width; ++k) sum[k] += sum_of_lanes(partial[k]);
}

void correlate(const double* a, const double* b, int64_t count, double* sum, int64_t lags) {
    constexpr int width = 8;
    int64_t k = 0;
    for (; k + width <= lags; k += width) correlate_lags<width>(a, b + k, count, sum + k);
    for (; k < lags; ++k) correlate_lags<1>(a, b + k, count, sum + k);
}

constexpr double infinity = __builtin_huge_val();

// Plain loops: the compiler makes vectors of all but the running sum. In parts that stay in a first-level cache.
void take_signs(double* values, int64_t count, int32_t* counts) {
    int32_t seen = counts[0] = 0;
    for (int64_t begin = 0; begin < count; begin += 1024) {
        const int64_t end = count - begin < 1024 ? count : begin + 1024;
        for (int64_t i = begin; i < end; ++i) counts[i + 1] = !(values[i] - values[i] == 0);
        for (int64_t i = begin; i < end; ++i)
            values[i] = (values[i] == infinity ? 1.0 : 0.0) - (values[i] == -infinity ? 1.0 : 0.0);
        for (int64_t i = begin; i < end; ++i) counts[i + 1] = seen += counts[i + 1];
    }
}

template <class Sample>
void add_windows(const double* balance, const int32_t* counts, int64_t window, Sample* samples, int64_t count) {
    for (int64_t t = 0; t < count; ++t) {
        const double n = counts[t + window] - counts[t];
        // Of the balance only the sign matters, and 0 times infinity is the NaN.
        const double sign = __builtin_fabs(balance[t]) > n - 0.5 ? balance[t] : 0.0;
        samples[t] = static_cast<Sample>(samples[t] + (n > 0 ? sign * infinity : 0.0));
    }
}

void add_not_finite(const double* balance, const int32_t* counts, int64_t window, const FirOutput& output, int64_t first,
                    int64_t count) {
    const int64_t in_block = clamped(output.length - first, 0, count);
    if (in_block > 0 && output.dtype == TORCHFX_F32)
        add_windows(balance, counts, window, static_cast<float*>(output.data) + first, in_block);
    else if (in_block > 0)
        add_windows(balance, counts, window, static_cast<double*>(output.data) + first, in_block);
    if (in_block == count) return;
    add_windows(balance + in_block, counts + in_block, window, output.tail + (first + in_block - output.length),
                count - in_block);
}

}  // namespace

extern const FirKernels fir_kernels = {VD,        load_any,   store_any,      filter,      filter_few,
                                       correlate, take_signs, add_not_finite, &fft_kernels};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
