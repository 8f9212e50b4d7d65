// How fast a cascade forgets.
#ifndef TORCHFX_SOS_DECAY_H
#define TORCHFX_SOS_DECAY_H

#include <cstdint>

namespace torchfx {

// After how many samples input can no longer be told from silence: what is left of the impulse response from
// there on, summed, is below `tolerance` times the cascade's largest gain. A filter started that long before a
// sample gives its true output there. INT64_MAX when it hardly decays. `sos` has passed check_sos.
int64_t decay_samples(const double* sos, int64_t sections, double tolerance);

}  // namespace torchfx

#endif
