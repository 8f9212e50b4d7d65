// Vectors as wide as the instruction set this file is compiled for.
//
// Included by *_kernels.cpp only. Those are compiled several times with different processor flags, so
// everything here is static and lives in a namespace per instruction set, and no kernel file may include a
// standard C++ header: an inline function from one, compiled for AVX-512, could be the copy the linker keeps
// for everybody, and crash on older processors.
#ifndef TORCHFX_SUPPORT_VEC_H
#define TORCHFX_SUPPORT_VEC_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#if defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#ifndef TORCHFX_ISA_NAMESPACE
#error "compile kernel files with -DTORCHFX_ISA_NAMESPACE=isa_<name>"
#endif

// __builtin_shufflevector came last (GCC 12, every Clang): a compiler that has it has all that is used here.
#if defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector) && __has_builtin(__builtin_convertvector)
#define TORCHFX_VECTORS 1
#endif
#endif

#if !defined(TORCHFX_VECTORS)
#define TORCHFX_VD 1
#elif defined(__AVX512F__)
#define TORCHFX_VD 8
#elif defined(__AVX2__)
#define TORCHFX_VD 4
#else
#define TORCHFX_VD 2
#endif

#if defined(_MSC_VER) && !defined(__clang__)
#define TORCHFX_INLINE static __forceinline
#define TORCHFX_NOINLINE __declspec(noinline)
#define TORCHFX_INLINE_MEMBER __forceinline
#define TORCHFX_INLINE_LAMBDA
#define TORCHFX_RESTRICT __restrict
#else
#define TORCHFX_NOINLINE __attribute__((noinline))
#define TORCHFX_INLINE static inline __attribute__((always_inline))
#define TORCHFX_INLINE_MEMBER inline __attribute__((always_inline))
#define TORCHFX_INLINE_LAMBDA __attribute__((always_inline))
#define TORCHFX_RESTRICT __restrict__
#endif

