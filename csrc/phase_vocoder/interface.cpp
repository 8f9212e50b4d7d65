// The phase vocoder: short spectra read at one pace and laid down at another. torchfx_dsp.h says what is computed.
//
// A transform of complex numbers serves two real frames: forwards those that an output frame depends on, backwards two
// output frames that follow each other. Frames need each other's phases, so threads share the channels.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "fft/kernels.h"
#include "fft/roots.h"
#include "support/pool.h"
#include "support/subnormals.h"
#include "support/workspace.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

// What a peak has more, as a part of it: rounding makes none.
constexpr double phase_vocoder_margin = 1e-9;

struct Job {
    int32_t dtype;
    const void* x;
    int64_t x_channel_stride, x_time_stride, samples;
    void* y;
    int64_t channels;
    const int64_t* starts;
    int64_t count;
    const double* window;
    int64_t size, hop;
    const double* state_in;  // (channels, size / 2 + 1, 2), or null
    double* state_out;
    int threads;
};

struct Value {
    double re, im;
};

struct Heard {
    bool now, before;
};

template <int lanes>  // of the transforms
class Vocoder {
public:
    explicit Vocoder(const Job& job)
        : job_(job), kernels_(TORCHFX_KERNELS(fft_kernels)), table_(fft_roots(job.size, lanes)),
          roots_(table_->view()), bins_(job.size / 2 + 1), place_(static_cast<std::size_t>(job.size)) {
        // The transform of a unit impulse at 1 tells which frequency each value of the output belongs to.
        Workspaces space(1, 2 * job.size);
        const Workspaces::Lease lease(space);
        double* data = lease.data();
        std::fill_n(data, 2 * job.size, 0.0);
        data[slot(1)] = 1;
        kernels_.forward(data, job.size, 0, roots_);
        const double turn = static_cast<double>(job.size) / (2 * 3.14159265358979323846);
        for (int64_t i = 0; i < job.size; ++i) {
            const double* at = data + slot(i);
            const int64_t bin = std::lround(std::atan2(at[lanes], at[0]) * turn);
            // Those transforms have exp(+2 pi i ...), and spectra here exp(-2 pi i ...).
            place_[static_cast<std::size_t>((job.size - bin) % job.size)] = static_cast<int32_t>(slot(i));
        }
    }

    void run() const {
        // Of a channel: a transform, five spectra, turns, powers, the frames' sum, and the peaks.
        const int64_t room = 2 * job_.size + 14 * bins_ + 5 + job_.size + job_.hop;
        Workspaces workspaces(job_.threads, room);
        parallel_for(job_.channels, job_.threads, [&](int64_t channel) {
            const Workspaces::Lease space(workspaces);
            if (job_.dtype == TORCHFX_F32) stretch<float>(channel, space.data());
            else stretch<double>(channel, space.data());
        });
    }

private:
    // Where the real part of value i lies in the transform's buffer; the imaginary part lies `lanes` further on.
    static int64_t slot(int64_t i) { return 2 * lanes * (i / lanes) + i % lanes; }
    static Value at(const double* data, int32_t place) { return {data[place], data[place + lanes]}; }
    static void put(double* data, int32_t place, double re, double im) {
        data[place] = re;
        data[place + lanes] = im;
    }

