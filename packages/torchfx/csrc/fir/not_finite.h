// What NaNs and infinities in a signal add to the results of a convolution.
#ifndef TORCHFX_FIR_NOT_FINITE_H
#define TORCHFX_FIR_NOT_FINITE_H

#include "fir/convolution.h"

namespace torchfx {

// For results computed with 0 in the place of every NaN and infinity of the signal: makes them those of the direct
// sum, at the cost of one more convolution. Throws std::bad_alloc.
void add_not_finite(const FirConvolution& job);

}  // namespace torchfx

#endif
