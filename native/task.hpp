// What is handed to the compiled kernels: plain structures, no ownership, no Python.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mercer {

// A profile as a tape of elementary steps on slots; slot 0 holds the variable. `a` and `b` are
// applied to the argument first: every function is f(a x + b).
enum class Op : int {
    linear,      // a x + b
    exponential, // exp(a x + b)
    logarithm,   // log(a x + b)
    power,       // (a x + b)^p
    large_power, // the same, for p so large that it would amplify the errors of a quick logarithm
    root,        // sqrt(a x + b)
    inverse,     // 1 / (a x + b)
    inverse_root,// (a x + b)^(-1/2)
    whole_power, // (a x + b)^p, p = 1, 2, ..., largest_whole_power
    matern3,     // (1 + z) exp(-z), z = sqrt(a x + b)
    matern5,     // (1 + z + z^2/3) exp(-z)
    add,         // a x + b y
    multiply,    // a x y
    cut,         // y where a x + b >= 0, else 0
};

struct Step {
    Op op;
    int out, x, y;
    double a, b, p;
};

constexpr int max_slots = 8;
constexpr int max_steps = 24;
constexpr int largest_whole_power = 64;
constexpr int kinds = 4;  // weights: profile, first and second derivative, indicator of u = 0
// coordinates of a point, or coefficients: with more, the scratch memory of a panel would be gigabytes
constexpr std::size_t max_columns = std::size_t{1} << 20;

struct Tape {
    Step steps[max_steps];
    int count;
    int result;  // slot of the value
};

enum class Form : int {
    dot,        // <x, y>
    product,    // |x|^2 + |y|^2 - 2 <x, y>, points centred so that it is accurate enough
    difference, // sum of squared differences
};

// Points in groups of `group`, coordinate by coordinate: coordinates[g][k][i]. Coefficients of the
// same groups, column group by column group, are laid out for the second product.
template <class T> struct Points {
    std::size_t n, groups;  // n points, padded with repetitions of the last to groups * group
    std::size_t dim;
    const T* coordinates;
    const T* norms;      // squared norms (product form)
    const T* box;        // per block of points: dim lower, dim upper bounds; null if not skipping
};

template <class T> struct Coefficients {
    std::size_t columns;
    const T* packed;  // per block of points, per group of columns: values[point][column]
};

template <class T> struct SumTask {
    Points<T> points;
    Coefficients<T> coef[kinds];  // columns = 0 where a kind of weight is not wanted
    Tape tape;
    Form form;
    double cutoff;        // skip blocks of points farther than this (squared); infinity: none
    bool zero_first, zero_second;  // drop derivatives where u = 0 (cusps and corners)
    const T* queries;     // (m, dim), centred like the points
    const T* query_norms; // (m,)
    std::size_t m;
    const T* pair;        // a coefficient for every pair, (n, pair_stride) with whole panels of
    std::size_t pair_stride;  // queries; null: 1 for all
    double* out[kinds];   // (m, columns)
    void* scratch;        // see scratch_bytes
};

template <class T> struct GramTask {
    Points<T> points;     // rows of the result
    Tape tape;
    Form form;
    const T* queries;     // (m, dim): columns of the result
    const T* query_norms; // (m,)
    std::size_t m;
    std::size_t first, last;  // groups of points to do
    T* out;               // (n, m)
    void* scratch;
};

template <class T> struct TransformTask {
    Tape tape;
    T* values;            // (rows, columns), rows `stride` apart: inner products, then the profile
    std::size_t rows, columns, stride;
    const T *row_norms, *column_norms;  // squared norms for distances; null for inner products
};

// What is summed over coordinates x, y of two points.
enum class Coordinate : int {
    minimum,   // min(x, y)
    harmonic,  // x y / (x + y), 0 at 0
    chi2,      // (x - y)^2 / (x + y), 0 at 0
    differing, // 1 where x != y
    absolute,  // |x - y|
};

// Sums over coordinates between queries (rows) and points (columns).
template <class T> struct CoordinateTask {
    Coordinate kind;
    const T* queries;     // (m, dim)
    std::size_t m;
    const T* points;      // (n, dim)
    std::size_t n, dim;
    T* out;               // (m, n), rows `stride` apart
    std::size_t stride;
};

// Sequences of letters one after another: number i is letters[start[i]] up to letters[start[i + 1]].
struct Sequences {
    std::size_t count;
    const std::int32_t* letters;
    const std::int64_t* start;
};

