#include "median/kernels.h"

#include "support/vec.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

template <class Sample>
struct Lanes;
template <>
struct Lanes<float> {
    typedef vf Vector;
    static constexpr int count = VF;
};
template <>
struct Lanes<double> {
    typedef vd Vector;
    static constexpr int count = VD;
};

template <class Sample>
TORCHFX_INLINE typename Lanes<Sample>::Vector gather(const Sample* x, const int64_t* places) {
#if defined(TORCHFX_VECTORS)
    typename Lanes<Sample>::Vector v;
    TORCHFX_UNROLL
    for (int i = 0; i < Lanes<Sample>::count; ++i) v[i] = x[places[i]];
    return v;
#else
    return x[places[0]];
#endif
}

// The window is kept in ascending order. A step replaces its oldest sample by the next one in one pass over it, without
// a branch: what lies above the oldest moves down by one, and what lies above the new one moves up again. Places that
// hold no sample yet are infinite. A NaN is sorted as infinity, and results are NaN for as long as the window holds it.
template <class Sample>
void median(const Sample* x, int64_t x_channel_stride, int64_t x_time_stride, Sample* y, int64_t y_channel_stride,
            int64_t channels, int64_t samples, int64_t window, Sample* room) {
    typedef typename Lanes<Sample>::Vector Vector;
    constexpr int lanes = Lanes<Sample>::count;
    const Vector infinite = set1(static_cast<Sample>(__builtin_huge_val())), one = set1(Sample(1)), none = set1(Sample(0));
    const Vector whole = set1(static_cast<Sample>(window)), nan = infinite - infinite;
    int64_t places[lanes];
    for (int i = 0; i < lanes; ++i) places[i] = (i < channels ? i : channels - 1) * x_channel_stride;
    for (int64_t i = 0; i < window; ++i) store(room + i * lanes, infinite);
    Vector tainted = none;  // for so many steps
    for (int64_t t = 0; t < samples + window - 1; ++t) {
        Vector next = gather(x + t * x_time_stride, places), oldest = infinite;
        tainted = next == next ? max_of(tainted - one, none) : whole;
        next = next == next ? next : infinite;
        if (t >= window) {
            oldest = gather(x + (t - window) * x_time_stride, places);
            oldest = oldest == oldest ? oldest : infinite;
        }
        Vector here = load(room), below = -infinite;
        for (int64_t i = 0; i < window; ++i) {
            const Vector above = i + 1 < window ? load(room + (i + 1) * lanes) : infinite;
            const Vector left = here < oldest ? here : above;
            store(room + i * lanes, max_of(below, min_of(left, next)));
            below = left;
            here = above;
        }
        if (t + 1 < window) continue;
        Sample found[lanes];
        store(found, tainted > none ? nan : load(room + window / 2 * lanes));
        for (int64_t c = 0; c < channels; ++c) y[c * y_channel_stride + t + 1 - window] = found[c];
    }
}

}  // namespace

extern const MedianKernels median_kernels = {{VF, median<float>}, {VD, median<double>}};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
