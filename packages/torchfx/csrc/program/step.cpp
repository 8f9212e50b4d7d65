// The table of kinds: each is defined in a file of its own, or with its likes in elementwise.cpp.
#include "program/step.h"

namespace torchfx {
namespace {

constexpr int most_fields = 16;

}  // namespace

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

int64_t step_fields(int64_t kind) {
#define TORCHFX_ONE(name, type, role, size) +1
#define TORCHFX_COUNT(kind) 0 TORCHFX_FIELDS_##kind(TORCHFX_ONE),
    static constexpr int64_t counts[] = {TORCHFX_STEPS(TORCHFX_COUNT)};
#undef TORCHFX_COUNT
#undef TORCHFX_ONE
    return counts[kind];
}

const bool* step_states(int64_t kind) {
    constexpr bool setting = false, constant = false, optional_constant = false, state = true, optional_state = true,
                   optional_resting_state = true;
#define TORCHFX_IS_STATE(name, type, role, size) role,
#define TORCHFX_STATES_OF(kind) {TORCHFX_FIELDS_##kind(TORCHFX_IS_STATE) false},
    static constexpr bool states[][most_fields + 1] = {TORCHFX_STEPS(TORCHFX_STATES_OF)};
#undef TORCHFX_STATES_OF
#undef TORCHFX_IS_STATE
    return states[kind];
}

}  // namespace torchfx

#define TORCHFX_NAME(name) #name " "
#define TORCHFX_FIELD_TEXT(name, type, role, size) ";" #name "," #type "," #role "," #size
#define TORCHFX_KIND_TEXT(kind) #kind TORCHFX_FIELDS_##kind(TORCHFX_FIELD_TEXT) "\n"
extern "C" const char* torchfx_step_fields(void) { return TORCHFX_STEPS(TORCHFX_KIND_TEXT); }
extern "C" const char* torchfx_curve_names(void) { return TORCHFX_CURVES(TORCHFX_NAME); }
#undef TORCHFX_KIND_TEXT
#undef TORCHFX_FIELD_TEXT
#undef TORCHFX_NAME
