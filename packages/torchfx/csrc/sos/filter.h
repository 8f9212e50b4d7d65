// Runs a checked and planned call of the recursive filter.
#ifndef TORCHFX_SOS_FILTER_H
#define TORCHFX_SOS_FILTER_H

#include "sos/group.h"

namespace torchfx {

// Throws std::bad_alloc.
template <class In, class Out>
void sos_filter(const SosCall<In, Out>& call);

extern template void sos_filter(const SosCall<float>&);
extern template void sos_filter(const SosCall<double>&);
extern template void sos_filter(const SosCall<float, double>&);
extern template void sos_filter(const SosCall<double, float>&);

}  // namespace torchfx

#endif