constexpr int max_length = 32;  // letters of a subsequence
constexpr double smallest_decay = 1e-12;  // below it the scaled sums could overflow

// Called after some tens of milliseconds of work; throws if the work is to stop. May be null.
struct Poll {
    void (*call)(const void*);
    const void* what;
};
constexpr std::size_t steps_between_polls = 10'000'000;  // multiplications

// Gap-weighted subsequence kernels of every row with every column, or of each column with itself.
struct PairTask {
    Sequences rows, columns;
    const std::int64_t* order;  // columns by length: neighbours share a vector
    std::size_t longest_row, longest_column;
    bool diagonal;        // the rows are the columns, and out is (columns,)
    int length;
    double decay;
    double* out;          // (rows, columns)
    void* scratch;        // see pair_scratch
    Poll poll;
};

// Weights of all subsequences that begin with some given letters, then one of a range of letters.
struct FeatureTask {
    Sequences sequences;
    std::size_t alphabet; // letters are below, or negative: these match nothing
    int length, given;    // given < length
    const std::int32_t* prefix;  // (given,)
    std::size_t first, last;     // first <= letter < last
    double decay;
    double* out;          // (count, (last - first) alphabet^(length - given - 1)), the last letter
    void* scratch;        // varying slowest; see feature_scratch
    Poll poll;
};

// A few variables of a dual problem; see working_set.hpp.
struct WorkingSetTask {
    const double* matrix;    // (size, size)
    const double* diagonal;  // of the matrix
    double *gradient, *values;
    const double *lower, *upper;
    std::size_t size;
    const std::int64_t* start;  // (groups + 1,): group k is start[k] up to start[k + 1]
    std::size_t groups;      // 0: variables are free of each other
    double tolerance;
    std::size_t max_steps;
};

// Sums over pairs of rows for many permutations; see permuted_sums.hpp.
struct PermutedTask {
    const float* K;             // (kernels, n, n)
    std::size_t kernels, n;
    const float* L;             // (n, n)
    const std::int32_t* permutations;  // (draws, n)
    std::size_t draws;
    double* out;                // (draws, kernels)
    void* scratch;              // see permuted_scratch
};

// Points spread over a grid of cells; see spread.hpp.
template <class T> struct SpreadTask {
    const T* points;           // (n, dim)
    const double* strengths;   // (n,); null: 1 for all
    std::size_t n, dim;
    const double *origin, *scale;  // positions are (x - origin) scale, in [0, cells) along each axis
    std::size_t cells[3];
    int order;                 // of the splines, 4 or 8
    double* grid;              // (cells + order, ...), added to; node j is at position j + 1 - order / 2
};

// One instruction set's kernels.
struct Table {
    const char* name;
    int vector_bytes;
    int panel_vectors;   // vectors of queries worked on at once
    int group;           // points, and columns of coefficients, worked on at once
    int block;           // points whose weights are in cache at once
    std::size_t (*sum_scratch_d)(const SumTask<double>&);
    std::size_t (*sum_scratch_f)(const SumTask<float>&);
    void (*sum_d)(const SumTask<double>&);
    void (*sum_f)(const SumTask<float>&);
    std::size_t (*gram_scratch_d)(const GramTask<double>&);
    std::size_t (*gram_scratch_f)(const GramTask<float>&);
    void (*gram_d)(const GramTask<double>&);
    void (*gram_f)(const GramTask<float>&);
    void (*transform_d)(const TransformTask<double>&);
    void (*transform_f)(const TransformTask<float>&);
    void (*coordinates_d)(const CoordinateTask<double>&);
    void (*coordinates_f)(const CoordinateTask<float>&);
    std::size_t (*pair_scratch)(const PairTask&);
    void (*pairs)(const PairTask&);
    std::size_t (*feature_scratch)(const FeatureTask&);
    void (*features)(const FeatureTask&);
    std::size_t (*working_set)(const WorkingSetTask&);
    std::size_t (*permuted_scratch)(const PermutedTask&);
    void (*permuted_sums)(const PermutedTask&);
    std::size_t (*spread_d)(const SpreadTask<double>&);
    std::size_t (*spread_f)(const SpreadTask<float>&);
    void (*exp_d)(const double*, double*, std::size_t);
    void (*exp_f)(const float*, float*, std::size_t);
    void (*two_to_d)(const double*, double*, std::size_t);
    void (*two_to_f)(const float*, float*, std::size_t);
    void (*log_d)(const double*, double*, std::size_t);
    void (*log_f)(const float*, float*, std::size_t);
};

}  // namespace mercer
