#include "sos_gradient_kernels.h"

#include "lane_tile.h"
#include "sos_running.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

// N stages of the adjoint, at work. unit: b0 is 1.
template <int N, bool shifted, bool unit = false>
struct AdjointStages {
    vd b0[N], c1[N], c0[N], p1[N], p0[N], kappa[N], l1[N], l2[N];

    AdjointStages(const SosStage* stages, const double* adjoint) {
        for (int k = 0; k < N; ++k) {
            b0[k] = set1(stages[k].b0);
            c1[k] = set1(stages[k].c1);
            c0[k] = set1(stages[k].c0);
            p1[k] = set1(stages[k].p1);
            p0[k] = set1(stages[k].p0);
            kappa[k] = set1(stages[k].kappa);
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

template <int N, bool shifted>
TORCHFX_NOINLINE void adjoint_sweep(const SosStage* stages, double* adjoint, double* tile, int steps) {
    AdjointStages<N, shifted> running(stages, adjoint);
    for (int t = steps - 1; t >= 0; --t) {
        vd g = load(tile + t * VD);
        for (int k = N - 1; k >= 0; --k) g = running.step(k, g);
        store(tile + t * VD, g);
    }
    running.save(adjoint);
}

template <bool shifted>
void adjoint_sweep(int n, const SosStage* stages, double* adjoint, double* tile, int steps) {
    switch (n) {
        case 1: return adjoint_sweep<1, shifted>(stages, adjoint, tile, steps);
        case 2: return adjoint_sweep<2, shifted>(stages, adjoint, tile, steps);
        case 3: return adjoint_sweep<3, shifted>(stages, adjoint, tile, steps);
        case 4: return adjoint_sweep<4, shifted>(stages, adjoint, tile, steps);
    }
}

template <class Sample, bool shifted>
void run_adjoint(const SosStage* stages, int64_t count, double* adjoint, const SosLanes<Sample>& lanes, int64_t steps) {
    Tile tile;
    const bool wanted = any_stream(lanes.y);
    int64_t end = steps;
    while (end > 0) {
        const int n = end < tile_steps ? static_cast<int>(end) : tile_steps;
        const int64_t start = end - n;
        read_tile<backwards>(lanes.x, lanes.x_stride, start, n, tile);
        for (int64_t left = count; left > 0;) {
            const int sweep = next_sweep(left);
            left -= sweep;
            adjoint_sweep<shifted>(sweep, stages + left, adjoint + left * state_size, tile.at, n);
        }
        if (wanted) write_tile<backwards>(tile, n, lanes.y, start);
        flush_tiny(adjoint, count);
        end = start;
    }
}

// Filters trace[0] through N stages into trace[1] ... trace[N]. With rows, whole blocks of trace[0] come from them on the
// way, each while the one before it is filtered: nothing waits for its transposes, which fill gaps between multiply-adds.
template <int N, bool shifted, bool unit, class Sample>
TORCHFX_NOINLINE void trace_sweep(const SosStage* stages, double* state, const Rows<const Sample>* rows, Tile* trace,
                                  int steps) {
    Stages<N, shifted, unit> running(stages, state);
    const auto step = [&](int t) TORCHFX_INLINE_LAMBDA {
        vd x = load(trace[0].at + t * VD);
        for (int k = 0; k < N; ++k) {
            x = running.stage(k, x);
            store(trace[k + 1].at + t * VD, x);
        }
    };
    int t = 0;
    if (rows && VD <= steps) copy_block<backwards>(*rows, 0, trace[0]);
    for (; t + VD <= steps; t += VD) {
        if (rows && t + 2 * VD <= steps) copy_block<backwards>(*rows, t + VD, trace[0]);
        for (int i = 0; i < VD; ++i) step(t + i);
    }
    for (; t < steps; ++t) step(t);
    running.save(state);
}

template <bool shifted, bool unit, class Sample>
void trace_sweep(int n, const SosStage* stages, double* state, const Rows<const Sample>* rows, Tile* trace, int steps) {
    switch (n) {
        case 1: return trace_sweep<1, shifted, unit>(stages, state, rows, trace, steps);
        case 2: return trace_sweep<2, shifted, unit>(stages, state, rows, trace, steps);
        case 3: return trace_sweep<3, shifted, unit>(stages, state, rows, trace, steps);
        case 4: return trace_sweep<4, shifted, unit>(stages, state, rows, trace, steps);
    }
}

// The adjoint of N stages over the tile, in place, and their sums: two stages keep their constants, adjoint states and
// sums in the registers of AVX-512. Whole blocks of the tile come from and go to rows on the way where given, multiplied
// by `gain` as they go; each a block ahead or behind, so that neither waits for a transpose.
template <int N, bool shifted, bool unit, class Sample>
TORCHFX_NOINLINE void gradient_sweep(const SosStage* stages, double* adjoint, double* sums, const Tile* trace,
                                     const Rows<const Sample>* from, const Rows<Sample>* to, double gain, Tile& tile,
                                     int steps) {
    AdjointStages<N, shifted, unit> running(stages, adjoint);
    vd sum[N][sums_per_stage];
    for (int k = 0; k < N; ++k)
        for (int i = 0; i < sums_per_stage; ++i) sum[k][i] = load(sums + (k * sums_per_stage + i) * VD);
    const auto step = [&](int t) TORCHFX_INLINE_LAMBDA {
        vd g = load(tile.at + t * VD);
        for (int k = N - 1; k >= 0; --k) {
            const vd x = load(trace[k].at + t * VD), y = load(trace[k + 1].at + t * VD);
            const vd l1 = running.l1[k], l2 = running.l2[k];
            sum[k][0] = fma(g, x, sum[k][0]);
            sum[k][1] = fma(l1, x, sum[k][1]);
            sum[k][2] = fma(l2, x, sum[k][2]);
            sum[k][3] = fma(l1, y, sum[k][3]);
            sum[k][4] = fma(l2, y, sum[k][4]);
            g = running.step(k, g);
        }
        store(tile.at + t * VD, g);
    };
    const auto write = [&](int t) TORCHFX_INLINE_LAMBDA {
        vd r[VD];
        read_block(tile, t, r);
        if (unit)
            for (int i = 0; i < VD; ++i) r[i] *= set1(gain);
        write_block<backwards>(*to, t, r);
    };
    int t = steps;
    while (t % VD != 0) step(--t);
    const int whole = t;
    if (from && whole > 0) copy_block<backwards>(*from, whole - VD, tile);
    while (t > 0) {
        if (from && t >= 2 * VD) copy_block<backwards>(*from, t - 2 * VD, tile);
        if (to && t < whole) write(t);
        for (int i = 1; i <= VD; ++i) step(t - i);
        t -= VD;
    }
    if (to && whole > 0) write(0);
    for (int k = 0; k < N; ++k)
        for (int i = 0; i < sums_per_stage; ++i) store(sums + (k * sums_per_stage + i) * VD, sum[k][i]);
    running.save(adjoint);
}

template <class Sample, bool shifted, bool unit>
void run_gradient(const SosStage* stages, int64_t count, double* state, double* adjoint, double* sums,
                  const SosGradientLanes<Sample>& lanes, double gain, int steps, double* work) {
    static_assert(checkpoint_steps <= tile_steps, "a gradient's step is a tile");
    Tile* trace = reinterpret_cast<Tile*>(work);
    Tile& tile = trace[count + 1];
    const int whole = steps / VD * VD;

    const Rows<const Sample> x_rows = rows_from<const Sample>(lanes.x, 0, silence<Sample>());
    const Rows<const Sample>* x = lanes.x_stride == 1 ? &x_rows : nullptr;
    if (x) read_singly(lanes.x, 1, whole, steps - whole, trace[0].at + whole * VD);
    else read_tile<backwards>(lanes.x, lanes.x_stride, 0, steps, trace[0]);
    for (int64_t k = 0; k < count; k += stages_per_sweep, x = nullptr)
        trace_sweep<shifted, unit>(next_sweep(count - k), stages + k, state + k * state_size, x, trace + k, steps);

    const Rows<const Sample> g_rows = rows_from<const Sample>(lanes.g, 0, silence<Sample>());
    const Rows<const Sample>* g = lanes.g_stride == 1 ? &g_rows : nullptr;
    if (g) read_singly(lanes.g, 1, whole, steps - whole, tile.at + whole * VD);
    else read_tile<backwards>(lanes.g, lanes.g_stride, 0, steps, tile);
    Sample dropped[tile_steps];
    const Rows<Sample> gx_rows = rows_from<Sample>(lanes.gx, 0, dropped);
    const bool wanted = any_stream(lanes.gx);
    for (int64_t left = count; left > 0; g = nullptr) {
        const int sweep = left >= 2 ? 2 : 1;
        left -= sweep;
        const auto run = sweep == 2 ? gradient_sweep<2, shifted, unit, Sample> : gradient_sweep<1, shifted, unit, Sample>;
        run(stages + left, adjoint + left * state_size, sums + left * sums_per_stage * VD, trace + left, g,
            wanted && left == 0 ? &gx_rows : nullptr, gain, tile, steps);
    }
    for (int t = whole; t < steps; ++t)
        for (int lane = 0; lane < VD; ++lane) gx_rows.at[lane][t] = static_cast<Sample>(gain * tile.at[t * VD + lane]);
    flush_tiny(adjoint, count);
}

}  // namespace

extern const SosGradientKernels sos_gradient_kernels = {
    &sos_kernels, run_adjoint<float, false>, run_adjoint<double, true>, run_gradient<float, false, false>,
    run_gradient<float, false, true>, run_gradient<double, true, false>};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
