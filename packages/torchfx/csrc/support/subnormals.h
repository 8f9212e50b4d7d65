// Arithmetic on subnormal numbers, doubles below 2.2e-308 and floats below 1.2e-38: x86 takes 100 to 200 times as long
// for it, so work on doubles, where no audio lives that far down, takes them for zero.
#ifndef TORCHFX_SUPPORT_SUBNORMALS_H
#define TORCHFX_SUPPORT_SUBNORMALS_H

#include <cstdint>

#if defined(__SSE2__) || defined(_M_X64)
#include <xmmintrin.h>
#endif

namespace torchfx {

// The bits of the thread's floating-point control register that flush subnormal operands and results to zero. They
// concern floats and doubles alike. 0: this processor has none that we know of.
#if defined(__SSE2__) || defined(_M_X64)
constexpr uint64_t flush_bits = 1u << 15 | 1u << 6;
inline uint64_t float_control() { return _mm_getcsr(); }
inline void set_float_control(uint64_t bits) { _mm_setcsr(static_cast<unsigned>(bits)); }
#elif defined(__aarch64__) && defined(__GNUC__)
constexpr uint64_t flush_bits = 1u << 24;
inline uint64_t float_control() {
    uint64_t bits;
    asm volatile("mrs %0, fpcr" : "=r"(bits));
    return bits;
}
inline void set_float_control(uint64_t bits) { asm volatile("msr fpcr, %0" : : "r"(bits)); }
#else
constexpr uint64_t flush_bits = 0;
inline uint64_t float_control() { return 0; }
inline void set_float_control(uint64_t) {}
#endif

// Which of these bits are set.
inline uint64_t flush_mode() { return float_control() & flush_bits; }
inline void set_flush_mode(uint64_t bits) { set_float_control((float_control() & ~flush_bits) | bits); }

// While one lives, if `wanted`, this thread flushes, and so do the workers of parallel_for calls it makes.
class FlushSubnormals {
public:
    explicit FlushSubnormals(bool wanted) : wanted_(wanted) {
        if (!wanted_) return;
        before_ = flush_mode();
        set_flush_mode(flush_bits);
    }
    ~FlushSubnormals() {
        if (wanted_) set_flush_mode(before_);
    }
    FlushSubnormals(const FlushSubnormals&) = delete;
    FlushSubnormals& operator=(const FlushSubnormals&) = delete;

private:
    bool wanted_;
    uint64_t before_ = 0;
};

}  // namespace torchfx

#endif
