#include "fft/kernels.h"

#include "support/transpose.h"
#include "support/vec.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

struct Complex {
    vd re, im;
};

TORCHFX_INLINE Complex operator+(Complex a, Complex b) { return {a.re + b.re, a.im + b.im}; }
TORCHFX_INLINE Complex operator-(Complex a, Complex b) { return {a.re - b.re, a.im - b.im}; }
TORCHFX_INLINE Complex operator*(Complex a, Complex b) {
    return {fnma(a.im, b.im, a.re * b.re), fma(a.re, b.im, a.im * b.re)};
}
TORCHFX_INLINE Complex times_conjugate(Complex a, Complex b) {
    return {fma(a.im, b.im, a.re * b.re), fnma(a.re, b.im, a.im * b.re)};
}
TORCHFX_INLINE Complex times_i(Complex a) { return {-a.im, a.re}; }
TORCHFX_INLINE Complex over_i(Complex a) { return {a.im, -a.re}; }

TORCHFX_INLINE Complex load_complex(const double* p) { return {load(p), load(p + VD)}; }
TORCHFX_INLINE void store_complex(double* p, Complex a) {
    store(p, a.re);
    store(p + VD, a.im);
}

constexpr double sqrt_half = 0.70710678118654752440;

// DFTs with e^(+2 pi i jk / R), in place, frequencies in bit-reversed order, and their inverses (times R).
TORCHFX_INLINE void dft(Complex (&)[1]) {}
TORCHFX_INLINE void dft(Complex& a, Complex& b) {
    const Complex difference = a - b;
    a = a + b;
    b = difference;
}
TORCHFX_INLINE void dft(Complex& a, Complex& b, Complex& c, Complex& d) {
    const Complex even = a + c, odd = b + d, even_difference = a - c, odd_difference = times_i(b - d);
    a = even + odd;
    b = even - odd;
    c = even_difference + odd_difference;
    d = even_difference - odd_difference;
}
TORCHFX_INLINE void inverse_dft(Complex& a, Complex& b, Complex& c, Complex& d) {
    const Complex even = a + b, even_difference = a - b, odd = c + d, odd_difference = over_i(c - d);
    a = even + odd;
    c = even - odd;
    b = even_difference + odd_difference;
    d = even_difference - odd_difference;
}

TORCHFX_INLINE void dft(Complex (&a)[2]) { dft(a[0], a[1]); }
TORCHFX_INLINE void inverse_dft(Complex (&)[1]) {}
TORCHFX_INLINE void inverse_dft(Complex (&a)[2]) { dft(a[0], a[1]); }
TORCHFX_INLINE void dft(Complex (&a)[4]) { dft(a[0], a[1], a[2], a[3]); }
TORCHFX_INLINE void inverse_dft(Complex (&a)[4]) { inverse_dft(a[0], a[1], a[2], a[3]); }

TORCHFX_INLINE void dft(Complex (&a)[8]) {
    const vd c = set1(sqrt_half);
    dft(a[0], a[4]);
    dft(a[1], a[5]);
    dft(a[2], a[6]);
    dft(a[3], a[7]);
    a[5] = {(a[5].re - a[5].im) * c, (a[5].re + a[5].im) * c};
    a[6] = times_i(a[6]);
    a[7] = {-(a[7].re + a[7].im) * c, (a[7].re - a[7].im) * c};
    dft(a[0], a[1], a[2], a[3]);
    dft(a[4], a[5], a[6], a[7]);
}
TORCHFX_INLINE void inverse_dft(Complex (&a)[8]) {
    const vd c = set1(sqrt_half);
    inverse_dft(a[0], a[1], a[2], a[3]);
    inverse_dft(a[4], a[5], a[6], a[7]);
    a[5] = {(a[5].re + a[5].im) * c, (a[5].im - a[5].re) * c};
    a[6] = over_i(a[6]);
    a[7] = {(a[7].im - a[7].re) * c, -(a[7].re + a[7].im) * c};
    dft(a[0], a[4]);
    dft(a[1], a[5]);
    dft(a[2], a[6]);
    dft(a[3], a[7]);
}

