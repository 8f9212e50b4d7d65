#include "allpole/transfer_kernels.h"

#include "sos/lane_tile.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

// (samples, steps, order, b, a, state), in place.
using Advance = void (*)(double*, int, int64_t, const double*, const double*, double*);

// Coefficients and state in registers. With y put in, z[k] = z[k + 1] + (b[k + 1] - a[k + 1] b[0]) x - a[k + 1] z[0]: from
// sample to sample only one multiplication waits for another.
template <int order>
void advance_fixed(double* samples, int steps, int64_t, const double* bs, const double* as, double* state) {
    vd b[order + 1], a[order + 1], z[order + 1];
    for (int k = 0; k <= order; ++k) {
        b[k] = load(bs + k * VD);
        a[k] = load(as + k * VD);
        z[k] = k < order ? load(state + k * VD) : set1(0.0);
        if (k > 0) b[k] = fnma(a[k], b[0], b[k]);
    }
    for (int t = 0; t < steps; ++t) {
        const vd x = load(samples + t * VD), first = z[0];
        store(samples + t * VD, fma(b[0], x, first));
        TORCHFX_UNROLL
        for (int k = 0; k < order; ++k) z[k] = fnma(a[k + 1], first, fma(b[k + 1], x, z[k + 1]));
    }
    for (int k = 0; k < order; ++k) store(state + k * VD, z[k]);
}

void advance_any(double* samples, int steps, int64_t order, const double* b, const double* a, double* state) {
    for (int t = 0; t < steps; ++t) {
        double* z = state;
        const vd x = load(samples + t * VD), y = fma(load(b), x, load(z));
        for (int64_t k = 1; k < order; ++k, z += VD)
            store(z, fnma(load(a + k * VD), y, fma(load(b + k * VD), x, load(z + VD))));
        store(z, fnma(load(a + order * VD), y, load(b + order * VD) * x));
        store(samples + t * VD, y);
    }
}

Advance advance_of(int64_t order) {
    switch (order) {
        case 1: return advance_fixed<1>;
        case 2: return advance_fixed<2>;
        case 3: return advance_fixed<3>;
        case 4: return advance_fixed<4>;
        case 5: return advance_fixed<5>;
        case 6: return advance_fixed<6>;
        case 7: return advance_fixed<7>;
        case 8: return advance_fixed<8>;
        case 9: return advance_fixed<9>;
        case 10: return advance_fixed<10>;
        case 11: return advance_fixed<11>;
        case 12: return advance_fixed<12>;
    }
    return advance_any;
}

template <class In, class Out>
void forward(const TransferLanes<In, Out>& of) {
    Tile tile;
    const Advance advance = advance_of(of.order);
    const bool wanted = any_stream(of.y);
    for (int64_t start = 0; start < of.count; start += tile_steps) {
        const int steps = of.count - start < tile_steps ? static_cast<int>(of.count - start) : tile_steps;
        if (of.stride == -1) read_reversed(of.x, start, steps, tile.at);
        else read_tile<forwards>(of.x, of.stride, start, steps, tile.at);
        advance(tile.at, steps, of.order, of.b, of.a, of.state);
        if (!wanted) continue;
        if (of.y_stride == -1) write_reversed(tile.at, steps, of.y, start);
        else write_tile<forwards>(tile.at, steps, of.y, start);
    }
}

}  // namespace

extern const TransferKernels transfer_kernels = {VD, forward<float, float>, forward<double, double>,
                                                 forward<float, double>, forward<double, float>};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
