// What the interfaces share: exported names and the status every function returns.
#ifndef TORCHFX_SUPPORT_API_H
#define TORCHFX_SUPPORT_API_H

#include <stdint.h>

#if defined(_WIN32)
#define TORCHFX_API __declspec(dllexport)
#else
#define TORCHFX_API __attribute__((visibility("default")))
#endif

enum torchfx_status {
    TORCHFX_OK = 0,
    TORCHFX_BAD_ARGUMENT = 1,   // a size, stride, dtype or pointer out of range
    TORCHFX_NOT_FINITE = 2,     // a coefficient or tap is NaN or infinite, or a0 is 0
    TORCHFX_UNSTABLE = 3,       // a pole on or outside the unit circle
    TORCHFX_NO_MEMORY = 4
};

#endif
