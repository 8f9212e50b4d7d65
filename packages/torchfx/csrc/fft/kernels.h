// Complex FFTs in double for cyclic convolution, one instruction set at a time.
//
// A transform splits polynomials: x^m - r has the eight factors x^(m/8) - s with s^8 = r, so the remainder
// modulo x^m - r gives those modulo its factors by one DFT of length eight on the coefficients j m/8 + i,
// times powers of one number. From x^N - 1 downwards this is a decimation-in-frequency FFT whose twiddle
// factors are constant within a block, and whose output stays in bit-reversed order: products are taken there and the
// inverse walks back up, so nothing is ever reordered. Only the last VD * VD values of each block lie transposed.
//
// Layout: VD (= lanes) real parts, then their VD imaginary parts, and so on: value i of the transform has its
// real part at data[2 * lanes * (i / lanes) + i % lanes], its imaginary part `lanes` further on.
#ifndef TORCHFX_FFT_KERNELS_H
#define TORCHFX_FFT_KERNELS_H

#include <stdint.h>

#include "support/dispatch.h"

namespace torchfx {

// Block b of any level reduces modulo x^m - e^(2 pi i theta(b)), theta(b) being the binary digits of b mirrored
// at the point: 0, 1/2, 1/4, 3/4, 1/8, ... One table therefore serves all levels and all sizes.
struct FftRoots {
    const double* re;      // [b] the first power, e^(2 pi i theta(b) / 8)
    const double* im;
    const double* powers;  // [b][k - 1] its power k = 1 .. 7: real part, imaginary part
};

struct FftKernels {
    int lanes;

    // The whole transform of one block: of the root (block 0, `size` a power of two from fft_min_size on), or
    // of child `block` after forward_pass.
    void (*forward)(double* data, int64_t size, int64_t block, const FftRoots& roots);
    void (*inverse)(double* data, int64_t size, int64_t block, const FftRoots& roots);
    // inverse(forward(data) * spectrum); the spectrum comes from `forward`. Scaling by 1 / size is the caller's.
    void (*convolve)(double* data, const double* spectrum, int64_t size, int64_t block, const FftRoots& roots);

    // The first step of a transform too large for a cache, by columns: a column is the vectors c, c + columns,
    // c + 2 columns, ... that one butterfly joins. After all of them the `root_radix(size)` children stand alone.
    int (*root_radix)(int64_t size);
    void (*forward_pass)(double* data, int64_t size, int64_t first_column, int64_t last_column);
    void (*inverse_pass)(double* data, int64_t size, int64_t first_column, int64_t last_column);

    // sum += a[0] * b[0] + ... + a[count - 1] * b[count - 1], value by value.
    void (*add_products)(double* sum, const double* const* a, const double* const* b, int64_t count, int64_t size);
    // results[t] += the imaginary part of value first + t, t < count.
    void (*add_imaginary_parts)(double* results, const double* data, int64_t first, int64_t count);
    // sum += a * conj(b), value by value.
    void (*add_conjugate_product)(double* sum, const double* a, const double* b, int64_t size);
};

constexpr int64_t fft_min_size = 256;

TORCHFX_DECLARE_KERNELS(FftKernels, fft_kernels)

}  // namespace torchfx

#endif
