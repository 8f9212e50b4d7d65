// The adjoint of sections at work, and the sums that are their coefficients' gradients: constants, states and sums in
// registers. For *_kernels.cpp only, see vec.h.
#ifndef TORCHFX_SOS_GRADIENT_RUNNING_H
#define TORCHFX_SOS_GRADIENT_RUNNING_H

#include "sos/lane_tile.h"
#include "sos/gradient_kernels.h"
#include "sos/running.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {

// N stages of the adjoint, at work. unit: b0 is 1.
template <int N, bool shifted, bool unit = false>
struct AdjointStages {
    vd b0[N], c1[N], c0[N], p1[N], p0[N], kappa[N], l1[N], l2[N];

    AdjointStages(const double* stages, const double* adjoint) {
        for (int k = 0; k < N; ++k) {
            const double* of_stage = stages + k * constants_size;
            b0[k] = load(of_stage);
            c1[k] = load(of_stage + VD);
            c0[k] = load(of_stage + 2 * VD);
            p1[k] = load(of_stage + 3 * VD);
            p0[k] = load(of_stage + 4 * VD);
            kappa[k] = load(of_stage + 5 * VD);
            l1[k] = load(adjoint + (2 * k) * VD);
            l2[k] = load(adjoint + (2 * k + 1) * VD);
        }
    }

    void save(double* adjoint) const {
        for (int k = 0; k < N; ++k) {
            store(adjoint + (2 * k) * VD, l1[k]);
            store(adjoint + (2 * k + 1) * VD, l2[k]);
        }
    }

    // One stage, one sample: the gradient at its input.
    TORCHFX_INLINE_MEMBER vd step(int k, vd g) {
        const vd gx = fma(c1[k], l1[k], fma(c0[k], l2[k], unit ? g : b0[k] * g));
        vd next1 = fnma(p1[k], l1[k], fnma(p0[k], l2[k], g));
        vd next2 = l1[k];
        if (shifted) {
            next1 = fma(kappa[k], l1[k], next1);
            next2 = fma(kappa[k], l2[k], next2);
        }
        l1[k] = next1;
        l2[k] = next2;
        return gx;
    }
};

struct alignas(64) TraceTile {
    double at[checkpoint_steps * VD];
};

// What some stages, one behind the other, meet in a tile.
struct GradientTile {
    const TraceTile* trace;             // what enters the first stage, and what leaves each
    const double *before, *after;  // states at the tile's start and end
    double* adjoint;               // at its end, and when done at its start
    double* sums;
    double* gxx;  // a vector that wanders from the last stages to the first: the sum of gx x of the stage behind
};

// The adjoint with the five sums. `first`: nothing is behind these stages.
template <int N, bool shifted, bool unit, bool first>
struct GradientStages {
    GradientTile at;
    AdjointStages<N, shifted> running;
    vd sum[N][sums_per_stage];

    GradientStages(const double* stages, const GradientTile& tile) : at(tile), running(stages, tile.adjoint) {
        for (int k = 0; k < N; ++k)
            for (int i = 0; i < sums_per_stage; ++i) sum[k][i] = load(at.sums + (k * sums_per_stage + i) * VD);
    }

    void save() const {
        for (int k = 0; k < N; ++k)
            for (int i = 0; i < sums_per_stage; ++i) store(at.sums + (k * sums_per_stage + i) * VD, sum[k][i]);
        running.save(at.adjoint);
    }

    // The gradient at the input of all stages, from that at their output.
    TORCHFX_INLINE_MEMBER vd step(int t, vd g) {
        for (int k = N - 1; k >= 0; --k) {
            const vd x = load(at.trace[k].at + t * VD), y = load(at.trace[k + 1].at + t * VD);
            const vd l1 = running.l1[k], l2 = running.l2[k];
            sum[k][0] = fma(g, x, sum[k][0]);
            sum[k][1] = fma(l1, x, sum[k][1]);
            sum[k][2] = fma(l2, x, sum[k][2]);
            sum[k][3] = fma(l1, y, sum[k][3]);
            sum[k][4] = fma(l2, y, sum[k][4]);
            g = running.step(k, g);
        }
        return g;
    }

    // Instants t and t - 1.
    TORCHFX_INLINE_MEMBER void step_twice(int t, vd& g, vd& earlier) {
        g = step(t, g);
        earlier = step(t - 1, earlier);
    }
};

