// Filters both ways, and transfer functions, against long double.
#include <algorithm>
#include <cmath>
#include <limits>

#include "sos_reference.h"

using namespace testing;

namespace {

template <class Sample>
constexpr int32_t dtype = sizeof(Sample) == 4 ? TORCHFX_F32 : TORCHFX_F64;

// A signal whose ends lie at the ends of its memory, so that sanitizers see what is read or written beyond them.
template <class Sample>
struct Memory {
    int64_t channels, samples;
    bool interleaved;
    std::vector<Sample> values;

    Memory(int64_t channels, int64_t samples, bool interleaved = false)
        : channels(channels), samples(samples), interleaved(interleaved), values(static_cast<std::size_t>(channels * samples)) {
        for (Sample& v : values) v = static_cast<Sample>(noise());
    }
    int64_t channel_stride() const { return interleaved ? 1 : samples; }
    int64_t time_stride() const { return interleaved ? channels : 1; }
    Sample operator()(int64_t c, int64_t t) const {
        return values[static_cast<std::size_t>(c * channel_stride() + t * time_stride())];
    }
};

// (b, a) of order n, a0 = 1, in the transposed direct form.
struct Transfer {
    std::vector<double> b, a;

    std::size_t order() const { return b.size() - 1; }
    std::vector<Real> settled() const {
        Real above = 0, below = 0, sum = 0;
        for (const double v : b) above += v;
        for (const double v : a) below += v;
        std::vector<Real> state(order());
        for (std::size_t k = order(); k > 0; --k) state[k - 1] = sum += b[k] - a[k] * (above / below);
        return state;
    }
    void run(std::vector<Real>& x, std::vector<Real> state) const {
        state.push_back(0);
        for (Real& v : x) {
            const Real in = v;
            v = b[0] * in + state[0];
            for (std::size_t k = 0; k < order(); ++k) state[k] = state[k + 1] + b[k + 1] * in - a[k + 1] * v;
        }
    }
};

// The product of second-order sections' polynomials.
Transfer product(const std::vector<double>& sos) {
    Transfer found{{1}, {1}};
    for (std::size_t k = 0; k < sos.size(); k += 6)
        for (auto* side : {&found.b, &found.a}) {
            const double* factor = &sos[k + (side == &found.a ? 3 : 0)];
            std::vector<double> times(side->size() + 2);
            for (std::size_t i = 0; i < side->size(); ++i)
                for (std::size_t j = 0; j < 3; ++j) times[i + j] += (*side)[i] * factor[j] / sos[k + 3];
            *side = times;
        }
    return found;
}

template <class Run>
std::vector<Real> both_ways(std::vector<Real> x, int64_t edge, int32_t extension, Run&& run) {
    const std::vector<Real> given = x;
    const auto beyond = [&](Real end, Real mirrored) {
        return extension == TORCHFX_ODD ? 2 * end - mirrored : extension == TORCHFX_EVEN ? mirrored : end;
    };
    for (int64_t i = 1; i <= edge; ++i) {
        x.insert(x.begin(), beyond(given.front(), given[static_cast<std::size_t>(i)]));
        x.push_back(beyond(given.back(), given[given.size() - 1 - static_cast<std::size_t>(i)]));
    }
    for (int i = 0; i < 2; ++i) {
        run(x);
        std::reverse(x.begin(), x.end());
    }
    return {x.begin() + edge, x.end() - edge};
}

// Relative to the peak of the inputs, 1: of a constant, a high-pass leaves nothing.
template <class Sample>
void are_near(const Memory<Sample>& y, int64_t channel, const std::vector<Real>& right, const char* what) {
    Real off = 0;
    for (int64_t t = 0; t < y.samples; ++t)
        off = std::max(off, std::fabs(y(channel, t) - right[static_cast<std::size_t>(t)]));
    expect(off <= (sizeof(Sample) == 4 ? 2e-7L : 1e-11L), what);
}

template <class Sample>
void both_ways_is_forwards_and_backwards() {
    for (const int64_t channels : {1, 3, 8, 11})
        for (const int64_t samples : {1, 2, 37, 1025, 9000})
            for (const bool interleaved : {false, true}) {
                if (channels * samples > 12000) continue;
                context = std::to_string(channels) + " x " + std::to_string(samples) + (interleaved ? " interleaved" : "");
                const int64_t edge = std::min<int64_t>(samples - 1, pick(0, 30));
                const auto extension = static_cast<int32_t>(pick(0, 2));
                const Sos sos(std::vector<std::vector<double>>{lowpass(4, 0.1), highpass(4, 0.05)}, pick(1, 2));
                const int64_t rows = channels > sos.repeat ? 2 : 1;
                const Memory<Sample> x(channels, samples, interleaved);
                Memory<Sample> y(channels, samples);
                expect(torchfx_sos_zero_phase(dtype<Sample>, x.values.data(), x.channel_stride(), x.time_stride(), 1,
                                              y.values.data(), samples, channels, samples, sos.values.data(), 2, rows,
                                              sos.repeat, edge, extension, 1024, 2) == TORCHFX_OK, "sections are accepted");
                Memory<Sample> z(channels, samples);
                const Transfer transfer = product(lowpass(6, 0.2));
                expect(torchfx_lfilter_zero_phase(dtype<Sample>, x.values.data(), x.channel_stride(), x.time_stride(), 1,
                                                  z.values.data(), samples, channels, samples, 6, transfer.b.data(), 1, 1,
                                                  transfer.a.data(), 1, 1, edge, extension, 2) == TORCHFX_OK,
                       "a transfer function is accepted");
                for (int64_t c = 0; c < channels; ++c) {
                    std::vector<Real> signal;
                    for (int64_t t = 0; t < samples; ++t) signal.push_back(x(c, t));
                    const auto section = [&](std::vector<Real>& v) {
                        Real level = v.front();
                        for (std::size_t k = 0; k < 2; ++k) {
                            const double* s = &sos.values[rows == 1 ? 6 * k : sos.at(static_cast<std::size_t>(c), k)];
                            const Transfer each{{s[0], s[1], s[2]}, {s[3], s[4], s[5]}};
                            std::vector<Real> state = each.settled();
                            for (Real& entry : state) entry *= level;
                            level *= (Real(s[0]) + s[1] + s[2]) / (Real(s[3]) + s[4] + s[5]);
                            each.run(v, state);
                        }
                    };
                    are_near(y, c, both_ways(signal, edge, extension, section), "sections run both ways");
                    const auto whole = [&](std::vector<Real>& v) {
                        std::vector<Real> state = transfer.settled();
                        for (Real& entry : state) entry *= v.front();
                        transfer.run(v, state);
                    };
                    are_near(z, c, both_ways(signal, edge, extension, whole), "a transfer function runs both ways");
                }
            }
}

// Cut into stretches or not, in blocks or not: what is remembered goes on, and a NaN stays.
template <class Sample>
void lfilter_is_the_transposed_direct_form() {
    for (const int64_t channels : {1, 3, 9})
        for (const double cutoff : {0.1, 0.004}) {
            context = std::to_string(channels) + " channels, cutoff " + std::to_string(cutoff);
            const int64_t samples = 6000;
            const Transfer transfer = product(lowpass(4, cutoff));
            Memory<Sample> x(channels, samples), y(channels, samples);
            std::vector<double> state = noises(channels * 4);
            const std::vector<double> before = state;
            const auto run = [&](int64_t from, int64_t count) {
                return torchfx_lfilter_forward(dtype<Sample>, x.values.data() + from, samples, 1, 1, y.values.data() + from,
                                               samples, channels, count, 4, transfer.b.data(), 1, 1, transfer.a.data(), 1, 1,
                                               state.data(), 2);
            };
            expect(run(0, 5000) == TORCHFX_OK && run(5000, 1000) == TORCHFX_OK, "blocks are accepted");
            for (int64_t c = 0; c < channels; ++c) {
                std::vector<Real> signal;
                for (int64_t t = 0; t < samples; ++t) signal.push_back(x(c, t));
                transfer.run(signal, {before.begin() + 4 * c, before.begin() + 4 * (c + 1)});
                Real off = 0;
                for (int64_t t = 0; t < samples; ++t)
                    off = std::max(off, std::fabs(y(c, t) - signal[static_cast<std::size_t>(t)]));
                expect(off <= (sizeof(Sample) == 4 ? 2e-7L : 1e-9L) * peak(signal), "the outputs are the recursion's");
            }
            x.values[static_cast<std::size_t>((channels - 1) * samples + 2000)] = std::numeric_limits<Sample>::infinity();
            run(0, samples);
            for (int64_t t = 0; t < samples; ++t)
                expect(std::isfinite(y(channels - 1, t)) == (t < 2000), "what is not finite stays");
        }
}

void what_does_not_fit_is_refused() {
    context = "arguments";
    const std::vector<double> x(8), sos = lowpass(2, 0.1), unstable = {1, 0, 0, 1, -2, 1}, one = {1, 0},
                              undefined = {1, std::numeric_limits<double>::quiet_NaN()};
    std::vector<double> y(8, 7.0), state(1, 7.0);
    const auto sections = [&](const std::vector<double>& values, int64_t edge, int32_t extension, int64_t rows) {
        return torchfx_sos_zero_phase(TORCHFX_F64, x.data(), 8, 1, 1, y.data(), 8, 1, 8, values.data(), 1, rows, 1, edge,
                                      extension, 1024, 1);
    };
    expect(sections(sos, 8, TORCHFX_ODD, 1) == TORCHFX_BAD_ARGUMENT, "an edge as long as the signal is refused");
    expect(sections(sos, -1, TORCHFX_ODD, 1) == TORCHFX_BAD_ARGUMENT, "a negative edge is refused");
    expect(sections(sos, 3, 3, 1) == TORCHFX_BAD_ARGUMENT, "an unknown extension is refused");
    expect(sections(sos, 3, TORCHFX_ODD, 2) == TORCHFX_BAD_ARGUMENT, "a row without a channel is refused");
    expect(sections(unstable, 3, TORCHFX_ODD, 1) == TORCHFX_UNSTABLE, "an unstable section is refused");
    const auto transfer = [&](const std::vector<double>& a, int64_t order, int64_t edge, int64_t rows) {
        const int32_t both = torchfx_lfilter_zero_phase(TORCHFX_F64, x.data(), 8, 1, 1, y.data(), 8, 1, 8, order, one.data(), 1,
                                                        1, a.data(), rows, 1, edge, TORCHFX_EVEN, 1);
        const int32_t once = torchfx_lfilter_forward(TORCHFX_F64, x.data(), 8, 1, 1, y.data(), 8, 1, edge == 8 ? 0 : 8, order,
                                                     one.data(), 1, 1, a.data(), rows, 1, state.data(), 1);
        expect(both == once, "both ways refuse the same");
        return both;
    };
    expect(transfer(one, 0, 3, 1) == TORCHFX_BAD_ARGUMENT, "order 0 is refused");
    expect(transfer(one, 1, 8, 1) == TORCHFX_BAD_ARGUMENT, "an edge as long as the signal is refused");
    expect(transfer(one, 1, 3, 2) == TORCHFX_BAD_ARGUMENT, "a row without a channel is refused");
    expect(transfer(undefined, 1, 3, 1) == TORCHFX_NOT_FINITE, "coefficients that are not finite are refused");
    expect(std::count(y.begin(), y.end(), 7.0) == 8 && state[0] == 7.0, "a refused call writes nothing");
}

}  // namespace

int main() {
    with_every_isa([] {
        both_ways_is_forwards_and_backwards<float>();
        both_ways_is_forwards_and_backwards<double>();
        lfilter_is_the_transposed_direct_form<float>();
        lfilter_is_the_transposed_direct_form<double>();
    });
    what_does_not_fit_is_refused();
    return report();
}
