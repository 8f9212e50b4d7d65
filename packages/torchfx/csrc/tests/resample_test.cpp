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
             Case{1, 3000, 2, 300, 1, -7, 6500}, Case{17, 70, 7, 33, 5, 12, 99}, Case{3, 5000, 3, 200, 1, 300, 15000},
             Case{2, 9001, 2, 280, 3, 281, 6001}, Case{5, 7000, 1, 600, 6, 5000, 1000}, Case{1, 4000, 5, 190, 4, -900, 5100},
             Case{4, 8000, 1, 400, 16, 200, 500}}) {
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

// Transforms: an infinity and a NaN reach the outputs in whose windows they lie, and no others.
void what_is_not_finite_stays_where_it_is() {
    context = "infinity and NaN";
    constexpr int64_t samples = 20000, n_taps = 300, up = 2, down = 3, length = 13000;
    std::vector<double> x(samples);
    for (double& v : x) v = noise();
    const std::vector<double> taps = noises(up * n_taps);
    std::vector<double> clean(length), y(length);
    const auto resample = [&](std::vector<double>& to) {
        return torchfx_resample_forward(TORCHFX_F64, x.data(), samples, 1, samples, to.data(), length, 1, length, taps.data(), up,
                                        n_taps, down, 0, 2) == TORCHFX_OK;
    };
    expect(resample(clean), "a finite signal is resampled");
    x[7000] = std::numeric_limits<double>::infinity();
    x[15000] = std::numeric_limits<double>::quiet_NaN();
    expect(resample(y), "one that is not finite is, too");
    bool reached = true, others = true;
    for (int64_t m = 0; m < length; ++m) {
        const int64_t last = m * down / up;
        const auto in_window = [&](int64_t n) { return n <= last && n > last - n_taps; };
        const double got = y[static_cast<size_t>(m)];
        if (in_window(15000)) reached = reached && std::isnan(got);
        else if (in_window(7000)) reached = reached && std::isinf(got);
        else others = others && std::fabs(got - clean[static_cast<size_t>(m)]) < 1e-12;
    }
    expect(reached, "outputs whose windows hold an infinity or a NaN are not finite");
    expect(others, "all other outputs stay as they are");
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
        what_is_not_finite_stays_where_it_is();
    });
    what_does_not_fit_is_refused();
    return report();
}
