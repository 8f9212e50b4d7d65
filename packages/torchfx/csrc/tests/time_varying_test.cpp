// All-pole recursions and state-space systems, constant and changing, with their gradients, against the definitions.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "testing.h"

using namespace testing;

namespace {

template <class Sample>
constexpr int32_t dtype_of = sizeof(Sample) == 4 ? TORCHFX_F32 : TORCHFX_F64;

// Of exactly as many values as there are, so that a sanitizer sees what lies beyond: element (c, t) at c * row + t * stride.
template <class Sample>
struct Signal {
    Signal(int64_t channels, int64_t samples, int64_t stride = 1, double scale = 1)
        : stride(stride), row(samples * stride), values(static_cast<size_t>(channels * row)) {
        for (Sample& v : values) v = static_cast<Sample>(scale * noise());
    }
    double operator()(int64_t c, int64_t t) const { return values[static_cast<size_t>(c * row + t * stride)]; }
    Sample* data() { return values.data(); }

    int64_t stride, row;
    std::vector<Sample> values;
};

// Whether two sequences agree within rounding of the second one's type.
template <class A, class B>
bool near(const std::vector<A>& truth, const std::vector<B>& found) {
    double largest = 0, worst = 0;
    for (size_t i = 0; i < truth.size(); ++i) {
        largest = std::max(largest, std::fabs(static_cast<double>(truth[i])));
        worst = std::max(worst, std::fabs(static_cast<double>(truth[i]) - static_cast<double>(found[i])));
    }
    return truth.size() == found.size() && worst <= (sizeof(B) == 4 ? 1e-6 : 1e-11) * largest;
}

template <class Sample, class Coefficient>
void allpole_is_the_recursion() {
    for (const int64_t samples : {1, 7, 257, 3000})
        for (const int64_t order : {1, 2, 3, 9})
            for (const bool changing : {false, true}) {
                const int64_t channels = pick(1, 11), rows = channels > 1 ? 2 : 1, times = changing ? samples : 1;
                const Signal<Sample> x(channels, samples, pick(1, 2));
                const Signal<Coefficient> a(rows, times * order, 1, 0.9 / static_cast<double>(order));
                const Signal<Sample> grad_y(channels, samples, pick(1, 2));
                const std::vector<double> before = noises(channels * order), grad_after = noises(channels * order);
                const auto row_of = [&](int64_t c) { return rows == 1 ? 0 : c % rows; };
                const auto a_at = [&](int64_t c, int64_t t, int64_t k) { return a(row_of(c), (changing ? t * order : 0) + k); };

                Signal<Sample> y(channels, samples);
                std::vector<double> after(before.size());
                expect(torchfx_allpole_forward(dtype_of<Sample>, x.values.data(), x.row, x.stride, 1, y.data(), y.row, channels,
                                               samples, dtype_of<Coefficient>, a.values.data(), order, changing, rows, 1,
                                               before.data(), after.data(), 2) == TORCHFX_OK, "allpole is accepted");
                std::vector<double> right, right_after, right_x, right_a(static_cast<size_t>(channels * times * order)), right_before;
                for (int64_t c = 0; c < channels; ++c) {
                    std::vector<double> all(static_cast<size_t>(order + samples)), g(all.size(), 0.0);
                    const auto place = [&](int64_t t) { return static_cast<size_t>(order + t); };
                    for (int64_t k = 0; k < order; ++k) all[place(-1 - k)] = before[static_cast<size_t>(c * order + k)];
                    for (int64_t t = 0; t < samples; ++t) {
                        double value = x(c, t);
                        for (int64_t k = 0; k < order; ++k) value -= a_at(c, t, k) * all[place(t - 1 - k)];
                        all[place(t)] = value;
                        right.push_back(value);
                    }
                    for (int64_t k = 0; k < order; ++k) right_after.push_back(all[place(samples - 1 - k)]);
                    // Backwards through the recursion, with the outputs as they were rounded.
                    for (int64_t t = 0; t < samples; ++t) all[place(t)] = y(c, t);
                    for (int64_t t = 0; t < samples; ++t) g[place(t)] = grad_y(c, t);
                    for (int64_t k = 0; k < order; ++k) g[place(samples - 1 - k)] += grad_after[static_cast<size_t>(c * order + k)];
                    for (int64_t t = samples - 1; t >= 0; --t)
                        for (int64_t k = 0; k < order; ++k) {
                            g[place(t - 1 - k)] -= a_at(c, t, k) * g[place(t)];
                            right_a[static_cast<size_t>((c * times + (changing ? t : 0)) * order + k)] -=
                                g[place(t)] * all[place(t - 1 - k)];
                        }
                    right_x.insert(right_x.end(), g.begin() + order, g.end());
                    for (int64_t k = 0; k < order; ++k) right_before.push_back(g[place(-1 - k)]);
                }
                expect(near(right, y.values), "allpole is the recursion");
                expect(near(right_after, after), "its state is the last outputs");
                Signal<Sample> grad_x(channels, samples);
                std::vector<Coefficient> grad_a(right_a.size());
                std::vector<double> grad_before(before.size());
                expect(torchfx_allpole_backward(dtype_of<Sample>, grad_y.values.data(), grad_y.row, grad_y.stride, y.data(),
                                                y.row, 1, channels, samples, dtype_of<Coefficient>, a.values.data(), order,
                                                changing, rows, 1, before.data(), grad_after.data(), grad_x.data(), grad_x.row,
                                                grad_a.data(), grad_before.data(), 2) == TORCHFX_OK, "gradients are accepted");
                expect(near(right_x, grad_x.values), "the signal's gradient is the adjoint's output");
                expect(near(right_a, grad_a), "the coefficients' gradient is a sum of products");
                expect(near(right_before, grad_before), "the state's gradient is what the adjoint leaves");
            }
}

// The solution of y = passed + gain u, u = tanh(drive (x - feedback y)) / drive, by halving; the right side falls with y.
double saturated(double passed, double gain, double x, double feedback, double drive) {
    const auto input = [&](double y) {
        return drive == 0 ? x - feedback * y : std::tanh(drive * (x - feedback * y)) / drive;
    };
    double low = -1e3, high = 1e3;
    for (int i = 0; i < 200; ++i) {
        const double y = (low + high) / 2;
        (passed + gain * input(y) > y ? low : high) = y;
    }
    return input((low + high) / 2);
}

template <class Sample>
void state_space_is_the_system() {
    for (const int64_t samples : {1, 6, 600})
        for (const int64_t states : {1, 2, 3, 4})
            for (const int64_t times : {int64_t{1}, samples / 3, samples}) {
                if (times < 1) continue;
                const int64_t channels = pick(1, 9), rows = channels > 1 ? 2 : 1, size = (states + 1) * (states + 1);
                const Signal<Sample> x(channels, samples, pick(1, 2)), grad_y(channels, samples, pick(1, 2));
                const Signal<double> systems(rows, times * size, 1, 0.9 / static_cast<double>(states + 1));
                const std::vector<double> before = noises(channels * states), grad_after = noises(channels * states);
                const auto at = [&](int64_t c, int64_t t, int64_t i, int64_t j) {
                    return systems(rows == 1 ? 0 : c % rows, t / (samples / times) * size + i * (states + 1) + j);
                };
                Signal<Sample> y(channels, samples), grad_x(channels, samples), through(channels, samples);
                std::vector<double> after(before.size()), grad_before(before.size());
                std::vector<double> grad_m(static_cast<size_t>(channels * times * size)), right_m(grad_m.size());
                std::vector<double> right, right_after, right_x, right_before, right_through;
                expect(torchfx_state_space_forward(dtype_of<Sample>, x.values.data(), x.row, x.stride, 1, y.data(), y.row,
                                                   channels, samples, systems.values.data(), states, times, rows, 1,
                                                   before.data(), after.data(), 2) == TORCHFX_OK, "systems are accepted");
                expect(torchfx_state_space_backward(dtype_of<Sample>, x.values.data(), x.row, x.stride, 1, grad_y.values.data(),
                                                    grad_y.row, grad_y.stride, channels, samples, systems.values.data(), states,
                                                    times, rows, 1, before.data(), grad_after.data(), grad_x.data(), grad_x.row,
                                                    grad_m.data(), grad_before.data(), 2) == TORCHFX_OK, "gradients are accepted");
                std::vector<double> feedback, drive;
                for (int64_t c = 0; c < channels; ++c) {
                    // Feedback around the direct path must not be positive.
                    feedback.push_back(at(c, 0, states, states) >= 0 ? 0.3 : -0.3);
                    drive.push_back(c % 3 == 2 ? 0.0 : 1.5);
                }
                const bool solvable = times == 1;
                const std::vector<double> outputs = noises(rows * (states + 1));
                if (solvable)
                    expect(torchfx_saturated_forward(dtype_of<Sample>, x.values.data(), x.row, x.stride, 1, through.data(),
                                                     through.row, channels, samples, systems.values.data(), states, times, rows,
                                                     1, outputs.data(), feedback.data(), drive.data(), nullptr, 1, 1,
                                                     before.data(), after.data(), 2) == TORCHFX_OK,
                           "a loop with an amplifier is accepted");
                for (int64_t c = 0; c < channels; ++c) {
                    const auto step = [&](int64_t t, const std::vector<double>& in) {
                        std::vector<double> out(in.size());
                        for (int64_t i = 0; i <= states; ++i)
                            for (int64_t j = 0; j <= states; ++j)
                                out[static_cast<size_t>(i)] += at(c, t, i, j) * in[static_cast<size_t>(j)];
                        return out;
                    };
                    const std::vector<double> start(before.begin() + c * states, before.begin() + (c + 1) * states);
                    std::vector<std::vector<double>> inputs;
                    std::vector<double> in = start, looped = start;
                    in.push_back(0);
                    looped.push_back(0);
                    for (int64_t t = 0; t < samples; ++t) {
                        in.back() = x(c, t);
                        inputs.push_back(in);
                        in = step(t, in);
                        right.push_back(in.back());
                        if (!solvable) continue;
                        looped.back() = 0;
                        looped.back() = saturated(step(t, looped).back(), at(c, t, states, states), x(c, t),
                                                  feedback[static_cast<size_t>(c)], drive[static_cast<size_t>(c)]);
                        right_through.push_back(std::inner_product(looped.begin(), looped.end(),
                                                                   outputs.begin() + c % rows * (states + 1), 0.0));
                        looped = step(t, looped);
                    }
                    right_after.insert(right_after.end(), (solvable ? looped : in).begin(), (solvable ? looped : in).end() - 1);
                    std::vector<double> adjoint(grad_after.begin() + c * states, grad_after.begin() + (c + 1) * states);
                    adjoint.push_back(0);
                    std::vector<double> backwards;
                    for (int64_t t = samples - 1; t >= 0; --t) {
                        adjoint.back() = grad_y(c, t);
                        std::vector<double> next(adjoint.size());
                        for (int64_t i = 0; i <= states; ++i)
                            for (int64_t j = 0; j <= states; ++j) {
                                next[static_cast<size_t>(j)] += at(c, t, i, j) * adjoint[static_cast<size_t>(i)];
                                right_m[static_cast<size_t>((c * times + t / (samples / times)) * size + i * (states + 1) + j)] +=
                                    adjoint[static_cast<size_t>(i)] * inputs[static_cast<size_t>(t)][static_cast<size_t>(j)];
                            }
                        adjoint = next;
                        backwards.push_back(adjoint.back());
                    }
                    right_x.insert(right_x.end(), backwards.rbegin(), backwards.rend());
                    right_before.insert(right_before.end(), adjoint.begin(), adjoint.end() - 1);
                }
                expect(near(right, y.values), "the outputs are the system's");
                expect(near(right_after, after), "the state after is the system's");
                if (solvable) expect(near(right_through, through.values), "the loop's outputs are the equation's solution");
                expect(near(right_x, grad_x.values), "the signal's gradient is the transposed system's output");
                expect(near(right_m, grad_m), "the matrices' gradient is a sum of products");
                expect(near(right_before, grad_before), "the state's gradient is what the transposed system leaves");
            }
}

void what_does_not_fit_is_refused() {
    context = "arguments";
    const std::vector<double> x(8), a = {0.5, std::numeric_limits<double>::quiet_NaN()};
    std::vector<double> y(8, 7.0), state(4);
    const auto allpole = [&](int64_t channels, int64_t order, int64_t rows, int32_t threads) {
        return torchfx_allpole_forward(TORCHFX_F64, x.data(), 8, 1, 1, y.data(), 8, channels, 8, TORCHFX_F64, a.data(), order, 0,
                                       rows, 1, nullptr, state.data(), threads);
    };
    expect(allpole(0, 1, 1, 1) == TORCHFX_BAD_ARGUMENT, "no channels are refused");
    expect(allpole(1, 0, 1, 1) == TORCHFX_BAD_ARGUMENT, "order 0 is refused");
    expect(allpole(1, 1, 2, 1) == TORCHFX_BAD_ARGUMENT, "a row without a channel is refused");
    expect(allpole(1, 1, 1, 0) == TORCHFX_BAD_ARGUMENT, "no threads are refused");
    expect(allpole(1, 2, 1, 1) == TORCHFX_NOT_FINITE, "coefficients that are not finite are refused");
    const auto system = [&](int64_t states, int64_t times) {
        return torchfx_state_space_forward(TORCHFX_F64, x.data(), 8, 1, 1, y.data(), 8, 1, 8, x.data(), states, times, 1, 1,
                                           nullptr, nullptr, 1);
    };
    expect(system(0, 1) == TORCHFX_BAD_ARGUMENT, "no states are refused");
    expect(system(5, 1) == TORCHFX_BAD_ARGUMENT, "five states are refused");
    expect(system(1, 3) == TORCHFX_BAD_ARGUMENT, "matrices that hold for no whole number of samples are refused");
    expect(std::count(y.begin(), y.end(), 7.0) == 8, "a refused call writes nothing");
}

}  // namespace

int main() {
    with_every_isa([] {
        context = "float";
        allpole_is_the_recursion<float, float>();
        allpole_is_the_recursion<float, double>();
        state_space_is_the_system<float>();
        context = "double";
        allpole_is_the_recursion<double, double>();
        state_space_is_the_system<double>();
    });
    what_does_not_fit_is_refused();
    return report();
}
