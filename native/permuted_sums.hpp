// Sums over pairs of rows of one matrix times another whose rows and columns are permuted.
//
// out[p][k] = sum over i < j of K_k[i][j] L[p_i][p_j]. Eight rows p_i of L are laid side by side, so that
// one load at column p_j fetches eight of its numbers; gathering them one by one takes several times as
// long. The same rows of K are laid out once for all permutations.
#pragma once

#include <algorithm>
#include <cstring>

#include "task.hpp"

namespace MERCER_ISA {

using mercer::PermutedTask;

constexpr std::size_t beside = 8;  // rows side by side; sixteen would leave the first-level cache sooner
constexpr std::size_t summed = 1024;  // columns that are summed in float32, then in float64
typedef float Eight __attribute__((vector_size(beside * sizeof(float))));
typedef std::int32_t EightIndices __attribute__((vector_size(beside * sizeof(float))));

inline Eight load_eight(const float* from) {
    Eight v;
    std::memcpy(&v, from, sizeof v);
    return v;
}

inline void store_eight(float* to, Eight v) { std::memcpy(to, &v, sizeof v); }

// a0 b0 a1 b1 ... in place of a and b.
inline void interleave(Eight& a, Eight& b) {
    const Eight x = a, y = b;
#ifdef __clang__
    a = __builtin_shufflevector(x, y, 0, 8, 1, 9, 2, 10, 3, 11);
    b = __builtin_shufflevector(x, y, 4, 12, 5, 13, 6, 14, 7, 15);
#else
    a = __builtin_shuffle(x, y, EightIndices{0, 8, 1, 9, 2, 10, 3, 11});
    b = __builtin_shuffle(x, y, EightIndices{4, 12, 5, 13, 6, 14, 7, 15});
#endif
}

// Eight rows of n numbers into n columns of eight numbers; in registers if they hold eight.
inline void lay_side_by_side(const float* const* rows, std::size_t n, float* out) {
    std::size_t j = 0;
    for (; MERCER_VECTOR_BYTES >= sizeof(Eight) && j + beside <= n; j += beside) {
        Eight a = load_eight(rows[0] + j), b = load_eight(rows[1] + j), c = load_eight(rows[2] + j),
              d = load_eight(rows[3] + j), e = load_eight(rows[4] + j), f = load_eight(rows[5] + j),
              g = load_eight(rows[6] + j), h = load_eight(rows[7] + j);
        interleave(a, e), interleave(b, f), interleave(c, g), interleave(d, h);
        interleave(a, c), interleave(e, g), interleave(b, d), interleave(f, h);
        interleave(a, b), interleave(c, d), interleave(e, f), interleave(g, h);
        float* to = out + j * beside;  // one store each: an array would go through memory
        store_eight(to, a), store_eight(to + 8, b), store_eight(to + 16, c), store_eight(to + 24, d);
        store_eight(to + 32, e), store_eight(to + 40, f), store_eight(to + 48, g), store_eight(to + 56, h);
    }
    for (; j < n; ++j)
        for (std::size_t r = 0; r < beside; ++r) out[j * beside + r] = rows[r][j];
}

// Adds the sums over some columns for Count matrices K, `stride` apart, to their totals.
template <int Count>
inline void add_columns(const float* K, std::size_t stride, const float* L, const std::int32_t* columns,
                        std::size_t n, double* totals) {
    Eight even[Count] = {}, odd[Count] = {};  // two chains of additions do not wait for each other
    std::size_t j = 0;
    for (; j + 2 <= n; j += 2) {
        const Eight first = load_eight(L + columns[j] * beside);
        const Eight second = load_eight(L + columns[j + 1] * beside);
#pragma GCC unroll 4
        for (int k = 0; k < Count; ++k) {
            even[k] += load_eight(K + k * stride + j * beside) * first;
            odd[k] += load_eight(K + k * stride + (j + 1) * beside) * second;
        }
    }
    if (j < n)
        for (int k = 0; k < Count; ++k)
            even[k] += load_eight(K + k * stride + j * beside) * load_eight(L + columns[j] * beside);
    for (int k = 0; k < Count; ++k)
        for (std::size_t r = 0; r < beside; ++r) totals[k] += even[k][r] + odd[k][r];
}

// Adds the sums over all columns from the first row of a block on.
inline void add_block(const PermutedTask& task, const float* K, const float* L, std::size_t first,
                      const std::int32_t* permutation, double* totals) {
    const std::size_t stride = task.n * beside;
    for (std::size_t j = first; j < task.n; j += summed) {
        const std::size_t width = std::min(summed, task.n - j);
        const float* block = K + (j - first) * beside;
        std::size_t k = 0;
        for (; k + 4 <= task.kernels; k += 4)
            add_columns<4>(block + k * stride, stride, L, permutation + j, width, totals + k);
        for (; k < task.kernels; ++k)
            add_columns<1>(block + k * stride, stride, L, permutation + j, width, totals + k);
    }
}

// Rows of K from `first` on, from column `first` on, zero up to the diagonal.
inline void pack_block(const PermutedTask& task, const float* K, std::size_t first, float* out) {
    const float* rows[beside];
    for (std::size_t r = 0; r < beside; ++r)
        rows[r] = K + std::min(first + r, task.n - 1) * task.n + first;
    lay_side_by_side(rows, task.n - first, out);
    for (std::size_t j = 0; j < std::min(beside, task.n - first); ++j)
        for (std::size_t r = j; r < beside; ++r) out[j * beside + r] = 0.0f;
}

inline std::size_t permuted_scratch(const PermutedTask& task) {
    return (task.kernels + 1) * task.n * beside * sizeof(float);
}

inline void permuted_sums(const PermutedTask& task) {
    const std::size_t n = task.n;
    float* L = static_cast<float*>(task.scratch);
    float* K = L + n * beside;
    std::fill(task.out, task.out + task.draws * task.kernels, 0.0);
    for (std::size_t first = 0; first < n; first += beside) {
        for (std::size_t k = 0; k < task.kernels; ++k)
            pack_block(task, task.K + k * n * n, first, K + k * n * beside);
        for (std::size_t p = 0; p < task.draws; ++p) {
            const std::int32_t* permutation = task.permutations + p * n;
            const float* rows[beside];
            for (std::size_t r = 0; r < beside; ++r)
                rows[r] = task.L + permutation[std::min(first + r, n - 1)] * n;
            lay_side_by_side(rows, n, L);
            add_block(task, K, L, first, permutation, task.out + p * task.kernels);
        }
    }
}

}  // namespace MERCER_ISA
