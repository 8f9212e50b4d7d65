// Networks of delay lines against their equations, one sample after the other.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "testing.h"

using namespace testing;

namespace {

// A network of random numbers that decays, and its state, of exactly as many values as there are.
struct Network {
    Network(int64_t groups, std::vector<int64_t> delays, int64_t inputs, int64_t outputs, int64_t sections, bool filter_first)
        : groups(groups), lines(static_cast<int64_t>(delays.size())), inputs(inputs), outputs(outputs), sections(sections),
          filter_first(filter_first), delays(std::move(delays)), systems(noises(groups * (lines + outputs) * (lines + inputs))),
          held(noises(groups * length())), state(noises(sections * groups * lines * 2)) {
        for (int64_t i = 0; i < groups * lines * sections; ++i) {
            const bool plain = i < sections;  // the first line has none
            const double pole = plain ? 0 : 0.9 * noise();
            for (const double v : {plain ? 1 : 1 - std::fabs(pole), 0.0, 0.0, 1.0, -pole, 0.0}) sos.push_back(v);
        }
        for (int64_t g = 0; g < groups; ++g) {
            for (int64_t i = 0; i < lines * (lines + inputs); ++i)
                if (i % (lines + inputs) < lines) system(g, i / (lines + inputs), i % (lines + inputs)) *= 0.9 / static_cast<double>(lines);
            for (int64_t k = 0; k < sections; ++k) zi(k, g, 0) = zi(k, g, 0, 1) = 0;
        }
    }
    int64_t length() const {
        int64_t sum = 0;
        for (const int64_t delay : delays) sum += delay;
        return sum;
    }
    double& system(int64_t g, int64_t i, int64_t j) {
        return systems[static_cast<size_t>((g * (lines + outputs) + i) * (lines + inputs) + j)];
    }
    double& zi(int64_t k, int64_t g, int64_t i, int64_t which = 0) {
        return state[static_cast<size_t>(((k * groups + g) * lines + i) * 2 + which)];
    }
    double filtered(int64_t g, int64_t i, double x) {
        for (int64_t k = 0; k < sections; ++k) {
            const double* row = sos.data() + ((g * lines + i) * sections + k) * 6;
            double &s1 = zi(k, g, i), &s2 = zi(k, g, i, 1);
            const double y = row[0] * x + s1;
            s1 = row[1] * x - row[4] * y + s2;
            s2 = row[2] * x - row[5] * y;
            x = y;
        }
        return x;
    }
    // The next sample of a group; states go on.
    std::vector<double> step(int64_t g, const std::vector<double>& x) {
        std::vector<double> r, into, y;
        double* at = held.data() + g * length();
        for (const int64_t delay : delays) {
            r.push_back(*at);
            at += delay;
        }
        const auto row = [&](int64_t i, const std::vector<double>& out, bool with_input) {
            double sum = 0;
            for (int64_t j = 0; j < lines; ++j) sum += system(g, i, j) * out[static_cast<size_t>(j)];
            for (int64_t j = 0; with_input && j < inputs; ++j) sum += system(g, i, lines + j) * x[static_cast<size_t>(j)];
            return sum;
        };
        for (int64_t i = lines; i < lines + outputs; ++i) y.push_back(row(i, r, true));
        std::vector<double> through = r;
        for (int64_t i = 0; filter_first && i < lines; ++i) through[static_cast<size_t>(i)] = filtered(g, i, r[static_cast<size_t>(i)]);
        for (int64_t i = 0; i < lines; ++i)
            into.push_back(filter_first ? row(i, through, true)
                                        : filtered(g, i, row(i, r, false)) + row(i, r, true) - row(i, r, false));
        at = held.data() + g * length();
        for (int64_t i = 0; i < lines; ++i) {
            const int64_t delay = delays[static_cast<size_t>(i)];
            std::copy(at + 1, at + delay, at);
            at[delay - 1] = into[static_cast<size_t>(i)];
            at += delay;
        }
        return y;
    }
    template <class Sample>
    int32_t run(const std::vector<Sample>& x, int64_t start, int64_t count, std::vector<Sample>& y, int64_t samples,
                int32_t threads, bool kept = true, int64_t* passed = nullptr) {
        double *const in_lines = kept ? held.data() : nullptr, *const in_filters = kept && sections ? state.data() : nullptr;
        return torchfx_delay_network_forward(
            sizeof(Sample) == 4 ? TORCHFX_F32 : TORCHFX_F64, x.data() + start, samples, 1, 1, y.data() + start, samples, groups,
            count, delays.data(), lines, inputs, outputs, systems.data(), groups, 1, sections ? sos.data() : nullptr, sections,
            groups, 1, filter_first, in_lines, in_lines, in_filters, in_filters, passed, nullptr,
            0, threads);
    }

