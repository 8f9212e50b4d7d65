#include "allpole/lane_kernels.h"

#include "sos/lane_tile.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

template <class T>
TORCHFX_INLINE Rows<T> rows_of(T* const (&pointers)[most_lanes]) {
    Rows<T> rows;
    for (int lane = 0; lane < VD; ++lane) rows.at[lane] = pointers[lane];
    return rows;
}

// Blocks of VD samples and of their coefficients are turned into vectors of all lanes, coefficient k of sample i being
// c[i * order + k].
template <int order, Direction direction, class Coefficient>
TORCHFX_INLINE void read_coefficients(const Rows<const Coefficient>& rows, int64_t t, vd (&c)[order * VD]) {
    for (int block = 0; block < order; ++block) {
        vd r[VD];
        read_block<direction>(rows, static_cast<int>(t * order) + block * VD, r);
        for (int i = 0; i < VD; ++i) c[block * VD + i] = r[i];
    }
}

template <int order, class Sample, class Coefficient>
void forward(const AllpoleLanes<Sample, Coefficient>& of) {
    const Rows<const Sample> x = rows_of(of.x);
    const Rows<const Coefficient> a = rows_of(of.a);
    const Rows<Sample> y = rows_of(of.y);
    vd past[order];
    for (int k = 0; k < order; ++k) past[k] = load(of.past + k * VD);
    for (int64_t t = 0; t < of.count; t += VD) {
        vd r[VD], c[order * VD];
        read_block<forwards>(x, static_cast<int>(t), r);
        read_coefficients<order, forwards>(a, t, c);
        for (int i = 0; i < VD; ++i) {
            for (int k = order - 1; k >= 0; --k) r[i] = fnma(c[i * order + k], past[k], r[i]);
            for (int k = order - 1; k > 0; --k) past[k] = past[k - 1];
            past[0] = r[i];
        }
        write_block<forwards>(y, static_cast<int>(t), r);
    }
    for (int k = 0; k < order; ++k) store(of.past + k * VD, past[k]);
}

template <int order, class Sample, class Coefficient>
void backward(const AllpoleLanesGradient<Sample, Coefficient>& of) {
    const Rows<const Sample> grad_y = rows_of(of.grad_y), y = rows_of(of.y);
    const Rows<const Coefficient> a = rows_of(of.a);
    const Rows<Sample> grad_x = rows_of(of.grad_x);
    const Rows<Coefficient> grad_a = rows_of(of.grad_a);
    vd pending[order + 1], later[VD], before[VD];
    for (int k = 0; k < order; ++k) pending[k] = load(of.pending + k * VD);
    pending[order] = vd{};
    if (of.want_a) read_block<backwards>(y, static_cast<int>(of.count) - VD, before);
    for (int64_t t = of.count - VD; t >= 0; t -= VD) {
        vd w[VD], c[order * VD];
        read_block<backwards>(grad_y, static_cast<int>(t), w);
        read_coefficients<order, backwards>(a, t, c);
        for (int i = VD - 1; i >= 0; --i) {
            w[i] = w[i] + pending[0];
            for (int k = 0; k < order; ++k) pending[k] = fnma(c[i * order + k], w[i], pending[k + 1]);
        }
        if (of.want_a) {
            for (int i = 0; i < VD; ++i) later[i] = before[i];
            read_block<backwards>(y, static_cast<int>(t) - VD, before);
            for (int i = 0; i < VD; ++i)
                for (int k = 0; k < order; ++k) {
                    const vd& past = i > k ? later[i - 1 - k] : before[(i - 1 - k + VD) % VD];
                    c[i * order + k] = vd{} - w[i] * past;
                }
            for (int block = 0; block < order; ++block) {
                vd r[VD];
                for (int i = 0; i < VD; ++i) r[i] = c[block * VD + i];
                write_block<backwards>(grad_a, static_cast<int>(t * order) + block * VD, r);
            }
        }
        if (of.want_x) write_block<backwards>(grad_x, static_cast<int>(t), w);
    }
    for (int k = 0; k < order; ++k) store(of.pending + k * VD, pending[k]);
}

template <class Sample, class Coefficient>
constexpr AllpoleLaneKernel<Sample, Coefficient> kernel = {
    {nullptr, forward<1, Sample, Coefficient>, forward<2, Sample, Coefficient>},
    {nullptr, backward<1, Sample, Coefficient>, backward<2, Sample, Coefficient>},
};

}  // namespace

extern const AllpoleLaneKernels allpole_lane_kernels = {VD, kernel<float, float>, kernel<float, double>,
                                                        kernel<double, float>, kernel<double, double>};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