// The factors of a butterfly of radix R in block b: e^(2 pi i theta(b) k / R), k = 1 .. R - 1.
template <int R>
struct BlockTwiddles {
    Complex w[R];
    static TORCHFX_INLINE_MEMBER BlockTwiddles of(const FftRoots& roots, int64_t block) {
        const double* powers = roots.powers + 14 * block;
        BlockTwiddles t;
        TORCHFX_UNROLL
        for (int k = 1; k < R; ++k) {
            const int power = k * (8 / R);
            t.w[k] = {set1(powers[2 * power - 2]), set1(powers[2 * power - 1])};
        }
        return t;
    }
};

// In block 0 all factors are 1.
enum class Twiddles { ones, block };

template <int R, Twiddles kind>
TORCHFX_INLINE void forward_columns(double* data, int64_t columns, int64_t first, int64_t last,
                                    const FftRoots& roots, int64_t block) {
    BlockTwiddles<R> t;
    if (kind == Twiddles::block) t = BlockTwiddles<R>::of(roots, block);
    for (int64_t c = first; c < last; ++c) {
        double* p = data + 2 * VD * c;
        const int64_t stride = 2 * VD * columns;
        Complex a[R];
        TORCHFX_UNROLL
        for (int k = 0; k < R; ++k) a[k] = load_complex(p + k * stride);
        if (kind == Twiddles::block) {
            TORCHFX_UNROLL
            for (int k = 1; k < R; ++k) a[k] = a[k] * t.w[k];
        }
        dft(a);
        TORCHFX_UNROLL
        for (int k = 0; k < R; ++k) store_complex(p + k * stride, a[k]);
    }
}

template <int R, Twiddles kind>
TORCHFX_INLINE void inverse_columns(double* data, int64_t columns, int64_t first, int64_t last,
                                    const FftRoots& roots, int64_t block) {
    BlockTwiddles<R> t;
    if (kind == Twiddles::block) t = BlockTwiddles<R>::of(roots, block);
    for (int64_t c = first; c < last; ++c) {
        double* p = data + 2 * VD * c;
        const int64_t stride = 2 * VD * columns;
        Complex a[R];
        TORCHFX_UNROLL
        for (int k = 0; k < R; ++k) a[k] = load_complex(p + k * stride);
        inverse_dft(a);
        if (kind == Twiddles::block) {
            TORCHFX_UNROLL
            for (int k = 1; k < R; ++k) a[k] = times_conjugate(a[k], t.w[k]);
        }
        TORCHFX_UNROLL
        for (int k = 0; k < R; ++k) store_complex(p + k * stride, a[k]);
    }
}

// The last VD * VD values of a block: one butterfly across vectors, a transpose, one across vectors again.
constexpr int64_t leaf_size = VD * VD;

// The factors of the second butterfly, one block per lane: the powers of e^(2 pi i theta / VD).
struct LaneTwiddles {
    Complex w[VD];
    static TORCHFX_INLINE_MEMBER LaneTwiddles of(const FftRoots& roots, int64_t block) {
        LaneTwiddles t{};
        if (VD == 1) return t;
        Complex first = {load(roots.re + VD * block), load(roots.im + VD * block)};
        for (int radix = 8; radix > VD; radix /= 2) first = first * first;
        t.w[1 % VD] = first;
        // Short chains: every power is a product of two about half as high.
        TORCHFX_UNROLL
        for (int k = 2; k < VD; ++k) t.w[k] = t.w[k / 2] * t.w[k - k / 2];
        return t;
    }
};

