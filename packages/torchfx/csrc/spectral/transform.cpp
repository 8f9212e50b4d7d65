#include "spectral/transform.h"

#include <cmath>
#include <map>
#include <mutex>

namespace torchfx {
namespace {

constexpr double turn = 6.283185307179586476925;
constexpr std::size_t kept = 32;  // plans at a time

// The radix of the next pass: a factor 5 or 3, then 8 as long as no single factor 2 is left over by it.
int64_t next_radix(int64_t left) {
    for (const int64_t radix : {5, 3})
        if (left % radix == 0) return radix;
    if (left == 2) return 2;
    return left % 8 == 0 && left != 16 ? 8 : 4;
}

}  // namespace

bool has_real_transform(int64_t size) {
    if (size < 4 || size % 2 != 0) return false;
    for (const int64_t factor : {2, 3, 5})
        while (size % factor == 0) size /= factor;
    return size == 1;
}

RealTransform::RealTransform(int64_t size) : half_(size / 2) {
    for (int64_t left = half_; left > 1;) {
        const int64_t radix = next_radix(left);
        const int64_t blocks = left / radix;
        std::vector<float> roots(static_cast<std::size_t>(2 * left));
        for (int64_t p = 0; p < blocks; ++p)
            for (int64_t j = 0; j < radix; ++j) {
                const double angle = -turn * static_cast<double>(p * j) / static_cast<double>(left);
                roots[static_cast<std::size_t>(2 * (p * radix + j))] = static_cast<float>(std::cos(angle));
                roots[static_cast<std::size_t>(2 * (p * radix + j) + 1)] = static_cast<float>(std::sin(angle));
            }
        roots_.push_back(std::move(roots));
        passes_.push_back({radix, left, roots_.back().data()});
        left = blocks;
    }
    for (int64_t k = 0; k < half_; ++k) {
        int64_t at = 0, left = k;
        for (const TransformPass& pass : passes_) {
            at += left % pass.radix * (pass.size / pass.radix);
            left /= pass.radix;
        }
        order_.push_back(at);
    }
    for (int64_t k = 0; k <= half_ / 2; ++k) {
        const double angle = -turn * static_cast<double>(k) / static_cast<double>(size);
        split_.push_back(static_cast<float>(std::cos(angle)));
        split_.push_back(static_cast<float>(std::sin(angle)));
    }
}

std::shared_ptr<const RealTransform> real_transform(int64_t size) {
    static std::mutex mutex;
    static std::map<int64_t, std::shared_ptr<const RealTransform>> plans;
    const std::lock_guard<std::mutex> lock(mutex);
    const auto found = plans.find(size);
    if (found != plans.end()) return found->second;
    if (plans.size() >= kept) plans.clear();
    return plans[size] = std::make_shared<const RealTransform>(size);
}

}  // namespace torchfx
