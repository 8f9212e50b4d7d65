// The table of kinds: each is defined in a file of its own, or with its likes in elementwise.cpp.
#include "program/step.h"

namespace torchfx {

#define TORCHFX_DECLARE_STEP(name) extern const StepKind name##_step;
TORCHFX_STEPS(TORCHFX_DECLARE_STEP)
#undef TORCHFX_DECLARE_STEP

const StepKind* step_kind(int64_t kind) {
#define TORCHFX_STEP_ENTRY(name) &name##_step,
    static const StepKind* const kinds[] = {TORCHFX_STEPS(TORCHFX_STEP_ENTRY)};
#undef TORCHFX_STEP_ENTRY
    constexpr int64_t count = sizeof kinds / sizeof *kinds;
    return kind >= 0 && kind < count ? kinds[kind] : nullptr;
}

}  // namespace torchfx

#define TORCHFX_NAME(name) #name " "
extern "C" const char* torchfx_step_names(void) { return TORCHFX_STEPS(TORCHFX_NAME); }
extern "C" const char* torchfx_curve_names(void) { return TORCHFX_CURVES(TORCHFX_NAME); }
#undef TORCHFX_NAME
