// The dual problem of support vector machines on a few variables: two of them move at a time.
//
// Minimise 1/2 b'Mb + l'b for lower <= b <= upper, where the sum of b over each group of variables is
// fixed. With g = Mb + l the best pair of a group is found by second-order selection: i has the
// smallest g among those that may rise, j promises the largest decrease among those that may fall.
// Without groups one variable moves at a time.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>

#include "simd.hpp"
#include "task.hpp"

namespace MERCER_ISA {

using mercer::WorkingSetTask;

constexpr double smallest_curvature = 1e-12;  // of directions in which a kernel matrix is singular
constexpr double infinity = std::numeric_limits<double>::infinity();

// Variable i rises by t, and variable j falls by it.
struct Move {
    std::size_t i = 0, j = 0;
    double t = 0.0;
};

// A number, or a vector of numbers.
template <class V> inline V read(const double* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

// each(v, k) for all k from first up to last; v is a zero of the type to work with: a vector that
// begins at k or, for what is left, a number.
template <class Each> inline void for_each(std::size_t first, std::size_t last, Each each) {
    constexpr std::size_t step = lanes<double>;
    std::size_t k = first;
    for (; k + step <= last; k += step) each(Vec<double>{}, k);
    for (; k < last; ++k) each(0.0, k);
}

// The largest of some scores, and where it is.
struct Best {
    double score = -infinity;
    std::size_t index = 0;

    void add(double s, std::size_t k) {
        if (s > score) score = s, index = k;
    }
};

// The same for many scores, a vector at a time.
struct Largest {
    Vec<double> scores = fill(-infinity), where{};
    Best rest;

    void add(double s, std::size_t k) { rest.add(s, k); }
    void add(Vec<double> s, std::size_t k) {
        const auto better = s > scores;
        scores = better ? s : scores;
        where = better ? fill(static_cast<double>(k)) : where;
    }
    Best best() const {
        Best all = rest;
        for (int i = 0; i < lanes<double>; ++i) all.add(scores[i], static_cast<std::size_t>(where[i]) + i);
        return all;
    }
};

template <class V> inline V at_least_flat(V curvature) {
    return curvature > smallest_curvature ? curvature : V{} + smallest_curvature;
}

// In a group: -g of the variable to rise, and g of the one to fall, that violate optimality most.
struct Extremes {
    Best rise, fall;
};

// Adds the last move to the gradient of a group, and finds its extremes on the way.
inline Extremes update(const WorkingSetTask& task, std::size_t group, const Move& last) {
    const double *up = task.matrix + last.i * task.size, *down = task.matrix + last.j * task.size;
    Largest rise, fall;
    for_each(task.start[group], task.start[group + 1], [&](auto v, std::size_t k) {
        using V = decltype(v);
        const V b = read<V>(task.values + k);
        const V g = read<V>(task.gradient + k) + last.t * (read<V>(up + k) - read<V>(down + k));
        std::memcpy(task.gradient + k, &g, sizeof g);
        rise.add(b < read<V>(task.upper + k) ? -g : v - infinity, k);
        fall.add(b > read<V>(task.lower + k) ? g : v - infinity, k);
    });
    return {rise.best(), fall.best()};
}

// The variable of a group whose fall, as variable i rises, promises the largest decrease.
inline Best partner(const WorkingSetTask& task, std::size_t group, std::size_t i) {
    const double *row = task.matrix + i * task.size, g = task.gradient[i], d = task.diagonal[i];
    Largest gain;
    for_each(task.start[group], task.start[group + 1], [&](auto v, std::size_t k) {
        using V = decltype(v);
        const V slope = read<V>(task.gradient + k) - g;
        const V c = at_least_flat<V>(read<V>(task.diagonal + k) + d - 2.0 * read<V>(row + k));
        const V gained = read<V>(task.values + k) > read<V>(task.lower + k) ? slope * slope / c : v;
        gain.add(slope > 0.0 ? gained : v, k);
    });
    return gain.best();
}

// Moves variable i by t, exactly onto a bound that it reaches.
inline void shift(const WorkingSetTask& task, std::size_t i, double t) {
    task.values[i] = std::min(std::max(task.values[i] + t, task.lower[i]), task.upper[i]);
}

// Adds the last move to the gradient, then moves the next pair; a move by 0 is the last one.
inline Move move_pair(const WorkingSetTask& task, const Move& last) {
    double violation = task.tolerance;
    std::size_t group = task.groups, i = 0;
    for (std::size_t k = 0; k < task.groups; ++k) {
        const Extremes e = update(task, k, last);
        if (e.rise.score + e.fall.score > violation)
            violation = e.rise.score + e.fall.score, group = k, i = e.rise.index;
    }
    if (group == task.groups) return {};
    const Best fall = partner(task, group, i);
    if (!(fall.score > 0.0)) return {};
    const std::size_t j = fall.index;
    const double c = task.diagonal[i] + task.diagonal[j] - 2.0 * task.matrix[i * task.size + j];
    const double room = std::min(task.upper[i] - task.values[i], task.values[j] - task.lower[j]);
    const double t = std::min((task.gradient[j] - task.gradient[i]) / at_least_flat(c), room);
    shift(task, i, t);
    shift(task, j, -t);
    return {i, j, t};
}

// The step of variable k, or of a vector of them, to the minimum or to a bound.
template <class V> inline V step_of(const WorkingSetTask& task, std::size_t k) {
    const V b = read<V>(task.values + k), curvature = at_least_flat(read<V>(task.diagonal + k));
    const V full = -read<V>(task.gradient + k) / curvature;
    const V most = read<V>(task.upper + k) - b, least = read<V>(task.lower + k) - b;
    const V t = full < most ? full : most;
    return t > least ? t : least;
}

// Moves the variable that gains most; false if none violates optimality.
inline bool move_one(const WorkingSetTask& task) {
    Largest gain;
    for_each(0, task.size, [&](auto v, std::size_t k) {
        using V = decltype(v);
        const V g = read<V>(task.gradient + k), t = step_of<V>(task, k);
        const V gained = -t * (g + 0.5 * t * at_least_flat(read<V>(task.diagonal + k)));
        gain.add(g * g > task.tolerance * task.tolerance ? gained : v, k);
    });
    const Best best = gain.best();
    if (!(best.score > 0.0)) return false;
    const double t = step_of<double>(task, best.index), *row = task.matrix + best.index * task.size;
    shift(task, best.index, t);
    for (std::size_t k = 0; k < task.size; ++k) task.gradient[k] += t * row[k];
    return true;
}

// Returns the number of steps: fewer than max_steps if no violation above the tolerance is left.
inline std::size_t minimise_working_set(const WorkingSetTask& task) {
    std::size_t steps = 0;
    if (!task.groups) {
        while (steps < task.max_steps && move_one(task)) ++steps;
        return steps;
    }
    Move last;
    while (steps < task.max_steps && (last = move_pair(task, last)).t != 0.0) ++steps;
    for (std::size_t k = 0; k < task.groups; ++k) update(task, k, last);
    return steps;
}

}  // namespace MERCER_ISA
