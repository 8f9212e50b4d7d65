// Recursive filters and their gradients, sample by sample in long double, and filters to try them with.
#ifndef TORCHFX_SOS_REFERENCE_H
#define TORCHFX_SOS_REFERENCE_H

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "testing.h"

namespace testing {

using Real = long double;
using Signal = std::vector<std::vector<Real>>;  // [channel][sample]

constexpr double pi = 3.14159265358979323846;

struct Section {
    Real b0, b1, b2, a1, a2;
    explicit Section(const double* sos)
        : b0(Real(sos[0]) / sos[3]), b1(Real(sos[1]) / sos[3]), b2(Real(sos[2]) / sos[3]), a1(Real(sos[4]) / sos[3]),
          a2(Real(sos[5]) / sos[3]) {}
};

// Cascades, (rows, sections, 6): channel c has row (c / repeat) % rows.
struct Sos {
    std::vector<double> values;
    int64_t rows = 1, repeat = 1;

    Sos(std::vector<double> shared) : values(std::move(shared)) {}
    Sos(const std::vector<std::vector<double>>& one_a_row, int64_t repeat)
        : rows(static_cast<int64_t>(one_a_row.size())), repeat(repeat) {
        for (const auto& row : one_a_row) values.insert(values.end(), row.begin(), row.end());
    }

