// The profile, in one pass over tiles of inner products that BLAS has computed.
#pragma once

#include <algorithm>
#include <cstring>

#include "simd.hpp"
#include "tape.hpp"
#include "task.hpp"

namespace MERCER_ISA {

using mercer::TransformTask;

// The variable of the profile for a part of a row of inner products, padded with zeros.
template <class T>
inline std::size_t variable(const TransformTask<T>& task, std::size_t row, std::size_t first,
                            std::size_t length, T* u) {
    const T* values = task.values + row * task.stride + first;
    if (task.row_norms) {
        const T* norms = task.column_norms + first;
        const T norm = task.row_norms[row];
        for (std::size_t i = 0; i < length; ++i) {
            const T distance = (norm + norms[i]) - T(2) * values[i];
            u[i] = T(0) > distance ? T(0) : distance;  // NaN stays
        }
    } else {
        std::memcpy(u, values, length * sizeof(T));
    }
    const std::size_t vectors = (length + lanes<T> - 1) / lanes<T>;
    std::fill(u + length, u + vectors * lanes<T>, T(0));
    return vectors;
}

// Turns inner products into values of the profile, in place; distances need the norms as well.
template <class T> void transform(const TransformTask<T>& task) {
    constexpr std::size_t piece = 192 * lanes<T>;  // stays in the first-level cache
    alignas(64) T u[piece];
    for (std::size_t row = 0; row < task.rows; ++row)
        for (std::size_t first = 0; first < task.columns; first += piece) {
            const std::size_t length = std::min(piece, task.columns - first);
            evaluate(task.tape, u, variable(task, row, first, length, u));
            std::memcpy(task.values + row * task.stride + first, u, length * sizeof(T));
        }
}

}  // namespace MERCER_ISA
