// Live audio: what a device's thread calls, what reaches it from others, and what it never does.
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <numeric>
#include <thread>
#include <vector>

#include "testing.h"
#include "torchfx_live.h"

namespace {
thread_local int64_t allocations = 0;
}

// Counted, so that a call which must not allocate can be seen not to.
void* operator new(std::size_t size) {
    ++allocations;
    if (void* found = std::malloc(size)) return found;
    throw std::bad_alloc();
}
void* operator new(std::size_t size, std::align_val_t align) {
    ++allocations;
    const auto boundary = static_cast<std::size_t>(align);
    if (void* found = std::aligned_alloc(boundary, (size + boundary - 1) / boundary * boundary)) return found;
    throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

using namespace testing;

namespace {

constexpr int64_t block = 64;

int64_t address(const void* p) { return static_cast<int64_t>(reinterpret_cast<intptr_t>(p)); }

struct Engine {
    Engine(int64_t channels, int64_t source = 0, int64_t sink = 0, int64_t delay = 0, double rate = 48000,
           double ceiling = std::numeric_limits<double>::infinity())
        : live(torchfx_live_create(rate, channels, block, 1, source, sink, delay, 480, delay * block, ceiling)) {}
    ~Engine() { torchfx_live_free(live); }
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    int64_t counted(torchfx_live_counter which) const {
        int64_t values[TORCHFX_LIVE_COUNTER_COUNT];
        torchfx_live_counters(live, values);
        return values[which];
    }
    int call(const std::vector<float>& x, std::vector<float>& y) const {
        return torchfx_live_callback(x.data(), y.data(), static_cast<unsigned long>(block), nullptr, 0, live);
    }
    std::vector<float> read_sink(int64_t size) const {
        std::vector<float> y(static_cast<std::size_t>(size), -1.0f);
        return torchfx_live_read_sink(live, y.data()) == TORCHFX_OK ? y : std::vector<float>();
    }

    torchfx_live* live;
};

struct Gain {
    explicit Gain(double factor, int64_t channels = 2) : value(factor) {
        const int64_t words[] = {TORCHFX_F32, 1, 2, TORCHFX_STEP_gain, 8, 0, 1, TORCHFX_F32, address(&value), 1, 1};
        program = torchfx_live_program_create(words, 11, channels, block, 4096, nullptr, 0, nullptr, 0);
    }
    ~Gain() { torchfx_live_program_free(program); }
    Gain(const Gain&) = delete;
    Gain& operator=(const Gain&) = delete;

    double value;
    torchfx_live_program* program;
};

const std::vector<float> ones(2 * block, 1.0f);

void runs_a_program_for_every_layout() {
    const Gain gain(3);
    const Engine engine(2);
    expect(torchfx_live_post(engine.live, gain.program) == TORCHFX_OK, "the first program is taken at once");
    std::vector<float> x(2 * block), y(2 * block);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(noise());
    engine.call(x, y);
    for (std::size_t i = 0; i < x.size(); ++i) expect(y[i] == 3 * x[i], "interleaved samples");

    torchfx_live* const planar = torchfx_live_create(48000, 2, block, 0, 0, 0, 0, 480, 0, 100);
    const Gain other(3);
    torchfx_live_post(planar, other.program);
    const float* in[] = {x.data(), x.data() + block};
    float* out[] = {y.data(), y.data() + block};
    torchfx_live_callback(in, out, static_cast<unsigned long>(block), nullptr, 2, planar);
    for (std::size_t i = 0; i < x.size(); ++i) expect(y[i] == 3 * x[i], "a pointer for each channel");
    torchfx_live_free(planar);

    std::vector<float> few(6, 1.0f);
    torchfx_live_callback(x.data(), few.data(), 3, nullptr, 0, engine.live);
    expect(few == std::vector<float>(6, 0.0f), "a block of another size becomes silence");
    expect(engine.counted(TORCHFX_LIVE_failures) == 1, "and is counted");
}

void programs_change_between_blocks_without_allocations() {
    const Gain first(1), second(0.25);
    const Engine engine(2);
    torchfx_live_post(engine.live, first.program);
    std::vector<float> y(2 * block);
    engine.call(ones, y);
    torchfx_live_post(engine.live, second.program);
    expect(torchfx_live_post(engine.live, second.program) == TORCHFX_BAD_ARGUMENT, "one change at a time");
    const int64_t allocated = allocations;
    engine.call(ones, y);
    expect(allocations == allocated, "nothing is allocated");
    expect(y == std::vector<float>(2 * block, 0.25f), "the new program runs from the next block on");
    expect(!torchfx_live_changing(engine.live), "the change is done");
    expect(torchfx_live_retired(engine.live) == first.program, "the old program comes back");
    expect(engine.counted(TORCHFX_LIVE_changes) == 1, "changes are counted");
}

void states_are_taken_over() {
    // A delay of 4 samples with ramps at both ends, a pair of doubles times a matrix, doubles with a ramp.
    std::vector<float> old_line = {1, 2, 3, 4}, new_line(4);
    std::vector<double> old_pair = {1, 10}, new_pair(2), matrix = {1, 2, 3, 4}, ramped = {3, 3, 3};
    const int64_t words[] = {TORCHFX_F32, 1, 2, TORCHFX_STEP_delay, 7, 0, 1, TORCHFX_F32, 4, address(new_line.data())};
    const int64_t copies[] = {
        TORCHFX_LIVE_COPY_bytes, address(old_line.data()), address(new_line.data()), 16, 0,
        TORCHFX_LIVE_COPY_ramp_float, 0, address(new_line.data()), 1, 0,
        TORCHFX_LIVE_COPY_ramp_float, 0, address(new_line.data() + 2), 2, 1,
        TORCHFX_LIVE_COPY_matrices, address(old_pair.data()), address(new_pair.data()), 1, address(matrix.data()),
        TORCHFX_LIVE_COPY_ramp_double, 0, address(ramped.data()), 2, 0};
    torchfx_live_program* const program = torchfx_live_program_create(words, 10, 1, block, 4096, copies, 5, nullptr, 0);
    const Gain first(1, 1);
    {
        const Engine engine(1);
        torchfx_live_post(engine.live, first.program);
        const std::vector<float> x(block);
        std::vector<float> y(block);
        engine.call(x, y);
        torchfx_live_post(engine.live, program);
        engine.call(x, y);
        expect(y[0] == 0.5f && y[1] == 2 && y[2] == 2 && std::abs(y[3] - 4.0f / 3) < 1e-6 && y[4] == 0,
               "the delay goes on with what the old one held, faded in and out");
        expect(new_pair[0] == 21 && new_pair[1] == 43, "pairs are multiplied");
        expect(std::abs(ramped[0] - 1) < 1e-12 && std::abs(ramped[1] - 2) < 1e-12 && ramped[2] == 3, "doubles rise");
    }
    torchfx_live_program_free(program);
}

// Sections, and lines that feed each other, take working memory of a size known at run time.
void large_programs_allocate_nothing() {
    constexpr int64_t sections = 40, lines = 12;
    std::vector<double> sos, sos_state(2 * 2 * sections);
    for (int64_t k = 0; k < sections; ++k) sos.insert(sos.end(), {1, 0, 0, 1, -0.5, 0});
    std::vector<int64_t> delays;
    std::vector<double> system((lines + 2) * (lines + 2)), dampers;
    for (int64_t i = 0; i < lines; ++i) {
        delays.push_back(100 + 37 * i);
        system[static_cast<std::size_t>(i * (lines + 3))] = 0.5;
        system[static_cast<std::size_t>(i * (lines + 2) + lines)] = 1;
        dampers.insert(dampers.end(), {0.5, 0, 0, 1, -0.5, 0});
    }
    for (int64_t j = 0; j < lines; ++j) system[static_cast<std::size_t>(lines * (lines + 2) + j)] = 0.1;
    const int64_t reach = std::accumulate(delays.begin(), delays.end(), int64_t{0});
    std::vector<double> held(static_cast<std::size_t>(2 * reach)), loop_state(2 * lines);
    const int64_t words[] = {
        TORCHFX_F32, 2, 3,
        TORCHFX_STEP_sos, 10, 0, 2, TORCHFX_F32, address(sos.data()), sections, 1, 1, address(sos_state.data()),
        TORCHFX_STEP_delay_network, 21, 2, 1, TORCHFX_F32, address(delays.data()), lines, 2, address(system.data()), 1, 1,
        address(dampers.data()), 1, 1, 1, reach, address(held.data()), address(loop_state.data()), 0, 0, 0};
    constexpr int64_t size = sizeof words / sizeof *words;
    torchfx_live_program* program = torchfx_live_program_create(words, size, 2, block, 0, nullptr, 0, nullptr, 0);
    const int64_t bytes = torchfx_live_program_measure(program);
    torchfx_live_program_free(program);
    expect(bytes > 0, "such a program needs memory");
    program = torchfx_live_program_create(words, size, 2, block, 2 * bytes, nullptr, 0, nullptr, 0);
    {
        const Engine engine(2);
        torchfx_live_post(engine.live, program);
        std::vector<float> x(2 * block, 0.5f), y(2 * block);
        const int64_t allocated = allocations;
        for (int i = 0; i < 20; ++i) engine.call(x, y);
        expect(allocations == allocated, "nothing is allocated");
        expect(engine.counted(TORCHFX_LIVE_failures) == 0 && engine.counted(TORCHFX_LIVE_allocated) == 0, "it runs");
        expect(y[0] != 0, "and is heard");
    }
    torchfx_live_program_free(program);
}

// Source, sink, clock and changes of programs, each on a thread of its own.
void a_clock_runs_a_file_through(bool real_time) {
    constexpr int64_t blocks = 400;
    const Engine engine(1, 8, 8);
    std::vector<std::unique_ptr<Gain>> gains;
    for (int i = 0; i < 50; ++i) gains.push_back(std::make_unique<Gain>(1, 1));
    torchfx_live_post(engine.live, gains[0]->program);
    std::thread writer([&] {
        for (int64_t i = 0; i < blocks;) {
            const std::vector<float> x(block, static_cast<float>(i + 1));
            if (torchfx_live_write_source(engine.live, x.data()) == TORCHFX_OK) ++i;
            else std::this_thread::yield();
        }
        torchfx_live_end(engine.live, 2);
    });
    std::atomic<int64_t> count{0};
    std::atomic<bool> good{true}, done{false};
    std::thread reader([&] {
        while (!done || count < blocks) {
            const bool finished = engine.counted(TORCHFX_LIVE_finished);  // asked first: blocks may come until then
            const std::vector<float> y = engine.read_sink(block);
            if (y.empty()) {
                if (finished) break;
                std::this_thread::yield();
                continue;
            }
            const int64_t i = count++;
            const float wanted = i < blocks ? static_cast<float>(i + 1) : 0.0f;
            if (!real_time && y != std::vector<float>(block, wanted)) good = false;
        }
    });
    expect(torchfx_live_clock_start(engine.live, real_time) == TORCHFX_OK, "the clock starts");
    std::size_t posted = 1;
    while (!engine.counted(TORCHFX_LIVE_finished)) {
        torchfx_live_retired(engine.live);
        if (!torchfx_live_changing(engine.live) && posted < gains.size())
            torchfx_live_post(engine.live, gains[posted++]->program);
        float peaks[2];
        torchfx_live_peaks(engine.live, peaks, peaks + 1);
        std::this_thread::yield();
    }
    done = true;
    writer.join();
    reader.join();
    torchfx_live_clock_stop(engine.live);
    expect(good, "every block once, in order, whatever program runs");
    expect(real_time || count >= blocks, "all blocks came out");
    expect(engine.counted(TORCHFX_LIVE_starved) + blocks + 2 >= engine.counted(TORCHFX_LIVE_blocks), "no block too many");
    int64_t bins[TORCHFX_LIVE_BINS], sum = 0;
    torchfx_live_histogram(engine.live, bins);
    for (const int64_t bin : bins) sum += bin;
    expect(sum == engine.counted(TORCHFX_LIVE_blocks), "every call is in the histogram");
}

void a_worker_is_a_stated_number_of_blocks_late() {
    constexpr int64_t blocks = 100, delay = 3;
    const Engine engine(1, blocks, blocks + 8, delay);
    for (int64_t i = 0; i < blocks; ++i)
        torchfx_live_write_source(engine.live, std::vector<float>(block, static_cast<float>(i + 1)).data());
    torchfx_live_end(engine.live, delay);
    std::atomic<bool> done{false};
    std::thread worker([&] {
        std::vector<float> x(block);
        int64_t number;
        while (!done) {
            if (torchfx_live_take_work(engine.live, x.data(), &number) != TORCHFX_OK) {
                std::this_thread::yield();
                continue;
            }
            for (float& v : x) v = -v;
            while (torchfx_live_give_work(engine.live, x.data(), number) == TORCHFX_FULL && !done) std::this_thread::yield();
        }
    });
    torchfx_live_clock_start(engine.live, 0);
    while (!engine.counted(TORCHFX_LIVE_finished)) std::this_thread::yield();
    done = true;
    worker.join();
    for (int64_t i = 0; i < blocks + delay; ++i)
        expect(engine.read_sink(block) == std::vector<float>(block, i < delay ? 0.0f : -static_cast<float>(i - delay + 1)),
               "the worker's result");
    expect(engine.counted(TORCHFX_LIVE_late_results) == 0, "none was late");
}

void a_worker_that_is_too_late_is_bypassed_with_a_fade() {
    const Engine engine(1, 0, 0, 2);
    const std::vector<float> x(block, 1.0f), twice(block, 2.0f);
    std::vector<float> y(block), taken(block);
    int64_t number;
    float before = 0;
    float largest = 0;
    for (int i = 0; i < 200; ++i) {
        engine.call(x, y);
        if ((i < 50 || i >= 100) && torchfx_live_take_work(engine.live, taken.data(), &number) == TORCHFX_OK) {
            int64_t newer;
            while (torchfx_live_take_work(engine.live, taken.data(), &newer) == TORCHFX_OK) number = newer;
            torchfx_live_give_work(engine.live, twice.data(), number);
        }
        for (const float v : y) {
            if (i > 4) largest = std::max(largest, std::abs(v - before));
            before = v;
        }
        if (i == 40 || i == 190) expect(y[0] == 2, "the worker is heard");
        if (i == 90) expect(y[0] == 1, "the dry signal is heard");
    }
    expect(largest <= 1.01f / 480, "without a step");
    expect(engine.counted(TORCHFX_LIVE_late_results) > 40, "and late results are counted");
}

void an_overload_is_shed() {
    const Gain gain(2, 1);
    const Engine engine(1, 0, 0, 0, 1e9);  // 64 ns for a block: no call is in time
    torchfx_live_post(engine.live, gain.program);
    const std::vector<float> x(block, 1.0f);
    std::vector<float> y(block);
    for (int i = 0; i < 20; ++i) engine.call(x, y);
    expect(engine.counted(TORCHFX_LIVE_sheds) == 1, "the overload is counted");
    expect(engine.counted(TORCHFX_LIVE_shed_blocks) > 0 && y[0] == 1, "the dry signal is heard, the program rests");
    expect(engine.counted(TORCHFX_LIVE_deadline_misses) == 20, "all calls were late");
}

void a_bypass_fades() {
    const Gain gain(2, 1);
    const Engine engine(1);
    torchfx_live_post(engine.live, gain.program);
    torchfx_live_bypass(engine.live, 1);
    const std::vector<float> x(block, 1.0f);
    std::vector<float> y(block);
    engine.call(x, y);
    expect(y[0] < 2 && y[block - 1] > 1.5, "a fade begins");
    for (int i = 0; i < 10; ++i) engine.call(x, y);
    expect(y[0] == 1, "the dry signal is heard");
}

constexpr float infinite = std::numeric_limits<float>::infinity(), not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr int64_t ramp = 240, hold = 960;  // 5 and 20 ms

// Calls it with constant blocks of so many channels until the output is no longer muted; returns after how many samples.
int64_t samples_until_heard(const Engine& engine, const std::vector<float>& x) {
    std::vector<float> y(x.size());
    for (int64_t i = 1; i < 100000; ++i) {
        engine.call(x, y);
        if (!engine.counted(TORCHFX_LIVE_muted)) return i * block;
    }
    return -1;
}

void what_must_not_be_heard_mutes_by_a_ramp(float bad) {
    const Gain gain(1, 2);
    const Engine engine(2, 0, 200, 0, 48000, 2);
    torchfx_live_post(engine.live, gain.program);
    std::vector<float> x(2 * block, 0.5f), y(2 * block), heard;
    const int64_t allocated = allocations;
    for (int i = 0; i < 50; ++i) {
        x[2 * 10 + 1] = i == 3 ? bad : 0.5f;  // sample 10 of channel 1
        engine.call(x, y);
        expect(engine.counted(TORCHFX_LIVE_muted) == (i >= 3 && i < 3 + hold / block), "it says when it is muted");
    }
    expect(allocations == allocated, "nothing is allocated");
    for (int i = 0; i < 50; ++i) {
        const std::vector<float> found = engine.read_sink(2 * block);
        if (i < 3) expect(found == std::vector<float>(2 * block, 0.5f), "what is allowed passes");
        heard.insert(heard.end(), found.begin() + block, found.end());
        expect(std::equal(found.begin(), found.begin() + block, found.begin() + block), "all channels are muted");
    }
    const auto at = [&](int64_t t) { return heard[static_cast<std::size_t>(t)]; };
    constexpr int64_t first = 3 * block + 10;
    expect(at(first - 1) == 0.5f && at(first) == 0.5f * 239 / 240, "the ramp begins at the bad sample");
    for (std::size_t t = 1; t < heard.size(); ++t)
        expect(std::abs(heard[t] - heard[t - 1]) < 1.01f * 0.5f / ramp, "no step, nothing bad");
    for (int64_t t = first + ramp - 1; t < first + hold; ++t) expect(at(t) == 0, "silence");
    expect(at((3 + 1 + 15) * block) > 0, "it comes back");
    expect(heard.back() == 0.5f, "all of it");
    expect(engine.counted(TORCHFX_LIVE_mutes) == 1, "it is counted");
    float input[2], output[2];
    torchfx_live_peaks(engine.live, input, output);
    expect(output[0] == 0.5f && output[1] == 0.5f && input[0] == 0.5f, "peaks are of what was heard");
    expect(input[1] == (std::isfinite(bad) ? std::abs(bad) : infinite), "and of what came");
}

void the_ceiling_is_allowed_and_infinite_ones_allow_all() {
    const Gain gain(1, 1), other(1, 1);
    const Engine engine(1, 0, 0, 0, 48000, 2), open(1);
    torchfx_live_post(engine.live, gain.program);
    torchfx_live_post(open.live, other.program);
    const std::vector<float> x(block, -2.0f), large(block, infinite);
    std::vector<float> y(block);
    engine.call(x, y);
    expect(y == x && engine.counted(TORCHFX_LIVE_mutes) == 0, "the ceiling itself");
    open.call(large, y);
    expect(y == large && open.counted(TORCHFX_LIVE_mutes) == 0, "no ceiling");
}

// 1 / (1 - 0.5 / z) with a state that is not 0 at rest, and enough other memory that one call does not restore all.
void a_state_that_is_not_finite_is_set_to_rest() {
    const std::vector<double> sos = {1, 0, 0, 1, -0.5, 0};
    std::vector<double> state = {0.25, 0}, other(100000);
    const std::vector<double> rest = state;
    const int64_t words[] = {TORCHFX_F32, 1, 2, TORCHFX_STEP_sos, 10, 0, 1, TORCHFX_F32, address(sos.data()), 1, 1, 1,
                             address(state.data())};
    const int64_t states[] = {address(other.data()), 800000, 0, address(state.data()), 16, address(rest.data())};
    torchfx_live_program* const program =
        torchfx_live_program_create(words, sizeof words / sizeof *words, 1, block, 1 << 16, nullptr, 0, states, 2);
    {
        const Engine engine(1, 0, 0, 0, 48000, 4);
        torchfx_live_post(engine.live, program);
        std::vector<float> x(block, 1.0f), y(block);
        engine.call(x, y);
        expect(y[0] == 1.25f && std::abs(y[block - 1] - 2) < 1e-6, "it runs");
        std::fill(other.begin(), other.end(), 3.0);
        x[5] = not_a_number;
        engine.call(x, y);
        expect(std::isnan(state[0]), "the state is spoilt");
        x[5] = 1;
        int64_t allocated = allocations;
        for (int i = 0; i < 4; ++i) engine.call(x, y);
        expect(allocations == allocated, "nothing is allocated");
        expect(state == rest && other == std::vector<double>(100000), "800 kB go to rest in four calls");
        engine.call(x, y);
        expect(std::isfinite(state[0]) && state != rest, "then it runs again");
        samples_until_heard(engine, x);
        allocated = allocations;
        for (int i = 0; i < 8; ++i) engine.call(x, y);
        expect(std::abs(y[block - 1] - 2) < 1e-6 && allocations == allocated, "and is heard as before");
        expect(engine.counted(TORCHFX_LIVE_mutes) == 1, "after one mute");
    }
    torchfx_live_program_free(program);
}

void bursts_that_keep_coming_stay_muted() {
    const Gain gain(1, 1);
    const Engine engine(1, 0, 0, 0, 48000, 4);
    torchfx_live_post(engine.live, gain.program);
    const std::vector<float> x(block, 0.5f), bad(block, 1e6f);
    std::vector<float> y(block);
    int64_t heard_late = 0;
    for (int i = 0; i < 60 * 750; ++i) {  // a minute, with a burst every second
        engine.call(i % 750 == 700 ? bad : x, y);
        heard_late += i > 5 * 750 && y[0] != 0;
    }
    expect(engine.counted(TORCHFX_LIVE_mutes) == 4, "holds of 20, 80 and 320 ms are too short, 1.28 s are not");
    expect(heard_late == 0, "no pulses");
    const int64_t waited = samples_until_heard(engine, x);
    expect(waited > 0 && waited <= 48000 * 13 / 10, "when they end, it is heard again");
    for (int i = 0; i < 11 * 750; ++i) engine.call(x, y);
    engine.call(bad, y);
    expect(samples_until_heard(engine, x) == hold, "10 s later, one burst is one mute of 20 ms");
}

void a_program_that_comes_while_muted_runs_at_once() {
    const Gain loud(1e6, 1), quiet(1, 1);
    const Engine engine(1, 0, 0, 0, 48000, 4);
    torchfx_live_post(engine.live, loud.program);
    const std::vector<float> x(block, 0.5f);
    std::vector<float> y(block);
    for (int i = 0; i < 100; ++i) {
        engine.call(x, y);
        expect(y == std::vector<float>(block), "nothing of it is heard");
    }
    torchfx_live_post(engine.live, quiet.program);
    engine.call(x, y);
    expect(!torchfx_live_changing(engine.live), "the change is done at once");
    expect(samples_until_heard(engine, x) <= hold, "then it is as any other");
    expect(engine.counted(TORCHFX_LIVE_mutes) == 1, "all this is one mute");
}

void a_change_to_a_burst_is_muted() {
    const Gain quiet(1, 1), loud(1e6, 1);
    const Engine engine(1, 0, 0, 0, 48000, 4);
    torchfx_live_post(engine.live, quiet.program);
    const std::vector<float> x(block, 0.5f);
    std::vector<float> y(block);
    engine.call(x, y);
    torchfx_live_post(engine.live, loud.program);
    float before = 0.5f;
    for (int i = 0; i < 50; ++i) {
        engine.call(x, y);
        for (const float v : y) expect(v <= 4 && v >= 0, "nothing of it is heard");
        for (const float v : y) expect((before < 0.5f) <= (v <= before), "the output only falls");
        before = y[block - 1];
    }
    expect(before == 0 && !torchfx_live_changing(engine.live), "the change is done, and muted");
}

void a_bypass_is_heard_beside_a_broken_program() {
    const Gain broken(1e300, 1);
    const Engine engine(1, 0, 0, 0, 48000, 4);
    torchfx_live_bypass(engine.live, 1);
    torchfx_live_post(engine.live, broken.program);
    const std::vector<float> x(block, 0.5f);
    std::vector<float> y(block);
    for (int i = 0; i < 50; ++i) engine.call(x, y);
    expect(y == x && engine.counted(TORCHFX_LIVE_mutes) == 1, "the dry signal comes back");
}

void bad_arguments_are_refused() {
    expect(!torchfx_live_create(0, 1, 64, 1, 0, 0, 0, 1, 0, 1), "a rate of 0");
    expect(!torchfx_live_create(48000, 1, 64, 1, 0, 0, 0, 1, 0, 0), "a ceiling of 0");
    expect(!torchfx_live_create(48000, 0, 64, 1, 0, 0, 0, 1, 0, 1), "no channels");
    expect(!torchfx_live_program_create(nullptr, 1, 1, 64, 0, nullptr, 0, nullptr, 0), "no program");
    const Engine engine(1);
    float sample = 0;
    int64_t number;
    expect(torchfx_live_write_source(engine.live, &sample) == TORCHFX_BAD_ARGUMENT, "no source");
    expect(torchfx_live_take_work(engine.live, &sample, &number) == TORCHFX_BAD_ARGUMENT, "no worker");
    const Gain stereo(1);
    expect(torchfx_live_post(engine.live, stereo.program) == TORCHFX_BAD_ARGUMENT, "other channels");
}

}  // namespace

int main() {
    runs_a_program_for_every_layout();
    programs_change_between_blocks_without_allocations();
    states_are_taken_over();
    large_programs_allocate_nothing();
    a_clock_runs_a_file_through(false);
    a_clock_runs_a_file_through(true);
    a_worker_is_a_stated_number_of_blocks_late();
    a_worker_that_is_too_late_is_bypassed_with_a_fade();
    an_overload_is_shed();
    a_bypass_fades();
    for (const float bad : {not_a_number, infinite, -infinite, 2.1f, -1e30f}) what_must_not_be_heard_mutes_by_a_ramp(bad);
    the_ceiling_is_allowed_and_infinite_ones_allow_all();
    a_state_that_is_not_finite_is_set_to_rest();
    bursts_that_keep_coming_stay_muted();
    a_program_that_comes_while_muted_runs_at_once();
    a_change_to_a_burst_is_muted();
    a_bypass_is_heard_beside_a_broken_program();
    bad_arguments_are_refused();
    return report();
}
