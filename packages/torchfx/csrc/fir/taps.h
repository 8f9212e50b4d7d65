// Taps as they come in.
#ifndef TORCHFX_FIR_TAPS_H
#define TORCHFX_FIR_TAPS_H

#include <cstdint>

#include "support/rows.h"

namespace torchfx {

// TORCHFX_OK, TORCHFX_BAD_ARGUMENT or TORCHFX_NOT_FINITE, for taps (rows.count, n_taps).
int32_t check_taps(const double* taps, int64_t n_taps, Rows rows, int64_t channels);

}  // namespace torchfx

#endif