TORCHFX_INLINE void transpose_leaf(Complex (&a)[VD]) {
    vd re[VD], im[VD];
    TORCHFX_UNROLL
    for (int k = 0; k < VD; ++k) {
        re[k] = a[k].re;
        im[k] = a[k].im;
    }
    transpose(re);
    transpose(im);
    TORCHFX_UNROLL
    for (int k = 0; k < VD; ++k) a[k] = {re[k], im[k]};
}

TORCHFX_INLINE void load_leaf(Complex (&a)[VD], const double* data) {
    TORCHFX_UNROLL
    for (int k = 0; k < VD; ++k) a[k] = load_complex(data + 2 * VD * k);
}
TORCHFX_INLINE void store_leaf(double* data, const Complex (&a)[VD]) {
    TORCHFX_UNROLL
    for (int k = 0; k < VD; ++k) store_complex(data + 2 * VD * k, a[k]);
}

TORCHFX_INLINE void forward_leaf(Complex (&a)[VD], const BlockTwiddles<VD>& across, const LaneTwiddles& lanes) {
    TORCHFX_UNROLL
    for (int k = 1; k < VD; ++k) a[k] = a[k] * across.w[k];
    dft(a);
    transpose_leaf(a);
    TORCHFX_UNROLL
    for (int k = 1; k < VD; ++k) a[k] = a[k] * lanes.w[k];
    dft(a);
}
TORCHFX_INLINE void inverse_leaf(Complex (&a)[VD], const BlockTwiddles<VD>& across, const LaneTwiddles& lanes) {
    inverse_dft(a);
    TORCHFX_UNROLL
    for (int k = 1; k < VD; ++k) a[k] = times_conjugate(a[k], lanes.w[k]);
    transpose_leaf(a);
    inverse_dft(a);
    TORCHFX_UNROLL
    for (int k = 1; k < VD; ++k) a[k] = times_conjugate(a[k], across.w[k]);
}

enum class Mode { forward, inverse, convolve };

template <Mode mode>
TORCHFX_INLINE void transform_leaf(double* data, const double* spectrum, int64_t block, const FftRoots& roots) {
    const BlockTwiddles<VD> across = BlockTwiddles<VD>::of(roots, block);
    const LaneTwiddles lanes = LaneTwiddles::of(roots, block);
    Complex a[VD];
    load_leaf(a, data);
    if (mode != Mode::inverse) forward_leaf(a, across, lanes);
    if (mode == Mode::convolve) {
        TORCHFX_UNROLL
        for (int k = 0; k < VD; ++k) a[k] = a[k] * load_complex(spectrum + 2 * VD * k);
    }
    if (mode != Mode::forward) inverse_leaf(a, across, lanes);
    store_leaf(data, a);
}

// 8 as often as it divides size / leaf_size, after one or two steps by 4.
TORCHFX_INLINE int radix_of(int64_t size) {
    int levels = 0;
    while (leaf_size << levels < size) ++levels;
    return levels % 3 == 0 ? 8 : 4;
}

template <int R>
TORCHFX_INLINE void forward_step(double* data, int64_t size, int64_t block, const FftRoots& roots) {
    const int64_t columns = size / R / VD;
    if (block == 0) forward_columns<R, Twiddles::ones>(data, columns, 0, columns, roots, 0);
    else forward_columns<R, Twiddles::block>(data, columns, 0, columns, roots, block);
}
template <int R>
TORCHFX_INLINE void inverse_step(double* data, int64_t size, int64_t block, const FftRoots& roots) {
    const int64_t columns = size / R / VD;
    if (block == 0) inverse_columns<R, Twiddles::ones>(data, columns, 0, columns, roots, 0);
    else inverse_columns<R, Twiddles::block>(data, columns, 0, columns, roots, block);
}

