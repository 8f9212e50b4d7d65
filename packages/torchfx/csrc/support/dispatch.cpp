#include "support/dispatch.h"

#include <atomic>
#include <cstdlib>
#include <cstring>

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
// These builtins also ask the operating system whether it saves the wide registers.
bool has_avx2() { return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"); }
bool has_avx512() {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
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
