// Moving samples between streams in memory and vectors that hold one time step of every stream.
// For *_kernels.cpp only, see vec.h.
//
// A block is VD time steps: r[i] holds all lanes at time t + i. Blocks come from and go to
//   Rows   a row of consecutive samples in memory per lane, transposed in registers;
//   tiles  tile[t * VD + lane] as doubles, small enough to stay in a cache.
#ifndef TORCHFX_SOS_LANE_TILE_H
#define TORCHFX_SOS_LANE_TILE_H

#include "sos/kernels.h"
#include "support/transpose.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {

constexpr int tile_steps = 256;  // 16 KiB with eight lanes: a third of L1, the rest is for the streams
constexpr int longest_tile = tile_steps > checkpoint_steps ? tile_steps : checkpoint_steps;

struct alignas(64) Tile {
    double at[tile_steps * VD];
};

template <class Sample>
struct Rows {
    Sample* at[VD];
};

// Sixteen streams, eight in and eight out, are more than hardware prefetchers follow: ask for what comes this much
// later in the direction of travel. Measured on 8 to 16 channels beyond the cache: 0.24 ns per sample with it, 0.35
// without, 0.28 for the inputs alone; distances from 512 to 2048 do equally well. Backwards it has to be a whole tile of
// the gradients (4 * checkpoint_steps bytes), each of which is read forwards first.
enum Direction { forwards = 1024, backwards = -4 * checkpoint_steps };  // bytes

template <Direction direction, class Sample>
TORCHFX_INLINE void prefetch_row(Sample* p) {
    prefetch(reinterpret_cast<const char*>(p) + static_cast<int>(direction));
}

template <Direction direction>
TORCHFX_INLINE void read_block(const Rows<const float>& rows, int t, vd (&r)[VD]) {
    const float* at[VD];
    for (int i = 0; i < VD; ++i) prefetch_row<direction>(at[i] = rows.at[i] + t);
    vh half[VD];
    load_transposed(at, half);
    for (int i = 0; i < VD; ++i) r[i] = widen(half[i]);
}

template <Direction direction>
TORCHFX_INLINE void read_block(const Rows<const double>& rows, int t, vd (&r)[VD]) {
    const double* at[VD];
    for (int i = 0; i < VD; ++i) prefetch_row<direction>(at[i] = rows.at[i] + t);
    load_transposed(at, r);
}

TORCHFX_INLINE void read_block(const double* tile, int t, vd (&r)[VD]) {
    for (int i = 0; i < VD; ++i) r[i] = load(tile + (t + i) * VD);
}

template <Direction direction>
TORCHFX_INLINE void write_block(const Rows<float>& rows, int t, const vd (&r)[VD]) {
    vh half[VD];
    for (int i = 0; i < VD; ++i) half[i] = narrow(r[i]);
    transpose(half);
    for (int i = 0; i < VD; ++i) {
        store_half(rows.at[i] + t, half[i]);
        prefetch_row<direction>(rows.at[i] + t);
    }
}

template <Direction direction>
TORCHFX_INLINE void write_block(const Rows<double>& rows, int t, vd (&r)[VD]) {
    transpose(r);
    for (int i = 0; i < VD; ++i) {
        store(rows.at[i] + t, r[i]);
        prefetch_row<direction>(rows.at[i] + t);
    }
}

// The same from and to memory: VD steps of all lanes, one behind the other.
template <Direction direction, class Sample>
TORCHFX_INLINE void read_block(const Rows<const Sample>& rows, int t, Sample* steps) {
    const Sample* from[VD];
    Sample* to[VD];
    for (int i = 0; i < VD; ++i) {
        prefetch_row<direction>(from[i] = rows.at[i] + t);
        to[i] = steps + i * VD;
    }
    transpose(from, to);
}

template <Direction direction, class Sample>
TORCHFX_INLINE void write_block(const Rows<Sample>& rows, int t, const Sample* steps) {
    const Sample* from[VD];
    Sample* to[VD];
    for (int i = 0; i < VD; ++i) {
        from[i] = steps + i * VD;
        to[i] = rows.at[i] + t;
    }
    transpose(from, to);
    for (int i = 0; i < VD; ++i) prefetch_row<direction>(to[i]);
}

TORCHFX_INLINE void write_block(double* tile, int t, const vd (&r)[VD]) {
    for (int i = 0; i < VD; ++i) store(tile + (t + i) * VD, r[i]);
}

template <Direction direction, class Sample>
TORCHFX_INLINE void copy_block(const Rows<const Sample>& rows, int t, double* tile) {
    vd r[VD];
    read_block<direction>(rows, t, r);
    write_block(tile, t, r);
}

