// The steps that act on every sample by itself: gain, clamp, add, crossfade, and the conversions widen and narrow.
#include <algorithm>
#include <cmath>

#include "program/step.h"
#include "support/rows.h"

// In place the compiler would not see that no sample depends on another.
#if defined(__clang__)
#define TORCHFX_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#elif defined(__GNUC__)
#define TORCHFX_INDEPENDENT _Pragma("GCC ivdep")
#else
#define TORCHFX_INDEPENDENT
#endif

namespace torchfx {
namespace {

// target[t] = function(source[t]), where of_channel(c) is the function of channel c.
template <class Source, class Target, class OfChannel>
void map(const StepRun& run, OfChannel&& of_channel) {
    for_parts(run, [&](int64_t c, int64_t first, int64_t count) {
        const auto function = of_channel(c);
        const int64_t stride = run.source.time_stride;
        const Source* x = run.source.channel<const Source>(c) + first * stride;
        Target* y = run.target.channel<Target>(c) + first;
        if (stride == 1) {
            TORCHFX_INDEPENDENT
            for (int64_t t = 0; t < count; ++t) y[t] = function(x[t]);
        } else if (stride == -1) {
            TORCHFX_INDEPENDENT
            for (int64_t t = 0; t < count; ++t) y[t] = function(x[-t]);
        } else {
            for (int64_t t = 0; t < count; ++t) y[t] = function(x[t * stride]);
        }
    });
}

// Calls body with a 0 of the step's dtype.
template <class Body>
int32_t with_samples(const Step& step, Body&& body) {
    if (step.dtype() == TORCHFX_F32) body(float{});
    else body(double{});
    return TORCHFX_OK;
}

namespace gain {

TORCHFX_FIELDS(gain);

Rows rows_of(const Step& step) { return {step.integer(rows), step.integer(repeat)}; }

int32_t check(const Step& step, const StepCheck& check) {
    if (!step.integer(factors) || !rows_of(step).valid(check.channels)) return TORCHFX_BAD_ARGUMENT;
    const double* const values = step.pointer<const double>(factors);
    const bool finite = std::all_of(values, values + step.integer(rows), [](double v) { return std::isfinite(v); });
    return finite ? TORCHFX_OK : TORCHFX_NOT_FINITE;
}

int32_t run(const Step& step, const StepRun& run) {
    return with_samples(step, [&](auto zero) {
        using Sample = decltype(zero);
        map<Sample, Sample>(run, [&](int64_t c) {
            const Sample factor = static_cast<Sample>(step.pointer<const double>(factors)[rows_of(step).of(c)]);
            return [factor](Sample v) { return v * factor; };
        });
    });
}

}  // namespace gain

namespace clamp {

TORCHFX_FIELDS(clamp);

int32_t check(const Step& step, const StepCheck&) {
    return std::isnan(step.real(low)) || std::isnan(step.real(high)) ? TORCHFX_NOT_FINITE : TORCHFX_OK;
}

int32_t run(const Step& step, const StepRun& run) {
    return with_samples(step, [&](auto zero) {
        using Sample = decltype(zero);
        const Sample least = static_cast<Sample>(step.real(low)), most = static_cast<Sample>(step.real(high));
        map<Sample, Sample>(run, [&](int64_t) {
            // Comparisons with a NaN are false, so it stays.
            return [least, most](Sample v) {
                const Sample raised = v < least ? least : v;
                return raised > most ? most : raised;
            };
        });
    });
}

}  // namespace clamp

namespace add {

TORCHFX_FIELDS(add);

int32_t check(const Step& step, const StepCheck& check) {
    return check.holds(step.integer(second), step.dtype()) ? TORCHFX_OK : TORCHFX_BAD_ARGUMENT;
}

int32_t run(const Step& step, const StepRun& run) {
    const Samples& other = run.buffers[step.integer(second)];
    return with_samples(step, [&](auto zero) {
        using Sample = decltype(zero);
        for_parts(run, [&](int64_t c, int64_t first, int64_t count) {
            const int64_t a_stride = run.source.time_stride, b_stride = other.time_stride;
            const Sample* a = run.source.channel<const Sample>(c) + first * a_stride;
            const Sample* b = other.channel<const Sample>(c) + first * b_stride;
            Sample* y = run.target.channel<Sample>(c) + first;
            if (a_stride == 1 && b_stride == 1) {
                TORCHFX_INDEPENDENT
                for (int64_t t = 0; t < count; ++t) y[t] = a[t] + b[t];
            } else {
                for (int64_t t = 0; t < count; ++t) y[t] = a[t * a_stride] + b[t * b_stride];
            }
        });
    });
}

}  // namespace add

namespace crossfade {

TORCHFX_FIELDS(crossfade);

int32_t check(const Step& step, const StepCheck& check) {
    const bool valid = step.integer(passed) && step.integer(waiting) >= 0 && step.integer(length) >= 1;
    return valid && check.holds(step.integer(second), step.dtype()) ? TORCHFX_OK : TORCHFX_BAD_ARGUMENT;
}

// Where one of both is not heard, it may be infinite.
int32_t run(const Step& step, const StepRun& run) {
    const Samples& other = run.buffers[step.integer(second)];
    const int64_t begin = *step.pointer<const int64_t>(passed) - step.integer(waiting), whole = step.integer(length);
    const int64_t rise = std::clamp<int64_t>(-begin, 0, run.samples);
    const int64_t end = std::clamp<int64_t>(whole - begin, rise, run.samples);
    with_samples(step, [&](auto zero) {
        using Sample = decltype(zero);
        for (int64_t c = 0; c < run.channels; ++c) {
            const Sample* const a = run.source.channel<const Sample>(c);
            const Sample* const b = other.channel<const Sample>(c);
            Sample* const y = run.target.channel<Sample>(c);
            const int64_t a_stride = run.source.time_stride, b_stride = other.time_stride;
            copy(a, a_stride, rise, y);
            for (int64_t t = rise; t < end; ++t) {
                const double u = static_cast<double>(begin + t + 1) / static_cast<double>(whole), along = u * u * (3 - 2 * u);
                const double from = a[t * a_stride];
                y[t] = along < 1 ? static_cast<Sample>(from + along * (b[t * b_stride] - from)) : b[t * b_stride];
            }
            copy(b + end * b_stride, b_stride, run.samples - end, y + end);
        }
    });
    *step.pointer<int64_t>(passed) += run.samples;
    return TORCHFX_OK;
}

}  // namespace crossfade

namespace convert {

template <int32_t from>
int32_t check(const Step& step, const StepCheck&) {
    return step.dtype() == from ? TORCHFX_OK : TORCHFX_BAD_ARGUMENT;
}

template <class Source, class Target>
int32_t run(const Step&, const StepRun& run) {
    map<Source, Target>(run, [](int64_t) { return [](Source v) { return static_cast<Target>(v); }; });
    return TORCHFX_OK;
}

}  // namespace convert
}  // namespace

extern const StepKind gain_step = {true, false, gain::check, gain::run, nullptr};
extern const StepKind clamp_step = {true, false, clamp::check, clamp::run, nullptr};
extern const StepKind add_step = {true, false, add::check, add::run, nullptr};
extern const StepKind crossfade_step = {false, false, crossfade::check, crossfade::run, nullptr};
extern const StepKind widen_step = {false, true, convert::check<TORCHFX_F32>, convert::run<float, double>, nullptr};
extern const StepKind narrow_step = {false, true, convert::check<TORCHFX_F64>, convert::run<double, float>, nullptr};

}  // namespace torchfx