    template <class Sample>
    void stretch(int64_t channel, double* data) const {
        const int64_t n = job_.size, hop = job_.hop;
        Value* now = reinterpret_cast<Value*>(data + 2 * n);  // the spectrum read, and `hop` samples before it
        Value* before = now + bins_;
        Value* out[2] = {before + bins_, before + 2 * bins_};
        Value* last = out[1] + bins_;
        Value* turns = last + bins_;
        double* power = reinterpret_cast<double*>(turns + bins_) + 2;
        double* sum = power + bins_ + 3;
        power[-1] = power[-2] = power[bins_] = power[bins_ + 1] = -1;
        int32_t* peaks = reinterpret_cast<int32_t*>(sum + n + hop);
        const Sample* x = static_cast<const Sample*>(job_.x) + channel * job_.x_channel_stride;
        Sample* y = static_cast<Sample*>(job_.y) + channel * (job_.count * hop + n - hop);
        const std::size_t spectrum = sizeof(Value) * static_cast<std::size_t>(bins_);
        if (job_.state_in) std::memcpy(last, job_.state_in + 2 * bins_ * channel, spectrum);
        else std::memset(last, 0, spectrum);
        std::fill_n(sum, n + hop, 0.0);
        for (int64_t u = 0; u < job_.count; u += 2) {
            const int64_t together = std::min<int64_t>(2, job_.count - u);
            for (int64_t i = 0; i < together; ++i) {
                const Heard heard = read(x, job_.starts[u + i], data);
                kernels_.forward(data, n, 0, roots_);
                split(data, heard, now, before, power);
                turn(now, before, last, power, peaks, turns, out[i]);
                std::memcpy(last, out[i], spectrum);
            }
            if (together == 1) std::memset(out[1], 0, spectrum);
            join(out[0], out[1], data);
            kernels_.inverse(data, n, 0, roots_);
            add(data, sum);
            for (int64_t i = 0; i < together * hop; ++i) y[i] = static_cast<Sample>(sum[i]);
            y += together * hop;
            std::memmove(sum, sum + together * hop, sizeof(double) * static_cast<std::size_t>(n + hop - together * hop));
            std::fill_n(sum + n + hop - together * hop, together * hop, 0.0);
        }
        for (int64_t i = 0; i < n - hop; ++i) y[i] = static_cast<Sample>(sum[i]);
        std::memcpy(job_.state_out + 2 * bins_ * channel, last, spectrum);
    }

    // The frame from `start` on as real parts, the one `hop` samples before it as imaginary parts. Returns whether each
    // holds anything but zeros: what one transform's rounding leaves of the other must not look like a signal.
    template <class Sample>
    Heard read(const Sample* x, int64_t start, double* data) const {
        const bool inside = start >= job_.hop && start + job_.size <= job_.samples && job_.x_time_stride == 1;
        const int64_t hop = job_.hop;
        double now = 0, before = 0;
        for (int64_t i = 0; i < job_.size; i += lanes, data += 2 * lanes) {
            const double* window = job_.window + i;
            const Sample* from = x + start + i;
            for (int k = 0; k < lanes; ++k) {
                data[k] = window[k] * (inside ? static_cast<double>(from[k]) : sample(x, start + i + k));
                data[lanes + k] =
                    window[k] * (inside ? static_cast<double>(from[k - hop]) : sample(x, start + i + k - hop));
            }
            for (int k = 0; k < lanes; ++k) {
                now += std::abs(data[k]);
                before += std::abs(data[lanes + k]);
            }
        }
        return {now != 0, before != 0};
    }
    template <class Sample>
    double sample(const Sample* x, int64_t i) const {
        return i >= 0 && i < job_.samples ? static_cast<double>(x[i * job_.x_time_stride]) : 0;
    }

    void split(const double* data, Heard heard, Value* now, Value* before, double* power) const {
        const int32_t* place = place_.data();
        const int64_t n = job_.size;
        const double half_now = heard.now ? 0.5 : 0, half_before = heard.before ? 0.5 : 0;
        for (int64_t k = 0; k < bins_; ++k) {
            const Value a = at(data, place[k]), b = at(data, place[(n - k) & (n - 1)]);
            const Value p = {half_now * (a.re + b.re), half_now * (a.im - b.im)};
            now[k] = p;
            before[k] = {half_before * (a.im + b.im), half_before * (b.re - a.re)};
            power[k] = p.re * p.re + p.im * p.im;
        }
    }

