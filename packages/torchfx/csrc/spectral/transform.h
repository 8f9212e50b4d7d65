// The plan of a real Fourier transform of an even size with the factors 2, 3 and 5: half as many complex values, in
// passes of radix 8, 5, 4, 3 and 2.
#ifndef TORCHFX_SPECTRAL_TRANSFORM_H
#define TORCHFX_SPECTRAL_TRANSFORM_H

#include <cstdint>
#include <memory>
#include <vector>

#include "spectral/kernels.h"

namespace torchfx {

class RealTransform {
public:
    explicit RealTransform(int64_t size);
    RealTransformView view() const {
        return {half_, passes_.data(), static_cast<int64_t>(passes_.size()), split_.data(),
                order_.data()};
    }

private:
    int64_t half_;
    std::vector<TransformPass> passes_;
    std::vector<std::vector<float>> roots_;
    std::vector<float> split_;
    std::vector<int64_t> order_;
};

// Whether there is one of this size.
bool has_real_transform(int64_t size);

// The plan for a size, kept and shared between calls and threads. Throws std::bad_alloc.
std::shared_ptr<const RealTransform> real_transform(int64_t size);

}  // namespace torchfx

#endif
