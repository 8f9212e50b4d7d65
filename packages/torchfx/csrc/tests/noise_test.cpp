// Noise by its place against the definition, and every instruction set against the first.
#include <cmath>
#include <cstdint>
#include <vector>

#include "testing.h"

using namespace testing;

namespace {

template <class Sample>
constexpr int32_t dtype_of = sizeof(Sample) == 4 ? TORCHFX_F32 : TORCHFX_F64;

uint64_t word(uint64_t n) {
    uint64_t z = n * 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
}

double centred(uint64_t n) { return static_cast<double>(word(n) >> 11) * 0x1p-53 - 0.5; }

double normal(uint64_t place, uint64_t key) {
    const uint64_t w = word(place / 32 * 16 + place % 16 + key);
    const double v = static_cast<float>(w >> 33) + 0.5f;  // as rounded: near 1, the logarithm's root magnifies
    const double radius = std::sqrt(-2 * std::log(v * 0x1p-31));
    const double angle = static_cast<int32_t>(static_cast<uint32_t>(w)) * 0x1p-32 * 3.14159265358979323846;
    return radius * (place % 32 >= 16 ? std::sin(angle) : (w >> 32) & 1 ? -std::cos(angle) : std::cos(angle));
}

double number(int32_t density, uint64_t place, uint64_t key) {
    switch (density) {
        case TORCHFX_RECTANGULAR: return centred(place + key);
        case TORCHFX_TRIANGULAR: return centred(place + key) + centred(place + key + (1 << 20));
        case TORCHFX_DIFFERENCES: return centred(place + key) - centred(place - 1 + key);
        default: return normal(place, key);
    }
}

std::vector<std::vector<double>> of_first;  // what the first instruction set made
std::size_t made;

void same_bits(const std::vector<double>& found) {
    if (made == of_first.size()) of_first.push_back(found);
    else expect(found == of_first[made], "instruction sets agree");
    ++made;
}

template <class Sample>
void it_is_the_definition() {
    for (const int64_t samples : {1, 33, 512, 1025})
        for (const int64_t channels : {1, 17})
            for (int32_t density = TORCHFX_NORMAL; density <= TORCHFX_DIFFERENCES; ++density) {
                const int64_t stride = pick(1, 2), key = static_cast<int64_t>(random_bits() >> 2);
                std::vector<Sample> x, y(static_cast<size_t>(channels * samples));
                for (const double v : noises(channels * samples * stride)) x.push_back(static_cast<Sample>(v));
                std::vector<int64_t> places;
                for (int64_t c = 0; c < channels; ++c) places.push_back(pick(0, int64_t{1} << 50));
                const double gain = 0x1p-3;
                for (const int32_t rounded : {0, 1}) {
                    expect(torchfx_noise_forward(dtype_of<Sample>, x.data(), samples * stride, stride, 1, y.data(), samples,
                                                 channels, samples, &gain, 1, 1, places.data(), channels, 1, key, density,
                                                 rounded, 2) == TORCHFX_OK, "it is accepted");
                    bool near = true;
                    for (int64_t c = 0; c < channels; ++c)
                        for (int64_t t = 0; t < samples; ++t) {
                            const double v = static_cast<double>(x[static_cast<size_t>((c * samples + t) * stride)]);
                            const double added = number(density, static_cast<uint64_t>(places[static_cast<size_t>(c)] + t),
                                                        static_cast<uint64_t>(key));
                            const double found = static_cast<double>(y[static_cast<size_t>(c * samples + t)]);
                            const double steps = found / gain;
                            near = near && (rounded ? steps == std::nearbyint(steps) &&
                                                          std::fabs(steps - v / gain - added) <= 0.5 + 1e-5
                                                    : std::fabs(found - v - gain * added) < 1e-6);
                        }
                    expect(near, "noise is added, or rounded behind");
                    same_bits(std::vector<double>(y.begin(), y.end()));
                }
            }
}

void magnitudes_are_those_of_the_numbers() {
    context = "magnitudes";
    const std::vector<int64_t> places = {5, int64_t{1} << 40};
    for (const int64_t samples : {1, 1025, 40000}) {
        std::vector<double> numbers(static_cast<size_t>(2 * samples), 0.0), found(2), again(2);
        const double gain = 1;
        torchfx_noise_forward(TORCHFX_F64, numbers.data(), samples, 1, 1, numbers.data(), samples, 2, samples, &gain, 1, 1,
                              places.data(), 2, 1, 9, TORCHFX_NORMAL, 0, 1);
        expect(torchfx_noise_magnitude(places.data(), 2, samples, 9, found.data(), 2) == TORCHFX_OK, "it is accepted");
        expect(torchfx_magnitude(TORCHFX_F64, numbers.data(), samples, 1, 2, samples, again.data(), 2) == TORCHFX_OK,
               "it is accepted");
        expect(found == again, "numbers that are kept and those that are not have one magnitude");
        same_bits(found);
        for (int64_t c = 0; c < 2; ++c) {
            const double* own = numbers.data() + c * samples;
            const long double sum = dot<long double>(own, 1, own, 1, samples);
            expect(std::fabs(found[static_cast<size_t>(c)] / static_cast<double>(std::sqrt(sum)) - 1) < 1e-13,
                   "it is the root of the sum of squares");
        }
    }
}

void what_does_not_fit_is_refused() {
    context = "arguments";
    const std::vector<double> x(8);
    std::vector<double> y(8, 7.0);
    const int64_t place = 0;
    const auto run = [&](int64_t channels, int32_t density, int32_t threads) {
        return torchfx_noise_forward(TORCHFX_F64, x.data(), 4, 1, 1, y.data(), 4, channels, 4, x.data(), 1, 1, &place, 1, 1, 0,
                                     density, 0, threads);
    };
    expect(run(0, 0, 1) == TORCHFX_BAD_ARGUMENT, "no channels are refused");
    expect(run(2, 4, 1) == TORCHFX_BAD_ARGUMENT, "an unknown density is refused");
    expect(run(2, -1, 1) == TORCHFX_BAD_ARGUMENT, "an unknown density is refused");
    expect(run(2, 0, 0) == TORCHFX_BAD_ARGUMENT, "no threads are refused");
    expect(torchfx_noise_magnitude(&place, 0, 4, 0, y.data(), 1) == TORCHFX_BAD_ARGUMENT, "no channels are refused");
    expect(torchfx_magnitude(TORCHFX_F64, x.data(), 4, 1, 2, 0, y.data(), 1) == TORCHFX_BAD_ARGUMENT, "no samples are refused");
    expect(y == std::vector<double>(8, 7.0), "a refused call writes nothing");
}

}  // namespace

int main() {
    with_every_isa([] {
        made = 0;
        context = "float";
        it_is_the_definition<float>();
        context = "double";
        it_is_the_definition<double>();
        magnitudes_are_those_of_the_numbers();
    });
    what_does_not_fit_is_refused();
    return report();
}
