// Which instruction set the kernels run with.
//
// A kernel file defines one constant table of function pointers per instruction set; the code that calls it
// declares that table with TORCHFX_DECLARE_KERNELS and reads the active one with TORCHFX_KERNELS:
//
//     TORCHFX_DECLARE_KERNELS(SosKernels, sos_kernels)          // in a header, inside namespace torchfx
//     extern const SosKernels sos_kernels = {...};              // in *_kernels.cpp, inside the ISA namespace
//     const SosKernels& k = TORCHFX_KERNELS(sos_kernels);       // where it is used
#ifndef TORCHFX_SUPPORT_DISPATCH_H
#define TORCHFX_SUPPORT_DISPATCH_H

namespace torchfx {

// Ascending: a processor that runs one runs all before it. Baseline is SSE2 on x86-64 and NEON on ARM64.
enum class Isa { baseline, avx2, avx512 };

// The set in use; may change between two calls (torchfx_set_isa), so read it once per operation.
Isa active_isa();

#if defined(TORCHFX_WITH_AVX512)
#define TORCHFX_ISA_CASE_AVX512(table) isa == ::torchfx::Isa::avx512 ? isa_avx512::table :
#else
#define TORCHFX_ISA_CASE_AVX512(table)
#endif
#if defined(TORCHFX_WITH_AVX2)
#define TORCHFX_ISA_CASE_AVX2(table) isa == ::torchfx::Isa::avx2 ? isa_avx2::table :
#else
#define TORCHFX_ISA_CASE_AVX2(table)
#endif

#define TORCHFX_DECLARE_KERNELS(Type, table)            \
    namespace isa_baseline { extern const Type table; } \
    namespace isa_avx2 { extern const Type table; }     \
    namespace isa_avx512 { extern const Type table; }

#define TORCHFX_KERNELS(table)                                                                   \
    ([](::torchfx::Isa isa) -> const auto& {                                                     \
        (void)isa;                                                                               \
        return TORCHFX_ISA_CASE_AVX512(table) TORCHFX_ISA_CASE_AVX2(table) isa_baseline::table; \
    }(::torchfx::active_isa()))

}  // namespace torchfx

#endif
