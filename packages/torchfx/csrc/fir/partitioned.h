// Convolution of a signal that comes in short blocks with a long filter, without latency.
//
// The filter is cut into partitions, the longer the later they sound (W. G. Gardner, Efficient convolution without
// input-output delay, 1995). Level 0 has partitions of 512 taps from tap 0 on; a level of partitions of N taps begins at
// tap N, so that its results are due only after the N samples that they come from. Within a level, spectra of past inputs
// are kept, and results are sums of products with the partitions' spectra: one transform and one inverse for N samples.
#ifndef TORCHFX_FIR_PARTITIONED_H
#define TORCHFX_FIR_PARTITIONED_H

#include <cstdint>

#include "fir/convolution.h"

namespace torchfx {

// Output channel c is the sum over the inputs i < width of its group of `width` channels, c / width * width + i, each
// filtered by the row of pair c * width + i.
struct PartitionedFir {
    int64_t channels;
    int64_t width;
    FirFilters filters;
    double* state;  // (channels, width, filter length - 1): what input before the last `settle` adds to outputs after it
    double* work;   // `partitioned_size`, zeros at first: spectra of the filters, then all that came since
};

struct PartitionedSize {
    int64_t doubles, spectra;  // of `work`, and how many of them belong to the filters
};
PartitionedSize partitioned_size(const PartitionedFir& fir);

// A torchfx_status. Filters that an earlier call has transformed are not looked at again.
int32_t check_partitioned(const PartitionedFir& fir);

// The next samples of a signal. Both throw std::bad_alloc.
void filter_partitioned(const PartitionedFir& fir, const FirSignal& signal, int64_t signal_channel_stride,
                        const FirOutput& output, int64_t output_channel_stride, int threads);
// Makes `state` all that past input adds to the coming outputs.
void settle(const PartitionedFir& fir, int threads);

}  // namespace torchfx

#endif
