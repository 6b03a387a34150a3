// The two kernels everything runs on, for one instruction set: weighted sums and Gram matrices.
//
// Queries are the lanes of vectors; a panel is `panel_vectors` of them. Points come in groups. Both
// halves of a sum are the same small product, sum_k V[k] s[k]' of a panel of vectors and a group of
// numbers, held in registers:
//     distances   k runs over coordinates,  V = queries,  s = points
//     sums        k runs over points,       V = weights,  s = coefficients
// In between the tape of the profile runs on the registers' worth of distances.
#pragma once

#include <algorithm>
#include <cmath>

#include "coordinates.hpp"
#include "permuted_sums.hpp"
#include "simd.hpp"
#include "spread.hpp"
#include "strings.hpp"
#include "tape.hpp"
#include "task.hpp"
#include "tiles.hpp"
#include "working_set.hpp"

namespace MERCER_ISA {

using mercer::Coefficients;
using mercer::Form;
using mercer::GramTask;
using mercer::kinds;
using mercer::Points;
using mercer::SumTask;

constexpr int V = MERCER_PANEL_VECTORS;  // vectors of queries
constexpr int S = MERCER_GROUP;          // points, or columns of coefficients
constexpr int block = 16 * S;            // points whose weights stay in the first-level cache
template <class T> constexpr int panel = V * lanes<T>;

// The product of a panel and one group of numbers: sum_k vectors[k][v] * numbers[k][s], in registers.
template <class T, int COLUMNS> using Sums = Vec<T>[COLUMNS][V];

template <class T, int COLUMNS, Form FORM = Form::dot>
[[gnu::always_inline]] inline void product(const T* vectors, const T* numbers, std::size_t length,
                                           Sums<T, COLUMNS>& sum) {
    for (std::size_t k = 0; k < length; ++k) {
        Vec<T> y[V];
        for (int v = 0; v < V; ++v) y[v] = load(vectors + k * panel<T> + v * lanes<T>);
        for (int s = 0; s < COLUMNS; ++s)
            for (int v = 0; v < V; ++v)
                if constexpr (FORM == Form::difference) {
                    const Vec<T> gap = y[v] - numbers[k * COLUMNS + s];
                    sum[s][v] += gap * gap;
                } else {
                    sum[s][v] += y[v] * numbers[k * COLUMNS + s];
                }
    }
}

// The variable of the profile between a panel of queries and a group of points, coordinates `from`
// to `to`: started from the norms, clipped at the end (rounding may make a distance negative).
template <class T, Form FORM>
inline void measure(const T* panel_coordinates, const T* panel_norms, const Points<T>& points,
                    std::size_t group, std::size_t from, std::size_t to, T* out) {
    Sums<T, S> sum;
    for (int s = 0; s < S; ++s)
        for (int v = 0; v < V; ++v) {
            if (from || FORM != Form::product) sum[s][v] = Vec<T>{};
            else sum[s][v] = load(panel_norms + v * lanes<T>) + points.norms[group * S + s];
        }
    product<T, S, FORM>(panel_coordinates + from * panel<T>,
                        points.coordinates + (group * points.dim + from) * S, to - from, sum);
    const bool clipped = FORM == Form::product && to == points.dim;
    for (int s = 0; s < S; ++s)
        for (int v = 0; v < V; ++v) {
            T* at = out + (s * V + v) * lanes<T>;
            if (from) sum[s][v] += load(at);  // a sum of short sums rounds less
            store(at, clipped ? larger<T>(Vec<T>{}, sum[s][v]) : sum[s][v]);
        }
}

// Groups of points, panel by panel in `out`. In many dimensions a stretch of coordinates at a time, so
// that the panel's coordinates stay in the first-level cache while the points go by; `out` holds the
// partial distances meanwhile.
constexpr std::size_t stretch_of_dimensions = 128;

template <class T, Form FORM>
inline void measure_all(const T* panel_coordinates, const T* panel_norms, const Points<T>& points,
                        std::size_t first, std::size_t last, T* out) {
    for (std::size_t from = 0; from < points.dim; from += stretch_of_dimensions) {
        const std::size_t to = std::min(points.dim, from + stretch_of_dimensions);
        for (std::size_t g = first; g < last; ++g)
            measure<T, FORM>(panel_coordinates, panel_norms, points, g, from, to,
                             out + (g - first) * S * panel<T>);
    }
}

template <class T>
inline void measure_groups(Form form, const T* panel_coordinates, const T* panel_norms,
                           const Points<T>& points, std::size_t first, std::size_t last, T* out) {
    switch (form) {
    case Form::dot:
        measure_all<T, Form::dot>(panel_coordinates, panel_norms, points, first, last, out);
        break;
    case Form::product:
        measure_all<T, Form::product>(panel_coordinates, panel_norms, points, first, last, out);
        break;
    case Form::difference:
        measure_all<T, Form::difference>(panel_coordinates, panel_norms, points, first, last, out);
        break;
    }
}

// Queries of one panel, coordinate by coordinate; lanes beyond the last repeat it.
template <class T>
inline void pack_panel(const T* queries, const T* query_norms, std::size_t m, std::size_t first,
                       std::size_t dim, T* coordinates, T* norms) {
    for (int lane = 0; lane < panel<T>; ++lane) {
        const std::size_t row = std::min(first + lane, m - 1);
        for (std::size_t k = 0; k < dim; ++k) coordinates[k * panel<T> + lane] = queries[row * dim + k];
        norms[lane] = query_norms[row];
    }
}

template <class T> inline T* carve(void*& scratch, std::size_t count) {
    // every piece starts on a cache line
    const std::size_t bytes = (count * sizeof(T) + 63) / 64 * 64;
    T* piece = static_cast<T*>(scratch);
    scratch = static_cast<char*>(scratch) + bytes;
    return piece;
}

template <class T> std::size_t padded(std::size_t count) { return (count * sizeof(T) + 63) / 64 * 64; }

// Is the box of a block of points farther from the box of a panel than the cutoff?
template <class T>
inline bool far_apart(const T* box, const T* low, const T* high, std::size_t dim, double cutoff) {
    double total = 0;
    for (std::size_t k = 0; k < dim; ++k) {
        const double gap = std::max({0.0, double(box[k]) - double(high[k]),
                                     double(low[k]) - double(box[dim + k])});
        total += gap * gap;
    }
    return total > cutoff;
}

template <class T>
inline void panel_box(const T* coordinates, std::size_t dim, T* low, T* high) {
    for (std::size_t k = 0; k < dim; ++k) {
        const T* y = coordinates + k * panel<T>;
        low[k] = *std::min_element(y, y + panel<T>);
        high[k] = *std::max_element(y, y + panel<T>);
    }
}

template <class T, int COLUMNS>
inline void add_columns(const T* weights, const T* coef, std::size_t length, double* out) {
    Sums<T, COLUMNS> sum;
    for (int s = 0; s < COLUMNS; ++s)
        for (int v = 0; v < V; ++v) sum[s][v] = Vec<T>{};
    product<T, COLUMNS>(weights, coef, length, sum);
    T part[COLUMNS * panel<T>];
    for (int s = 0; s < COLUMNS; ++s)
        for (int v = 0; v < V; ++v) store(part + (s * V + v) * lanes<T>, sum[s][v]);
    for (int i = 0; i < COLUMNS * panel<T>; ++i) out[i] += static_cast<double>(part[i]);
}

// out[c][lane] += sum over the points of a block of weights[point][lane] * coef[point][c]
template <class T>
inline void add_sums(const T* weights, const Coefficients<T>& coef, std::size_t first,
                     std::size_t length, std::size_t total, double* out) {
    // coefficients: one run of `total` points per group of columns, each with its own width
    const T* base = coef.packed;
    std::size_t done = 0;
    for (; done + S <= coef.columns; done += S, base += total * S)
        add_columns<T, S>(weights, base + first * S, length, out + done * panel<T>);
    const T* rest = base + first * (coef.columns - done);
    double* to = out + done * panel<T>;
    switch (coef.columns - done) {
    case 1: add_columns<T, 1>(weights, rest, length, to); break;
    case 2: add_columns<T, 2>(weights, rest, length, to); break;
    case 3: add_columns<T, 3>(weights, rest, length, to); break;
#if MERCER_GROUP > 4
    case 4: add_columns<T, 4>(weights, rest, length, to); break;
    case 5: add_columns<T, 5>(weights, rest, length, to); break;
    case 6: add_columns<T, 6>(weights, rest, length, to); break;
    case 7: add_columns<T, 7>(weights, rest, length, to); break;
#endif
    default: break;
    }
}

// Weights of one group of points for a panel of queries, stored point by point.
template <class T, int ORDER>
inline void weigh(const SumTask<T>& task, T* u, T* const* weights, std::size_t point) {
    constexpr int N = S * panel<T>;
    alignas(64) T spare[mercer::max_slots][ORDER + 1][N];
    Slots<T, ORDER> slots;
    for (int i = 0; i < mercer::max_slots; ++i)
        for (int t = 0; t <= ORDER; ++t)
            slots.at[i][t] = i && i == task.tape.result ? weights[t] + point * panel<T> : spare[i][t];
    slots.at[0][0] = u;
    for (int t = 1; t <= ORDER; ++t) std::fill(spare[0][t], spare[0][t] + N, T(t == 1));
    run<T, ORDER>(task.tape, slots, S * V);
    for (int t = 0; t <= ORDER; ++t) {
        T* to = weights[t] + point * panel<T>;
        if (task.tape.result == 0) std::memcpy(to, slots.at[0][t], N * sizeof(T));
        if (t && (t == 1 ? task.zero_first : task.zero_second))
            for (int i = 0; i < N; ++i) to[i] = u[i] == T(0) ? T(0) : to[i];
    }
    if (task.coef[3].columns)
        for (int i = 0; i < N; ++i)
            weights[3][point * panel<T> + i] = u[i] == T(0) ? T(1) : T(0);
}

// Weights of a block times the coefficients of its pairs.
template <class T>
inline void scale(T* weights, const T* pair, std::size_t stride, std::size_t length) {
    for (std::size_t i = 0; i < length; ++i)
        for (int v = 0; v < V; ++v) {
            T* w = weights + i * panel<T> + v * lanes<T>;
            store(w, load(w) * load(pair + i * stride + v * lanes<T>));
        }
}

// Points that are used for all panels before the next: as many as fit the second-level cache.
template <class T> inline std::size_t stretch_of(const SumTask<T>& task) {
    std::size_t per_point = task.points.dim + 1;
    for (int t = 0; t < kinds; ++t) per_point += task.coef[t].columns;
    const std::size_t fits = (std::size_t{256} << 10) / (per_point * sizeof(T));
    return std::max<std::size_t>(block, fits / block * block);
}

template <class T> std::size_t sum_scratch(const SumTask<T>& task) {
    const std::size_t panels = (task.m + panel<T> - 1) / panel<T>;
    const std::size_t dim = task.points.dim;
    std::size_t bytes = panels * (padded<T>(dim * panel<T>) + padded<T>(panel<T>) + 2 * padded<T>(dim));
    bytes += (kinds + 1) * padded<T>(block * panel<T>);
    for (int t = 0; t < kinds; ++t) {
        bytes += panels * padded<double>(task.coef[t].columns * panel<T>);
    }
    return bytes;
}

template <class T, int ORDER> void sum_order(const SumTask<T>& task) {
    const std::size_t panels = (task.m + panel<T> - 1) / panel<T>;
    const std::size_t dim = task.points.dim;
    void* scratch = task.scratch;
    T* weights[kinds];
    for (int t = 0; t < kinds; ++t) weights[t] = carve<T>(scratch, block * panel<T>);
    T* distances = carve<T>(scratch, block * panel<T>);
    if (ORDER == 0 && !task.coef[3].columns) distances = weights[0];  // they are not needed again
    // panel by panel: coordinates, norms, box, sums; found again by the same arithmetic
    const std::size_t pc = padded<T>(dim * panel<T>) / sizeof(T);
    const std::size_t pn = padded<T>(panel<T>) / sizeof(T), pb = padded<T>(dim) / sizeof(T);
    T* coordinates = carve<T>(scratch, panels * pc);
    T* norms = carve<T>(scratch, panels * pn);
    T* low = carve<T>(scratch, panels * pb);
    T* high = carve<T>(scratch, panels * pb);
    double* sums[kinds];
    std::size_t width[kinds];
    for (int t = 0; t < kinds; ++t) {
        width[t] = padded<double>(task.coef[t].columns * panel<T>) / sizeof(double);
        sums[t] = carve<double>(scratch, panels * width[t]);
        std::fill(sums[t], sums[t] + panels * width[t], 0.0);
    }
    for (std::size_t p = 0; p < panels; ++p) {
        pack_panel<T>(task.queries, task.query_norms, task.m, p * panel<T>, dim,
                      coordinates + p * pc, norms + p * pn);
        panel_box<T>(coordinates + p * pc, dim, low + p * pb, high + p * pb);
    }
    const std::size_t total = task.points.groups * S, stretch = stretch_of(task);
    for (std::size_t start = 0; start < total; start += stretch) {
        const std::size_t stop = std::min(total, start + stretch);
        for (std::size_t p = 0; p < panels; ++p)
            for (std::size_t first = start; first < stop; first += block) {
                if (task.points.box && far_apart(task.points.box + first / block * 2 * dim,
                                                 low + p * pb, high + p * pb, dim, task.cutoff))
                    continue;
                const std::size_t length = std::min<std::size_t>(block, stop - first);
                measure_groups(task.form, coordinates + p * pc, norms + p * pn, task.points,
                               first / S, (first + length) / S, distances);
                if (distances == weights[0]) evaluate(task.tape, weights[0], length * V);
                else
                    for (std::size_t i = 0; i < length; i += S)
                        weigh<T, ORDER>(task, distances + i * panel<T>, weights, i);
                // without the padding: a weight there may be infinite
                const std::size_t used = std::min(length, task.points.n - first);
                const std::size_t at = first * task.pair_stride + p * panel<T>;
                for (int t = 0; t < kinds; ++t) {
                    if (!task.coef[t].columns) continue;
                    if (task.pair) scale(weights[t], task.pair + at, task.pair_stride, used);
                    add_sums(weights[t], task.coef[t], first, used, total, sums[t] + p * width[t]);
                }
            }
    }
    for (int t = 0; t < kinds; ++t)
        for (std::size_t q = 0; q < task.m; ++q)
            for (std::size_t c = 0; c < task.coef[t].columns; ++c)
                task.out[t][q * task.coef[t].columns + c] =
                    sums[t][q / panel<T> * width[t] + c * panel<T> + q % panel<T>];
}

template <class T> void sum(const SumTask<T>& task) {
    if (task.coef[2].columns) sum_order<T, 2>(task);
    else if (task.coef[1].columns) sum_order<T, 1>(task);
    else sum_order<T, 0>(task);
}

constexpr std::size_t rows_at_once = 8;  // groups of rows per panel: as many as the caches hold

template <class T> std::size_t gram_scratch(const GramTask<T>& task) {
    return padded<T>(task.points.dim * panel<T>) + padded<T>(panel<T>) +
           padded<T>(rows_at_once * S * panel<T>);
}

template <class T> void gram(const GramTask<T>& task) {
    void* scratch = task.scratch;
    T* coordinates = carve<T>(scratch, task.points.dim * panel<T>);
    T* norms = carve<T>(scratch, panel<T>);
    T* values = carve<T>(scratch, rows_at_once * S * panel<T>);
    for (std::size_t q = 0; q < task.m; q += panel<T>) {
        pack_panel<T>(task.queries, task.query_norms, task.m, q, task.points.dim, coordinates, norms);
        const std::size_t width = std::min<std::size_t>(panel<T>, task.m - q);
        for (std::size_t top = task.first; top < task.last; top += rows_at_once) {
            const std::size_t end = std::min(top + rows_at_once, task.last);
            measure_groups(task.form, coordinates, norms, task.points, top, end, values);
            evaluate(task.tape, values, (end - top) * S * V);
            for (std::size_t row = top * S; row < std::min(end * S, task.points.n); ++row) {
                const T* from = values + (row - top * S) * panel<T>;
                T* to = task.out + row * task.m + q;
                if (width < panel<T>) std::copy(from, from + width, to);
                else
                    for (int v = 0; v < V; ++v) store(to + v * lanes<T>, load(from + v * lanes<T>));
            }
        }
    }
}

template <class T, Vec<T> (*F)(Vec<T>)> void each(const T* x, T* y, std::size_t n) {
    std::size_t i = 0;
    for (; i + lanes<T> <= n; i += lanes<T>) store(y + i, F(load(x + i)));
    if (i < n) {
        T tail[lanes<T>] = {};
        std::copy(x + i, x + n, tail);
        store(tail, F(load<T>(tail)));
        std::copy(tail, tail + (n - i), y + i);
    }
}

inline mercer::Table table(const char* name) {
    return {name, MERCER_VECTOR_BYTES, V, S, block,
            &sum_scratch<double>, &sum_scratch<float>, &sum<double>, &sum<float>,
            &gram_scratch<double>, &gram_scratch<float>, &gram<double>, &gram<float>,
            &transform<double>, &transform<float>,
            &coordinate_sums<double>, &coordinate_sums<float>,
            &pair_scratch, &pairs, &feature_scratch, &features, &minimise_working_set,
            &permuted_scratch, &permuted_sums, &spread<double>, &spread<float>,
            &each<double, &exponential>, &each<float, &exponential>,
            &each<double, &two_to>, &each<float, &two_to>,
            &each<double, &logarithm<double>>, &each<float, &logarithm<float>>};
}

}  // namespace MERCER_ISA
