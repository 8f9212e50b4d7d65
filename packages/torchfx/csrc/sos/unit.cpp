#include "sos/unit.h"

#include <cmath>

namespace torchfx {
namespace {

// Far from where doubles end, with samples of any size a float can hold.
bool moderate(double factor) { return std::fabs(factor) > 1e-100 && std::fabs(factor) < 1e100; }

// The gradients' inner loop finds one sum from others times c1 and c0 (gradient_running.h), which takes as many
// digits from it as these have.
bool well_scaled(const SosStage& stage) { return std::fabs(stage.c1) < 1e4 && std::fabs(stage.c0) < 1e4; }

// Whether this row can do without its gains; they are then at the ends of unit's vectors.
bool append_row(const SosStage* stages, int64_t sections, UnitCascades& unit) {
    double gain = 1;
    for (int64_t k = 0; k < sections; ++k) {
        gain *= stages[k].b0;
        if (!moderate(stages[k].b0) || !moderate(gain)) return false;
        unit.state_factors.push_back(1 / gain);
    }
    for (int64_t k = 0; k < sections; ++k) {
        const SosStage& stage = stages[k];
        const double behind = gain * unit.state_factors[unit.stages.size()];
        if (!moderate(behind)) return false;
        unit.adjoint_factors.push_back(1 / behind);
        unit.stages.push_back({1, stage.c1 / stage.b0, stage.c0 / stage.b0, stage.p1, stage.p0, stage.kappa});
        if (!well_scaled(unit.stages.back())) return false;
    }
    unit.gains.push_back(gain);
    return true;
}

}  // namespace

UnitCascades unit_cascades(const Cascades& cascades) {
    UnitCascades unit;
    const auto rows = static_cast<std::size_t>(cascades.rows.count), stages = rows * static_cast<std::size_t>(cascades.sections);
    unit.stages.reserve(stages);
    unit.state_factors.reserve(stages);
    unit.adjoint_factors.reserve(stages);
    unit.gains.reserve(rows);
    for (int64_t r = 0; r < cascades.rows.count; ++r)
        if (!append_row(cascades.row(r), cascades.sections, unit)) return {};
    return unit;
}

}  // namespace torchfx
