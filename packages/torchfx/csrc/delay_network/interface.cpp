// torchfx_delay_network_forward: group by group, in blocks no longer than the shortest delay, so that nothing a block
// writes into a line is read in the same block.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <deque>
#include <limits>
#include <new>
#include <numeric>
#include <optional>
#include <utility>

#include "delay_network/kernels.h"
#include "sos/kernels.h"
#include "sos/lane_state.h"
#include "sos/stage.h"
#include "support/arena.h"
#include "support/pool.h"
#include "support/rows.h"
#include "support/signal.h"
#include "support/subnormals.h"
#include "support/workspace.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

constexpr int64_t longest_block = 256;        // its pieces stay in a first-level cache
constexpr int64_t samples_per_thread = 8192;  // fewer than these take less time than waking a thread

// How a delay line keeps its samples: in a ring, in the state that it is kept in, oldest first or as a ring, or not at all.
enum class Form { ring, shifted, in_place, unheard };

// A delay line. A ring has room for its delay and a block more, so that what goes in replaces nothing that comes out of
// the same block. Where it begins anew within a block, the block's samples lie in a piece of their own. For few blocks it
// takes less time to shift the state behind each block than to copy it into a ring and back, and far less to let the state
// be a ring: its oldest sample is then where as many samples end as have gone through since it was oldest first. A line that begins from rest
// is not heard in signals that are no longer than its delay: where nothing of it is kept, it needs no memory.
class Line {
public:
    static int64_t memory(Form form, int64_t delay, int64_t block) {
        switch (form) {
        case Form::ring: return delay + 3 * block;
        case Form::shifted: return block;
        case Form::in_place: return 2 * block;
        default: return 0;
        }
    }

    // `kept` are the last samples that went in, the oldest one behind `passed` others, or NULL for silence; `after` is where to keep those after
    // the signal, or NULL. A block of `silence` comes out of a line that is not heard, and what goes in is `dropped`.
    Line(Form form, double* memory, int64_t delay, int64_t block, const double* kept, int64_t passed, double* after,
         const double* silence, double* dropped)
        : form_(form), delay_(delay), capacity_(delay + block), ring_(memory), after_(after) {
        const int64_t oldest = passed % delay;
        if (form == Form::ring) {
            out_ = memory + capacity_;
            in_ = out_ + block;
            if (kept) std::rotate_copy(kept, kept + oldest, kept + delay, ring_);
            else std::fill_n(ring_, delay, 0.0);
        } else if (form == Form::in_place) {
            capacity_ = delay;
            oldest_ = oldest;
            ring_ = after;
            out_ = memory;
            in_ = memory + block;
        } else {
            kept_ = kept ? kept : silence;
            in_ = form == Form::shifted ? memory : dropped;
            if (form == Form::shifted && !kept) kept_ = std::fill_n(after, delay, 0.0) - delay;
        }
    }

    // What comes out in the next `count` samples.
    const double* read(int64_t count) const { return is_ring() ? joined(oldest_, count, out_) : kept_; }
    // Where to put what goes in.
    double* target(int64_t count) const {
        return form_ == Form::ring && newest() + count <= capacity_ ? ring_ + newest() : in_;
    }
    // Goes on by `count` samples, whose input stands at `target(count)`.
    void advance(int64_t count) {
        if (form_ == Form::shifted) {
            std::copy(kept_ + count, kept_ + delay_, after_);
            std::copy_n(in_, count, after_ + delay_ - count);
            kept_ = after_;
        }
        if (!is_ring()) return;
        const int64_t first = capacity_ - newest();
        if (first < count || form_ == Form::in_place) {
            std::copy_n(in_, std::min(first, count), ring_ + newest());
            if (first < count) std::copy_n(in_ + first, count - first, ring_);
        }
        oldest_ = oldest_ + count < capacity_ ? oldest_ + count : oldest_ + count - capacity_;
    }
    void save() const {
        if (form_ != Form::ring || !after_) return;
        const int64_t first = std::min(delay_, capacity_ - oldest_);
        std::copy_n(ring_ + oldest_, first, after_);
        std::copy_n(ring_, delay_ - first, after_ + first);
    }

private:
    bool is_ring() const { return form_ == Form::ring || form_ == Form::in_place; }
    int64_t newest() const { return oldest_ + delay_ < capacity_ ? oldest_ + delay_ : oldest_ + delay_ - capacity_; }
    const double* joined(int64_t start, int64_t count, double* piece) const {
        const int64_t first = capacity_ - start;
        if (first >= count) return ring_ + start;
        std::copy_n(ring_ + start, first, piece);
        std::copy_n(ring_, count - first, piece + first);
        return piece;
    }

