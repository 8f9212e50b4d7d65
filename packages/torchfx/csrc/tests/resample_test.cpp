// Resampling against its definition: ratios with few and many phases, directly and by transforms.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "testing.h"

using namespace testing;

namespace {

template <class Sample>
void resampling_is_the_sum_over_the_phases() {
    struct Case { int64_t channels, samples, up, taps, down, origin, length; };
    for (const Case& each : {
             Case{1, 1, 3, 4, 2, 0, 5}, Case{3, 50, 160, 24, 147, 1900, 40}, Case{2, 3000, 160, 64, 147, 5000, 3000},
             Case{2, 3000, 147, 64, 160, -4000, 2900}, Case{5, 400, 1, 90, 3, 45, 140}, Case{1, 9000, 1, 200, 3, 99, 3000},
             Case{1, 3000, 2, 300, 1, -7, 6500}, Case{17, 70, 7, 33, 5, 12, 99}}) {
        context = std::to_string(each.up) + "/" + std::to_string(each.down);
        const int64_t stride = pick(1, 2);
        std::vector<Sample> x(static_cast<size_t>(each.channels * each.samples * stride));
        for (Sample& v : x) v = static_cast<Sample>(noise());
        std::vector<Sample> y(static_cast<size_t>(each.channels * each.length));
        const std::vector<double> taps = noises(each.up * each.taps);
        expect(torchfx_resample_forward(sizeof(Sample) == 4 ? TORCHFX_F32 : TORCHFX_F64, x.data(), each.samples * stride, stride,
                                        each.samples, y.data(), each.length, each.channels, each.length, taps.data(), each.up,
                                        each.taps, each.down, each.origin, 2) == TORCHFX_OK, "resampling is accepted");
        double worst = 0;
        for (int64_t c = 0; c < each.channels; ++c)
            for (int64_t m = 0; m < each.length; ++m) {
                const int64_t place = m * each.down + each.origin;
                const int64_t phase = (place % each.up + each.up) % each.up, q = (place - phase) / each.up;
                double sum = 0;
                for (int64_t k = 0; k < each.taps; ++k)
                    if (q - k >= 0 && q - k < each.samples)
                        sum += taps[static_cast<size_t>(phase * each.taps + k)] *
                               static_cast<double>(x[static_cast<size_t>((c * each.samples + q - k) * stride)]);
                worst = std::max(worst, std::fabs(sum - static_cast<double>(y[static_cast<size_t>(c * each.length + m)])));
            }
        expect(worst < (sizeof(Sample) == 4 ? 1e-5 : 1e-12), "every output is the sum over its phase");
    }
}

void what_does_not_fit_is_refused() {
    context = "arguments";
    const std::vector<double> x(8), taps(6);
    std::vector<double> y(8, 7.0);
    const auto status = [&](int64_t channels, int64_t length, int64_t up, int64_t down, int32_t threads) {
        return torchfx_resample_forward(TORCHFX_F64, x.data(), 8, 1, 8, y.data(), 8, channels, length, taps.data(), up, 3, down,
                                        0, threads);
    };
    expect(status(0, 8, 2, 1, 1) == TORCHFX_BAD_ARGUMENT, "no channels are refused");
    expect(status(1, 0, 2, 1, 1) == TORCHFX_BAD_ARGUMENT, "no outputs are refused");
    expect(status(1, 8, 0, 1, 1) == TORCHFX_BAD_ARGUMENT, "no phases are refused");
    expect(status(1, 8, 2, 0, 1) == TORCHFX_BAD_ARGUMENT, "down 0 is refused");
    expect(status(1, 8, 2, 1, 0) == TORCHFX_BAD_ARGUMENT, "no threads are refused");
    expect(std::count(y.begin(), y.end(), 7.0) == 8, "a refused call writes nothing");
}

}  // namespace

int main() {
    with_every_isa([] {
        resampling_is_the_sum_over_the_phases<float>();
        resampling_is_the_sum_over_the_phases<double>();
    });
    what_does_not_fit_is_refused();
    return report();
}
