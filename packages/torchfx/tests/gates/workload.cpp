// A fixed workload for the instruction counter: workload NAME runs one call of the C interface on one thread, or a forward
// pass and its backward pass.
#include <cmath>
#include <cstring>
#include <vector>

#include "torchfx_dsp.h"

int main(int count, char** arguments) {
    if (count != 2 || torchfx_set_isa("baseline") != TORCHFX_OK) return 2;
    const int64_t channels = std::strstr(arguments[1], "many") ? 8 : 1, samples = 1 << 16;
    std::vector<float> x(channels * samples), y(channels * samples);
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.01f * float(i % 7919));
    const double section[6] = {0.2, 0.4, 0.2, 1.0, -0.6, 0.4};
    std::vector<double> sos, taps;
    for (int k = 0; k < 4; ++k) sos.insert(sos.end(), section, section + 6);
    for (int k = 0; k < (std::strstr(arguments[1], "long") ? 511 : 15); ++k) taps.push_back(std::cos(0.1 * k) / 20);
    if (std::strstr(arguments[1], "gradient")) {
        std::vector<double> checkpoints(channels * (samples / TORCHFX_CHECKPOINT_STEPS) * 2 * 4), by_sos(sos.size());
        std::vector<float> by_x(x.size());
        if (const int32_t status = torchfx_sos_forward_recording(
                TORCHFX_F32, x.data(), samples, 1, 1, y.data(), samples, channels, samples, sos.data(), 4, 1, 1,
                nullptr, nullptr, checkpoints.data(), 2048, 1))
            return status;
        return torchfx_sos_backward(TORCHFX_F32, x.data(), samples, 1, 1, y.data(), samples, 1, channels, samples,
                                    sos.data(), 4, 1, 1, nullptr, nullptr, checkpoints.data(), by_x.data(), samples,
                                    by_sos.data(), nullptr, 2048, 1);
    }
    if (std::strstr(arguments[1], "both ways"))
        return torchfx_sos_zero_phase(TORCHFX_F32, x.data(), samples, 1, 1, y.data(), samples, channels, samples, sos.data(),
                                      4, 1, 1, 27, TORCHFX_ODD, 2048, 1);
    if (std::strstr(arguments[1], "lfilter")) {
        const double b[4] = {0.05, 0.15, 0.15, 0.05}, a[4] = {1.0, -1.1, 0.6, -0.1};
        std::vector<double> state(3 * channels);
        return torchfx_lfilter_forward(TORCHFX_F32, x.data(), samples, 1, 1, y.data(), samples, channels, samples, 3, b, 1, 1,
                                       a, 1, 1, state.data(), 1);
    }
    if (std::strstr(arguments[1], "sos"))
        return torchfx_sos_forward(TORCHFX_F32, x.data(), samples, 1, 1, y.data(), samples, channels, samples, sos.data(),
                                   4, 1, 1, nullptr, nullptr, 2048, 1);
    if (std::strstr(arguments[1], "infinite"))
        for (size_t i = 0; i < x.size(); i += 100) x[i] = INFINITY;
    const int64_t n_taps = int64_t(taps.size()), rows = std::strstr(arguments[1], "rows") ? channels : 1;
    taps.resize(rows * n_taps, 0.01);
    return torchfx_fir_forward(TORCHFX_F32, x.data(), samples, 1, 1, y.data(), samples, channels, samples, taps.data(),
                               n_taps, rows, 1, nullptr, nullptr, 1);
}