    int64_t groups, lines, inputs, outputs, sections;
    bool filter_first;
    std::vector<int64_t> delays;
    std::vector<double> systems, sos, held, state;

    // Lines that were rings in their state, oldest first again.
    void turn_back(int64_t passed) {
        auto at = held.begin();
        for (int64_t g = 0; g < groups; ++g)
            for (const int64_t delay : delays) {
                std::rotate(at, at + passed % delay, at + delay);
                at += delay;
            }
    }
};

template <class A, class B>
double apart(const std::vector<A>& truth, const std::vector<B>& found) {
    double worst = 0;
    for (size_t i = 0; i < truth.size(); ++i)
        worst = std::max(worst, std::fabs(static_cast<double>(truth[i]) - static_cast<double>(found[i])));
    return truth.size() == found.size() ? worst : 1e300;
}

template <class Sample>
void the_network_follows_its_equations() {
    const std::vector<std::vector<int64_t>> all = {{1}, {3, 4}, {300, 17, 41}, {260, 261, 262, 263, 264, 265, 266, 267, 700}};
    for (const std::vector<int64_t>& delays : all)
        for (const int64_t samples : {1, 7, 1025})
            for (const int64_t sections : {0, 2})
                for (const bool filter_first : {false, true}) {
                    const int64_t groups = pick(1, 3), inputs = pick(1, 3), outputs = pick(1, 3);
                    Network network(groups, delays, inputs, outputs, sections, filter_first), twin = network, blocks = network,
                            rings = network;
                    std::vector<Sample> x;
                    for (int64_t i = 0; i < groups * inputs * samples; ++i) x.push_back(static_cast<Sample>(noise()));
                    std::vector<Sample> y(static_cast<size_t>(groups * outputs * samples)), parts = y, turned = y;
                    expect(network.run(x, 0, samples, y, samples, 2) == TORCHFX_OK, "networks are accepted");
                    int64_t passed = 0;
                    for (int64_t start = 0; start < samples;) {
                        const int64_t count = std::min(samples - start, pick(1, 400));
                        expect(blocks.run(x, start, count, parts, samples, 1) == TORCHFX_OK, "blocks are accepted");
                        expect(rings.run(x, start, count, turned, samples, 2, true, &passed) == TORCHFX_OK, "rings are accepted");
                        start += count;
                    }
                    std::vector<double> right(y.size());
                    for (int64_t g = 0; g < groups; ++g)
                        for (int64_t t = 0; t < samples; ++t) {
                            std::vector<double> now;
                            for (int64_t j = 0; j < inputs; ++j)
                                now.push_back(static_cast<double>(x[static_cast<size_t>((g * inputs + j) * samples + t)]));
                            const std::vector<double> out = twin.step(g, now);
                            for (int64_t i = 0; i < outputs; ++i)
                                right[static_cast<size_t>((g * outputs + i) * samples + t)] = out[static_cast<size_t>(i)];
                        }
                    const double bound = sizeof(Sample) == 4 ? 1e-6 : 1e-12;
                    expect(apart(right, y) < bound, "the outputs are the equations'");
                    expect(apart(twin.held, network.held) < 1e-12, "the lines hold what went in last");
                    expect(apart(twin.state, network.state) < 1e-12, "the filters' states are the equations'");
                    expect(apart(y, parts) < bound && apart(network.held, blocks.held) < 1e-12, "blocks equal the whole");
                    rings.turn_back(passed);
                    expect(parts == turned && rings.held == blocks.held && rings.state == blocks.state,
                           "lines that are rings in their state change nothing");
                    std::fill(network.held.begin(), network.held.end(), 0.0);
                    std::fill(network.state.begin(), network.state.end(), 0.0);
                    expect(network.run(x, 0, samples, y, samples, 1) == TORCHFX_OK &&
                               network.run(x, 0, samples, parts, samples, 1, false) == TORCHFX_OK,
                           "states need not be kept");
                    expect(apart(y, parts) < bound, "a network that keeps nothing begins from rest");
                }
}

void a_program_runs_it() {
    context = "program";
    struct Case {
        int64_t sections, groups, room;  // the last one lacks some
    };
    for (const auto& [sections, groups, room] : {Case{0, 2, 0}, Case{1, 2, 4096}, Case{1, 1, 4096}, Case{1, 1, 400}}) {
        Network network(groups, {3, 40}, 2, 2, sections, false), whole = network;
        std::vector<double> kept(static_cast<std::size_t>(room));
        const std::vector<double> x = noises(static_cast<std::size_t>(2 * groups * 300));
        std::vector<double> y(x.size()), parts = y;
        int64_t passed = 0;
        expect(whole.run(x, 0, 300, y, 300, 1) == TORCHFX_OK, "the network is accepted");
        const auto address = [](const auto* pointer) { return static_cast<int64_t>(reinterpret_cast<intptr_t>(pointer)); };
        std::vector<int64_t> program = {TORCHFX_F64, 1, 2, TORCHFX_STEP_delay_network, 21, 0, 1, TORCHFX_F64,
                                        address(network.delays.data()), 2, 2, address(network.systems.data()), groups, 1,
                                        address(network.sos.data()), sections, groups, 1, 43, address(network.held.data()),
                                        address(network.state.data()), address(&passed), address(kept.data()),
                                        static_cast<int64_t>(kept.size())};
        const auto run = [&](int64_t start, int64_t count) {
            return torchfx_program_run(program.data(), static_cast<int64_t>(program.size()), x.data() + start, 300, 1,
                                       parts.data() + start, 300, 2 * groups, count, 1024, 1);
        };
        for (int64_t start = 0; start < 300; start += 75) expect(run(start, 75) == TORCHFX_OK, "the program is accepted");
        network.turn_back(passed);
        expect(apart(y, parts) < 1e-12 && apart(whole.held, network.held) < 1e-12, "blocks of a program equal the whole");
        network.delays[0] = 0;
        expect(run(0, 75) == TORCHFX_BAD_ARGUMENT, "a line without delay is refused in a program");
        network.delays[0] = 3;
        program[18] = 42;
        expect(run(0, 75) == TORCHFX_BAD_ARGUMENT, "a length that is not the sum of the delays is refused");
        program[18] = 43;
        program[10] = 3;
        expect(run(0, 75) == TORCHFX_BAD_ARGUMENT, "channels that make no groups are refused");
    }
}

void what_does_not_fit_is_refused() {
    context = "arguments";
    std::vector<double> x(8), y(8, 7.0);
    const auto status = [&](std::vector<int64_t> delays, double weight, double pole, int32_t threads) {
        Network network(1, delays, 1, 1, 1, false);
        network.systems.assign(network.systems.size(), weight);
        network.sos.assign(network.sos.size(), 0);
        for (size_t i = 0; i < network.sos.size(); i += 6) network.sos[i] = network.sos[i + 3] = 1, network.sos[i + 4] = -pole;
        return network.run(x, 0, 8, y, 8, threads);
    };
    expect(status({2}, 0.5, 0.5, 1) == TORCHFX_OK && std::count(y.begin(), y.end(), 7.0) == 0, "what fits is run");
    y.assign(8, 7.0);
    expect(status({2, 0}, 0.5, 0.5, 1) == TORCHFX_BAD_ARGUMENT, "a line without delay is refused");
    expect(status({2}, 0.5, 0.5, 0) == TORCHFX_BAD_ARGUMENT, "no threads are refused");
    expect(status({2}, std::numeric_limits<double>::infinity(), 0.5, 1) == TORCHFX_NOT_FINITE, "infinite weights are refused");
    expect(status({2}, 0.5, 1.5, 1) == TORCHFX_UNSTABLE, "unstable filters are refused");
    expect(std::count(y.begin(), y.end(), 7.0) == 8, "a refused call writes nothing");
}

}  // namespace

int main() {
    with_every_isa([] {
        context = "float";
        the_network_follows_its_equations<float>();
        context = "double";
        the_network_follows_its_equations<double>();
    });
    a_program_runs_it();
    what_does_not_fit_is_refused();
    return report();
}
