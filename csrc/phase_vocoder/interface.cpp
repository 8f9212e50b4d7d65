// The phase vocoder: short spectra read at one pace and laid down at another. torchfx_dsp.h says what is computed.
//
// A transform of complex numbers serves two real frames: forwards those that an output frame depends on, backwards two
// output frames that follow each other. Frames need each other's phases, so threads share the channels.
#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <vector>

#include "fft/roots.h"
#include "phase_vocoder/kernels.h"
#include "support/pool.h"
#include "support/subnormals.h"
#include "support/workspace.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

void run(PhaseVocoderJob& job) {
    const FftKernels& fft = TORCHFX_KERNELS(fft_kernels);
    const PhaseVocoderKernels& kernels = TORCHFX_KERNELS(phase_vocoder_kernels);
    const std::shared_ptr<const FftRootTable> table = fft_roots(job.size, fft.lanes);
    job.fft = &fft;
    job.roots = table->view();
    Workspaces workspaces(job.threads, phase_vocoder_room(job.size, job.hop));

    // The transform of a unit impulse at 1 tells which frequency each value of the output belongs to. Those transforms
    // have exp(+2 pi i ...), and spectra here exp(-2 pi i ...).
    std::vector<int32_t> place(static_cast<std::size_t>(job.size / 2 + 1)), mirrored(place.size());
    {
        const Workspaces::Lease space(workspaces);
        double* data = space.data();
        const int64_t lanes = fft.lanes;
        std::fill_n(data, 2 * job.size, 0.0);
        data[lanes > 1 ? 1 : 2] = 1;
        fft.forward(data, job.size, 0, job.roots);
        const double turn = static_cast<double>(job.size) / (2 * 3.14159265358979323846);
        for (int64_t i = 0; i < job.size; ++i) {
            const int64_t at = 2 * lanes * (i / lanes) + i % lanes;
            const int64_t bin = std::lround(std::atan2(-data[at + lanes], data[at]) * turn);
            if (bin >= 0) place[static_cast<std::size_t>(bin)] = static_cast<int32_t>(at);
            if (bin <= 0) mirrored[static_cast<std::size_t>(-bin)] = static_cast<int32_t>(at);
            if (2 * std::abs(bin) == job.size) place.back() = mirrored.back() = static_cast<int32_t>(at);
        }
    }
    job.place = place.data();
    job.mirrored = mirrored.data();
    parallel_for(job.channels, job.threads, [&](int64_t channel) {
        const Workspaces::Lease space(workspaces);
        kernels.stretch(job, channel, space.data());
    });
}

bool valid(const PhaseVocoderJob& job) {
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
    PhaseVocoderJob job = {dtype,  x,    x_channel_stride, x_time_stride, samples,   y,       channels, starts, count,
                           window, size, hop,              state_in,      state_out, threads, nullptr,  {},     nullptr,
                           nullptr};
    if (!valid(job)) return TORCHFX_BAD_ARGUMENT;
    const FlushSubnormals flush(dtype == TORCHFX_F64);
    try {
        run(job);
        return TORCHFX_OK;
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
}
