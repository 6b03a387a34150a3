// Gap-weighted subsequences of sequences of letters: values of pairs, or explicit features.
//
// A subsequence of `length` letters has the weight decay^(last place - first place + 1). Both methods
// follow the same recursion: subsequences found so far decay by one step at each place, and are
// continued by the letter there.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>

#include "simd.hpp"
#include "task.hpp"

namespace MERCER_ISA {

using mercer::FeatureTask;
using mercer::PairTask;
using mercer::Poll;
using mercer::Sequences;

// letters of the row that go along the column at once: as many as the registers hold
constexpr int rows_together = MERCER_VECTOR_BYTES == 64 ? 3 : 2;
constexpr double largest_growth = 1e100;

// Checks now and then whether to continue.
class Pacer {
public:
    explicit Pacer(const Poll& poll) : poll_(poll) {}
    void worked(std::size_t steps) {
        done_ += steps;
        if (!poll_.call || done_ < mercer::steps_between_polls) return;
        done_ = 0;
        poll_.call(poll_.what);
    }

private:
    const Poll& poll_;
    std::size_t done_ = 0;
};

inline std::size_t length_of(const Sequences& x, std::size_t i) {
    return static_cast<std::size_t>(x.start[i + 1] - x.start[i]);
}

// Packs one sequence into one lane; beyond its end, and for letters < 0, with what matches nothing.
inline void pack_lane(const Sequences& x, std::size_t i, int lane, std::size_t places, double none,
                      double* to) {
    const std::int32_t* letters = x.letters + x.start[i];
    const std::size_t length = length_of(x, i);
    for (std::size_t j = 0; j < places; ++j)
        to[j * lanes<double> + lane] = j < length && letters[j] >= 0 ? letters[j] : none;
}

// The kernel divided by decay^(length + 1), of one pair of sequences per lane.
//
// sums[j][k] holds, scaled by decay^-i, the weight of the common subsequences of k + 1 letters that
// end at place j of the column and at a place before i of the row. `before` is its decaying prefix
// sum along j; where the letters match, subsequences of one more letter continue it.
template <int Known>
inline Vec<double> pair_lanes(const double* row, std::size_t row_places, const double* column,
                              std::size_t column_places, int levels, double decay, double* sums,
                              Pacer& pacer) {
    constexpr int L = lanes<double>, R = rows_together;
    if (Known) levels = Known;
    std::memset(sums, 0, column_places * levels * L * sizeof(double));
    const double step = 1.0 / decay;
    double growth = 1.0;
    Vec<double> total{};
    for (std::size_t i = 0; i < row_places; i += R) {
        Vec<double> before[R][Known ? Known : mercer::max_length] = {};
        Vec<double> sum[R] = {}, letter[R], one[R];
        for (int r = 0; r < R; ++r, growth *= step) {
            letter[r] = load(row + (i + r) * L);
            one[r] = fill(growth);
        }
        double* at = sums;
        for (std::size_t j = 0; j < column_places; ++j, at += levels * L) {
            const Vec<double> here = load(column + j * L);
            for (int r = 0; r < R; ++r) {
                const Vec<double> last = levels ? before[r][levels - 1] : one[r];
                sum[r] = here == letter[r] ? sum[r] + last : sum[r];
            }
            for (int k = levels - 1; k >= 0; --k) {
                Vec<double> s = load(at + k * L);
                for (int r = 0; r < R; ++r) {
                    const Vec<double> shorter = k ? before[r][k - 1] : one[r];
                    before[r][k] = before[r][k] * decay + s;
                    s = here == letter[r] ? s + shorter : s;
                }
                store(at + k * L, s);
            }
        }
        for (int r = 0; r < R; ++r) total += sum[r] / one[r];
        if (growth > largest_growth) {
            for (std::size_t x = 0; x < column_places * levels * L; ++x) sums[x] /= growth;
            growth = 1.0;
        }
        pacer.worked(column_places * (levels + 1));
    }
    return total;
}

inline Vec<double> pair_lanes(int length, const double* row, std::size_t row_places,
                              const double* column, std::size_t column_places, double decay,
                              double* sums, Pacer& pacer) {
    switch (length) {
    case 2: return pair_lanes<1>(row, row_places, column, column_places, 1, decay, sums, pacer);
    case 3: return pair_lanes<2>(row, row_places, column, column_places, 2, decay, sums, pacer);
    case 4: return pair_lanes<3>(row, row_places, column, column_places, 3, decay, sums, pacer);
    case 5: return pair_lanes<4>(row, row_places, column, column_places, 4, decay, sums, pacer);
    default:
        return pair_lanes<0>(row, row_places, column, column_places, length - 1, decay, sums, pacer);
    }
}

inline std::size_t whole_rows(std::size_t places) {
    return (places + rows_together - 1) / rows_together * rows_together;
}

inline std::size_t pair_scratch(const PairTask& task) {
    const std::size_t levels = static_cast<std::size_t>(task.length - 1);
    return sizeof(double) * lanes<double> *
           (whole_rows(task.longest_row) + task.longest_column * (1 + levels));
}

inline void pairs(const PairTask& task) {
    constexpr int L = lanes<double>;
    double* row = static_cast<double*>(task.scratch);
    double* column = row + whole_rows(task.longest_row) * L;
    double* sums = column + task.longest_column * L;
    const double scale = std::pow(task.decay, task.length + 1);
    const std::size_t m = task.columns.count;
    Pacer pacer(task.poll);
    for (std::size_t first = 0; first < m; first += L) {
        const int width = static_cast<int>(std::min<std::size_t>(L, m - first));
        std::size_t places = 0, rows = 0;
        for (int l = 0; l < width; ++l) {
            places = std::max(places, length_of(task.columns, task.order[first + l]));
            if (task.diagonal) rows = std::max(rows, length_of(task.rows, task.order[first + l]));
        }
        for (int l = 0; l < L; ++l)
            pack_lane(task.columns, task.order[first + std::min(l, width - 1)], l, places, -2.0, column);
        for (std::size_t i = 0; i < (task.diagonal ? 1 : task.rows.count); ++i) {
            if (!task.diagonal) rows = length_of(task.rows, i);
            for (int l = 0; l < L; ++l) {
                const std::size_t own = task.diagonal ? task.order[first + std::min(l, width - 1)] : i;
                pack_lane(task.rows, own, l, whole_rows(rows), -1.0, row);
            }
            const Vec<double> value = pair_lanes(task.length, row, whole_rows(rows), column, places,
                                                 task.decay, sums, pacer);
            for (int l = 0; l < width; ++l)
                task.out[(task.diagonal ? 0 : i * m) + task.order[first + l]] = scale * value[l];
        }
    }
}

inline std::size_t feature_scratch(const FeatureTask& task) {
    std::size_t size = task.last - task.first, all = static_cast<std::size_t>(task.given) + 1;
    for (int k = task.given + 1; k < task.length; ++k, size *= task.alphabet) all += size;
    return all * sizeof(double);
}

// Scaled by decay^-places, open subsequences do not decay: a letter only adds those it continues.
inline void features(const FeatureTask& task) {
    const int given = task.given;
    const std::size_t range = task.last - task.first;
    double* begun = static_cast<double*>(task.scratch);  // the first 0, 1, ..., given letters
    double* open = begun + given + 1;  // then all of given + 1, given + 2, ..., length - 1 letters
    std::size_t width = 0, end = 0;    // of the longest of these
    for (int k = given + 1; k < task.length; ++k) end += width = width ? width * task.alphabet : range;
    const std::size_t columns = width ? width * task.alphabet : range;
    Pacer pacer(task.poll);
    for (std::size_t i = 0; i < task.sequences.count; ++i) {
        double* out = task.out + i * columns;
        std::fill(out, out + columns, 0.0);
        std::fill(begun, open + end, 0.0);
        double growth = begun[0] = 1.0;
        const std::int32_t* letters = task.sequences.letters + task.sequences.start[i];
        for (std::size_t j = 0; j < length_of(task.sequences, i); ++j) {
            const std::int32_t c = letters[j];
            if (c >= 0 && begun[given] != 0.0) {
                double *longer = out, *from = open + end, factor = task.decay / growth;
                for (std::size_t size = width; from > open; size /= task.alphabet, factor = 1.0) {
                    from -= size;
                    double* to = longer + static_cast<std::size_t>(c) * size;
                    for (std::size_t x = 0; x < size; ++x) to[x] += factor * from[x];
                    longer = from;
                }
                const std::size_t at = static_cast<std::size_t>(c) - task.first;  // wraps below
                if (at < range) longer[at] += factor * begun[given];
            }
            for (int k = given; k > 0; --k)
                if (c == task.prefix[k - 1]) begun[k] += begun[k - 1];
            begun[0] = growth /= task.decay;
            if (growth > largest_growth) {
                for (double* x = begun; x < open + end; ++x) *x /= growth;
                growth = 1.0;
            }
            pacer.worked(end + given);
        }
    }
}

}  // namespace MERCER_ISA
