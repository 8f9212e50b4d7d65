// Every loop is one that compilers put in vectors. Products and sums are rounded apart, so that all instruction sets and
// PyTorch's operations (_ops/noise/composite.py) come to the same bits.
#include "noise/kernels.h"

#include <math.h>
#include <string.h>

#include "support/vec.h"

namespace torchfx {
namespace TORCHFX_ISA_NAMESPACE {
namespace {

constexpr uint64_t golden = 0x9E3779B97F4A7C15;
constexpr uint64_t second_key = 1 << 20;  // what the second of two uniform numbers has more
constexpr int half = noise_block / 2;

template <class To, class From>
TORCHFX_INLINE To with_bits_of(From from) {
    static_assert(sizeof(To) == sizeof(From), "of one size");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

// SplitMix64's word of a state.
TORCHFX_INLINE uint64_t word(uint64_t z) {
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

// 2^-53 times the word's upper 53 bits, less 1/2. The first 52 of them are a double's mantissa.
TORCHFX_INLINE double centred(uint64_t state) {
    const uint64_t bits = word(state) >> 11;
    const double upper = with_bits_of<double>(bits >> 1 | 0x3ff0000000000000) - 1.5;
    return upper + with_bits_of<double>((0 - (bits & 1)) & 0x3ca0000000000000);
}

const double* rectangular(uint64_t place, uint64_t key, int64_t count, double* room) {
    uint64_t z = (place + key) * golden;
    for (int64_t t = 0; t < count; ++t, z += golden) room[t] = centred(z);
    return room;
}

const double* triangular(uint64_t place, uint64_t key, int64_t count, double* room) {
    constexpr uint64_t apart = second_key * golden;
    uint64_t z = (place + key) * golden;
    for (int64_t t = 0; t < count; ++t, z += golden) room[t] = centred(z) + (centred(z + apart) + 0.5) - 0.5;
    return room;
}

const double* differences(uint64_t place, uint64_t key, int64_t count, double* room) {
    rectangular(place - 1, key, count + 1, room);
    for (int64_t t = 0; t < count; ++t) room[t] = room[t + 1] - room[t];
    return room;
}

// (log(1 + f) - f) / f^2 for 1 + f from sqrt(1/2) to sqrt(2), sin(sqrt(z)) / sqrt(z) and cos(sqrt(z)) for z from 0 to
// pi^2 / 4: minimax polynomials by Remez' algorithm. Their errors are below a float's rounding.
constexpr float log_terms[] = {-0.499999832f, 0.333339316f,  -0.250025804f, 0.199635335f,
                               -0.16551856f,  0.148831935f, -0.144263857f, 0.0898034271f};
constexpr float sin_terms[] = {0.999999996f, -0.16666658f, 0.00833305106f, -0.000198090753f, 2.60522492e-06f};
constexpr float cos_terms[] = {0.999999953f, -0.499999053f, 0.0416635847f, -0.00138537043f, 2.31539317e-05f};
constexpr int32_t root_half = 0x3f3504f3;  // sqrt(1/2)

template <int n>
TORCHFX_INLINE float polynomial(const float (&terms)[n], float v) {
    float sum = terms[n - 1];
    for (int i = n - 2; i >= 0; --i) sum = sum * v + terms[i];
    return sum;
}

// A block from each 16 words: the cosines' half, then the sines'.
const double* normal(uint64_t place, uint64_t key, int64_t count, double* room) {
    const int64_t skipped = static_cast<int64_t>(place % noise_block);
    const int64_t words = (skipped + count + noise_block - 1) / noise_block * half;
    uint32_t upper[noise_tile / 2 + half];
    int32_t lower[noise_tile / 2 + half];
    uint64_t z = (place / noise_block * half + key) * golden;
    for (int64_t i = 0; i < words; ++i, z += golden) {
        const uint64_t w = word(z);
        upper[i] = static_cast<uint32_t>(w >> 32);
        lower[i] = static_cast<int32_t>(static_cast<uint32_t>(w));
    }
    for (int64_t first = 0; first < words; first += half) {
        double* const to = room + 2 * first;
        for (int i = 0; i < half; ++i) {
            // The radius sqrt(-2 log(u)), u = v / 2^31 = 2^e (1 + f).
            const float v = static_cast<float>(static_cast<int32_t>(upper[first + i] >> 1)) + 0.5f;
            const int32_t shifted = with_bits_of<int32_t>(v) - root_half;
            const float e = static_cast<float>((shifted >> 23) - 31);
            const float f = with_bits_of<float>((shifted & 0x7fffff) + root_half) - 1.0f;
            const float log_u = (f * f * polynomial(log_terms, f) + f) + e * 0.693147181f;
            const float radius = sqrtf(log_u * -2.0f);
            // An angle within [-pi/2, pi/2], and the bit that is left as the cosine's sign.
            const float angle = static_cast<float>(lower[first + i]) * 7.3145906e-10f;  // pi / 2^32
            const float cosine = radius * polynomial(cos_terms, angle * angle);
            to[i] = static_cast<double>(with_bits_of<float>(with_bits_of<uint32_t>(cosine) ^ upper[first + i] << 31));
            to[half + i] = static_cast<double>(radius * (angle * polynomial(sin_terms, angle * angle)));
        }
    }
    return room + skipped;
}

template <class Sample>
void add(const Sample* x, double gain, const double* noise, int64_t count, Sample* y) {
    for (int64_t t = 0; t < count; ++t) y[t] = static_cast<Sample>(static_cast<double>(x[t]) + gain * noise[t]);
}

template <class Sample>
void round(const Sample* x, double gain, const double* noise, int64_t count, Sample* y) {
    const double inverse = 1 / gain;
    for (int64_t t = 0; t < count; ++t) {
        const double v = static_cast<double>(x[t]) * inverse + noise[t];
        // Adding and taking it away rounds to whole numbers. From 2^51 on, doubles stay as they are.
        const double rounds = fabs(v) < 0x1p51 ? 0x1.8p52 : 0;
        y[t] = static_cast<Sample>(gain * ((v + rounds) - rounds));
    }
}

template <class Sample>
double energy(const Sample* x, int64_t count) {
    double sums[half] = {}, sum = 0;
    int64_t t = 0;
    for (; t + half <= count; t += half)
        for (int i = 0; i < half; ++i) sums[i] += static_cast<double>(x[t + i]) * static_cast<double>(x[t + i]);
    for (int i = 0; i < half; ++i) sum += sums[i];
    for (; t < count; ++t) sum += static_cast<double>(x[t]) * static_cast<double>(x[t]);
    return sum;
}

}  // namespace

extern const NoiseKernels noise_kernels = {
    {normal, rectangular, triangular, differences},
    {add<float>, round<float>, energy<float>},
    {add<double>, round<double>, energy<double>},
};

}  // namespace TORCHFX_ISA_NAMESPACE
}  // namespace torchfx
