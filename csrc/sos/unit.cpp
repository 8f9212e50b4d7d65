#include "sos/unit.h"

#include <cmath>

namespace torchfx {
namespace {

// Far from where doubles end, with samples of any size a float can hold.
bool moderate(double factor) { return std::fabs(factor) > 1e-100 && std::fabs(factor) < 1e100; }

// The gradients' inner loop finds one sum from others times c1 and c0 (sos_gradient_running.h), which takes as many
// digits from it as these have.
bool well_scaled(const SosStage& stage) { return std::fabs(stage.c1) < 1e4 && std::fabs(stage.c0) < 1e4; }

}  // namespace

UnitCascade unit_cascade(const std::vector<SosStage>& stages) {
    UnitCascade unit = {{}, {}, {}, 1};
    for (const SosStage& stage : stages) {
        unit.gain *= stage.b0;
        if (!moderate(stage.b0) || !moderate(unit.gain)) return {{}, {}, {}, 1};
        unit.state_factors.push_back(1 / unit.gain);
    }
    for (const SosStage& stage : stages) {
        const double behind = unit.gain * unit.state_factors[unit.stages.size()];
        if (!moderate(behind)) return {{}, {}, {}, 1};
        unit.adjoint_factors.push_back(1 / behind);
        unit.stages.push_back({1, stage.c1 / stage.b0, stage.c0 / stage.b0, stage.p1, stage.p0, stage.kappa});
        if (!well_scaled(unit.stages.back())) return {{}, {}, {}, 1};
    }
    return unit;
}

}  // namespace torchfx