// One sample at a time, for any stride and length. A lane without a source reads zeros.
template <class Sample, class T>
void read_singly(const Sample* const* x, int64_t stride, int64_t start, int steps, T* tile) {
    for (int lane = 0; lane < VD; ++lane) {
        const Sample* p = x[lane];
        if (p) p += start * stride;
        for (int t = 0; t < steps; ++t) tile[t * VD + lane] = p ? p[t * stride] : 0;
    }
}

// Whether the lanes lie next to each other in memory, as in interleaved audio.
template <class Sample>
bool side_by_side(const Sample* const* x) {
    if (!x[0]) return false;
    for (int lane = 1; lane < VD; ++lane)
        if (x[lane] != x[0] + lane) return false;
    return true;
}

// The rows from sample `start` on; `instead`, as long as what is read or written, stands in for lanes without a stream.
template <class Sample>
Rows<Sample> rows_from(Sample* const* streams, int64_t start, Sample* instead) {
    Rows<Sample> rows;
    for (int lane = 0; lane < VD; ++lane) rows.at[lane] = streams[lane] ? streams[lane] + start : instead;
    return rows;
}

template <class Sample>
Sample* silence() {
    static Sample zeros[longest_tile] = {};
    return zeros;
}

// x[lane][(start + t) * stride], t < steps, for a stride other than 1.
template <class Sample, class T>
void read_strided(const Sample* const* x, int64_t stride, int64_t start, int steps, T* tile) {
    int t = 0;
    if (side_by_side(x))
        for (; t < steps; ++t) store_samples(tile + t * VD, load_samples(x[0] + (start + t) * stride));
    read_singly(x, stride, start + t, steps - t, tile + t * VD);
}

// The same for any stride.
template <Direction direction, class Sample>
void read_tile(const Sample* const* x, int64_t stride, int64_t start, int steps, double* tile) {
    if (stride != 1) return read_strided(x, stride, start, steps, tile);
    const Rows<const Sample> rows = rows_from<const Sample>(x, start, silence<Sample>());
    int t = 0;
    for (; t + VD <= steps; t += VD) copy_block<direction>(rows, t, tile);
    read_singly(x, stride, start + t, steps - t, tile + t * VD);
}

// A tile to y[lane][start + t]; lanes without a destination are dropped.
template <Direction direction, class Sample>
void write_tile(const double* tile, int steps, Sample* const* y, int64_t start) {
    Sample dropped[tile_steps];
    const Rows<Sample> rows = rows_from<Sample>(y, start, dropped);
    int t = 0;
    for (; t + VD <= steps; t += VD) {
        vd r[VD];
        read_block(tile, t, r);
        write_block<direction>(rows, t, r);
    }
    for (; t < steps; ++t)
        for (int lane = 0; lane < VD; ++lane) rows.at[lane][t] = static_cast<Sample>(tile[t * VD + lane]);
}

// Both for streams that run back in time, whose sample t lies at [-t]. A block of them is in memory in front of it.
template <class Sample>
void read_reversed(const Sample* const* x, int64_t start, int steps, double* tile) {
    const Rows<const Sample> rows = rows_from<const Sample>(x, -start - (VD - 1), silence<Sample>() + longest_tile - VD);
    int t = 0;
    for (; t + VD <= steps; t += VD) {
        vd r[VD];
        read_block<backwards>(rows, -t, r);
        for (int i = 0; i < VD; ++i) store(tile + (t + i) * VD, r[VD - 1 - i]);
    }
    read_singly(x, -1, start + t, steps - t, tile + t * VD);
}

template <class Sample>
void write_reversed(const double* tile, int steps, Sample* const* y, int64_t start) {
    Sample dropped[tile_steps];
    const Rows<Sample> rows = rows_from<Sample>(y, -start - (VD - 1), dropped + tile_steps - VD);
    int t = 0;
    for (; t + VD <= steps; t += VD) {
        vd r[VD];
        for (int i = 0; i < VD; ++i) r[VD - 1 - i] = load(tile + (t + i) * VD);
        write_block<backwards>(rows, -t, r);
    }
    for (; t < steps; ++t)
        for (int lane = 0; lane < VD; ++lane) rows.at[lane][VD - 1 - t] = static_cast<Sample>(tile[t * VD + lane]);
}

template <class Sample>
bool any_stream(Sample* const* streams) {
    for (int lane = 0; lane < VD; ++lane)
        if (streams[lane]) return true;
    return false;
}

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx

#endif
