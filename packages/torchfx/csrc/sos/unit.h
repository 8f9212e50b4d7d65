// Cascades with their gains taken out, for the gradients' inner loop.
//
// Where b0 = 1, a stage and its adjoint take four multiply-adds a sample each in place of five, so every stage is
// divided by its b0. With R the product of b0 over the stages behind one, and G that over the stage and those before
// it, its state then comes out divided by G, its adjoint state divided by R, and the gradient at the cascade's input
// divided by the product of all.
#ifndef TORCHFX_SOS_UNIT_H
#define TORCHFX_SOS_UNIT_H

#include <vector>

#include "sos/stage.h"

namespace torchfx {

struct UnitCascades {
    std::vector<SosStage> stages;         // (rows, sections); b0 is 1 in all of them
    std::vector<double> state_factors;    // (rows, sections): what a stage's state is multiplied by,
    std::vector<double> adjoint_factors;  // and its adjoint state
    std::vector<double> gains;            // (rows,): the product of all b0
};

// Empty where in any row a b0 is 0 or far smaller than the rest of its section, or a product of them might overflow.
UnitCascades unit_cascades(const Cascades& cascades);

}  // namespace torchfx

#endif