    Form form_;
    int64_t delay_, capacity_;
    double* ring_;
    const double* kept_ = nullptr;
    double *out_ = nullptr, *in_, *after_;
    int64_t oldest_ = 0;
};

// Weighted sums of some of many signals. Weights of zero are left out: a network of independent loops has few others.
class Sums {
public:
    void add_term(int64_t source, double weight) {
        if (weight == 0) return;
        sources_.push_back(static_cast<std::size_t>(source));
        weights_.push_back(weight);
    }
    void end_row() { ends_.push_back(weights_.size()); }
    void reserve(std::size_t rows, std::size_t terms) {
        ends_.reserve(rows);
        sources_.reserve(terms);
        weights_.reserve(terms);
    }

    void end() { pointers_.resize(sources_.size()); }

    // `signals` are all of them, as they lie for the next block.
    void point(const ScratchVector<const double*>& signals) {
        for (std::size_t k = 0; k < sources_.size(); ++k) pointers_[k] = signals[sources_[k]];
    }
    WeightedSum row(std::size_t i) const {
        const std::size_t start = i ? ends_[i - 1] : 0;
        return {pointers_.data() + start, weights_.data() + start, static_cast<int64_t>(ends_[i] - start)};
    }

private:
    ScratchVector<std::size_t> sources_, ends_;
    ScratchVector<double> weights_;
    ScratchVector<const double*> pointers_;
};

// What a line's filter reads and writes; see LoopFilterRun.
struct FilterStream {
    const double* from;
    double weight;
    const double* added;
    double* to;
};

// The filters of some lines, one in each lane of a vector.
class LoopFilters {
public:
    // `stages` are those of all lines.
    LoopFilters(const SosStage* stages, int64_t sections, const ScratchVector<std::size_t>& lines) : sections_(sections) {
        const SosKernels& kernels = TORCHFX_KERNELS(sos_kernels);
        for (std::size_t i = 0; i < lines.size(); ++i) {
            const int lane = static_cast<int>(i) % kernels.lanes;
            if (lane == 0) groups_.emplace_back(sections, kernels.lanes);
            Group& group = groups_.back();
            group.lines.push_back(lines[i]);
            for (int64_t k = 0; k < sections; ++k)
                group.shifted = group.shifted || stages[static_cast<int64_t>(lines[i]) * sections + k].kappa != 0;
        }
        for (Group& group : groups_) {
            const double* from[max_lanes] = {};
            for (std::size_t lane = 0; lane < group.lines.size(); ++lane)
                from[lane] = &stages[static_cast<int64_t>(group.lines[lane]) * sections].b0;
            kernels.to_vectors(from, stage_constants * sections, group.constants.data());
        }
    }

    // Calls body(line, the state of its sections, which it may change).
    template <class Body>
    void for_states(Body&& body) {
        ScratchVector<double> own(static_cast<std::size_t>(2 * sections_));
        for (Group& group : groups_)
            for (std::size_t lane = 0; lane < group.lines.size(); ++lane) {
                group.state.get(static_cast<int>(lane), own.data());
                body(group.lines[lane], own.data());
                group.state.set(static_cast<int>(lane), own.data());
            }
    }

    // stream(line) returns a FilterStream; `idle` is that of lanes without a line.
    template <class StreamOf>
    void run(const DelayNetworkKernels& kernels, int64_t count, const FilterStream& idle, StreamOf&& stream) {
        for (Group& group : groups_) {
            LoopFilterRun call = {group.constants.data(), group.state.data(), sections_, group.shifted, {}, {}, {}, {}};
            for (std::size_t lane = 0; lane < max_lanes; ++lane) {
                const FilterStream own = lane < group.lines.size() ? stream(group.lines[lane]) : idle;
                call.from[lane] = own.from;
                call.weights[lane] = own.weight;
                call.added[lane] = own.added;
                call.to[lane] = own.to;
            }
            kernels.filter(call, count);
        }
    }

private:
    struct Group {
        Group(int64_t sections, int lanes)
            : state(sections, lanes), constants(static_cast<std::size_t>(stage_constants * sections * lanes)) {}