    int64_t sections() const { return static_cast<int64_t>(values.size()) / (6 * rows); }
    // Where the coefficients of channel c and section k begin.
    std::size_t at(std::size_t c, std::size_t k) const {
        const int64_t row = static_cast<int64_t>(c) / repeat % rows;
        return 6 * static_cast<std::size_t>(row * sections() + static_cast<int64_t>(k));
    }
};

// Filters x in place through section k; state is (sections, channels, 2).
inline void filter(const Sos& sos, std::size_t k, Signal& x, std::vector<Real>& state) {
    const std::size_t channels = x.size();
    for (std::size_t c = 0; c < channels; ++c) {
        const Section f(&sos.values[sos.at(c, k)]);
        Real& s1 = state[2 * (k * channels + c)];
        Real& s2 = state[2 * (k * channels + c) + 1];
        for (Real& v : x[c]) {
            const Real y = f.b0 * v + s1;
            s1 = f.b1 * v - f.a1 * y + s2;
            s2 = f.b2 * v - f.a2 * y;
            v = y;
        }
    }
}

// The same through all of them.
inline void filter(const Sos& sos, Signal& x, std::vector<Real>& state) {
    for (std::size_t k = 0; k < static_cast<std::size_t>(sos.sections()); ++k) filter(sos, k, x, state);
}

// Given the gradients at the output and at the final state, turns them into those at the input and at the initial
// state, and returns that of sos.
inline std::vector<Real> filter_gradient(const Sos& sos, const Signal& x, std::vector<Real> state, Signal& grad,
                                         std::vector<Real>& grad_state) {
    const std::size_t channels = x.size(), sections = static_cast<std::size_t>(sos.sections());
    std::vector<Signal> passing{x};  // what enters each section, and what leaves the last
    for (std::size_t k = 0; k < sections; ++k) {
        passing.push_back(passing.back());
        filter(sos, k, passing.back(), state);
    }
    std::vector<Real> grad_sos(sos.values.size());
    for (std::size_t k = sections; k-- > 0;) {
        for (std::size_t c = 0; c < channels; ++c) {
            const Section f(&sos.values[sos.at(c, k)]);
            Real b0 = 0, b1 = 0, b2 = 0, a1 = 0, a2 = 0;
            Real& g1 = grad_state[2 * (k * channels + c)];
            Real& g2 = grad_state[2 * (k * channels + c) + 1];
            for (std::size_t t = x[c].size(); t-- > 0;) {
                const Real in = passing[k][c][t], out = passing[k + 1][c][t];
                const Real gy = grad[c][t] - f.a1 * g1 - f.a2 * g2;
                b0 += gy * in;
                b1 += g1 * in;
                b2 += g2 * in;
                a1 -= g1 * out;
                a2 -= g2 * out;
                grad[c][t] = f.b0 * gy + f.b1 * g1 + f.b2 * g2;
                g2 = g1;
                g1 = gy;
            }
            const Real a0 = sos.values[sos.at(c, k) + 3];
            Real* g = &grad_sos[sos.at(c, k)];
            g[0] += b0 / a0;
            g[1] += b1 / a0;
            g[2] += b2 / a0;
            g[4] += a1 / a0;
            g[5] += a2 / a0;
            g[3] -= (f.b0 * b0 + f.b1 * b1 + f.b2 * b2 + f.a1 * a1 + f.a2 * a2) / a0;
        }
    }
    return grad_sos;
}

// Poles anywhere up to 1e-4 from the unit circle, real and complex; every section scaled by some a0. Many sections keep
// further away: a long cascade of random resonances amplifies rounding whatever computes it.
inline std::vector<double> random_sos(int64_t sections) {
    const double nearest = sections < 10 ? 3.7 : 0.7, largest_real = sections < 10 ? 0.99 : 0.8;
    std::vector<double> sos;
    for (int64_t k = 0; k < sections; ++k) {
        const double radius = 1 - std::pow(10, -0.3 - nearest * std::fabs(noise()));
        const double angle = pi * std::fabs(noise()), zero = std::fabs(noise());
        double a1 = -2 * radius * std::cos(angle), a2 = radius * radius;
        if (pick(0, 3) == 0) {  // two real poles
            const double p = largest_real * noise(), q = largest_real * noise();
            a1 = -(p + q);
            a2 = p * q;
        }
        // A gain of about one where the poles are, so that no section drowns what the others do.
        const double gain = 1 - radius + 0.05, scale = (pick(0, 1) ? 1 : 0.5 + std::fabs(noise()));
        for (const double v : {gain, -2 * gain * zero * std::cos(angle + noise()), gain * zero * zero, 1.0, a1, a2})
            sos.push_back(v * scale);
    }
    return sos;
}

// Butterworth filters of even order by the bilinear transform; cutoff as a share of the sampling rate.
inline std::vector<double> butterworth(int order, double cutoff, bool low) {
    std::vector<double> sos;
    const double w = std::tan(pi * cutoff);
    for (int k = 0; k < order / 2; ++k) {
        const double damping = 2 * std::cos(pi * (2 * k + 1) / (2 * order));
        const double a0 = 1 + damping * w + w * w, b0 = (low ? w * w : 1) / a0;
        for (const double v : {b0, low ? 2 * b0 : -2 * b0, b0, 1.0, 2 * (w * w - 1) / a0, (1 - damping * w + w * w) / a0})
            sos.push_back(v);
    }
    return sos;
}
inline std::vector<double> lowpass(int order, double cutoff) { return butterworth(order, cutoff, true); }
inline std::vector<double> highpass(int order, double cutoff) { return butterworth(order, cutoff, false); }

// As many sections by ones that do nothing.
inline std::vector<double> padded(std::vector<double> sos, int64_t sections) {
    while (static_cast<int64_t>(sos.size()) < 6 * sections)
        for (const double v : {1.0, 0.0, 0.0, 1.0, 0.0, 0.0}) sos.push_back(v);
    return sos;
}

// A first-order low-pass filter.
inline std::vector<double> first_order(double cutoff) {
    const double w = std::tan(pi * cutoff), b = w / (1 + w);
    return {b, b, 0, 1, (w - 1) / (w + 1), 0};
}

// Filters that have nothing in common: 20 Hz in the 12th order, 10 kHz in the first, resonances and low filters anywhere.
inline std::vector<std::vector<double>> unlike_rows(int64_t rows) {
    std::vector<std::vector<double>> sos{lowpass(12, 20.0 / 48000), padded(first_order(10000.0 / 48000), 6)};
    while (static_cast<int64_t>(sos.size()) < rows) sos.push_back(pick(0, 1) ? random_sos(6) : lowpass(12, 0.2 + 0.19 * noise()));
    sos.resize(static_cast<std::size_t>(rows));
    return sos;
}

inline Real peak(const std::vector<Real>& channel) {
    Real largest = 0;
    for (const Real v : channel) largest = std::max(largest, std::fabs(v));
    return largest;
}

}  // namespace testing

#endif
