// Linear systems of few states whose matrices may change from sample to sample, on doubles, in place:
//
//     [s'; y] = M [s; x],    M = [[A, B], [C, D]], (states + 1) x (states + 1) in C order
#ifndef TORCHFX_STATE_SPACE_KERNELS_H
#define TORCHFX_STATE_SPACE_KERNELS_H

#include <stdint.h>

#include "support/dispatch.h"

namespace torchfx {

constexpr int most_states = 4;

// Samples of one channel that lie side by side, and their matrices: one for all (step 0), or one for each.
struct StateSpaceRun {
    const double* m;
    int64_t step;
    double* state;    // (states,), on return the one after
    double* samples;  // in: x, out: y
    int64_t count;
};

struct StateSpaceGradient {
    const double* m;
    int64_t step;
    const double* states;  // (count, states): the states before each sample
    const double* x;
    double* adjoint;  // (states,): gradient of the state after the last sample; on return of the one before the first
    double* samples;  // in: gradients of y, out: of x
    int64_t count;
    double* grad_m;  // like m with the same step, or NULL; added to
};

// u = tanh(drive * (x - feedback * y)) / drive drives the system in the place of x, y being what the matrix's last row gives
// at the same instant.
struct SaturatedRun {
    StateSpaceRun run;
    const double* output;  // (states + 1,): the row for the output, in the place of the matrix's last one, which is fed back
    double feedback, drive;
    const double* table;  // of the loop's c = feedback times the system's last element; NULL where there is none
};

// The solution h = tanh(w) of w + c tanh(w) = b: a polynomial in b for each stretch of 1 / 32, from b = 0 on.
// With 0 <= c <= saturation_most it is 1 behind the last one, and the polynomials err by 2e-16.
constexpr int saturation_terms = 8, saturation_stretches = 1024, saturation_per_unit = 32;
constexpr double saturation_most = 12;

// Tables are indexed by the number of states; 0 is empty.
struct StateSpaceKernels {
    void (*run[most_states + 1])(const StateSpaceRun&);
    // The same, and the states before each sample; the samples stay what they are.
    void (*trace[most_states + 1])(const StateSpaceRun&, double* states);
    void (*backward[most_states + 1])(const StateSpaceGradient&);
    void (*saturated[most_states + 1])(const SaturatedRun&);
    // The same for one system each, 1 or 2 of them, with tables.
    void (*saturated_by_table[most_states + 1][3])(const SaturatedRun*);
    void (*tabulate)(double c, double* table);
};

TORCHFX_DECLARE_KERNELS(StateSpaceKernels, state_space_kernels)

}  // namespace torchfx

#endif
