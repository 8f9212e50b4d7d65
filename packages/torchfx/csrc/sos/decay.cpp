// The bound is Cauchy's estimate: for every radius rho between the outermost pole and 1, the impulse response
// obeys |h[n]| <= rho^n M(rho) with M(rho) the largest |H(z)| on the circle |z| = rho, so the tail from W on sums
// to at most rho^W M(rho) / (1 - rho). It covers repeated poles and long cascades, whose responses first grow.
// M of a cascade is bounded by the product over its sections, where it has a closed form.
#include "sos/decay.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace torchfx {
namespace {

struct Quadratic {
    double c0, c1, c2;  // c0 z^2 + c1 z + c2

    // The same in z - 1, and with z mirrored.
    double at_one() const { return c0 + c1 + c2; }
    double slope_at_one() const { return 2 * c0 + c1; }
    Quadratic mirrored() const { return {c0, -c1, c2}; }
};

Quadratic numerator(const double* s) { return {s[0] / s[3], s[1] / s[3], s[2] / s[3]}; }
Quadratic denominator(const double* s) { return {1, s[4] / s[3], s[5] / s[3]}; }

// A point (1 - gap) e^(j angle). Low filters have poles and all that matters within 1e-4 of 1, where |q|^2 written out
// in z cancels down to nothing, or less: gap and 1 - cosine keep what z cannot hold.
struct Point {
    double gap, less, more;  // 1 - |z|, 1 - cosine, 1 + cosine of the angle
};

double modulus_squared(const Quadratic& quadratic, const Point& z) {
    const bool near_one = z.less <= z.more;
    const Quadratic q = near_one ? quadratic : quadratic.mirrored();
    const double radius = 1 - z.gap;
    const double re = -z.gap - radius * std::min(z.less, z.more), im = radius * std::sqrt(z.less * z.more);  // z - 1
    const double real = q.c0 * (re * re - im * im) + q.slope_at_one() * re + q.at_one();
    const double imaginary = (2 * q.c0 * re + q.slope_at_one()) * im;
    return real * real + imaginary * imaginary;
}

// Where on the circle |q|^2 bends over, as 1 - cosine: it is a parabola in the cosine of the angle. Negative: nowhere.
double bend(const Quadratic& q, double gap) {
    const double e = q.c0 - q.c2, slope = q.slope_at_one();
    const double less = 2 * q.c0 * q.at_one() + 4 * q.c0 * e * gap - 2 * q.c0 * q.c0 * gap * gap -
                        slope * (q.c0 * (2 * gap - gap * gap) + e);
    return less / (4 * q.c0 * q.c2 * (1 - gap));
}

struct Range {
    double smallest, largest;
};

// Range of |q|^2 on the circle with this gap to the unit circle.
Range range_on_circle(const Quadratic& q, double gap) {
    const double at_plus = modulus_squared(q, {gap, 0, 2}), at_minus = modulus_squared(q, {gap, 2, 0});
    Range range{std::min(at_minus, at_plus), std::max(at_minus, at_plus)};
    if (q.c0 == 0 || q.c2 == 0) return range;
    const double less = bend(q, gap), more = bend(q.mirrored(), gap);
    if (less > 0 && more > 0) {
        const double there = modulus_squared(q, less < more ? Point{gap, less, 2 - less} : Point{gap, 2 - more, more});
        range.smallest = std::min(range.smallest, there);
        range.largest = std::max(range.largest, there);
    }
    return range;
}

// 1 - the radius of the outermost pole.
double pole_gap(const Quadratic& a) {
    const Quadratic q = a.c1 <= 0 ? a : a.mirrored();  // now that pole is the one nearest to 1
    const double half = q.slope_at_one() / 2, discriminant = half * half - q.at_one();
    if (discriminant < 0) return (1 - q.c2) / (1 + std::sqrt(q.c2));
    return q.at_one() / (half + std::sqrt(discriminant));
}

// The angle of a pair of poles, or of what two real ones have between them.
Point pole_angle(const Quadratic& a) {
    const Quadratic q = a.c1 <= 0 ? a : a.mirrored();
    const double radius = std::sqrt(q.c2), gap = (1 - q.c2) / (1 + radius);
    const double less = std::clamp((q.slope_at_one() - 2 * gap) / (2 * radius), 0.0, 2.0);
    return a.c1 <= 0 ? Point{0, less, 2 - less} : Point{0, 2 - less, less};
}

// The gain at a few telling frequencies: a lower bound of the largest one.
double log_gain(const double* sos, int64_t sections) {
    constexpr int64_t angles = 8;
    double largest = -std::numeric_limits<double>::infinity();
    for (int64_t i = -2; i < std::min(sections, angles); ++i) {
        Point z = i == -2 ? Point{0, 0, 2} : Point{0, 2, 0};  // constant and Nyquist, then the angles of the poles
        if (i >= 0) {
            const Quadratic a = denominator(sos + 6 * i);
            if (a.c2 <= 0) continue;
            z = pole_angle(a);
        }
        double sum = 0;
        for (int64_t k = 0; k < sections; ++k)
            sum += 0.5 * std::log(modulus_squared(numerator(sos + 6 * k), z) / modulus_squared(denominator(sos + 6 * k), z));
        if (sum > largest) largest = sum;
    }
    return largest;
}

}  // namespace

int64_t decay_samples(const double* sos, int64_t sections, double tolerance, int64_t at_most) {
    constexpr int64_t never = std::numeric_limits<int64_t>::max();
    constexpr double shares[] = {0.95, 0.9, 0.8, 0.65, 0.5};  // of the way out to the pole, in the logarithm
    double outermost = 0.9;  // keeps the logarithms finite; further in a few samples are enough anyway
    for (int64_t k = 0; k < sections; ++k) outermost = std::min(outermost, pole_gap(denominator(sos + 6 * k)));
    constexpr double hardly = 1e-7;
    if (!(outermost > hardly)) return never;
    // M(rho) is no smaller than the gain, so the bounds below are no smaller than this.
    const double log_pole = std::log1p(-outermost);
    if (std::log(tolerance) / (shares[0] * log_pole) > static_cast<double>(at_most)) return never;

    const double wanted = std::log(tolerance) + log_gain(sos, sections);
    double fewest = std::numeric_limits<double>::max();
    for (const double share : shares) {
        const double log_rho = share * log_pole, gap = -std::expm1(log_rho);
        double log_bound = -std::log(gap);
        for (int64_t k = 0; k < sections; ++k) {
            const double above = range_on_circle(numerator(sos + 6 * k), gap).largest;
            const double below = range_on_circle(denominator(sos + 6 * k), gap).smallest;
            log_bound += 0.5 * std::log(above / below);
        }
        // The negated comparison also drops a bound that is not a number.
        const double samples = (wanted - log_bound) / log_rho;
        if (samples < fewest) fewest = samples;
    }
    if (!(fewest < 1e15)) return never;
    const int64_t samples = std::max<int64_t>(static_cast<int64_t>(std::ceil(fewest)), 0) + 2 * sections;
    return samples > at_most ? never : samples;
}

}  // namespace torchfx
