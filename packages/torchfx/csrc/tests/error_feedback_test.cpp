// The quantiser with error feedback against the definition.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "testing.h"

using namespace testing;

namespace {

template <class Sample>
constexpr int32_t dtype_of = sizeof(Sample) == 4 ? TORCHFX_F32 : TORCHFX_F64;

template <class Sample>
void it_is_the_definition() {
    const std::vector<double> taps = {1.1, -0.5, 0.2};
    const int64_t order = static_cast<int64_t>(taps.size());
    for (const int64_t samples : {1, 512, 1025})
        for (const int64_t channels : {1, 17}) {
            const int64_t stride = pick(1, 2);
            std::vector<Sample> x, dither, y(static_cast<size_t>(channels * samples));
            for (const double v : noises(channels * samples * stride)) x.push_back(static_cast<Sample>(50 * v));
            for (const double v : noises(samples)) dither.push_back(static_cast<Sample>(v));
            std::vector<double> state = noises(channels * order), before = state;
            expect(torchfx_error_feedback_forward(dtype_of<Sample>, x.data(), samples * stride, stride, 1, dither.data(), 0, 1,
                                                  channels, y.data(), samples, channels, samples, taps.data(), order, 1, 1,
                                                  state.data(), state.data(), 2) == TORCHFX_OK, "it is accepted");
            for (int64_t c = 0; c < channels; ++c) {
                std::vector<double> errors(before.begin() + c * order, before.begin() + (c + 1) * order);
                for (int64_t t = 0; t < samples; ++t) {
                    double wanted = static_cast<double>(x[static_cast<size_t>((c * samples + t) * stride)]);
                    for (int64_t k = order - 1; k >= 0; --k) wanted -= taps[static_cast<size_t>(k)] * errors[static_cast<size_t>(k)];
                    const double found = std::nearbyint(wanted + static_cast<double>(dither[static_cast<size_t>(t)]));
                    expect(found == static_cast<double>(y[static_cast<size_t>(c * samples + t)]), "samples are rounded");
                    errors.insert(errors.begin(), found - wanted);
                    errors.pop_back();
                }
                for (int64_t k = 0; k < order; ++k)
                    expect(std::fabs(errors[static_cast<size_t>(k)] - state[static_cast<size_t>(c * order + k)]) < 1e-9,
                           "errors go on");
            }
        }
}

void what_does_not_fit_is_refused() {
    context = "arguments";
    const std::vector<double> x(8), taps = {1.0, std::numeric_limits<double>::quiet_NaN()};
    std::vector<double> y(8, 7.0);
    const auto run = [&](int64_t channels, int64_t order) {
        return torchfx_error_feedback_forward(TORCHFX_F64, x.data(), 8, 1, 1, x.data(), 8, 1, 1, y.data(), 8, channels, 8,
                                              taps.data(), order, 1, 1, nullptr, nullptr, 1);
    };
    expect(run(0, 1) == TORCHFX_BAD_ARGUMENT, "no channels are refused");
    expect(run(1, 0) == TORCHFX_BAD_ARGUMENT, "no taps are refused");
    expect(run(1, 2) == TORCHFX_NOT_FINITE, "taps that are not finite are refused");
    expect(y == std::vector<double>(8, 7.0), "a refused call writes nothing");
}

}  // namespace

int main() {
    with_every_isa([] {
        context = "float";
        it_is_the_definition<float>();
        context = "double";
        it_is_the_definition<double>();
    });
    what_does_not_fit_is_refused();
    return report();
}