    void turn(const Value* now, const Value* before, const Value* last, const double* power, int32_t* peaks,
              Value* turns, Value* out) const {
        const int64_t found = find_peaks(power, peaks);
        if (found == 0) std::copy_n(now, bins_, out);
        for (int64_t i = 0; i < found; ++i) {
            const Value a = last[peaks[i]], b = before[peaks[i]];
            const double re = a.re * b.re + a.im * b.im, im = a.im * b.re - a.re * b.im, square = re * re + im * im;
            const bool good = square > 0 && square < HUGE_VAL;
            const double scale = 1 / std::sqrt(good ? square : 1.0);
            turns[i] = {good ? re * scale : 1.0, good ? im * scale : 0.0};
        }
        for (int64_t i = 0, k = 0; i < found; ++i) {
            const int64_t end = i + 1 < found ? (peaks[i] + peaks[i + 1]) / 2 + 1 : bins_;
            const Value r = turns[i];
            for (; k < end; ++k) out[k] = {now[k].re * r.re - now[k].im * r.im, now[k].re * r.im + now[k].im * r.re};
        }
    }

    // Bins with more power than the two on each side, around which lie two of -1.
    int64_t find_peaks(const double* power, int32_t* peaks) const {
        int64_t found = 0;
        for (int64_t k = 0; k < bins_; ++k) {
            const double p = power[k] * (1 - phase_vocoder_margin);
            peaks[found] = static_cast<int32_t>(k);
            found += (p > power[k - 1]) & (p > power[k - 2]) & (p > power[k + 1]) & (p > power[k + 2]);
        }
        return found;
    }

    void join(const Value* a, const Value* b, double* data) const {
        const int32_t* place = place_.data();
        const int64_t n = job_.size;
        put(data, place[0], a[0].re, b[0].re);
        put(data, place[n / 2], a[n / 2].re, b[n / 2].re);
        for (int64_t k = 1; k < n / 2; ++k) {
            put(data, place[k], a[k].re - b[k].im, a[k].im + b[k].re);
            put(data, place[n - k], a[k].re + b[k].im, b[k].re - a[k].im);
        }
    }

    void add(const double* data, double* sum) const {
        const double scale = 1 / static_cast<double>(job_.size);
        for (int64_t i = 0; i < job_.size; i += lanes) {
            const double *from = data + 2 * i, *window = job_.window + i;
            for (int k = 0; k < lanes; ++k) sum[i + k] += window[k] * scale * from[k];
            for (int k = 0; k < lanes; ++k) sum[i + k + job_.hop] += window[k] * scale * from[lanes + k];
        }
    }

    const Job& job_;
    const FftKernels& kernels_;
    const std::shared_ptr<const FftRootTable> table_;
    const FftRoots roots_;
    const int64_t bins_;
    std::vector<int32_t> place_;  // of each bin's real part in the transform's buffer
};

void run(const Job& job) {
    switch (TORCHFX_KERNELS(fft_kernels).lanes) {
        case 1: return Vocoder<1>(job).run();
        case 2: return Vocoder<2>(job).run();
        case 4: return Vocoder<4>(job).run();
        default: return Vocoder<8>(job).run();
    }
}

bool valid(const Job& job) {
    const bool power_of_two = job.size >= fft_min_size && (job.size & (job.size - 1)) == 0;
    return (job.dtype == TORCHFX_F32 || job.dtype == TORCHFX_F64) && job.x && job.y && job.starts && job.window &&
           job.state_out && power_of_two && job.hop >= 1 && job.hop < job.size && job.channels >= 1 &&
           job.samples >= 0 && job.count >= 0 && job.threads >= 1;
}

}  // namespace
}  // namespace torchfx

using namespace torchfx;

extern "C" int32_t torchfx_phase_vocoder_forward(int32_t dtype, const void* x, int64_t x_channel_stride,
                                                 int64_t x_time_stride, int64_t samples, void* y, int64_t channels,
                                                 const int64_t* starts, int64_t count, const double* window,
                                                 int64_t size, int64_t hop, const double* state_in, double* state_out,
                                                 int32_t threads) {
    const Job job = {dtype, x,    x_channel_stride, x_time_stride, samples,   y,      channels, starts,
                     count, window, size,           hop,           state_in, state_out, threads};
    if (!valid(job)) return TORCHFX_BAD_ARGUMENT;
    const FlushSubnormals flush(dtype == TORCHFX_F64);
    try {
        run(job);
        return TORCHFX_OK;
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
}
