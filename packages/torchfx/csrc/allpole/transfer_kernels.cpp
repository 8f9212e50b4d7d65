#include "allpole/transfer_kernels.h"

#include "sos/lane_tile.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

template <class Sample, class Advance>
TORCHFX_INLINE void for_tiles(const TransferLanes<Sample>& of, Advance&& advance) {
    Tile tile;
    for (int64_t start = 0; start < of.count; start += tile_steps) {
        const int steps = of.count - start < tile_steps ? static_cast<int>(of.count - start) : tile_steps;
        read_tile<forwards>(of.x, of.stride, start, steps, tile.at);
        for (int t = 0; t < steps; ++t) advance(tile.at + t * VD);
        write_tile<forwards>(tile.at, steps, of.y, start);
    }
}

// Coefficients and state in registers. With y put in, z[k] = z[k + 1] + (b[k + 1] - a[k + 1] b[0]) x - a[k + 1] z[0]: from
// sample to sample only one multiplication waits for another.
template <int order, class Sample>
void forward_fixed(const TransferLanes<Sample>& of) {
    vd b[order + 1], a[order + 1], z[order + 1];
    for (int k = 0; k <= order; ++k) {
        b[k] = load(of.b + k * VD);
        a[k] = load(of.a + k * VD);
        z[k] = k < order ? load(of.state + k * VD) : set1(0.0);
        if (k > 0) b[k] = fnma(a[k], b[0], b[k]);
    }
    for_tiles(of, [&](double* at) TORCHFX_INLINE_LAMBDA {
        const vd x = load(at), first = z[0];
        store(at, fma(b[0], x, first));
        TORCHFX_UNROLL
        for (int k = 0; k < order; ++k) z[k] = fnma(a[k + 1], first, fma(b[k + 1], x, z[k + 1]));
    });
    for (int k = 0; k < order; ++k) store(of.state + k * VD, z[k]);
}

template <class Sample>
void forward(const TransferLanes<Sample>& of) {
    switch (of.order) {
        case 1: return forward_fixed<1>(of);
        case 2: return forward_fixed<2>(of);
        case 3: return forward_fixed<3>(of);
        case 4: return forward_fixed<4>(of);
        case 5: return forward_fixed<5>(of);
        case 6: return forward_fixed<6>(of);
        case 7: return forward_fixed<7>(of);
        case 8: return forward_fixed<8>(of);
        case 9: return forward_fixed<9>(of);
        case 10: return forward_fixed<10>(of);
        case 11: return forward_fixed<11>(of);
        case 12: return forward_fixed<12>(of);
    }
    for_tiles(of, [&](double* at) TORCHFX_INLINE_LAMBDA {
        double* z = of.state;
        const vd x = load(at), y = fma(load(of.b), x, load(z));
        for (int64_t k = 1; k < of.order; ++k, z += VD)
            store(z, fnma(load(of.a + k * VD), y, fma(load(of.b + k * VD), x, load(z + VD))));
        store(z, fnma(load(of.a + of.order * VD), y, load(of.b + of.order * VD) * x));
        store(at, y);
    });
}

}  // namespace

extern const TransferKernels transfer_kernels = {VD, forward<float>, forward<double>};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
