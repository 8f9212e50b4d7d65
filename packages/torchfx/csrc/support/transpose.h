// VD x VD transposes: rows[i] lane j <-> rows[j] lane i. For *_kernels.cpp only, see vec.h.
#ifndef TORCHFX_SUPPORT_TRANSPOSE_H
#define TORCHFX_SUPPORT_TRANSPOSE_H

#include "support/vec.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {

#if TORCHFX_VD == 1

TORCHFX_INLINE void transpose(vd (&)[1]) {}
TORCHFX_INLINE void transpose(vh (&)[1]) {}

#elif TORCHFX_VD == 2

template <class V>
TORCHFX_INLINE void transpose_2x2(V (&r)[2]) {
    const V low = __builtin_shufflevector(r[0], r[1], 0, 2);
    r[1] = __builtin_shufflevector(r[0], r[1], 1, 3);
    r[0] = low;
}
TORCHFX_INLINE void transpose(vd (&r)[2]) { transpose_2x2(r); }
TORCHFX_INLINE void transpose(vh (&r)[2]) { transpose_2x2(r); }

#elif TORCHFX_VD == 4

TORCHFX_INLINE void transpose(vd (&r)[4]) {
    const vd a = __builtin_shufflevector(r[0], r[1], 0, 4, 2, 6), b = __builtin_shufflevector(r[0], r[1], 1, 5, 3, 7);
    const vd c = __builtin_shufflevector(r[2], r[3], 0, 4, 2, 6), d = __builtin_shufflevector(r[2], r[3], 1, 5, 3, 7);
    r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    r[1] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    r[2] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

TORCHFX_INLINE void transpose(vh (&r)[4]) {
    const vh a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5), b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
    const vh c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5), d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
    r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
    r[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
    r[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
    r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

#elif TORCHFX_VD == 8

// Pairs within 128 bits first, then two rounds that move whole 128-bit quarters: one instruction per result.
TORCHFX_INLINE void transpose(vd (&r)[8]) {
    vd pair[8], quad[8];
    for (int i = 0; i < 4; ++i) {
        pair[2 * i] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        pair[2 * i + 1] = __builtin_shufflevector(r[2 * i], r[2 * i + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    for (int half = 0; half < 8; half += 4)
        for (int j = 0; j < 2; ++j) {
            quad[half + j] = __builtin_shufflevector(pair[half + j], pair[half + 2 + j], 0, 1, 4, 5, 8, 9, 12, 13);
            quad[half + 2 + j] = __builtin_shufflevector(pair[half + j], pair[half + 2 + j], 2, 3, 6, 7, 10, 11, 14, 15);
        }
    for (int j = 0; j < 4; ++j) {
        r[j] = __builtin_shufflevector(quad[j], quad[4 + j], 0, 1, 4, 5, 8, 9, 12, 13);
        r[4 + j] = __builtin_shufflevector(quad[j], quad[4 + j], 2, 3, 6, 7, 10, 11, 14, 15);
    }
}

TORCHFX_INLINE void transpose(vh (&r)[8]) {
    vh pair[8], quad[8];
    for (int i = 0; i < 8; i += 2) {
        pair[i] = __builtin_shufflevector(r[i], r[i + 1], 0, 8, 1, 9, 4, 12, 5, 13);
        pair[i + 1] = __builtin_shufflevector(r[i], r[i + 1], 2, 10, 3, 11, 6, 14, 7, 15);
    }
    for (int half = 0; half < 8; half += 4)
        for (int j = 0; j < 2; ++j) {
            quad[half + 2 * j] = __builtin_shufflevector(pair[half + j], pair[half + 2 + j], 0, 1, 8, 9, 4, 5, 12, 13);
            quad[half + 2 * j + 1] = __builtin_shufflevector(pair[half + j], pair[half + 2 + j], 2, 3, 10, 11, 6, 7, 14, 15);
        }
    for (int j = 0; j < 4; ++j) {
        r[j] = __builtin_shufflevector(quad[j], quad[4 + j], 0, 1, 2, 3, 8, 9, 10, 11);
        r[4 + j] = __builtin_shufflevector(quad[j], quad[4 + j], 4, 5, 6, 7, 12, 13, 14, 15);
    }
}

// From memory: halves of two rows are joined as they are loaded, and all that is left happens within 128 bits, where
// shuffles leave the multiply-adds around them alone.
TORCHFX_INLINE vh load_halves(const float* low, const float* high) {
    return (vh)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(low)), _mm_loadu_ps(high), 1);
}
TORCHFX_INLINE void load_transposed(const float* const (&rows)[8], vh (&r)[8]) {
    for (int i = 0; i < 8; i += 4) {
        vh half[4];
        for (int j = 0; j < 4; ++j) half[j] = load_halves(rows[j] + i, rows[4 + j] + i);
        const vh a = __builtin_shufflevector(half[0], half[1], 0, 8, 1, 9, 4, 12, 5, 13);
        const vh b = __builtin_shufflevector(half[0], half[1], 2, 10, 3, 11, 6, 14, 7, 15);
        const vh c = __builtin_shufflevector(half[2], half[3], 0, 8, 1, 9, 4, 12, 5, 13);
        const vh d = __builtin_shufflevector(half[2], half[3], 2, 10, 3, 11, 6, 14, 7, 15);
        r[i] = __builtin_shufflevector(a, c, 0, 1, 8, 9, 4, 5, 12, 13);
        r[i + 1] = __builtin_shufflevector(a, c, 2, 3, 10, 11, 6, 7, 14, 15);
        r[i + 2] = __builtin_shufflevector(b, d, 0, 1, 8, 9, 4, 5, 12, 13);
        r[i + 3] = __builtin_shufflevector(b, d, 2, 3, 10, 11, 6, 7, 14, 15);
    }
}

#endif

#if TORCHFX_VD != 8
TORCHFX_INLINE void load_transposed(const float* const (&rows)[VD], vh (&r)[VD]) {
    for (int i = 0; i < VD; ++i) r[i] = load_half(rows[i]);
    transpose(r);
}
#endif

TORCHFX_INLINE void load_transposed(const double* const (&rows)[VD], vd (&r)[VD]) {
    for (int i = 0; i < VD; ++i) r[i] = load(rows[i]);
    transpose(r);
}

// VD rows of VD each, from memory to memory.
TORCHFX_INLINE void transpose(const float* const (&from)[VD], float* const (&to)[VD]) {
    vh r[VD];
    load_transposed(from, r);
    for (int i = 0; i < VD; ++i) store_half(to[i], r[i]);
}
TORCHFX_INLINE void transpose(const double* const (&from)[VD], double* const (&to)[VD]) {
    vd r[VD];
    load_transposed(from, r);
    for (int i = 0; i < VD; ++i) store(to[i], r[i]);
}

// VF rows of four floats each, and four vectors with a row in each lane. In 128 bits lies a row: `join_rows` puts row 0
// and every fourth one behind it into one vector, and all that is left happens within 128 bits.
#if TORCHFX_VD == 1
TORCHFX_INLINE void load_four(const float* const (&rows)[VF], int64_t at, vf (&r)[4]) {
    for (int j = 0; j < 4; ++j) r[j] = rows[0][at + j];
}
TORCHFX_INLINE void store_four(vf (&r)[4], float* rows, int64_t) {
    for (int j = 0; j < 4; ++j) rows[j] = r[j];
}
#else
#if TORCHFX_VD == 2
TORCHFX_INLINE vf join_rows(const float* const* rows, int64_t at) { return load(rows[0] + at); }
TORCHFX_INLINE void split_rows(vf v, float* rows, int64_t) { store(rows, v); }
#elif TORCHFX_VD == 4
TORCHFX_INLINE vf join_rows(const float* const* rows, int64_t at) {
    return (vf)_mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(rows[0] + at)), _mm_loadu_ps(rows[4] + at), 1);
}
TORCHFX_INLINE void split_rows(vf v, float* rows, int64_t stride) {
    _mm_storeu_ps(rows, _mm256_castps256_ps128((__m256)v));
    _mm_storeu_ps(rows + 4 * stride, _mm256_extractf128_ps((__m256)v, 1));
}
#else
TORCHFX_INLINE vf join_rows(const float* const* rows, int64_t at) {
    __m512 v = _mm512_castps128_ps512(_mm_loadu_ps(rows[0] + at));
    v = _mm512_insertf32x4(v, _mm_loadu_ps(rows[4] + at), 1);
    v = _mm512_insertf32x4(v, _mm_loadu_ps(rows[8] + at), 2);
    return (vf)_mm512_insertf32x4(v, _mm_loadu_ps(rows[12] + at), 3);
}
TORCHFX_INLINE void split_rows(vf v, float* rows, int64_t stride) {
    const __m512 w = (__m512)v;
    _mm_storeu_ps(rows, _mm512_maskz_extractf32x4_ps(0xf, w, 0));
    _mm_storeu_ps(rows + 4 * stride, _mm512_maskz_extractf32x4_ps(0xf, w, 1));
    _mm_storeu_ps(rows + 8 * stride, _mm512_maskz_extractf32x4_ps(0xf, w, 2));
    _mm_storeu_ps(rows + 12 * stride, _mm512_maskz_extractf32x4_ps(0xf, w, 3));
}
#endif

// Four by four within every 128 bits.
TORCHFX_INLINE void transpose_four(vf (&r)[4]) {
#if TORCHFX_VD == 2
#define TORCHFX_WITHIN(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#elif TORCHFX_VD == 4
#define TORCHFX_WITHIN(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l, i + 4, j + 4, k + 4, l + 4)
#else
#define TORCHFX_WITHIN(a, b, i, j, k, l)                                                                       \
    __builtin_shufflevector(a, b, i, j, k, l, i + 4, j + 4, k + 4, l + 4, i + 8, j + 8, k + 8, l + 8, i + 12, j + 12, \
                            k + 12, l + 12)
#endif
    const vf a = TORCHFX_WITHIN(r[0], r[1], 0, VF, 1, VF + 1), b = TORCHFX_WITHIN(r[0], r[1], 2, VF + 2, 3, VF + 3);
    const vf c = TORCHFX_WITHIN(r[2], r[3], 0, VF, 1, VF + 1), d = TORCHFX_WITHIN(r[2], r[3], 2, VF + 2, 3, VF + 3);
    r[0] = TORCHFX_WITHIN(a, c, 0, 1, VF, VF + 1);
    r[1] = TORCHFX_WITHIN(a, c, 2, 3, VF + 2, VF + 3);
    r[2] = TORCHFX_WITHIN(b, d, 0, 1, VF, VF + 1);
    r[3] = TORCHFX_WITHIN(b, d, 2, 3, VF + 2, VF + 3);
#undef TORCHFX_WITHIN
}

// Sample at + j of all rows in r[j], a row in each lane.
TORCHFX_INLINE void load_four(const float* const (&rows)[VF], int64_t at, vf (&r)[4]) {
    for (int j = 0; j < 4; ++j) r[j] = join_rows(rows + j, at);
    transpose_four(r);
}
// The other way round: lane i of r[j] to rows[i * stride + j].
TORCHFX_INLINE void store_four(vf (&r)[4], float* rows, int64_t stride) {
    transpose_four(r);
    for (int j = 0; j < 4; ++j) split_rows(r[j], rows + j * stride, stride);
}
#endif

// The same of VD rows of four doubles each.
TORCHFX_INLINE void load_four(const double* const (&rows)[VD], int64_t at, vd (&r)[4]) {
#if TORCHFX_VD == 1
    for (int j = 0; j < 4; ++j) r[j] = rows[0][at + j];
#elif TORCHFX_VD == 2
    for (int j = 0; j < 4; j += 2) {
        vd pair[2] = {load(rows[0] + at + j), load(rows[1] + at + j)};
        transpose(pair);
        r[j] = pair[0];
        r[j + 1] = pair[1];
    }
#elif TORCHFX_VD == 4
    for (int j = 0; j < 4; ++j) r[j] = load(rows[j] + at);
    transpose(r);
#else
    vd row[4], pair[4];
    for (int j = 0; j < 4; ++j)
        row[j] = (vd)_mm512_maskz_insertf64x4(0xff, _mm512_castpd256_pd512(_mm256_loadu_pd(rows[j] + at)),
                                              _mm256_loadu_pd(rows[4 + j] + at), 1);
    for (int j = 0; j < 4; j += 2) {
        pair[j] = __builtin_shufflevector(row[j], row[j + 1], 0, 8, 2, 10, 4, 12, 6, 14);
        pair[j + 1] = __builtin_shufflevector(row[j], row[j + 1], 1, 9, 3, 11, 5, 13, 7, 15);
    }
    for (int j = 0; j < 2; ++j) {
        r[j] = __builtin_shufflevector(pair[j], pair[j + 2], 0, 1, 8, 9, 4, 5, 12, 13);
        r[j + 2] = __builtin_shufflevector(pair[j], pair[j + 2], 2, 3, 10, 11, 6, 7, 14, 15);
    }
#endif
}

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx

#endif
