// A fixed workload for the instruction counter: workload NAME runs one call of the C interface on one thread, or a forward
// pass and its backward pass.
#include <cmath>
#include <cstring>
#include <vector>

#include "torchfx_dsp.h"
#include "torchfx_program.h"

namespace {

template <class T>
int64_t address(const std::vector<T>& values) {
    return static_cast<int64_t>(reinterpret_cast<intptr_t>(values.data()));
}

// A thousand blocks of 2 x 64 through a program of one step, a record without its size.
int32_t run_in_blocks(int64_t kind, const std::vector<int64_t>& fields) {
    constexpr int64_t samples = 64, channels = 2;
    std::vector<int64_t> words = {TORCHFX_F32, 1, 2, kind, 5 + static_cast<int64_t>(fields.size()), 0, 1, TORCHFX_F32};
    words.insert(words.end(), fields.begin(), fields.end());
    std::vector<float> x(channels * samples), y(channels * samples);
    for (size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.3f * float(i));
    for (int block = 0; block < 1000; ++block)
        if (const int32_t status = torchfx_program_run(words.data(), static_cast<int64_t>(words.size()), x.data(), samples, 1,
                                                       y.data(), samples, channels, samples, 1024, 1))
            return status;
    return TORCHFX_OK;
}

// 5 ms of look-ahead at 48 kHz, one gain for both channels.
int32_t limiter() {
    constexpr int64_t ahead = 240;
    const std::vector<double> settings = {0.5, 2e-4}, state(1), ramp(ahead);
    const std::vector<float> past(2 * ahead);
    return run_in_blocks(TORCHFX_STEP_limiter, {0, 2, ahead, ahead, address(settings), 1, 1, address(past), address(state),
                                                address(ramp)});
}

int32_t compressor() {
    const std::vector<double> settings = {-20, -0.75, 0, 6, -1e4, 0, 2e-4, 4e-3}, state(1);
    return run_in_blocks(TORCHFX_STEP_dynamics, {0, 2, address(settings), 1, 1, address(state)});
}

// 16 damped loops of 1100 to 1850 samples, which both channels excite and each hears half of.
int32_t network() {
    constexpr int64_t lines = 16, inputs = 2, width = lines + inputs;
    std::vector<int64_t> delays;
    int64_t length = 0;
    for (int64_t i = 0; i < lines; ++i) delays.push_back(1100 + 50 * i), length += delays.back();
    std::vector<double> system(width * width), sos;
    for (int64_t i = 0; i < lines; ++i) {
        system[i * width + i] = 0.8;
        system[i * width + lines] = system[i * width + lines + 1] = 0.015;
        system[(lines + i % inputs) * width + i] = 1;
        for (const double value : {0.8, 0.0, 0.0, 1.0, -0.2, 0.0}) sos.push_back(value);
    }
    const std::vector<double> held(length), state(2 * lines), kept(1 << 14);
    return run_in_blocks(TORCHFX_STEP_delay_network,
                         {address(delays), lines, inputs, address(system), 1, 1, address(sos), 1, 1, 1, length,
                          address(held), address(state), 0, address(kept), int64_t(kept.size())});
}

}  // namespace

int main(int count, char** arguments) {
    if (count != 2 || torchfx_set_isa("baseline") != TORCHFX_OK) return 2;
    if (!std::strcmp(arguments[1], "limiter")) return limiter();
    if (!std::strcmp(arguments[1], "compressor")) return compressor();
    if (!std::strcmp(arguments[1], "network")) return network();
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
