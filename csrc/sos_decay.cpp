// The bound is Cauchy's estimate: for every radius rho between the outermost pole and 1, the impulse response
// obeys |h[n]| <= rho^n M(rho) with M(rho) the largest |H(z)| on the circle |z| = rho, so the tail from W on sums
// to at most rho^W M(rho) / (1 - rho). It covers repeated poles and long cascades, whose responses first grow.
// M of a cascade is bounded by the product over its sections, where it has a closed form.
#include "sos_decay.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace torchfx {
namespace {

struct Quadratic {
    double c0, c1, c2;  // c0 z^2 + c1 z + c2
};

double modulus_squared(const Quadratic& q, double rho, double cosine) {
    const double r2 = rho * rho;
    return q.c0 * q.c0 * r2 * r2 + q.c1 * q.c1 * r2 + q.c2 * q.c2 +
           2 * q.c1 * rho * (q.c0 * r2 + q.c2) * cosine + 2 * q.c0 * q.c2 * r2 * (2 * cosine * cosine - 1);
}

struct Range {
    double smallest, largest;
};

// Range of |q|^2 on the circle |z| = rho: it is a parabola in the cosine of the angle.
Range range_on_circle(const Quadratic& q, double rho) {
    const double at_minus = modulus_squared(q, rho, -1), at_plus = modulus_squared(q, rho, 1);
    Range range{std::min(at_minus, at_plus), std::max(at_minus, at_plus)};
    const double bend = 4 * q.c0 * q.c2 * rho;
    if (bend != 0) {
        const double vertex = -q.c1 * (q.c0 * rho * rho + q.c2) / bend;
        if (std::fabs(vertex) < 1) {
            const double there = modulus_squared(q, rho, vertex);
            range.smallest = std::min(range.smallest, there);
            range.largest = std::max(range.largest, there);
        }
    }
    return range;
}

Quadratic numerator(const double* s) { return {s[0] / s[3], s[1] / s[3], s[2] / s[3]}; }
Quadratic denominator(const double* s) { return {1, s[4] / s[3], s[5] / s[3]}; }

double pole_radius(const Quadratic& a) {
    const double discriminant = a.c1 * a.c1 / 4 - a.c2;
    if (discriminant < 0) return std::sqrt(a.c2);
    return std::fabs(a.c1) / 2 + std::sqrt(discriminant);
}

// The gain at a few telling frequencies: a lower bound of the largest one.
double log_gain(const double* sos, int64_t sections) {
    constexpr int64_t angles = 8;
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t i = -2; i < std::min(sections, angles); ++i) {
        double cosine = i == -2 ? 1.0 : -1.0;  // constant and Nyquist, then the angles of the poles
        if (i >= 0) {
            const Quadratic a = denominator(sos + 6 * i);
            if (a.c2 <= 0) continue;
            cosine = std::clamp(-a.c1 / (2 * std::sqrt(a.c2)), -1.0, 1.0);
        }
        double sum = 0;
        for (int64_t k = 0; k < sections; ++k)
            sum += 0.5 * std::log(modulus_squared(numerator(sos + 6 * k), 1, cosine) /
                                  modulus_squared(denominator(sos + 6 * k), 1, cosine));
        if (sum > largest) largest = sum;
    }
    return largest;
}

}  // namespace

int64_t decay_samples(const double* sos, int64_t sections, double tolerance) {
    double outermost = 0;
    for (int64_t k = 0; k < sections; ++k) outermost = std::max(outermost, pole_radius(denominator(sos + 6 * k)));
    constexpr double hardly = 1e-7;
    if (!(outermost < 1 - hardly)) return std::numeric_limits<int64_t>::max();
    outermost = std::max(outermost, 0.1);  // keeps the logarithms finite; below it a few samples are enough anyway

    const double wanted = std::log(tolerance) + log_gain(sos, sections);
    double fewest = std::numeric_limits<double>::max();
    for (const double share : {0.95, 0.9, 0.8, 0.65, 0.5}) {  // of the way out to the pole, in the logarithm
        const double rho = std::pow(outermost, share);
        double log_bound = -std::log(1 - rho);
        for (int64_t k = 0; k < sections; ++k) {
            const double above = range_on_circle(numerator(sos + 6 * k), rho).largest;
            const double below = range_on_circle(denominator(sos + 6 * k), rho).smallest;
            log_bound += 0.5 * std::log(above / below);
        }
        // The negated comparison also drops a bound that is not a number.
        const double samples = (wanted - log_bound) / std::log(rho);
        if (samples < fewest) fewest = samples;
    }
    if (!(fewest < 1e15)) return std::numeric_limits<int64_t>::max();
    return std::max<int64_t>(static_cast<int64_t>(std::ceil(fewest)), 0) + 2 * sections;
}

}  // namespace torchfx
