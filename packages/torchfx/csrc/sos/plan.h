// How a call is spread over lanes and threads.
#ifndef TORCHFX_SOS_PLAN_H
#define TORCHFX_SOS_PLAN_H

#include <cstdint>

namespace torchfx {

// Every channel is cut into `segments` pieces of `length` samples (the last one shorter); each piece of each
// channel is a stream, and `lanes` streams run side by side. A piece that starts mid-signal needs the filter's
// state there:
//   warm_up > 0   it starts that many samples early, from rest: a stable filter forgets;
//   carried       a first pass from rest gives every piece's end state, the state at each start follows, and
//                 a second pass filters. Twice the work, but independent of how slowly the filter decays.
struct SosPlan {
    int64_t segments;
    int64_t length;
    int64_t warm_up;
    bool carried;
    int threads;
};

struct SosShape {
    int64_t channels, samples, sections, rows;
    int bytes_per_sample;
    int lanes;
    int threads;        // at most
    int64_t threshold;  // shorter signals stay whole
    int64_t grid = 1;   // segments start at multiples of this many samples
};

// `sos`, (rows, sections, 6), is finite and stable.
SosPlan plan_sos(const SosShape& shape, const double* sos);

}  // namespace torchfx

#endif
