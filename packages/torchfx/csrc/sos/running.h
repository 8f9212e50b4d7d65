// Sections at work: their constants and states in registers. For *_kernels.cpp only, see vec.h.
#ifndef TORCHFX_SOS_RUNNING_H
#define TORCHFX_SOS_RUNNING_H

#include "sos/kernels.h"
#include "support/vec.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {

constexpr int state_size = 2 * VD;                    // doubles of state per stage, for all lanes,
constexpr int constants_size = stage_constants * VD;  // and of constants

// This many stages run in one sweep over a tile: what fits the registers of AVX-512.
constexpr int stages_per_sweep = 4;

// A state that decays towards zero would end among the subnormal numbers, which some processors handle a
// hundred times slower. No signal is this small, so nothing is lost. Asked for once per tile.
constexpr double smallest_state = 1e-300;

TORCHFX_INLINE void flush_tiny(double* state, int64_t stages) {
    for (int64_t i = 0; i < stages * state_size; i += VD) {
        const vd v = load(state + i);
        store(state + i, (v < set1(smallest_state)) & (v > set1(-smallest_state)) ? vd{} : v);
    }
}

TORCHFX_INLINE int next_sweep(int64_t count) {
    return count < stages_per_sweep ? static_cast<int>(count) : stages_per_sweep;
}

// N stages with their constants and their states, all of them vectors. unit: b0 is 1.
template <int N, bool shifted, bool unit = false>
struct Stages {
    vd b0[N], c1[N], c0[N], p1[N], p0[N], kappa[N], w1[N], w2[N];

    Stages(const double* stages, const double* state) {
        for (int k = 0; k < N; ++k) {
            const double* of_stage = stages + k * constants_size;
            b0[k] = load(of_stage);
            c1[k] = load(of_stage + VD);
            c0[k] = load(of_stage + 2 * VD);
            p1[k] = load(of_stage + 3 * VD);
            p0[k] = load(of_stage + 4 * VD);
            kappa[k] = load(of_stage + 5 * VD);
            w1[k] = load(state + (2 * k) * VD);
            w2[k] = load(state + (2 * k + 1) * VD);
        }
    }

    void save(double* state) const {
        for (int k = 0; k < N; ++k) {
            store(state + (2 * k) * VD, w1[k]);
            store(state + (2 * k + 1) * VD, w2[k]);
        }
    }

    // One sample through one stage ...
    TORCHFX_INLINE_MEMBER vd stage(int k, vd x) {
        const vd y = unit ? x + w1[k] : fma(b0[k], x, w1[k]);
        vd next1 = fnma(p1[k], w1[k], fma(c1[k], x, w2[k]));
        vd next2 = fnma(p0[k], w1[k], c0[k] * x);
        if (shifted) {  // added last: the only rounding at the state's own size
            next1 = fma(kappa[k], w1[k], next1);
            next2 = fma(kappa[k], w2[k], next2);
        }
        w1[k] = next1;
        w2[k] = next2;
        return y;
    }

    // ... and through all of them.
    TORCHFX_INLINE_MEMBER vd step(vd x) {
        for (int k = 0; k < N; ++k) x = stage(k, x);
        return x;
    }
};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx

#endif