        LaneState state;
        ScratchVector<double> constants;
        ScratchVector<std::size_t> lines;
        bool shifted = false;
    };

    int64_t sections_;
    std::deque<Group, ScratchAllocator<Group>> groups_;
};

constexpr int64_t nowhere = -1;

// What a filtered line gets where its filter comes behind the matrix.
struct Feed {
    std::size_t source;  // the signal that goes into the filter,
    double weight;       // multiplied by this
    std::size_t entrance;  // the signal that is added behind the filter
};

// The sums of a block, and for each the line whose signal it is.
struct Plan {
    Sums fed, added, shared, into, out;  // into filters, added behind them, terms of several sums, into lines, put out
    ScratchVector<std::size_t> fed_rows, added_rows, shared_rows, into_rows;
    ScratchVector<Feed> feeds;  // of all lines
};

// What follows from the coefficients of a group, from which of its lines go through filters, and how many are not heard.
struct Prepared {
    Prepared(Plan plan_, const SosStage* stages_, int64_t lines, int64_t sections, const ScratchVector<std::size_t>& filtered_,
             int64_t unheard_)
        : plan(std::move(plan_)), stages(stages_, stages_ + lines * sections), filtered(filtered_.begin(), filtered_.end()),
          unheard(unheard_), filters(stages.data(), sections, filtered) {}

    bool serves(const ScratchVector<std::size_t>& filtered_, int64_t unheard_) const {
        return filtered == filtered_ && unheard == unheard_;
    }

    Plan plan;
    ScratchVector<SosStage> stages;
    ScratchVector<std::size_t> filtered;
    int64_t unheard;
    LoopFilters filters;
};

// Memory in which a call leaves what it has prepared to later ones with the same coefficients. It is never taken apart: all
// of it lies there. It is one call's at a time; others prepare their own.
class Kept {
public:
    Kept(void* memory, int64_t bytes) : head_(static_cast<Head*>(memory)), bytes_(static_cast<std::size_t>(bytes)) {
        if (!head_) return;
        const bool has_room = bytes_ >= sizeof(Head) + 2 * sizeof(Prepared);
        if (!has_room || head_->taken.exchange(1, std::memory_order_acquire)) head_ = nullptr;
    }
    ~Kept() {
        if (head_) head_->taken.store(0, std::memory_order_release);
    }
    Kept(const Kept&) = delete;
    Kept& operator=(const Kept&) = delete;

    Prepared* prepared() const { return head_ ? head_->prepared : nullptr; }

    // Keeps what make() returns, if there is room and nothing else.
    template <class Make>
    void keep(Make&& make) const {
        if (!head_ || head_->prepared || head_->lacks_room) return;
        Arena arena(head_ + 1, bytes_ - sizeof(Head));
        const Arena::Use memory(arena);
        auto* const found = new (take_from_arena(sizeof(Prepared))) Prepared(make());
        head_->lacks_room = arena.most() > arena.size();
        if (head_->lacks_room) found->~Prepared();
        else head_->prepared = found;
    }

private:
    struct Head {  // zeros at first
        std::atomic<int64_t> taken;
        int64_t lacks_room;
        Prepared* prepared;
    };
    Head* head_;
    std::size_t bytes_;
};

template <class Sample>
struct Call {
    int64_t groups, samples, lines, inputs, outputs, sections;
    const int64_t* delays;
    bool filter_first;
    Signal<const Sample> x;
    Signal<Sample> y;
    const double* systems;  // (rows, lines + outputs, lines + inputs)
    Rows system_rows;
    const SosStage* stages;  // (rows, lines, sections)
    Rows stage_rows;
    const double *lines_in, *state_in;
    double *lines_out, *state_out;
    int64_t* passed;
    const Kept& kept_between;
    int64_t block_ = std::min({longest_block, samples, *std::min_element(delays, delays + lines)});

