#include "sos/kernels.h"

#include "sos/lane_tile.h"
#include "sos/running.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

// Takes whole blocks from rows in memory through N stages into the tile. Transposing in here lets the processor do
// it while the multiply-adds of another block fill its pipes. Kept out of line: inlined, the states spill to memory.
template <int N, bool shifted, class Sample>
TORCHFX_NOINLINE void sweep_rows(const double* stages, double* state, const Rows<const Sample>& rows, double* tile,
                                 int steps) {
    Stages<N, shifted> running(stages, state);
    for (int t = 0; t < steps; t += VD) {
        vd r[VD];
        read_block<forwards>(rows, t, r);
        for (int i = 0; i < VD; ++i) r[i] = running.step(r[i]);
        write_block(tile, t, r);
    }
    running.save(state);
}

// The same inside the tile, for any number of steps.
template <int N, bool shifted>
TORCHFX_NOINLINE void sweep_tile(const double* stages, double* state, double* tile, int steps) {
    Stages<N, shifted> running(stages, state);
    for (int t = 0; t < steps; ++t) store(tile + t * VD, running.step(load(tile + t * VD)));
    running.save(state);
}

template <bool shifted, class Sample>
void sweep(int n, const double* stages, double* state, const Rows<const Sample>& rows, double* tile, int steps) {
    switch (n) {
        case 1: return sweep_rows<1, shifted>(stages, state, rows, tile, steps);
        case 2: return sweep_rows<2, shifted>(stages, state, rows, tile, steps);
        case 3: return sweep_rows<3, shifted>(stages, state, rows, tile, steps);
        case 4: return sweep_rows<4, shifted>(stages, state, rows, tile, steps);
    }
}

template <bool shifted>
void sweep(int n, const double* stages, double* state, double* tile, int steps) {
    switch (n) {
        case 1: return sweep_tile<1, shifted>(stages, state, tile, steps);
        case 2: return sweep_tile<2, shifted>(stages, state, tile, steps);
        case 3: return sweep_tile<3, shifted>(stages, state, tile, steps);
        case 4: return sweep_tile<4, shifted>(stages, state, tile, steps);
    }
}

template <class In, class Out, bool shifted>
void run(const double* stages, int64_t count, double* state, const SosLanes<In, Out>& lanes, int64_t steps) {
    Tile tile;
    const bool wanted = any_stream(lanes.y);
    const int first = next_sweep(count);
    for (int64_t start = 0; start < steps; start += tile_steps) {
        const int n = steps - start < tile_steps ? static_cast<int>(steps - start) : tile_steps;
        if (lanes.x_stride == 1) {
            const Rows<const In> rows = rows_from<const In>(lanes.x, start, silence<In>());
            const int whole = n / VD * VD;
            double* rest = tile.at + whole * VD;
            sweep<shifted>(first, stages, state, rows, tile.at, whole);
            read_singly(lanes.x, 1, start + whole, n - whole, rest);
            sweep<shifted>(first, stages, state, rest, n - whole);
        } else {
            if (lanes.x_stride == -1) read_reversed(lanes.x, start, n, tile.at);
            else read_tile<forwards>(lanes.x, lanes.x_stride, start, n, tile.at);
            sweep<shifted>(first, stages, state, tile.at, n);
        }
        for (int64_t k = first; k < count; k += stages_per_sweep)
            sweep<shifted>(next_sweep(count - k), stages + k * constants_size, state + k * state_size, tile.at, n);
        if (wanted && lanes.y_stride == -1) write_reversed(tile.at, n, lanes.y, start);
        else if (wanted) write_tile<forwards>(tile.at, n, lanes.y, start);
        flush_tiny(state, count);
    }
}

void to_vectors(const double* const* from, int64_t count, double* vectors) {
    const double* first = from[0];
    bool shared = first != nullptr;
    for (int lane = 1; lane < VD; ++lane) shared = shared && from[lane] == first;
    int64_t i = 0;
    if (shared)
        for (; i < count; ++i) store(vectors + i * VD, set1(first[i]));
    alignas(64) static const double zeros[VD] = {};
    for (; i + VD <= count; i += VD) {
        const double* at[VD];
        for (int lane = 0; lane < VD; ++lane) at[lane] = from[lane] ? from[lane] + i : zeros;
        vd r[VD];
        load_transposed(at, r);
        for (int j = 0; j < VD; ++j) store(vectors + (i + j) * VD, r[j]);
    }
    for (; i < count; ++i)
        for (int lane = 0; lane < VD; ++lane) vectors[i * VD + lane] = from[lane] ? from[lane][i] : 0;
}

void to_rows(const double* vectors, int64_t count, double* const* to) {
    int64_t i = 0;
    double dropped[VD];
    for (; i + VD <= count; i += VD) {
        const double* from[VD];
        double* at[VD];
        for (int j = 0; j < VD; ++j) {
            from[j] = vectors + (i + j) * VD;
            at[j] = to[j] ? to[j] + i : dropped;
        }
        transpose(from, at);
    }
    for (; i < count; ++i)
        for (int lane = 0; lane < VD; ++lane)
            if (to[lane]) to[lane][i] = vectors[i * VD + lane];
}

}  // namespace

extern const SosKernels sos_kernels = {VD, run<float, float, false>, run<double, double, true>, run<float, double, false>,
                                       run<double, float, false>, to_vectors, to_rows};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
