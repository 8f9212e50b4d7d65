// Runs a checked and planned call of the recursive filter.
#ifndef TORCHFX_SOS_FILTER_H
#define TORCHFX_SOS_FILTER_H

#include "sos/group.h"

namespace torchfx {

// Throws std::bad_alloc.
template <class Sample>
void sos_filter(const SosCall<Sample>& call);

extern template void sos_filter(const SosCall<float>&);
extern template void sos_filter(const SosCall<double>&);

}  // namespace torchfx

#endif