    int64_t block() const { return block_; }
    int64_t held() const {
        int64_t sum = 0;
        for (int64_t i = 0; i < lines; ++i) sum += delays[i];
        return sum;
    }
    // Blocks whose samples are fewer than those a ring of its own would copy.
    bool in_place_ = passed && samples * lines < 2 * held();
    Form form(int64_t line) const {
        if (!lines_in && !lines_out && delays[line] >= samples) return Form::unheard;
        if (in_place_) return Form::in_place;
        // A state that is a ring does not begin with its oldest sample.
        return lines_out && !passed && samples <= 2 * block() ? Form::shifted : Form::ring;
    }
    // Pieces of the inputs, of what goes through the filters and is added there, of silence and the dropped, of shared sums.
    int64_t pieces() const { return inputs + 2 * lines + 2 + (lines + inputs) / 2; }
    int64_t memory() const {
        int64_t sum = pieces() * block();
        for (int64_t i = 0; i < lines; ++i) sum += Line::memory(form(i), delays[i], block());
        return sum;
    }
    const SosStage* stages_of(int64_t group) const { return stages + stage_rows.of(group) * lines * sections; }
    // In a state, (sections, groups, lines, 2).
    int64_t state_at(int64_t section, int64_t group, int64_t line) const {
        return ((section * groups + group) * lines + line) * 2;
    }

    bool is_filtered(int64_t group, int64_t line) const {
        for (int64_t k = 0; k < sections; ++k) {
            const SosStage& stage = stages_of(group)[line * sections + k];
            const double* state = state_in ? state_in + state_at(k, group, line) : nullptr;
            if (stage.b0 != 1 || stage.c1 != 0 || stage.c0 != 0 || (state && (state[0] != 0 || state[1] != 0))) return true;
        }
        return false;
    }

    void load(const DelayNetworkKernels& kernels, int64_t group, int64_t start, int64_t count, double* to) const {
        for (int64_t j = 0; j < inputs; ++j, to += block()) {
            const int64_t channel = group * inputs + j;
            if constexpr (sizeof(Sample) == sizeof(float))
                if (x.time_stride == 1) {
                    kernels.widen(x.of(channel) + start, count, to);
                    continue;
                }
            x.load(channel, start, count, to);
        }
    }

    void load_states(int64_t group, LoopFilters& filters) const {
        constexpr double rest[2] = {};
        filters.for_states([&](std::size_t line, double* own) {
            for (int64_t k = 0; k < sections; ++k) {
                const double* zi = state_in ? state_in + state_at(k, group, static_cast<int64_t>(line)) : rest;
                own[2 * k] = zi[0];
                own[2 * k + 1] = shift_state(stages_of(group)[static_cast<int64_t>(line) * sections + k], zi[0], zi[1]);
            }
        });
    }
    void save_states(int64_t group, LoopFilters& filters) const {
        for (int64_t k = 0; k < sections; ++k) std::fill_n(state_out + state_at(k, group, 0), 2 * lines, 0.0);
        filters.for_states([&](std::size_t line, double* own) {
            for (int64_t k = 0; k < sections; ++k) {
                const SosStage& stage = stages_of(group)[static_cast<int64_t>(line) * sections + k];
                double* zi = state_out + state_at(k, group, static_cast<int64_t>(line));
                zi[0] = own[2 * k];
                zi[1] = unshift_state(stage, own[2 * k], own[2 * k + 1]);
            }
        });
    }