#if defined(TORCHFX_VECTORS)
#define TORCHFX_UNROLL _Pragma("GCC unroll 16")
#else
#define TORCHFX_UNROLL
#endif

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {

constexpr int VD = TORCHFX_VD;                 // doubles in a vector
constexpr int VF = TORCHFX_VD == 1 ? 1 : 2 * TORCHFX_VD;  // floats in a vector

#if defined(TORCHFX_VECTORS)
typedef double vd __attribute__((vector_size(8 * VD)));  // VD doubles
typedef float vf __attribute__((vector_size(4 * VF)));   // VF floats
typedef float vh __attribute__((vector_size(4 * VD)));   // VD floats: a vd in single precision
#else
typedef double vd;
typedef float vf;
typedef float vh;
#endif

// Loads and stores need no alignment.
TORCHFX_INLINE vd load(const double* p) { vd v; memcpy(&v, p, sizeof v); return v; }
TORCHFX_INLINE vf load(const float* p) { vf v; memcpy(&v, p, sizeof v); return v; }
TORCHFX_INLINE vh load_half(const float* p) { vh v; memcpy(&v, p, sizeof v); return v; }
TORCHFX_INLINE void store(double* p, vd v) { memcpy(p, &v, sizeof v); }
TORCHFX_INLINE void store(float* p, vf v) { memcpy(p, &v, sizeof v); }

#if defined(TORCHFX_VECTORS)
TORCHFX_INLINE void store_half(float* p, vh v) { memcpy(p, &v, sizeof v); }
TORCHFX_INLINE vd set1(double a) { return a - vd{}; }
TORCHFX_INLINE vf set1(float a) { return a - vf{}; }
#else
TORCHFX_INLINE void store_half(float* p, vh v) { *p = v; }
TORCHFX_INLINE vd set1(double a) { return a; }
TORCHFX_INLINE vf set1(float a) { return a; }
#endif

TORCHFX_INLINE double first(vd v) { double a; memcpy(&a, &v, sizeof a); return a; }

// Between the precisions. Widening is written out because GCC 12 converts in halves and joins them again: reading a
// step of eight float streams took 2.9 cycles, and takes 1.7 so.
#if defined(TORCHFX_VECTORS) && defined(__AVX512F__)
TORCHFX_INLINE vd widen(vh v) { return (vd)_mm512_maskz_cvtps_pd(0xff, (__m256)v); }
#elif defined(TORCHFX_VECTORS) && defined(__AVX2__)
TORCHFX_INLINE vd widen(vh v) { return (vd)_mm256_cvtps_pd((__m128)v); }
#elif defined(TORCHFX_VECTORS)
TORCHFX_INLINE vd widen(vh v) { return __builtin_convertvector(v, vd); }
#else
TORCHFX_INLINE vd widen(vh v) { return v; }
#endif
#if defined(TORCHFX_VECTORS)
TORCHFX_INLINE vh narrow(vd v) { return __builtin_convertvector(v, vh); }
#else
TORCHFX_INLINE vh narrow(vd v) { return static_cast<float>(v); }
#endif

// Samples of either precision.
TORCHFX_INLINE vd load_samples(const float* p) { return widen(load_half(p)); }
TORCHFX_INLINE vd load_samples(const double* p) { return load(p); }

// VD samples that lie `stride` apart. Joined in a register: a vector that is read where single values were just stored
// waits for all of them.
#if defined(TORCHFX_VECTORS)
TORCHFX_INLINE vd gather_samples(const float* p, int64_t stride) {
    vh v;
    TORCHFX_UNROLL
    for (int i = 0; i < VD; ++i) v[i] = p[i * stride];
    return widen(v);
}
TORCHFX_INLINE vd gather_samples(const double* p, int64_t stride) {
    vd v;
    TORCHFX_UNROLL
    for (int i = 0; i < VD; ++i) v[i] = p[i * stride];
    return v;
}
#else
TORCHFX_INLINE vd gather_samples(const float* p, int64_t) { return *p; }
TORCHFX_INLINE vd gather_samples(const double* p, int64_t) { return *p; }
#endif

TORCHFX_INLINE void store_samples(float* p, vd v) { store_half(p, narrow(v)); }
TORCHFX_INLINE void store_samples(double* p, vd v) { store(p, v); }

// a * b + c and c - a * b, rounded once where the instruction set can.
#if defined(TORCHFX_VECTORS) && defined(__AVX512F__)
TORCHFX_INLINE vd fma(vd a, vd b, vd c) { return (vd)_mm512_fmadd_pd((__m512d)a, (__m512d)b, (__m512d)c); }
TORCHFX_INLINE vd fnma(vd a, vd b, vd c) { return (vd)_mm512_fnmadd_pd((__m512d)a, (__m512d)b, (__m512d)c); }
TORCHFX_INLINE vf fma(vf a, vf b, vf c) { return (vf)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c); }
TORCHFX_INLINE vf fnma(vf a, vf b, vf c) { return (vf)_mm512_fnmadd_ps((__m512)a, (__m512)b, (__m512)c); }
#elif defined(TORCHFX_VECTORS) && defined(__AVX2__)
TORCHFX_INLINE vd fma(vd a, vd b, vd c) { return (vd)_mm256_fmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }
TORCHFX_INLINE vd fnma(vd a, vd b, vd c) { return (vd)_mm256_fnmadd_pd((__m256d)a, (__m256d)b, (__m256d)c); }
TORCHFX_INLINE vf fma(vf a, vf b, vf c) { return (vf)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c); }
TORCHFX_INLINE vf fnma(vf a, vf b, vf c) { return (vf)_mm256_fnmadd_ps((__m256)a, (__m256)b, (__m256)c); }
#elif defined(TORCHFX_VECTORS) && defined(__aarch64__)
TORCHFX_INLINE vd fma(vd a, vd b, vd c) { return (vd)vfmaq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b); }
TORCHFX_INLINE vd fnma(vd a, vd b, vd c) { return (vd)vfmsq_f64((float64x2_t)c, (float64x2_t)a, (float64x2_t)b); }
TORCHFX_INLINE vf fma(vf a, vf b, vf c) { return (vf)vfmaq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
TORCHFX_INLINE vf fnma(vf a, vf b, vf c) { return (vf)vfmsq_f32((float32x4_t)c, (float32x4_t)a, (float32x4_t)b); }
#else
TORCHFX_INLINE vd fma(vd a, vd b, vd c) { return a * b + c; }
TORCHFX_INLINE vd fnma(vd a, vd b, vd c) { return c - a * b; }
TORCHFX_INLINE vf fma(vf a, vf b, vf c) { return a * b + c; }
TORCHFX_INLINE vf fnma(vf a, vf b, vf c) { return c - a * b; }
#endif

// a > b ? a : b and a < b ? a : b, so b where one is a NaN. GCC 12 compares and blends where one is constant; its
// intrinsics without a mask warn.
#if defined(TORCHFX_VECTORS) && defined(__AVX512F__)
TORCHFX_INLINE vd max_of(vd a, vd b) { return (vd)_mm512_maskz_max_pd(0xff, (__m512d)a, (__m512d)b); }
TORCHFX_INLINE vd min_of(vd a, vd b) { return (vd)_mm512_maskz_min_pd(0xff, (__m512d)a, (__m512d)b); }
TORCHFX_INLINE vf max_of(vf a, vf b) { return (vf)_mm512_maskz_max_ps(0xffff, (__m512)a, (__m512)b); }
TORCHFX_INLINE vf min_of(vf a, vf b) { return (vf)_mm512_maskz_min_ps(0xffff, (__m512)a, (__m512)b); }
#elif defined(TORCHFX_VECTORS) && defined(__AVX2__)
TORCHFX_INLINE vd max_of(vd a, vd b) { return (vd)_mm256_max_pd((__m256d)a, (__m256d)b); }
TORCHFX_INLINE vd min_of(vd a, vd b) { return (vd)_mm256_min_pd((__m256d)a, (__m256d)b); }
TORCHFX_INLINE vf max_of(vf a, vf b) { return (vf)_mm256_max_ps((__m256)a, (__m256)b); }
TORCHFX_INLINE vf min_of(vf a, vf b) { return (vf)_mm256_min_ps((__m256)a, (__m256)b); }
#else
TORCHFX_INLINE vd max_of(vd a, vd b) { return a > b ? a : b; }
TORCHFX_INLINE vd min_of(vd a, vd b) { return a < b ? a : b; }
TORCHFX_INLINE vf max_of(vf a, vf b) { return a > b ? a : b; }
TORCHFX_INLINE vf min_of(vf a, vf b) { return a < b ? a : b; }
#endif

// a * b + c and c - a * b of single numbers.
#if defined(__FMA__) || defined(__aarch64__)
TORCHFX_INLINE double plus_product(double a, double b, double c) { return __builtin_fma(a, b, c); }
TORCHFX_INLINE double minus_product(double a, double b, double c) { return __builtin_fma(-a, b, c); }
#else
TORCHFX_INLINE double plus_product(double a, double b, double c) { return c + a * b; }
TORCHFX_INLINE double minus_product(double a, double b, double c) { return c - a * b; }
#endif

TORCHFX_INLINE void prefetch(const void* p) {
#if defined(TORCHFX_VECTORS)
    __builtin_prefetch(p);
#else
    (void)p;
#endif
}

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx

#endif
