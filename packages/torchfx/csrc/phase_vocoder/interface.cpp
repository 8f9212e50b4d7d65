// The phase vocoder: short spectra read at one pace and laid down at another. torchfx_dsp.h says what is computed.
//
// A transform of complex numbers serves two real frames: forwards those that an output frame depends on, backwards two
// output frames that follow each other. Threads share the channels, or where these are few, the frames: only what peaks
// are turned by, and the frames' sum, go from frame to frame.
#include <algorithm>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "fft/roots.h"
#include "phase_vocoder/kernels.h"
#include "support/pool.h"
#include "support/subnormals.h"
#include "support/workspace.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

// What goes from frame to frame is a fifth of the work: threads that share frames are at most 4 times as fast.
constexpr int gain_by_frames = 4, most_by_frames = 8;

// Frames whose transforms are in memory at a time: an even number.
constexpr int64_t frames_together(int threads) { return threads == 1 ? 2 : 4 * threads; }

// Where the frequencies lie. Values of a transform come in the order of their numbers' binary digits read backwards, and
// the `lanes` vectors that its last steps work on are transposed.
struct Order {
    std::vector<int32_t> place, opposite, bin, slot;

    Order(int64_t size, int64_t lanes)
        : place(static_cast<std::size_t>(size / 2 + 1)), opposite(place.size()), bin(place.size()), slot(place.size()) {
        std::vector<int64_t> backwards(static_cast<std::size_t>(size));
        for (std::size_t i = 1; i < backwards.size(); ++i) backwards[i] = backwards[i / 2] / 2 + (i % 2 ? size / 2 : 0);
        for (int64_t i = 0; i < size; ++i) {
            const int64_t vector = i / lanes, lane = i % lanes, at = 2 * lanes * vector + lane;
            const int64_t number = (vector / lanes * lanes + lane) * lanes + vector % lanes;
            const int64_t frequency = backwards[static_cast<std::size_t>(number)];
            // Transforms have exp(+2 pi i ...), and spectra here exp(-2 pi i ...).
            if (2 * frequency <= size) opposite[static_cast<std::size_t>(frequency)] = static_cast<int32_t>(at);
            if (2 * frequency < size && frequency != 0) continue;
            const int64_t own = (size - frequency) % size;
            place[static_cast<std::size_t>(own)] = static_cast<int32_t>(at);
            if (i < vocoder_few) continue;
            const int64_t its_slot = vector / 2 * lanes + lane;
            bin[static_cast<std::size_t>(its_slot)] = static_cast<int32_t>(own);
            slot[static_cast<std::size_t>(own)] = static_cast<int32_t>(its_slot);
        }
    }
};

void stretch(const PhaseVocoderJob& job, int64_t channel, int threads, double* room) {
    const PhaseVocoderKernels& kernels = TORCHFX_KERNELS(phase_vocoder_kernels);
    const int64_t state_size = job.size + 2;
    const double* const before = job.state_in ? job.state_in + state_size * channel : nullptr;
    double* const after = job.state_out + state_size * channel;
    // First the last frame of those before, which the next ones follow.
    std::vector<VocoderFrame> frames(static_cast<std::size_t>(frames_together(threads) + 1));
    for (VocoderFrame& frame : frames) {
        const int64_t row = vocoder_row(job.size);
        frame.transform = room;
        for (int i = 0; i < 4; ++i) frame.rows[i] = room + 2 * job.size + i * row + 8;
        frame.peaks = reinterpret_cast<int32_t*>(room + 2 * job.size + 4 * row);
        room += vocoder_frame_room(job.size);
    }
    double* const sum = room;
    std::fill_n(sum, job.size + job.hop, 0.0);
    for (int64_t u = 0; u < job.count;) {
        const int64_t some = std::min(frames_together(threads), job.count - u);
        VocoderFrame* const now = frames.data() + 1;
        parallel_for(some, threads, [&](int64_t i) { kernels.analyse(job, channel, u + i, now[i]); });
        for (int64_t i = 0; i < some; ++i) kernels.turn(job, u + i > 0 ? &now[i - 1] : nullptr, before, now[i]);
        if (u + some == job.count) kernels.keep(job, now[some - 1], after);
        parallel_for((some + 1) / 2, threads, [&](int64_t i) {
            VocoderFrame second = now[2 * i];
            second.now = 0;  // silent if there is none
            kernels.synthesise(job, now[2 * i], 2 * i + 1 < some ? now[2 * i + 1] : second);
        });
        for (int64_t i = 0; i < some; i += 2) kernels.lay_down(job, channel, u + i, now[i], sum);
        std::swap(frames.front(), frames.back());
        u += some;
    }
}

void run(PhaseVocoderJob& job) {
    const FftKernels& fft = TORCHFX_KERNELS(fft_kernels);
    const std::shared_ptr<const FftRootTable> table = fft_roots(job.size, fft.lanes);
    const Order order(job.size, fft.lanes);
    job.fft = &fft;
    job.roots = table->view();
    job.place = order.place.data();
    job.opposite = order.opposite.data();
    job.bin = order.bin.data();
    job.slot = order.slot.data();
    const bool by_channel = job.channels >= std::min(job.threads, gain_by_frames);
    const int channels_together = by_channel ? job.threads : 1;
    const int threads = by_channel ? 1 : std::min(job.threads, most_by_frames);
    Workspaces workspaces(channels_together,
                          (frames_together(threads) + 1) * vocoder_frame_room(job.size) + job.size + job.hop);
    parallel_for_or_throw(job.channels, channels_together, [&](int64_t channel) {
        const Workspaces::Lease space(workspaces);
        stretch(job, channel, threads, space.data());
    });
}

bool valid(const PhaseVocoderJob& job) {
    const bool power_of_two = job.size >= fft_min_size && (job.size & (job.size - 1)) == 0;
    return (job.dtype == TORCHFX_F32 || job.dtype == TORCHFX_F64) && job.x && job.y && job.starts && job.window &&
           job.state_out && power_of_two && job.hop >= 1 && job.hop < job.size && job.channels >= 1 &&
           job.samples >= 0 && job.count >= 1 && job.threads >= 1;
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
                           nullptr, nullptr, nullptr};
    if (!valid(job)) return TORCHFX_BAD_ARGUMENT;
    const FlushSubnormals flush(dtype == TORCHFX_F64);
    try {
        run(job);
        return TORCHFX_OK;
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
}