    // `memory` holds memory() doubles.
    void run(int64_t group, double* memory) const {
        const DelayNetworkKernels& kernels = TORCHFX_KERNELS(delay_network_kernels);
        const auto n = static_cast<std::size_t>(lines);
        // All signals of a block: out of the lines, the inputs, through the filters, added behind them, silence, shared sums.
        ScratchVector<const double*> signals(n);
        signals.reserve(n + static_cast<std::size_t>(pieces()));
        ScratchVector<double*> piece;
        piece.reserve(static_cast<std::size_t>(pieces()));
        for (int64_t i = 0; i < pieces(); ++i, memory += block()) {
            piece.push_back(memory);
            signals.push_back(memory);
        }
        double* const* const through = piece.data() + inputs;
        double* const* const entrances = through + n;
        double *const silence = entrances[n], *const dropped = entrances[n + 1];
        double* const* const shared = entrances + n + 2;
        std::fill_n(silence, block(), 0.0);

        ScratchVector<Line> line;
        line.reserve(n);
        const double* kept = lines_in ? lines_in + group * held() : nullptr;
        double* after = lines_out ? lines_out + group * held() : nullptr;
        ScratchVector<std::size_t> filtered;
        filtered.reserve(n);
        for (int64_t i = 0; i < lines; ++i) {
            line.emplace_back(form(i), memory, delays[i], block(), kept, passed ? *passed : 0, after, silence, dropped);
            memory += Line::memory(form(i), delays[i], block());
            if (kept) kept += delays[i];
            if (after) after += delays[i];
            if (form(i) != Form::unheard && is_filtered(group, i)) filtered.push_back(static_cast<std::size_t>(i));
        }
        std::optional<Prepared> own;
        Prepared& prepared = prepared_for(group, filtered, own);
        Plan& plan = prepared.plan;
        LoopFilters& filters = prepared.filters;
        load_states(group, filters);
        for (int64_t start = 0; start < samples; start += block()) {
            const int64_t count = std::min(block(), samples - start);
            for (std::size_t i = 0; i < n; ++i) signals[i] = line[i].read(count);
            load(kernels, group, start, count, piece[0]);
            const auto add_up = [&](Sums& sums, const ScratchVector<std::size_t>& rows, auto&& target) {
                sums.point(signals);
                for (std::size_t i = 0; i < rows.size(); ++i) kernels.sum_f64(sums.row(i), count, target(rows[i]));
            };
            add_up(plan.fed, plan.fed_rows, [&](std::size_t i) { return through[i]; });
            add_up(plan.added, plan.added_rows, [&](std::size_t i) { return entrances[i]; });
            filters.run(kernels, count, {silence, 0, silence, dropped}, [&](std::size_t i) -> FilterStream {
                if (filter_first) return {signals[i], 1, silence, through[i]};
                const Feed& feed = plan.feeds[i];
                return {signals[feed.source], feed.weight, signals[feed.entrance], line[i].target(count)};
            });
            add_up(plan.shared, plan.shared_rows, [&](std::size_t i) { return shared[i]; });
            add_up(plan.into, plan.into_rows, [&](std::size_t i) { return line[i].target(count); });
            plan.out.point(signals);
            for (int64_t i = 0; i < outputs; ++i)
                sum_of(kernels, y.data)(plan.out.row(static_cast<std::size_t>(i)), count, y.of(group * outputs + i) + start);
            for (Line& each : line) each.advance(count);
        }
        for (const Line& each : line) each.save();
        if (sections && state_out) save_states(group, filters);
    }

    // What is kept, if it is for this; else what `own` then holds.
    Prepared& prepared_for(int64_t group, const ScratchVector<std::size_t>& filtered, std::optional<Prepared>& own) const {
        int64_t unheard = 0;
        for (int64_t i = 0; i < lines; ++i) unheard += form(i) == Form::unheard;
        const auto make = [&] {
            return Prepared(planned(group, filtered), stages_of(group), lines, sections, filtered, unheard);
        };
        if (groups == 1) {
            kept_between.keep(make);
            Prepared* const kept = kept_between.prepared();
            if (kept && kept->serves(filtered, unheard)) return *kept;
        }
        return own.emplace(planned(group, filtered), stages_of(group), lines, sections, filtered, unheard);
    }

