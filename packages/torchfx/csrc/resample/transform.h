// Resampling by transforms, for ratios of small numbers.
#ifndef TORCHFX_RESAMPLE_TRANSFORM_H
#define TORCHFX_RESAMPLE_TRANSFORM_H

#include "resample/job.h"

namespace torchfx {

// The transforms' size that computes the job soonest, 0 where direct sums do.
int64_t transform_size(const ResampleJob& job);

// Computes the job; the taps are finite. Throws std::bad_alloc.
void resample_by_transforms(const ResampleJob& job, int64_t size);

}  // namespace torchfx

#endif
