#include "support/dispatch.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

#if defined(TORCHFX_WITH_AVX2) || defined(TORCHFX_WITH_AVX512)
#include <cpuid.h>
#endif

#include "torchfx_dsp.h"

namespace torchfx {
namespace {

struct NamedIsa {
    Isa isa;
    const char* name;
    bool (*runs_here)();
};

bool always() { return true; }

#if defined(TORCHFX_WITH_AVX2) || defined(TORCHFX_WITH_AVX512)
// Asks the processor itself: __builtin_cpu_supports knows of nothing where Zig brings the runtime library along. Bits:
// Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, CPUID, and volume 1, 13.3 (XCR0).
struct Features {
    uint32_t basic = 0;     // leaf 1, ECX
    uint32_t extended = 0;  // leaf 7, EBX
    uint32_t saved = 0;     // registers that the operating system saves, from XCR0

    Features() {
        uint32_t a, b, c, d;
        if (__get_cpuid(1, &a, &b, &c, &d)) basic = c;
        if (__get_cpuid_count(7, 0, &a, &b, &c, &d)) extended = b;
        if (basic >> 27 & 1) __asm__("xgetbv" : "=a"(saved), "=d"(d) : "c"(0));
    }
};

template <typename... Numbers>
constexpr uint32_t bits(Numbers... each) { return ((uint32_t{1} << each) | ...); }

bool has(uint32_t word, uint32_t wanted) { return (word & wanted) == wanted; }

bool has_avx2() {
    const Features found;
    return has(found.saved, bits(1, 2)) &&    // xmm, ymm
           has(found.basic, bits(12, 28)) &&  // FMA, AVX
           has(found.extended, bits(5));      // AVX2
}

bool has_avx512() {
    const Features found;
    return has_avx2() && has(found.saved, bits(5, 6, 7)) &&  // masks, zmm
           has(found.extended, bits(16, 17, 30, 31));        // F, DQ, BW, VL
}
#endif

// Widest first.
constexpr NamedIsa compiled_in[] = {
#if defined(TORCHFX_WITH_AVX512)
    {Isa::avx512, "avx512", has_avx512},
#endif
#if defined(TORCHFX_WITH_AVX2)
    {Isa::avx2, "avx2", has_avx2},
#endif
#if defined(__aarch64__)
    {Isa::baseline, "neon", always},
#endif
    {Isa::baseline, "baseline", always},
};

const NamedIsa* named(const char* name) {
    for (const NamedIsa& candidate : compiled_in)
        if (std::strcmp(candidate.name, name) == 0) return &candidate;
    return nullptr;
}

const NamedIsa* detect() {
    // A name this processor lacks, or one nobody knows, changes nothing: the variable only lowers the choice.
    if (const char* wanted = std::getenv("TORCHFX_ISA")) {
        const NamedIsa* lowered = named(wanted);
        if (lowered && lowered->runs_here()) return lowered;
    }
    for (const NamedIsa& candidate : compiled_in)
        if (candidate.runs_here()) return &candidate;
    return nullptr;  // not reached: the baseline runs everywhere
}

std::atomic<const NamedIsa*>& active() {
    static std::atomic<const NamedIsa*> chosen{detect()};
    return chosen;
}

}  // namespace

Isa active_isa() { return active().load(std::memory_order_relaxed)->isa; }

}  // namespace torchfx

extern "C" {

int32_t torchfx_dsp_abi_version(void) { return 31; }

const char* torchfx_isa(void) { return torchfx::active().load(std::memory_order_relaxed)->name; }

int32_t torchfx_set_isa(const char* name) {
    if (!name) return TORCHFX_BAD_ARGUMENT;
    const torchfx::NamedIsa* wanted = torchfx::named(name);
    if (!wanted || !wanted->runs_here()) return TORCHFX_BAD_ARGUMENT;
    torchfx::active().store(wanted, std::memory_order_relaxed);
    return TORCHFX_OK;
}

}  // extern "C"