    Plan planned(int64_t group, const ScratchVector<std::size_t>& filtered) const {
        const int64_t width = lines + inputs;
        const auto n = static_cast<std::size_t>(lines), first_through = static_cast<std::size_t>(width);
        const double* system = systems + system_rows.of(group) * (lines + outputs) * width;
        ScratchVector<double> heard;  // the same without the lines that are not heard
        for (int64_t j = 0; j < lines; ++j) {
            if (form(j) != Form::unheard) continue;
            if (heard.empty()) heard.assign(system, system + (lines + outputs) * width);
            std::fill_n(heard.begin() + j * width, width, 0.0);
            for (int64_t i = 0; i < lines + outputs; ++i) heard[static_cast<std::size_t>(i * width + j)] = 0;
            system = heard.data();
        }
        const auto has_filter = [&](int64_t i) {
            return std::binary_search(filtered.begin(), filtered.end(), static_cast<std::size_t>(i));
        };
        Plan plan;
        plan.feeds.reserve(n);
        plan.into_rows.reserve(n);
        ScratchVector<const double*> summed;
        summed.reserve(n + static_cast<std::size_t>(outputs));
        for (int64_t i = 0; i < lines + outputs; ++i) {
            const auto row = static_cast<std::size_t>(i);
            const double* const weights = system + i * width;
            if (i < lines) plan.feeds.push_back({first_through + row, 1, first_through + 2 * n});
            if (i < lines && !filter_first && has_filter(i)) feed(weights, row, plan);
            else summed.push_back(weights);
        }
        const ScratchVector<int64_t> signal_of = share(summed, plan);
        plan.into.reserve(n, n * static_cast<std::size_t>(width));
        plan.out.reserve(static_cast<std::size_t>(outputs), static_cast<std::size_t>(outputs * width));
        for (const double* const weights : summed) {
            const int64_t i = (weights - system) / width;
            Sums& sums = i < lines ? plan.into : plan.out;
            for (int64_t j = 0; j < width; ++j) {
                const bool through = i < lines && j < lines && filter_first && has_filter(j);
                const int64_t signal = through ? width + j : signal_of[static_cast<std::size_t>(j)];
                if (signal != nowhere) sums.add_term(signal, weights[j]);
            }
            sums.end_row();
            if (i < lines) plan.into_rows.push_back(static_cast<std::size_t>(i));
        }
        for (Sums* sums : {&plan.fed, &plan.added, &plan.shared, &plan.into, &plan.out}) sums->end();
        return plan;
    }

    // Signals that several sums take alike are added up once, where that saves terms. Returns which signal stands for each
    // column of the rows; nowhere for those that another one's includes.
    ScratchVector<int64_t> share(const ScratchVector<const double*>& rows, Plan& plan) const {
        ScratchVector<int64_t> signal_of(static_cast<std::size_t>(lines + inputs));
        std::iota(signal_of.begin(), signal_of.end(), 0);
        if (filter_first) return signal_of;  // filtered into lines, and out as they are
        for (std::size_t j = 0; j < signal_of.size(); ++j) {
            if (signal_of[j] == nowhere) continue;
            const auto sums = std::count_if(rows.begin(), rows.end(), [j](const double* row) { return row[j] != 0; });
            ScratchVector<std::size_t> alike;
            for (std::size_t k = j + 1; k < signal_of.size(); ++k)
                if (signal_of[k] != nowhere &&
                    std::all_of(rows.begin(), rows.end(), [j, k](const double* row) { return row[j] == row[k]; }))
                    alike.push_back(k);
            if (static_cast<int64_t>(alike.size()) * (sums - 1) <= 2) continue;
            plan.shared.add_term(static_cast<int64_t>(j), 1);
            for (const std::size_t k : alike) {
                plan.shared.add_term(static_cast<int64_t>(k), 1);
                signal_of[k] = nowhere;
            }
            plan.shared.end_row();
            const std::size_t index = plan.shared_rows.size();
            plan.shared_rows.push_back(index);
            signal_of[j] = 3 * lines + inputs + 2 + static_cast<int64_t>(index);
        }
        return signal_of;
    }

