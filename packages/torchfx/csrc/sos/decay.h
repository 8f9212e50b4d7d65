// How fast a cascade forgets.
#ifndef TORCHFX_SOS_DECAY_H
#define TORCHFX_SOS_DECAY_H

#include <cstdint>

namespace torchfx {

// After how many samples input can no longer be told from silence: what is left of the impulse response from
// there on, summed, is below `tolerance` times the cascade's largest gain. A filter started that long before a
// sample gives its true output there. INT64_MAX when it is more than `at_most`, or when the cascade hardly decays.
// `sos` is finite and stable.
int64_t decay_samples(const double* sos, int64_t sections, double tolerance, int64_t at_most);

}  // namespace torchfx

#endif
