// The dual problem of support vector machines on a few variables: two of them move at a time.
//
// Minimise 1/2 b'Mb + l'b for lower <= b <= upper, where the sum of b over each group of variables is
// kept. With g = Mb + l the best pair of a group is found by second-order selection: i has the
// smallest g among those that may rise, j promises the largest decrease among those that may fall.
// Without groups one variable moves at a time.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "task.hpp"

namespace MERCER_ISA {

using mercer::WorkingSetTask;

constexpr double smallest_curvature = 1e-12;  // of directions in which a kernel matrix is singular

// Moves variable i by t, exactly onto a bound that it reaches.
inline void move(const WorkingSetTask& task, std::size_t i, double t) {
    task.values[i] = std::min(std::max(task.values[i] + t, task.lower[i]), task.upper[i]);
}

inline void update_gradient(const WorkingSetTask& task, std::size_t i, double t) {
    const double* row = task.matrix + i * task.size;
    for (std::size_t k = 0; k < task.size; ++k) task.gradient[k] += t * row[k];
}

// The variable of a group that rises, and by how much the group violates optimality.
struct Rise {
    std::size_t index;
    double violation;
};

inline Rise most_violating(const WorkingSetTask& task, std::size_t first, std::size_t last) {
    double rises = std::numeric_limits<double>::infinity(), falls = -rises;
    std::size_t index = last;
    for (std::size_t k = first; k < last; ++k) {
        const double g = task.gradient[k];
        if (task.values[k] < task.upper[k] && g < rises) rises = g, index = k;
        if (task.values[k] > task.lower[k] && g > falls) falls = g;
    }
    return {index, falls - rises};  // -infinity or NaN-free: one of them may be infinite
}

inline double curvature(const WorkingSetTask& task, std::size_t i, std::size_t j) {
    const double *M = task.matrix;
    const std::size_t n = task.size;
    return std::max(M[i * n + i] + M[j * n + j] - 2.0 * M[i * n + j], smallest_curvature);
}

inline bool move_pair(const WorkingSetTask& task) {
    Rise best{0, task.tolerance};
    std::size_t group = task.groups;
    for (std::size_t k = 0; k < task.groups; ++k) {
        const Rise rise = most_violating(task, task.start[k], task.start[k + 1]);
        if (rise.violation > best.violation) best = rise, group = k;
    }
    if (group == task.groups) return false;
    const std::size_t i = best.index;
    std::size_t j = i;
    double gain = 0.0;
    for (std::size_t k = task.start[group]; k < static_cast<std::size_t>(task.start[group + 1]); ++k) {
        const double slope = task.gradient[k] - task.gradient[i];
        if (slope <= 0.0 || task.values[k] <= task.lower[k]) continue;
        const double promised = slope * slope / curvature(task, i, k);
        if (promised > gain) gain = promised, j = k;
    }
    if (j == i) return false;
    const double room = std::min(task.upper[i] - task.values[i], task.values[j] - task.lower[j]);
    const double t = std::min((task.gradient[j] - task.gradient[i]) / curvature(task, i, j), room);
    move(task, i, t);
    move(task, j, -t);
    update_gradient(task, i, t);
    update_gradient(task, j, -t);
    return true;
}

inline bool move_one(const WorkingSetTask& task) {
    std::size_t best = task.size;
    double gain = 0.0, step = 0.0;
    for (std::size_t k = 0; k < task.size; ++k) {
        const double g = task.gradient[k];
        if (std::abs(g) <= task.tolerance) continue;
        const double full = -g / std::max(task.matrix[k * task.size + k], smallest_curvature);
        const double t = std::min(std::max(full, task.lower[k] - task.values[k]),
                                  task.upper[k] - task.values[k]);
        const double promised = -t * g * (1.0 - 0.5 * t / full);
        if (promised > gain) gain = promised, best = k, step = t;
    }
    if (best == task.size) return false;
    move(task, best, step);
    update_gradient(task, best, step);
    return true;
}

// Returns the number of steps: fewer than max_steps if no violation above the tolerance is left.
inline std::size_t minimise_working_set(const WorkingSetTask& task) {
    std::size_t steps = 0;
    while (steps < task.max_steps && (task.groups ? move_pair(task) : move_one(task))) ++steps;
    return steps;
}

}  // namespace MERCER_ISA