// Depth first: once a block fits a cache level, everything below it happens there.
template <Mode mode>
void transform(double* data, const double* spectrum, int64_t size, int64_t block, const FftRoots& roots) {
    if (size == leaf_size) {
        transform_leaf<mode>(data, spectrum, block, roots);
        return;
    }
    const int radix = radix_of(size);
    if (mode != Mode::inverse) {
        if (radix == 8) forward_step<8>(data, size, block, roots);
        else forward_step<4>(data, size, block, roots);
    }
    const int64_t child = size / radix;
    for (int k = 0; k < radix; ++k) {
        const double* child_spectrum = mode == Mode::convolve ? spectrum + 2 * child * k : nullptr;
        transform<mode>(data + 2 * child * k, child_spectrum, child, radix * block + k, roots);
    }
    if (mode != Mode::forward) {
        if (radix == 8) inverse_step<8>(data, size, block, roots);
        else inverse_step<4>(data, size, block, roots);
    }
}

void forward(double* data, int64_t size, int64_t block, const FftRoots& roots) {
    transform<Mode::forward>(data, nullptr, size, block, roots);
}
void inverse(double* data, int64_t size, int64_t block, const FftRoots& roots) {
    transform<Mode::inverse>(data, nullptr, size, block, roots);
}
void convolve(double* data, const double* spectrum, int64_t size, int64_t block, const FftRoots& roots) {
    transform<Mode::convolve>(data, spectrum, size, block, roots);
}

int root_radix(int64_t size) { return radix_of(size); }

void forward_pass(double* data, int64_t size, int64_t first, int64_t last) {
    const FftRoots none = {};
    if (radix_of(size) == 8) forward_columns<8, Twiddles::ones>(data, size / 8 / VD, first, last, none, 0);
    else forward_columns<4, Twiddles::ones>(data, size / 4 / VD, first, last, none, 0);
}
void inverse_pass(double* data, int64_t size, int64_t first, int64_t last) {
    const FftRoots none = {};
    if (radix_of(size) == 8) inverse_columns<8, Twiddles::ones>(data, size / 8 / VD, first, last, none, 0);
    else inverse_columns<4, Twiddles::ones>(data, size / 4 / VD, first, last, none, 0);
}

template <int count>
TORCHFX_INLINE void add_some_products(double* sum, const double* const* a, const double* const* b, int64_t size) {
    for (int64_t i = 0; i < 2 * size; i += 2 * VD) {
        Complex total = load_complex(sum + i);
        TORCHFX_UNROLL
        for (int k = 0; k < count; ++k) {
            const Complex x = load_complex(a[k] + i), y = load_complex(b[k] + i);
            total = {fnma(x.im, y.im, fma(x.re, y.re, total.re)), fma(x.im, y.re, fma(x.re, y.im, total.im))};
        }
        store_complex(sum + i, total);
    }
}

void add_products(double* sum, const double* const* a, const double* const* b, int64_t count, int64_t size) {
    for (; count >= 4; count -= 4, a += 4, b += 4) add_some_products<4>(sum, a, b, size);
    if (count == 3) add_some_products<3>(sum, a, b, size);
    if (count == 2) add_some_products<2>(sum, a, b, size);
    if (count == 1) add_some_products<1>(sum, a, b, size);
}

void add_imaginary_parts(double* results, const double* data, int64_t first, int64_t count) {
    for (int64_t t = 0; t < count;) {
        const int64_t lane = (first + t) % VD;
        const double* from = data + 2 * (first + t - lane) + VD + lane;
        if (lane == 0 && t + VD <= count) {
            store(results + t, load(results + t) + load(from));
            t += VD;
        } else {
            results[t++] += *from;
        }
    }
}

void add_conjugate_product(double* sum, const double* a, const double* b, int64_t size) {
    for (int64_t i = 0; i < 2 * size; i += 2 * VD) {
        const Complex product = times_conjugate(load_complex(a + i), load_complex(b + i));
        store_complex(sum + i, load_complex(sum + i) + product);
    }
}

}  // namespace

extern const FftKernels fft_kernels = {VD, forward, inverse, convolve, root_radix,
                                       forward_pass, inverse_pass, add_products, add_imaginary_parts, add_conjugate_product};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
