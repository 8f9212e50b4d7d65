#include "sos/gradient_kernels.h"

#include "sos/lane_tile.h"
#include "sos/gradient_running.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

template <class T>
TORCHFX_INLINE void swap(T& a, T& b) {
    const T was = a;
    a = b;
    b = was;
}

template <int N, bool shifted>
TORCHFX_NOINLINE void adjoint_sweep(const double* stages, double* adjoint, double* tile, int steps) {
    AdjointStages<N, shifted> running(stages, adjoint);
    for (int t = steps - 1; t >= 0; --t) {
        vd g = load(tile + t * VD);
        for (int k = N - 1; k >= 0; --k) g = running.step(k, g);
        store(tile + t * VD, g);
    }
    running.save(adjoint);
}

template <bool shifted>
void adjoint_sweep(int n, const double* stages, double* adjoint, double* tile, int steps) {
    switch (n) {
        case 1: return adjoint_sweep<1, shifted>(stages, adjoint, tile, steps);
        case 2: return adjoint_sweep<2, shifted>(stages, adjoint, tile, steps);
        case 3: return adjoint_sweep<3, shifted>(stages, adjoint, tile, steps);
        case 4: return adjoint_sweep<4, shifted>(stages, adjoint, tile, steps);
    }
}

template <class Sample, bool shifted>
void run_adjoint(const double* stages, int64_t count, double* adjoint, const SosLanes<Sample>& lanes, int64_t steps) {
    Tile tile;
    const bool wanted = any_stream(lanes.y);
    int64_t end = steps;
    while (end > 0) {
        const int n = end < tile_steps ? static_cast<int>(end) : tile_steps;
        const int64_t start = end - n;
        read_tile<backwards>(lanes.x, lanes.x_stride, start, n, tile.at);
        for (int64_t left = count; left > 0;) {
            const int sweep = next_sweep(left);
            left -= sweep;
            adjoint_sweep<shifted>(sweep, stages + left * constants_size, adjoint + left * state_size, tile.at, n);
        }
        if (wanted) write_tile<backwards>(tile.at, n, lanes.y, start);
        flush_tiny(adjoint, count);
        end = start;
    }
}

// Filters trace[0] through N stages into trace[1] ... trace[N]. With rows, whole blocks of trace[0] come from them on the
// way, each while the one before it is filtered: nothing waits for its transposes, which fill gaps between multiply-adds.
template <int N, bool shifted, bool unit, class Sample>
TORCHFX_NOINLINE void trace_sweep(const double* stages, double* state, const Rows<const Sample>* rows, TraceTile* trace,
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
    if (rows && VD <= steps) copy_block<backwards>(*rows, 0, trace[0].at);
    for (; t + VD <= steps; t += VD) {
        if (rows && t + 2 * VD <= steps) copy_block<backwards>(*rows, t + VD, trace[0].at);
        for (int i = 0; i < VD; ++i) step(t + i);
    }
    for (; t < steps; ++t) step(t);
    running.save(state);
}

template <bool shifted, bool unit, class Sample>
void trace_sweep(int n, const double* stages, double* state, const Rows<const Sample>* rows, TraceTile* trace, int steps) {
    switch (n) {
        case 1: return trace_sweep<1, shifted, unit>(stages, state, rows, trace, steps);
        case 2: return trace_sweep<2, shifted, unit>(stages, state, rows, trace, steps);
        case 3: return trace_sweep<3, shifted, unit>(stages, state, rows, trace, steps);
        case 4: return trace_sweep<4, shifted, unit>(stages, state, rows, trace, steps);
    }
}

// The gradient at the output, for a tile: in rows, but for the last few steps, or else as steps of all lanes.
template <class Sample>
struct OutputGradient {
    bool in_rows;
    Rows<const Sample> rows;
    alignas(64) Sample steps[checkpoint_steps * VD];

    OutputGradient(const SosGradientLanes<Sample>& lanes, int count)
        : in_rows(lanes.g_stride == 1), rows(rows_from<const Sample>(lanes.g, 0, silence<Sample>())) {
        const int whole = count / VD * VD;
        if (in_rows) read_singly(lanes.g, 1, whole, count - whole, steps + whole * VD);
        else read_strided(lanes.g, lanes.g_stride, 0, count, steps);
    }

    // VD steps from t on, read into `block` if need be.
    TORCHFX_INLINE_MEMBER const Sample* at(int t, Sample* block) const {
        if (!in_rows) return steps + t * VD;
        read_block<backwards>(rows, t, block);
        return block;
    }
};

