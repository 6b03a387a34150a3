// Tiles of sums over coordinates, v(x, y) = sum_c f(x_c, y_c), that are not matrix products.
//
// Points are the lanes of vectors, packed coordinate by coordinate; a group of queries is compared
// with each panel of them. Coordinates come in stretches, so that a packed panel stays in the
// first-level cache, and long sums of float32 are sums of short ones.
#pragma once

#include <algorithm>

#include "simd.hpp"
#include "task.hpp"

namespace MERCER_ISA {

using mercer::Coordinate;
using mercer::CoordinateTask;

constexpr std::size_t coordinates_at_once = 128;

// Adds f(x, y). Smaller number times a share: symmetric to the last bit, and without overflow.
template <class T, Coordinate KIND>
[[gnu::always_inline]] inline Vec<T> with_term(Vec<T> sum, Vec<T> x, T number) {
    const Vec<T> y = fill(number);
    if constexpr (KIND == Coordinate::minimum) {
        return sum + smaller<T>(x, y);
    } else if constexpr (KIND == Coordinate::differing) {
        return sum + (x != y ? fill(T(1)) : Vec<T>{});
    } else if constexpr (KIND == Coordinate::absolute) {
        return sum + (larger<T>(x, y) - smaller<T>(x, y));
    } else {
        const Vec<T> total = x + y, safe = total == T(0) ? fill(T(1)) : total;  // 0 at 0 / 0
        if constexpr (KIND == Coordinate::harmonic)
            return sum + smaller<T>(x, y) * (larger<T>(x, y) / safe);
        const Vec<T> gap = x - y;
        return sum + gap * (gap / safe);
    }
}

// Points `first` and on, coordinates `from` to `to`; lanes beyond the last point repeat it.
template <class T, int LANES>
inline void pack_points(const CoordinateTask<T>& task, std::size_t first, std::size_t from,
                        std::size_t to, T* out) {
    for (int lane = 0; lane < LANES; ++lane) {
        const T* x = task.points + std::min(first + lane, task.n - 1) * task.dim;
        for (std::size_t k = from; k < to; ++k) out[(k - from) * LANES + lane] = x[k];
    }
}

template <class T, Coordinate KIND> void coordinate_sums_of(const CoordinateTask<T>& task) {
    constexpr int V = MERCER_PANEL_VECTORS, S = MERCER_GROUP, width = V * lanes<T>;
    alignas(64) T packed[coordinates_at_once * width];
    alignas(64) T values[S * width];
    for (std::size_t from = 0; from < task.dim; from += coordinates_at_once) {
        const std::size_t to = std::min(task.dim, from + coordinates_at_once);
        for (std::size_t first = 0; first < task.n; first += width) {
            pack_points<T, width>(task, first, from, to, packed);
            const std::size_t used = std::min<std::size_t>(width, task.n - first);
            for (std::size_t row = 0; row < task.m; row += S) {
                const T* y[S];  // rows beyond the last repeat it
                for (int s = 0; s < S; ++s)
                    y[s] = task.queries + std::min(row + s, task.m - 1) * task.dim + from;
                Vec<T> sum[S][V] = {};
                for (std::size_t k = 0; k < to - from; ++k) {
                    Vec<T> x[V];
                    for (int v = 0; v < V; ++v) x[v] = load(packed + k * width + v * lanes<T>);
                    for (int s = 0; s < S; ++s)
                        for (int v = 0; v < V; ++v)
                            sum[s][v] = with_term<T, KIND>(sum[s][v], x[v], y[s][k]);
                }
                for (int s = 0; s < S; ++s)
                    for (int v = 0; v < V; ++v) store(values + s * width + v * lanes<T>, sum[s][v]);
                for (std::size_t s = 0; s < std::min<std::size_t>(S, task.m - row); ++s) {
                    T* to_row = task.out + (row + s) * task.stride + first;
                    for (std::size_t i = 0; i < used; ++i)
                        to_row[i] = (from ? to_row[i] : T(0)) + values[s * width + i];
                }
            }
        }
    }
}

template <class T> void coordinate_sums(const CoordinateTask<T>& task) {
    switch (task.kind) {
    case Coordinate::minimum: coordinate_sums_of<T, Coordinate::minimum>(task); break;
    case Coordinate::harmonic: coordinate_sums_of<T, Coordinate::harmonic>(task); break;
    case Coordinate::chi2: coordinate_sums_of<T, Coordinate::chi2>(task); break;
    case Coordinate::differing: coordinate_sums_of<T, Coordinate::differing>(task); break;
    case Coordinate::absolute: coordinate_sums_of<T, Coordinate::absolute>(task); break;
    }
}

}  // namespace MERCER_ISA
