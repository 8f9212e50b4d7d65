// torchfx_advise_huge_pages.
#include "torchfx_dsp.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

extern "C" int32_t torchfx_advise_huge_pages(void* p, int64_t bytes) {
    if (!p || bytes < 0) return TORCHFX_BAD_ARGUMENT;
#if defined(__linux__) && defined(MADV_HUGEPAGE)
    constexpr uintptr_t page = uintptr_t{2} << 20;
    const uintptr_t start = (reinterpret_cast<uintptr_t>(p) + page - 1) / page * page;
    const uintptr_t end = (reinterpret_cast<uintptr_t>(p) + static_cast<uintptr_t>(bytes)) / page * page;
    // Refused where the administrator switched huge pages off: nothing is lost but speed, so nothing is reported.
    if (start < end) madvise(reinterpret_cast<void*>(start), end - start, MADV_HUGEPAGE);
#endif
    return TORCHFX_OK;
}
