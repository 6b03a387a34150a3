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

#include "simd.hpp"
#include "task.hpp"

namespace MERCER_ISA {

using mercer::WorkingSetTask;

constexpr double smallest_curvature = 1e-12;  // of directions in which a kernel matrix is singular
constexpr double infinity = std::numeric_limits<double>::infinity();

struct Move { std::size_t i, j; double t; };

// A number, or a vector of numbers.
template <class V> inline V read(const double* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

// each(v, k) for all k from first up to last; v is a zero of the type to work with: a vector that
// begins at k or, for what is left, a number.
template <class Each> inline void for_each(std::size_t first, std::size_t last, Each each) {
    std::size_t k = first;
    for (; k + lanes<double> <= last; k += lanes<double>) each(Vec<double>{}, k);
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

class Largest {
public:
    void add(double s, std::size_t k) { rest.add(s, k); }
    void add(Vec<double> s, std::size_t k) {
        const auto better = s > scores;
        scores = better ? s : scores;
        where = better ? fill(static_cast<double>(k)) : where;
    }
    Best best() const {
        Best all = rest;
        for (std::size_t i = 0; i < lanes<double>; ++i)
            all.add(scores[i], static_cast<std::size_t>(where[i]) + i);
        return all;
    }

private:
    Vec<double> scores = fill(-infinity), where{};
    Best rest;
};

// Adds t (M_i - M_j) to the gradient of a group; then the smallest gradient of a variable that may
// rise (with its sign changed), and the largest one of a variable that may fall.
struct Extremes {
    Best rise, fall;
};

inline Extremes update(const WorkingSetTask& task, std::size_t first, std::size_t last, const Move& m) {
    Largest rise, fall;
    const double *up = task.matrix + m.i * task.size, *down = task.matrix + m.j * task.size;
    for_each(first, last, [&](auto v, std::size_t k) {
        using V = decltype(v);
        const V g = read<V>(task.gradient + k) + m.t * (read<V>(up + k) - read<V>(down + k));
        std::memcpy(task.gradient + k, &g, sizeof g);
        const V b = read<V>(task.values + k);
        rise.add(b < read<V>(task.upper + k) ? -g : v - infinity, k);
        fall.add(b > read<V>(task.lower + k) ? g : v - infinity, k);
    });
    return {rise.best(), fall.best()};
}

// The variable of a group whose fall, as variable i rises, promises the largest decrease.
inline Best partner(const WorkingSetTask& task, std::size_t i, std::size_t first, std::size_t last) {
    const double *row = task.matrix + i * task.size, g_i = task.gradient[i], d_i = task.diagonal[i];
    Largest gain;
    for_each(first, last, [&](auto v, std::size_t k) {
        using V = decltype(v);
        const V slope = read<V>(task.gradient + k) - g_i;
        const V c = read<V>(task.diagonal + k) + d_i - 2.0 * read<V>(row + k);
        const V promised = slope * slope / (c > smallest_curvature ? c : v + smallest_curvature);
        const V falls = read<V>(task.values + k) > read<V>(task.lower + k) ? promised : v;
        gain.add(slope > 0.0 ? falls : v, k);
    });
    return gain.best();
}

// Moves variable i by t, exactly onto a bound that it reaches.
inline void shift(const WorkingSetTask& task, std::size_t i, double t) {
    task.values[i] = std::min(std::max(task.values[i] + t, task.lower[i]), task.upper[i]);
}

inline bool move_pair(const WorkingSetTask& task, Move& m) {
    double violation = task.tolerance;
    std::size_t group = task.groups;
    Move next{0, 0, 0.0};
    for (std::size_t k = 0; k < task.groups; ++k) {
        const Extremes e = update(task, task.start[k], task.start[k + 1], m);
        const double v = e.rise.score + e.fall.score;
        if (v > violation) violation = v, next.i = e.rise.index, group = k;
    }
    m = Move{0, 0, 0.0};
    if (group == task.groups) return false;
    const Best fall = partner(task, next.i, task.start[group], task.start[group + 1]);
    if (!(fall.score > 0.0)) return false;
    next.j = fall.index;
    const std::size_t i = next.i, j = next.j;
    const double c = task.diagonal[i] + task.diagonal[j] - 2.0 * task.matrix[i * task.size + j];
    const double room = std::min(task.upper[i] - task.values[i], task.values[j] - task.lower[j]);
    next.t = std::min((task.gradient[j] - task.gradient[i]) / std::max(c, smallest_curvature), room);
    shift(task, i, next.t);
    shift(task, j, -next.t);
    m = next;
    return true;
}

inline bool move_one(const WorkingSetTask& task, Move&) {
    double step = 0.0;
    const auto move_of = [&](auto v, std::size_t k) {
        using V = decltype(v);
        const V d = read<V>(task.diagonal + k), b = read<V>(task.values + k);
        const V full = -read<V>(task.gradient + k) / (d > smallest_curvature ? d : v + smallest_curvature);
        const V most = read<V>(task.upper + k) - b, least = read<V>(task.lower + k) - b;
        const V t = full < most ? full : most;
        return t > least ? t : least;
    };
    Largest l;
    for_each(0, task.size, [&](auto v, std::size_t k) {
        using V = decltype(v);
        const V g = read<V>(task.gradient + k), d = read<V>(task.diagonal + k);
        const V t = move_of(v, k);
        const V gain = -t * (g + 0.5 * t * (d > smallest_curvature ? d : v + smallest_curvature));
        l.add((g > task.tolerance) | (g < -task.tolerance) ? gain : v, k);
    });
    const Best best=l.best();
    if (!(best.score > 0.0)) return false;
    step = move_of(0.0, best.index);
    shift(task, best.index, step);
    const double* row = task.matrix + best.index * task.size;
    for (std::size_t k = 0; k < task.size; ++k) task.gradient[k] += step * row[k];
    return true;
}

// Returns the number of steps: fewer than max_steps if no violation above the tolerance is left.
inline std::size_t minimise_working_set(const WorkingSetTask& task) {
    std::size_t steps = 0;
    Move m{0, 0, 0.0};
    while (steps < task.max_steps && (task.groups ? move_pair(task, m) : move_one(task, m))) ++steps;
    if (m.t != 0.0) for (std::size_t k = 0; k < task.groups; ++k) update(task, task.start[k], task.start[k + 1], m);
    return steps;
}

}  // namespace MERCER_ISA
