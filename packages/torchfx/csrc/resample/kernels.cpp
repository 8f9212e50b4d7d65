#include "resample/kernels.h"

#include "support/transpose.h"
#include "support/vec.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

constexpr int J = resample_group;

TORCHFX_INLINE void load_block(const float* const (&rows)[VD], int64_t step, double* tile) {
    vh r[VD];
    load_transposed(rows, r);
    for (int i = 0; i < VD; ++i) store(tile + i * step, widen(r[i]));
}
TORCHFX_INLINE void load_block(const double* const (&rows)[VD], int64_t step, double* tile) {
    vd r[VD];
    load_transposed(rows, r);
    for (int i = 0; i < VD; ++i) store(tile + i * step, r[i]);
}

// VD lanes of a tile whose rows lie n_lanes apart.
template <class Sample>
void load_lanes(const ResampleLane* lanes, int n_lanes, int64_t stride, int64_t length, int64_t count, double* tile) {
    int64_t i = 0;
    bool inside = stride == 1;
    for (int k = 0; k < VD; ++k) inside = inside && lanes[k].first >= 0 && lanes[k].first + count <= length;
    if (inside) {
        for (; i + VD <= count; i += VD) {
            const Sample* rows[VD];
            for (int k = 0; k < VD; ++k) rows[k] = static_cast<const Sample*>(lanes[k].x) + lanes[k].first + i;
            load_block(rows, n_lanes, tile + i * n_lanes);
        }
    }
    for (int k = 0; k < VD; ++k) {
        const Sample* x = static_cast<const Sample*>(lanes[k].x);
        for (int64_t t = i; t < count; ++t) {
            const int64_t n = lanes[k].first + t;
            tile[t * n_lanes + k] = n >= 0 && n < length ? x[n * stride] : 0;
        }
    }
}

void load_any(const ResampleLane* lanes, int n_lanes, int32_t dtype, int64_t stride, int64_t length, int64_t count,
              double* tile) {
    for (int k = 0; k < n_lanes; k += VD) {
        if (dtype == TORCHFX_F32) load_lanes<float>(lanes + k, n_lanes, stride, length, count, tile + k);
        else load_lanes<double>(lanes + k, n_lanes, stride, length, count, tile + k);
    }
}

template <int vectors>
void filter_group(const double* tile, const double* taps, int64_t width, double* out) {
    vd sum[J][vectors];
    for (int j = 0; j < J; ++j)
        for (int v = 0; v < vectors; ++v) sum[j][v] = set1(0.0);
    for (int64_t i = 0; i < width; ++i, tile += vectors * VD, taps += J) {
        vd x[vectors];
        for (int v = 0; v < vectors; ++v) x[v] = load(tile + v * VD);
        TORCHFX_UNROLL
        for (int j = 0; j < J; ++j) {
            const vd tap = set1(taps[j]);
            for (int v = 0; v < vectors; ++v) sum[j][v] = fma(tap, x[v], sum[j][v]);
        }
    }
    for (int j = 0; j < J; ++j)
        for (int v = 0; v < vectors; ++v) store(out + (j * vectors + v) * VD, sum[j][v]);
}

void filter_any(const double* tile, int n_lanes, const double* taps, int64_t width, double* out) {
    if (n_lanes == VD) filter_group<1>(tile, taps, width, out);
    else filter_group<2>(tile, taps, width, out);
}

TORCHFX_INLINE void store_transposed(const double* out, int64_t step, float* const (&y)[VD]) {
    vh r[VD];
    for (int i = 0; i < VD; ++i) r[i] = narrow(load(out + i * step));
    transpose(r);
    for (int k = 0; k < VD; ++k) store_half(y[k], r[k]);
}
TORCHFX_INLINE void store_transposed(const double* out, int64_t step, double* const (&y)[VD]) {
    vd r[VD];
    for (int i = 0; i < VD; ++i) r[i] = load(out + i * step);
    transpose(r);
    for (int k = 0; k < VD; ++k) store(y[k], r[k]);
}

template <class Sample>
void store_lanes(const double* out, const ResampleLane* lanes, int n_lanes, int64_t first, int64_t count) {
    int64_t i = 0;
    bool whole = true;
    for (int k = 0; k < VD; ++k) whole = whole && first + count <= lanes[k].count;
    if (whole) {
        for (; i + VD <= count; i += VD) {
            Sample* y[VD];
            for (int k = 0; k < VD; ++k) y[k] = static_cast<Sample*>(lanes[k].y) + first + i;
            store_transposed(out + i * n_lanes, n_lanes, y);
        }
    }
    for (int k = 0; k < VD; ++k) {
        Sample* y = static_cast<Sample*>(lanes[k].y) + first;
        const int64_t end = first + count <= lanes[k].count ? count : lanes[k].count - first;
        for (int64_t t = i; t < end; ++t) y[t] = static_cast<Sample>(out[t * n_lanes + k]);
    }
}

void store_any(const double* out, const ResampleLane* lanes, int n_lanes, int32_t dtype, int64_t first,
               int64_t count) {
    for (int k = 0; k < n_lanes; k += VD) {
        if (dtype == TORCHFX_F32) store_lanes<float>(out + k, lanes + k, n_lanes, first, count);
        else store_lanes<double>(out + k, lanes + k, n_lanes, first, count);
    }
}

}  // namespace

extern const ResampleKernels resample_kernels = {2 * VD, load_any, filter_any, store_any};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