// Where b0 = 1 and kappa = 0, seven multiply-adds an instant do for nine.
//
// l2 is then l1 of the instant after, so that two sums over two instants, and likewise those with y, need three products:
//
//     l1[t] x[t] + l1[t-1] x[t-1] = l1[t] (x[t] + x[t-1]) + (l1[t-1] - l1[t]) x[t-1]
//     l2[t] x[t] + l2[t-1] x[t-1] = l1[t] (x[t] + x[t-1]) + (l2[t] - l1[t]) x[t]
//
// And g x is not summed at all. What a stage and its adjoint conserve gives the sum: with w the stage's state and l the
// adjoint's, gx x + l[before] w[before] = g y + l[after] w[after] at every instant, so over the tile
//
//     sum of gx x = sum of g y + (l1 w1 + l2 w2 at the tile's end) - (the same at its start)
//     sum of g x  = sum of gx x - c1 (sum of l1 x) - c0 (sum of l2 x)
//
// and the sum of g y is that of gx x of the stage behind.
template <int N, bool first>
struct GradientStages<N, false, true, first> {
    GradientTile at;
    AdjointStages<N, false, true> running;
    vd both_x[N], first_x[N], second_x[N], both_y[N], first_y[N], second_y[N], gy;

    GradientStages(const double* stages, const GradientTile& tile)
        : at(tile), running(stages, tile.adjoint), gy(load(tile.gxx)) {
        for (int k = 0; k < N; ++k) both_x[k] = first_x[k] = second_x[k] = both_y[k] = first_y[k] = second_y[k] = vd{};
    }

    void save() const {
        vd gxx = gy;
        for (int k = N - 1; k >= 0; --k) {
            const double *l = at.adjoint + k * state_size, *w = at.after + k * state_size, *w0 = at.before + k * state_size;
            const vd before = running.l1[k] * load(w0) + running.l2[k] * load(w0 + VD);
            gxx += load(l) * load(w) + load(l + VD) * load(w + VD) - before;
            const vd l1x = both_x[k] + second_x[k], l2x = both_x[k] + first_x[k];
            add(k, 0, gxx - running.c1[k] * l1x - running.c0[k] * l2x);
            add(k, 1, l1x);
            add(k, 2, l2x);
            add(k, 3, both_y[k] + second_y[k]);
            add(k, 4, both_y[k] + first_y[k]);
        }
        store(at.gxx, gxx);
        running.save(at.adjoint);
    }

    TORCHFX_INLINE_MEMBER vd step(int t, vd g) {
        vd y = load(at.trace[N].at + t * VD);
        if (first) gy = fma(g, y, gy);
        for (int k = N - 1; k >= 0; --k) {
            const vd x = load(at.trace[k].at + t * VD), l1 = running.l1[k], l2 = running.l2[k];
            g = running.step(k, g);
            second_x[k] = fma(l1, x, second_x[k]);
            first_x[k] = fma(l2, x, first_x[k]);
            second_y[k] = fma(l1, y, second_y[k]);
            first_y[k] = fma(l2, y, first_y[k]);
            y = x;
        }
        return g;
    }

    TORCHFX_INLINE_MEMBER void step_twice(int t, vd& g, vd& earlier) {
        vd y = load(at.trace[N].at + t * VD), y_earlier = load(at.trace[N].at + (t - 1) * VD);
        vd y_both = y + y_earlier;
        if (first) gy = fma(earlier, y_earlier, fma(g, y, gy));
        for (int k = N - 1; k >= 0; --k) {
            const vd l1 = running.l1[k], fall = running.l2[k] - l1;
            g = running.step(k, g);
            const vd rise = running.l1[k] - l1;
            earlier = running.step(k, earlier);
            both_y[k] = fma(l1, y_both, both_y[k]);
            first_y[k] = fma(fall, y, first_y[k]);
            second_y[k] = fma(rise, y_earlier, second_y[k]);
            y = load(at.trace[k].at + t * VD);
            y_earlier = load(at.trace[k].at + (t - 1) * VD);
            y_both = y + y_earlier;
            both_x[k] = fma(l1, y_both, both_x[k]);
            first_x[k] = fma(fall, y, first_x[k]);
            second_x[k] = fma(rise, y_earlier, second_x[k]);
        }
    }

private:
    void add(int k, int i, vd v) const {
        double* sum = at.sums + (k * sums_per_stage + i) * VD;
        store(sum, load(sum) + v);
    }
};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx

#endif