// The adjoint of N stages over the tile, in place, and their sums: two stages keep nearly all they need in the registers
// of AVX-512. The first sweep, over the last stages, has its gradients from the output; the last one brings them to rows,
// multiplied by `gain`, where b0 was taken out. Both go by blocks, a block ahead or behind, so that neither waits for a transpose.
template <int N, bool shifted, bool unit, bool first, bool last, class Sample>
TORCHFX_NOINLINE void gradient_sweep(const double* stages, const GradientTile& at, const OutputGradient<Sample>& from,
                                     const Rows<Sample>& to, const double* gain, TraceTile& tile, int steps) {
    GradientStages<N, shifted, unit, first> running(stages, at);
    const vd gains = unit ? load(gain) : vd{};
    alignas(64) Sample blocks[4][VD * VD];
    Sample *out = blocks[0], *behind = blocks[1], *spare = blocks[2], *other = blocks[3];
    const Sample* in = from.steps;
    const auto get = [&](int t, int i) TORCHFX_INLINE_LAMBDA {
        return first ? load_samples(in + i * VD) : load(tile.at + (t + i) * VD);
    };
    const auto put = [&](int t, int i, vd g) TORCHFX_INLINE_LAMBDA {
        if (last) store_samples(out + i * VD, unit ? g * gains : g);
        else store(tile.at + (t + i) * VD, g);
    };
    int t = steps;
    while (t % VD != 0) {
        --t;
        store(tile.at + t * VD, running.step(t, first ? load_samples(from.steps + t * VD) : load(tile.at + t * VD)));
    }
    const int whole = t;
    const Sample* ahead = first && whole > 0 ? from.at(whole - VD, spare) : nullptr;
    while (t > 0) {
        if (last && t < whole) write_block<backwards>(to, t, behind);
        t -= VD;
        if (first) {
            in = ahead;
            swap(spare, other);
            if (t > 0) ahead = from.at(t - VD, spare);
        }
        TORCHFX_UNROLL
        for (int i = VD - 1; i > 0; i -= 2) {
            vd g = get(t, i), earlier = get(t, i - 1);
            running.step_twice(t + i, g, earlier);
            put(t, i, g);
            put(t, i - 1, earlier);
        }
        if (VD == 1) put(t, 0, running.step(t, get(t, 0)));
        swap(out, behind);
    }
    if (last && whole > 0) write_block<backwards>(to, 0, behind);
    running.save();
}

template <bool shifted, bool unit, bool first, bool last, class Sample>
auto gradient_sweep_of(int n) {
    return n == 2 ? gradient_sweep<2, shifted, unit, first, last, Sample>
                  : gradient_sweep<1, shifted, unit, first, last, Sample>;
}

template <bool shifted, bool unit, class Sample>
auto gradient_sweep_of(int n, bool first, bool last) {
    if (first && last) return gradient_sweep_of<shifted, unit, true, true, Sample>(n);
    if (first) return gradient_sweep_of<shifted, unit, true, false, Sample>(n);
    if (last) return gradient_sweep_of<shifted, unit, false, true, Sample>(n);
    return gradient_sweep_of<shifted, unit, false, false, Sample>(n);
}

template <class Sample, bool shifted, bool unit>
void run_gradient(const double* stages, int64_t count, double* state, double* adjoint, double* sums,
                  const SosGradientLanes<Sample>& lanes, const double* gain, int steps, double* work) {
    TraceTile* trace = reinterpret_cast<TraceTile*>(work);
    TraceTile& tile = trace[count + 1];
    double* before = work + (count + 2) * checkpoint_steps * VD;
    memcpy(before, state, static_cast<size_t>(count * state_size) * sizeof *state);
    const int whole = steps / VD * VD;

    const Rows<const Sample> x_rows = rows_from<const Sample>(lanes.x, 0, silence<Sample>());
    const Rows<const Sample>* x = lanes.x_stride == 1 ? &x_rows : nullptr;
    if (x) read_singly(lanes.x, 1, whole, steps - whole, trace[0].at + whole * VD);
    else read_tile<backwards>(lanes.x, lanes.x_stride, 0, steps, trace[0].at);
    for (int64_t k = 0; k < count; k += stages_per_sweep, x = nullptr)
        trace_sweep<shifted, unit>(next_sweep(count - k), stages + k * constants_size, state + k * state_size, x, trace + k, steps);

    const OutputGradient<Sample> from(lanes, steps);
    Sample dropped[checkpoint_steps];
    const Rows<Sample> to = rows_from<Sample>(lanes.gx, 0, dropped);
    const bool wanted = any_stream(lanes.gx);
    alignas(64) double behind[VD] = {};
    for (int64_t left = count; left > 0;) {
        const int n = left >= 2 ? 2 : 1;
        const auto sweep = gradient_sweep_of<shifted, unit, Sample>(n, left == count, wanted && left == n);
        left -= n;
        const int64_t k = left * state_size;
        sweep(stages + left * constants_size,
              {trace + left, before + k, state + k, adjoint + k, sums + left * sums_per_stage * VD, behind}, from, to, gain,
              tile, steps);
    }
    for (int t = whole; t < steps; ++t)
        for (int lane = 0; lane < VD; ++lane)
            to.at[lane][t] = static_cast<Sample>(unit ? gain[lane] * tile.at[t * VD + lane] : tile.at[t * VD + lane]);
    flush_tiny(adjoint, count);
}

}  // namespace

extern const SosGradientKernels sos_gradient_kernels = {
    &sos_kernels, run_adjoint<float, false>, run_adjoint<double, true>, run_gradient<float, false, false>,
    run_gradient<float, false, true>, run_gradient<double, true, false>};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
