// Sliding medians against sorted windows.
#include <algorithm>
#include <limits>

#include "testing.h"

using namespace testing;

namespace {

template <class Sample>
constexpr int32_t dtype_of = sizeof(Sample) == 4 ? TORCHFX_F32 : TORCHFX_F64;

template <class Sample>
void medians_lie_in_the_middle() {
    for (const int64_t window : {1, 3, 31})
        for (const int64_t samples : {1, 63, 9000}) {
            const int64_t channels = pick(1, 19), stride = pick(1, 2), heard = samples + window - 1;
            context = "window " + std::to_string(window) + ", samples " + std::to_string(samples);
            std::vector<Sample> x, y(static_cast<size_t>(channels * samples));
            for (const double v : noises(channels * heard * stride)) x.push_back(static_cast<Sample>(v * 8));
            for (size_t i = 0; i < x.size(); i += 3) x[i] = static_cast<Sample>(static_cast<int>(x[i]));  // equal ones
            expect(torchfx_sliding_median(dtype_of<Sample>, x.data(), heard * stride, stride, y.data(), samples, channels,
                                          samples, window, 2) == TORCHFX_OK, "medians are accepted");
            for (int64_t c = 0; c < channels; ++c)
                for (int64_t t = 0; t < samples; t += samples > 100 ? 331 : 1) {
                    std::vector<Sample> held;
                    for (int64_t i = t; i < t + window; ++i) held.push_back(x[static_cast<size_t>((c * heard + i) * stride)]);
                    std::nth_element(held.begin(), held.begin() + window / 2, held.end());
                    expect(held[static_cast<size_t>(window / 2)] == y[static_cast<size_t>(c * samples + t)],
                           "medians lie in the middle");
                }
        }
}

void what_does_not_fit_is_refused() {
    context = "arguments";
    const std::vector<double> x(8);
    std::vector<double> y(8, 7.0);
    for (const int64_t window : {-1, 0, 2})
        expect(torchfx_sliding_median(TORCHFX_F64, x.data(), 8, 1, y.data(), 8, 1, 4, window, 1) == TORCHFX_BAD_ARGUMENT,
               "windows without a middle are refused");
    expect(torchfx_sliding_median(TORCHFX_F64, x.data(), 8, 1, y.data(), 8, 0, 4, 3, 1) == TORCHFX_BAD_ARGUMENT,
           "no channels are refused");
    expect(std::count(y.begin(), y.end(), 7.0) == 8, "a refused call writes nothing");
}

}  // namespace

int main() {
    with_every_isa([] {
        medians_lie_in_the_middle<float>();
        medians_lie_in_the_middle<double>();
    });
    what_does_not_fit_is_refused();
    return report();
}
