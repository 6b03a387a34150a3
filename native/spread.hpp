// Points spread over a grid with B-splines of order 4 or 8, for transforms of many points to frequencies.
//
// A point at position p (in cells) has weights B(p - j) at the 4 or 8 nodes j around it along each axis,
// and adds their products to a block of nodes. Weights are computed for a batch of points at once; a
// block is a few rows of 4 or 8 numbers, each one vector operation.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "task.hpp"

namespace MERCER_ISA {

using mercer::SpreadTask;

constexpr std::size_t spread_batch = 16;
template <int Order> struct SplineRow;
template <> struct SplineRow<4> { typedef double type __attribute__((vector_size(32))); };
template <> struct SplineRow<8> { typedef double type __attribute__((vector_size(64))); };

// The weights of the nodes from floor(p) - Order / 2 + 1 on, at t = p - floor(p): de Boor's recursion.
template <int Order> inline void spline_weights(const double* t, double (*w)[spread_batch]) {
    for (std::size_t i = 0; i < spread_batch; ++i) w[0][i] = 1.0;
#pragma GCC unroll 8
    for (int k = 1; k < Order; ++k) {
        double saved[spread_batch] = {};
        const double share = 1.0 / k;
#pragma GCC unroll 8
        for (int r = 0; r < k; ++r)
            for (std::size_t i = 0; i < spread_batch; ++i) {
                const double part = w[r][i] * share;
                w[r][i] = saved[i] + (r + 1 - t[i]) * part;
                saved[i] = (t[i] + (k - 1 - r)) * part;
            }
        for (std::size_t i = 0; i < spread_batch; ++i) w[k][i] = saved[i];
    }
}

template <class Row> inline void add_row(double* to, double factor, const Row& row) {
    Row nodes;
    std::memcpy(&nodes, to, sizeof nodes);
    nodes += factor * row;
    std::memcpy(to, &nodes, sizeof nodes);
}

template <int Dim, int Order, class T> inline std::size_t spread_in(const SpreadTask<T>& task) {
    std::size_t outside = 0;
    double t[spread_batch], weights[Dim][Order][spread_batch];
    std::size_t node[Dim][spread_batch];
    for (std::size_t first = 0; first < task.n; first += spread_batch) {
        const std::size_t count = std::min(spread_batch, task.n - first);
        for (int k = 0; k < Dim; ++k) {
            const double most = static_cast<double>(task.cells[k]);
            for (std::size_t i = 0; i < spread_batch; ++i) {
                const std::size_t row = first + (i < count ? i : 0);
                const double p = (task.points[row * Dim + k] - task.origin[k]) * task.scale[k];
                const bool inside = p >= 0.0 && p < most;  // not NaN
                outside += !inside;
                const double floor = inside ? std::floor(p) : 0.0;
                node[k][i] = static_cast<std::size_t>(floor);
                t[i] = inside ? p - floor : 0.0;
            }
            spline_weights<Order>(t, weights[k]);
        }
        for (std::size_t i = 0; i < count; ++i) {
            typename SplineRow<Order>::type last;
            const double a = task.strengths ? task.strengths[first + i] : 1.0;
            for (int r = 0; r < Order; ++r) last[r] = a * weights[Dim - 1][r][i];
            double* to = task.grid + node[Dim - 1][i];
            if constexpr (Dim == 1) {
                add_row(to, 1.0, last);
            } else {
                const std::size_t width = task.cells[Dim - 1] + Order;
                if constexpr (Dim == 2) {
                    to += node[0][i] * width;
                    for (int r = 0; r < Order; ++r) add_row(to + r * width, weights[0][r][i], last);
                } else {
                    const std::size_t plane = width * (task.cells[1] + Order);
                    to += node[0][i] * plane + node[1][i] * width;
                    for (int q = 0; q < Order; ++q)
                        for (int r = 0; r < Order; ++r)
                            add_row(to + q * plane + r * width, weights[0][q][i] * weights[1][r][i], last);
                }
            }
        }
    }
    return outside;
}

// Returns how many coordinates were outside the grid (or NaN); those rows are misplaced.
template <class T> inline std::size_t spread(const SpreadTask<T>& task) {
    const bool few = task.order == 4;
    switch (task.dim) {
        case 1: return few ? spread_in<1, 4>(task) : spread_in<1, 8>(task);
        case 2: return few ? spread_in<2, 4>(task) : spread_in<2, 8>(task);
        default: return few ? spread_in<3, 4>(task) : spread_in<3, 8>(task);
    }
}

}  // namespace MERCER_ISA