    // A line whose filter comes behind the matrix. A single term needs no sum, nor does what another line gets, too.
    void feed(const double* row, std::size_t i, Plan& plan) const {
        Feed& feed = plan.feeds[i];
        const auto is_term = [](double weight) { return weight != 0; };
        if (std::count_if(row, row + lines, is_term) == 1) {
            const double* const term = std::find_if(row, row + lines, is_term);
            feed.source = static_cast<std::size_t>(term - row);
            feed.weight = *term;
        } else {
            for (int64_t j = 0; j < lines; ++j) plan.fed.add_term(j, row[j]);
            plan.fed.end_row();
            plan.fed_rows.push_back(i);
        }
        if (std::none_of(row + lines, row + lines + inputs, is_term)) return;
        feed.entrance = static_cast<std::size_t>(2 * lines + inputs) + i;
        for (const std::size_t other : plan.added_rows)
            if (std::equal(row + lines, row + lines + inputs,
                           row + (static_cast<int64_t>(other) - static_cast<int64_t>(i)) * (lines + inputs) + lines)) {
                feed.entrance = plan.feeds[other].entrance;
                return;
            }
        for (int64_t j = lines; j < lines + inputs; ++j) plan.added.add_term(j, row[j]);
        plan.added.end_row();
        plan.added_rows.push_back(i);
    }

    void run(int threads) const {
        const int wanted = static_cast<int>(std::clamp<int64_t>(groups * samples * lines / samples_per_thread, 1, threads));
        Workspaces workspaces(wanted, memory());
        parallel_for_or_throw(groups, wanted, [&](int64_t group) {
            const Workspaces::Lease lease(workspaces);
            run(group, lease.data());
        });
        if (passed) *passed = in_place_ ? *passed + samples : 0;
    }
};

// Without an early end, so that many numbers are looked at together.
bool finite(const double* values, int64_t count) {
    bool all = true;
    for (int64_t i = 0; i < count; ++i) all &= std::fabs(values[i]) <= std::numeric_limits<double>::max();
    return all;
}

}  // namespace
}  // namespace torchfx

extern "C" int32_t torchfx_delay_network_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t groups, int64_t samples,
    const int64_t* delays, int64_t lines, int64_t inputs, int64_t outputs,
    const double* systems, int64_t system_rows, int64_t system_repeat,
    const double* sos, int64_t sections, int64_t sos_rows, int64_t sos_repeat, int32_t filter_first,
    const double* lines_in, double* lines_out, const double* state_in, double* state_out,
    int64_t* passed, void* kept, int64_t kept_bytes, int32_t threads) {
    using namespace torchfx;
    const Rows of_system = {system_rows, system_repeat}, of_sos = {sos_rows, sos_repeat};
    if ((dtype != TORCHFX_F32 && dtype != TORCHFX_F64) || !x || x_repeat < 1 || !y || groups < 1 || samples < 1 || !delays ||
        lines < 1 || inputs < 1 || outputs < 1 || !systems || !of_system.valid(groups) || sections < 0 ||
        (sections && (!sos || !state_out != !lines_out || !of_sos.valid(groups))) || threads < 1 ||
        (passed && (!lines_in || lines_in != lines_out || *passed < 0)) || kept_bytes < 0 ||
        *std::min_element(delays, delays + lines) < 1)
        return TORCHFX_BAD_ARGUMENT;
    const Kept between(kept, kept_bytes);
    Prepared* const prepared = between.prepared();
    if (!prepared && !finite(systems, system_rows * (lines + outputs) * (lines + inputs))) return TORCHFX_NOT_FINITE;
    const FlushSubnormals flush(true);  // a tail that is rounded to floats ends among those, too
    try {
        ScratchVector<SosStage> stages(static_cast<std::size_t>(sections && !prepared ? sos_rows * lines * sections : 0));
        const int64_t count = static_cast<int64_t>(stages.size());
        if (const int32_t status = make_stages(sos, count, SosForm::shifted, stages.data())) return status;
        const SosStage* const all_stages = prepared ? prepared->stages.data() : stages.data();
        const auto with = [&](auto sample) {
            using Sample = decltype(sample);
            Call<Sample>{groups, samples, lines, inputs, outputs, sections, delays, filter_first != 0,
                         {static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat},
                         {static_cast<Sample*>(y), y_channel_stride, 1, 1},
                         systems, of_system, all_stages, sections ? of_sos : Rows{1, 1},
                         lines_in, sections ? state_in : nullptr, lines_out, state_out, passed, between}.run(threads);
        };
        if (dtype == TORCHFX_F32) with(float{});
        else with(double{});
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
    return TORCHFX_OK;
}
