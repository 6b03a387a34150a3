// mercer._core: the boundary between Python and the compiled kernels.
//
// All input from Python is checked here; the code behind it trusts its task. Objects hold packed copies
// of points and coefficients; their methods release the interpreter lock and may be called from several
// threads at once. Running sums share the coefficients, so that new ones can be set meanwhile.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "task.hpp"

mercer::Table mercer_table_baseline();
#ifdef MERCER_X86
mercer::Table mercer_table_avx2();
mercer::Table mercer_table_avx512();
#endif

namespace nb = nanobind;
using namespace mercer;

namespace {

// --- which instruction set ---------------------------------------------------------------------------

std::vector<Table> supported() {
    std::vector<Table> tables{mercer_table_baseline()};
#ifdef MERCER_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        tables.push_back(mercer_table_avx2());
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw"))
        tables.push_back(mercer_table_avx512());
#endif
    return tables;
}

Table find(const std::string& name) {
    const std::vector<Table> tables = supported();
    std::string known;
    for (const Table& t : tables) {
        if (name == t.name) return t;
        known += std::string(known.empty() ? "" : ", ") + t.name;
    }
    if (name.empty()) return tables.back();
    throw std::invalid_argument("instruction set '" + name + "' is not available here; there are " + known);
}

std::vector<std::string> instruction_sets() {
    std::vector<std::string> names;
    for (const Table& t : supported()) names.push_back(t.name);
    return names;
}

// --- memory -----------------------------------------------------------------------------------------

struct Free {
    void operator()(void* p) const { std::free(p); }
};

template <class T> class Buffer {  // aligned to cache lines, zeroed
public:
    explicit Buffer(std::size_t count = 0) {
        const std::size_t bytes = (count * sizeof(T) + 127) / 64 * 64;
        memory_.reset(static_cast<T*>(std::aligned_alloc(64, bytes)));
        if (!memory_) throw std::bad_alloc();
        std::memset(memory_.get(), 0, bytes);
    }
    T* data() { return memory_.get(); }
    const T* data() const { return memory_.get(); }

private:
    std::unique_ptr<T, Free> memory_;
};

void require(bool condition, const char* message) {
    if (!condition) throw std::invalid_argument(message);
}

template <class... Arrays> void require_aligned(const Arrays&... arrays) {
    auto aligned = [](const auto* data) {
        return reinterpret_cast<std::uintptr_t>(data) % alignof(decltype(*data)) == 0;
    };
    require((... && aligned(arrays.data())), "arrays must be aligned; use array.copy()");
}

// --- tapes ------------------------------------------------------------------------------------------

using StepTuple = std::tuple<int, int, int, int, double, double, double>;

Tape make_tape(const std::vector<StepTuple>& steps, int result) {
    require(steps.size() <= static_cast<std::size_t>(max_steps), "the tape is too long");
    Tape tape{};
    bool written[max_slots] = {true};  // the variable
    auto is_slot = [](int i) { return i >= 0 && i < max_slots; };
    for (const auto& [op, out, x, y, a, b, p] : steps) {
        require(op >= 0 && op <= static_cast<int>(Op::cut), "unknown step");
        require(is_slot(out) && is_slot(x) && is_slot(y), "no such slot");
        require(out > 0, "the variable's slot is not written to");
        require(written[x] && written[y], "a slot is read before it is written");
        if (static_cast<Op>(op) == Op::whole_power)
            require(p >= 1 && p <= largest_whole_power && p == std::floor(p), "not a whole power");
        written[out] = true;
        tape.steps[tape.count++] = {static_cast<Op>(op), out, x, y, a, b, p};
    }
    require(is_slot(result) && written[result], "no such slot");
    tape.result = result;
    return tape;
}

// --- points and sums ----------------------------------------------------------------------------------

template <class T> using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using Output = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <class T> void call_sum(const Table& t, const SumTask<T>& task);
template <> void call_sum(const Table& t, const SumTask<double>& task) { t.sum_d(task); }
template <> void call_sum(const Table& t, const SumTask<float>& task) { t.sum_f(task); }
std::size_t scratch_for(const Table& t, const SumTask<double>& task) { return t.sum_scratch_d(task); }
std::size_t scratch_for(const Table& t, const SumTask<float>& task) { return t.sum_scratch_f(task); }
std::size_t scratch_for(const Table& t, const GramTask<double>& task) { return t.gram_scratch_d(task); }
std::size_t scratch_for(const Table& t, const GramTask<float>& task) { return t.gram_scratch_f(task); }
void call_gram(const Table& t, const GramTask<double>& task) { t.gram_d(task); }
void call_gram(const Table& t, const GramTask<float>& task) { t.gram_f(task); }

// One function for points and queries, so that a Gram matrix is symmetric to the last bit.
template <class T> T squared_norm(const T* x, std::size_t dim) {
    T norm = 0;
    for (std::size_t k = 0; k < dim; ++k) norm += x[k] * x[k];
    return norm;
}

template <class T> Buffer<T> squared_norms(const Matrix<T>& X) {
    Buffer<T> norms(X.shape(0));
    const std::size_t dim = X.shape(1);
    for (std::size_t i = 0; i < X.shape(0); ++i)
        norms.data()[i] = squared_norm(X.data() + i * dim, dim);
    return norms;
}

// Points, a profile and coefficients, packed for one instruction set.
template <class T> class Program {
public:
    Program(Matrix<T> X, std::vector<StepTuple> steps, int result, int form, const std::string& isa)
        : table_(find(isa)), tape_(make_tape(steps, result)), form_(static_cast<Form>(form)),
          n_(X.shape(0)), dim_(X.shape(1)) {
        require(n_ > 0 && dim_ > 0, "points must have rows and columns");
        require(dim_ <= max_columns, "points have too many columns");
        require_aligned(X);
        require(form >= 0 && form <= 2, "unknown form");
        const int S = table_.group;
        groups_ = (n_ + S - 1) / S;
        coordinates_ = Buffer<T>(groups_ * S * dim_);
        norms_ = Buffer<T>(groups_ * S);
        const T factor = form_ == Form::product ? T(-2) : T(1);
        for (std::size_t i = 0; i < groups_ * S; ++i) {
            const T* x = X.data() + std::min(i, n_ - 1) * dim_;
            for (std::size_t k = 0; k < dim_; ++k)
                coordinates_.data()[(i / S * dim_ + k) * S + i % S] = factor * x[k];
            norms_.data()[i] = squared_norm(x, dim_);
        }
    }

    // Bounding boxes of blocks of points; only worthwhile if the points are sorted in space.
    void set_boxes(Matrix<T> X, double cutoff) {
        require(X.shape(0) == n_ && X.shape(1) == dim_, "other points");
        require_aligned(X);
        require(form_ != Form::dot, "boxes need distances");
        const std::size_t block = table_.block, blocks = (n_ + block - 1) / block;
        Shared boxes = std::make_shared<Buffer<T>>(blocks * 2 * dim_);
        for (std::size_t b = 0; b < blocks; ++b)
            for (std::size_t k = 0; k < dim_; ++k) {
                T low = std::numeric_limits<T>::infinity(), high = -low;
                for (std::size_t i = b * block; i < std::min(n_, (b + 1) * block); ++i) {
                    low = std::min(low, X(i, k));
                    high = std::max(high, X(i, k));
                }
                boxes->data()[b * 2 * dim_ + k] = low;
                boxes->data()[b * 2 * dim_ + dim_ + k] = high;
            }
        boxes_ = boxes;
        cutoff_ = cutoff;
    }

    void set_coef(int kind, Matrix<T> A) {
        require(kind >= 0 && kind < kinds, "no such kind of weight");
        require(A.shape(0) == n_, "coefficients must have one row per point");
        const std::size_t S = table_.group, columns = A.shape(1), total = groups_ * S;
        require(columns > 0 && columns <= max_columns, "coefficients must have columns, not too many");
        require_aligned(A);
        Shared coef = std::make_shared<Buffer<T>>(total * columns);
        T* to = coef->data();
        for (std::size_t first = 0; first < columns; first += S) {
            const std::size_t width = std::min(S, columns - first);
            for (std::size_t i = 0; i < n_; ++i)
                for (std::size_t c = 0; c < width; ++c) to[i * width + c] = A(i, first + c);
            to += total * width;
        }
        coef_[kind] = coef;
        columns_[kind] = columns;
    }

    void set_corners(bool zero_first, bool zero_second) {
        zero_first_ = zero_first;
        zero_second_ = zero_second;
    }

    // Weighted sums at the queries; with `pair` each weight times the coefficient of its pair.
    void sums(Matrix<T> Y, std::vector<Output<double>> outs, std::optional<Matrix<T>> pair) const {
        require(Y.shape(1) == dim_, "queries have another dimension");
        require_aligned(Y);
        if (pair) {
            require_aligned(*pair);
            require(pair->shape(0) == n_, "pairs must have one row per point");
            require(pair->shape(1) % panel() == 0 && pair->shape(1) >= Y.shape(0),
                    "pairs must have whole panels of queries");
        }
        const std::array<Shared, kinds> coef = coef_;  // kept alive, whatever is set meanwhile
        const Shared boxes = boxes_;
        SumTask<T> task{};
        task.points = points();
        int given = 0;
        for (int t = 0; t < kinds; ++t) {
            if (!columns_[t]) continue;
            task.coef[t] = {columns_[t], coef[t]->data()};
            require(given < static_cast<int>(outs.size()), "one output per kind of weight");
            require(outs[given].shape(0) == Y.shape(0) &&
                    outs[given].shape(1) == columns_[t], "output shape");
            require_aligned(outs[given]);
            task.out[t] = outs[given++].data();
        }
        require(given > 0, "set_coef first");
        require(given == static_cast<int>(outs.size()), "one output per kind of weight");
        task.tape = tape_;
        task.form = form_;
        task.cutoff = cutoff_;
        task.zero_first = zero_first_;
        task.zero_second = zero_second_;
        task.queries = Y.data();
        task.m = Y.shape(0);
        task.pair = pair ? pair->data() : nullptr;
        task.pair_stride = pair ? pair->shape(1) : 0;
        if (task.m == 0) return;
        nb::gil_scoped_release release;
        const Buffer<T> norms = squared_norms(Y);
        task.query_norms = norms.data();
        Buffer<char> scratch(scratch_for(table_, task));
        task.scratch = scratch.data();
        call_sum(table_, task);
    }

    void gram(Matrix<T> Y, Output<T> out, std::size_t first, std::size_t last) const {
        require(Y.shape(1) == dim_, "queries have another dimension");
        require_aligned(Y, out);
        require(out.shape(0) == n_ && out.shape(1) == Y.shape(0), "output shape");
        const std::size_t S = table_.group;
        require(first % S == 0 && first <= last && last <= n_, "rows must start at a group");
        require(last == n_ || last % S == 0, "rows must end at a group");
        GramTask<T> task{points(), tape_, form_, Y.data(), nullptr, Y.shape(0), first / S,
                         (last + S - 1) / S, out.data(), nullptr};
        if (task.m == 0) return;
        nb::gil_scoped_release release;
        const Buffer<T> norms = squared_norms(Y);
        task.query_norms = norms.data();
        Buffer<char> scratch(scratch_for(table_, task));
        task.scratch = scratch.data();
        call_gram(table_, task);
    }

    int group() const { return table_.group; }
    std::size_t panel() const { return table_.panel_vectors * table_.vector_bytes / sizeof(T); }

private:
    using Shared = std::shared_ptr<Buffer<T>>;

    Points<T> points() const {
        return {n_, groups_, dim_, coordinates_.data(), norms_.data(),
                boxes_ ? boxes_->data() : nullptr};
    }

    Table table_;
    Tape tape_;
    Form form_;
    std::size_t n_, groups_, dim_;
    Buffer<T> coordinates_, norms_;
    Shared boxes_;
    std::array<Shared, kinds> coef_;
    std::size_t columns_[kinds] = {};
    bool zero_first_ = false, zero_second_ = false;
    double cutoff_ = std::numeric_limits<double>::infinity();
};

// An array of another type or layout is refused: a result in a converted copy would be lost.
auto array(const char* name) { return nb::arg(name).noconvert(); }

template <class T> using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using OutVector = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Tile = nb::ndarray<T, nb::ndim<2>, nb::device::cpu>;
template <class T> using Norms = std::optional<Vector<T>>;

void call_transform(const Table& t, const TransformTask<double>& task) { t.transform_d(task); }
void call_transform(const Table& t, const TransformTask<float>& task) { t.transform_f(task); }
void call_coordinates(const Table& t, const CoordinateTask<double>& task) { t.coordinates_d(task); }
void call_coordinates(const Table& t, const CoordinateTask<float>& task) { t.coordinates_f(task); }

template <class T> void require_rows(const Tile<T>& tile) {
    require_aligned(tile);
    require(tile.shape(1) == 1 || tile.stride(1) == 1, "the numbers of a row must be neighbours");
    require(tile.shape(0) == 1 || tile.stride(0) >= static_cast<std::int64_t>(tile.shape(1)),
            "rows overlap");
}

// A profile applied to tiles of inner products that BLAS has computed.
class Profile {
public:
    Profile(std::vector<StepTuple> steps, int result, const std::string& isa)
        : table_(find(isa)), tape_(make_tape(steps, result)) {}

    // Values of the profile: of inner products if there are no norms, else of distances.
    template <class T> void values(Tile<T> tile, Norms<T> rows, Norms<T> columns) const {
        const TransformTask<T> task = task_of<T>(tile, rows, columns);
        if (task.rows == 0 || task.columns == 0) return;
        nb::gil_scoped_release release;
        call_transform(table_, task);
    }

private:
    template <class T>
    TransformTask<T> task_of(Tile<T>& tile, const Norms<T>& row, const Norms<T>& column) const {
        const std::size_t rows = tile.shape(0), columns = tile.shape(1);
        require(row.has_value() == column.has_value(), "norms of rows and columns, or neither");
        require(!row || row->shape(0) == rows, "one norm per row");
        require(!column || column->shape(0) == columns, "one norm per column");
        if (rows && columns) require_rows(tile);
        if (row) require_aligned(*row, *column);
        return {tape_, tile.data(), rows, columns,
                static_cast<std::size_t>(rows <= 1 ? 0 : tile.stride(0)),
                row ? row->data() : nullptr, column ? column->data() : nullptr};
    }

    Table table_;
    Tape tape_;
};

template <class T> void bind_profile(nb::class_<Profile>& profile) {
    profile
        .def("values", &Profile::values<T>, array("tile"), array("row_norms").none() = nb::none(),
             array("column_norms").none() = nb::none());
}

template <class T> void bind_program(nb::module_& m, const char* name) {
    nb::class_<Program<T>>(m, name)
        .def(nb::init<Matrix<T>, std::vector<StepTuple>, int, int, const std::string&>(),
             array("points"), nb::arg("steps"), nb::arg("result"), nb::arg("form"), nb::arg("isa"))
        .def("set_boxes", &Program<T>::set_boxes, array("points"), nb::arg("cutoff"))
        .def("set_coef", &Program<T>::set_coef, nb::arg("kind"), array("coef"))
        .def("set_corners", &Program<T>::set_corners, nb::arg("first"), nb::arg("second"))
        .def("sums", &Program<T>::sums, array("queries"), array("out"),
             array("pair").none() = nb::none())
        .def("gram", &Program<T>::gram, array("queries"), array("out"), nb::arg("first"),
             nb::arg("last"))
        .def_prop_ro("group", &Program<T>::group)
        .def_prop_ro("panel", &Program<T>::panel);
}

// Sums over coordinates between the rows of Y and the rows of X, on a tile.
template <class T> void bind_coordinates(nb::module_& m) {
    auto run = [](int kind, Matrix<T> Y, Matrix<T> X, Tile<T> out, const std::string& isa) {
        require(kind >= 0 && kind <= static_cast<int>(Coordinate::absolute), "unknown kind");
        const std::size_t rows = Y.shape(0), columns = X.shape(0);
        require(Y.shape(1) == X.shape(1), "queries have another dimension");
        require(X.shape(1) > 0, "points must have columns");
        require_aligned(Y, X);
        require(out.shape(0) == rows && out.shape(1) == columns, "output shape");
        if (rows == 0 || columns == 0) return;
        require_rows(out);
        const CoordinateTask<T> task{static_cast<Coordinate>(kind), Y.data(), rows, X.data(),
                                     columns, X.shape(1), out.data(),
                                     static_cast<std::size_t>(rows == 1 ? 0 : out.stride(0))};
        const Table table = find(isa);
        nb::gil_scoped_release release;
        call_coordinates(table, task);
    };
    m.def("coordinate_sums", run, nb::arg("kind"), array("queries"), array("points"), array("out"),
          nb::arg("isa"));
}

template <class T, class Choose> void bind_function(nb::module_& m, const char* name, Choose of) {
    auto run = [of](Vector<T> x, OutVector<T> y, const std::string& isa) {
        require(x.shape(0) == y.shape(0), "input and output must have equal length");
        require_aligned(x, y);
        const auto f = of(find(isa));
        nb::gil_scoped_release release;
        f(x.data(), y.data(), x.shape(0));
    };
    m.def(name, run, array("x"), array("out"), nb::arg("isa"));
}

// --- sequences of letters -----------------------------------------------------------------------------

using Letters = Vector<std::int32_t>;
using Starts = Vector<std::int64_t>;

Sequences sequences(const Letters& letters, const Starts& start) {
    require_aligned(letters, start);
    require(start.shape(0) > 0 && start(0) == 0, "the first sequence must start at 0");
    const std::size_t count = start.shape(0) - 1;
    for (std::size_t i = 0; i < count; ++i) require(start(i) <= start(i + 1), "starts must not fall");
    require(static_cast<std::size_t>(start(count)) == letters.shape(0), "starts must end at the end");
    return {count, letters.data(), start.data()};
}

std::size_t longest(const Sequences& x) {
    std::int64_t most = 0;
    for (std::size_t i = 0; i < x.count; ++i) most = std::max(most, x.start[i + 1] - x.start[i]);
    return static_cast<std::size_t>(most);
}

// A Python function that is called now and then, so that signals are noticed and work can be stopped.
void call_python(const void* function) {
    nb::gil_scoped_acquire lock;
    nb::handle(static_cast<PyObject*>(const_cast<void*>(function)))();
}

Poll polling(const nb::object& function) {
    return {function.is_none() ? nullptr : &call_python, function.ptr()};
}

void check_subsequences(int length, double decay) {
    require(length >= 1 && length <= max_length, "no such length");
    require(decay >= smallest_decay && decay <= 1.0, "no such decay");  // false for NaN
}

void run_pairs(const Sequences& x, const Sequences& y, bool diagonal, int length, double decay,
               double* out, const std::string& isa, const nb::object& poll) {
    check_subsequences(length, decay);
    const Table table = find(isa);
    nb::gil_scoped_release release;
    std::vector<std::int64_t> order(y.count);
    for (std::size_t j = 0; j < y.count; ++j) order[j] = static_cast<std::int64_t>(j);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return y.start[a + 1] - y.start[a] < y.start[b + 1] - y.start[b];
    });
    PairTask task{x,      y,     order.data(), longest(x), longest(y),   diagonal,
                  length, decay, out,          nullptr,    polling(poll)};
    Buffer<char> scratch(table.pair_scratch(task));
    task.scratch = scratch.data();
    table.pairs(task);
}

void subsequence_pairs(Letters x, Starts x_start, Letters y, Starts y_start, int length, double decay,
                       Output<double> out, const std::string& isa, nb::object poll) {
    const Sequences rows = sequences(x, x_start), columns = sequences(y, y_start);
    require_aligned(out);
    require(out.shape(0) == rows.count && out.shape(1) == columns.count, "output shape");
    run_pairs(rows, columns, false, length, decay, out.data(), isa, poll);
}

void subsequence_diagonal(Letters x, Starts start, int length, double decay, OutVector<double> out,
                          const std::string& isa, nb::object poll) {
    const Sequences all = sequences(x, start);
    require_aligned(out);
    require(out.shape(0) == all.count, "output shape");
    run_pairs(all, all, true, length, decay, out.data(), isa, poll);
}

void subsequence_features(Letters x, Starts start, std::size_t alphabet, int length, Letters prefix,
                          std::size_t first, std::size_t last, double decay, Output<double> out,
                          const std::string& isa, nb::object poll) {
    const Sequences all = sequences(x, start);
    require_aligned(prefix, out);
    check_subsequences(length, decay);
    const int given = static_cast<int>(std::min<std::size_t>(prefix.shape(0), max_length));
    require(given < length && first < last && last <= alphabet, "no features");
    auto is_letter = [&](std::int32_t c) { return c < 0 || static_cast<std::size_t>(c) < alphabet; };
    require(std::all_of(x.data(), x.data() + x.shape(0), is_letter) &&
            std::all_of(prefix.data(), prefix.data() + given, is_letter), "no such letter");
    std::size_t left = out.shape(1);  // must be (last - first) alphabet^(length - given - 1)
    for (int k = given + 1; k < length; ++k, left /= alphabet)
        require(left % alphabet == 0, "output shape");
    require(left == last - first && out.shape(0) == all.count, "output shape");
    FeatureTask task{all,   alphabet, length, given,      prefix.data(),
                     first, last,     decay,  out.data(), nullptr,      polling(poll)};
    const Table table = find(isa);
    nb::gil_scoped_release release;
    Buffer<char> scratch(table.feature_scratch(task));
    task.scratch = scratch.data();
    table.features(task);
}

void bind_sequences(nb::module_& m) {
    m.attr("MAX_LENGTH") = max_length;
    m.def("subsequence_pairs", &subsequence_pairs, array("x"), array("x_start"), array("y"),
          array("y_start"), nb::arg("length"), nb::arg("decay"), array("out"), nb::arg("isa"),
          nb::arg("poll") = nb::none());
    m.def("subsequence_diagonal", &subsequence_diagonal, array("x"), array("start"),
          nb::arg("length"), nb::arg("decay"), array("out"), nb::arg("isa"), nb::arg("poll") = nb::none());
    m.def("subsequence_features", &subsequence_features, array("x"), array("start"),
          nb::arg("alphabet"), nb::arg("length"), array("prefix"), nb::arg("first"), nb::arg("last"),
          nb::arg("decay"), array("out"), nb::arg("isa"), nb::arg("poll") = nb::none());
}

// --- dual problems ------------------------------------------------------------------------------------

std::size_t minimise_working_set(Matrix<double> matrix, OutVector<double> gradient, OutVector<double> values,
                                 Vector<double> lower, Vector<double> upper, Starts start,
                                 double tolerance, std::size_t max_steps, const std::string& isa) {
    const std::size_t size = values.shape(0);
    require(matrix.shape(0) == size && matrix.shape(1) == size && gradient.shape(0) == size &&
            lower.shape(0) == size && upper.shape(0) == size, "sizes differ");
    require_aligned(matrix, gradient, values, lower, upper, start);
    const std::size_t groups = start.shape(0) ? start.shape(0) - 1 : 0;
    for (std::size_t k = 0; k < groups; ++k) require(start(k) <= start(k + 1), "groups must not overlap");
    require(!groups || (start(0) == 0 && static_cast<std::size_t>(start(groups)) == size),
            "groups must hold all variables");
    std::vector<double> diagonal(size);
    for (std::size_t k = 0; k < size; ++k) diagonal[k] = matrix(k, k);
    const WorkingSetTask task{matrix.data(), diagonal.data(), gradient.data(), values.data(), lower.data(),
                              upper.data(), size, start.data(), groups, tolerance, max_steps};
    const Table table = find(isa);
    nb::gil_scoped_release release;
    return table.working_set(task);
}

// --- permutations -------------------------------------------------------------------------------------

using Stack = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;

void permuted_sums(Stack K, Matrix<float> L, Matrix<std::int32_t> permutations, Output<double> out,
                   const std::string& isa) {
    const std::size_t kernels = K.shape(0), n = L.shape(0), draws = permutations.shape(0);
    require(K.shape(1) == n && K.shape(2) == n && L.shape(1) == n, "matrices must be n x n");
    require(permutations.shape(1) == n, "permutations must have n columns");
    require(out.shape(0) == draws && out.shape(1) == kernels, "output shape");
    require_aligned(K, L, permutations, out);
    const std::int32_t* rows = permutations.data();
    require(std::all_of(rows, rows + draws * n,
                        [n](std::int32_t i) { return i >= 0 && static_cast<std::size_t>(i) < n; }),
            "permutations must hold row numbers");
    PermutedTask task{K.data(), kernels, n, L.data(), rows, draws, out.data(), nullptr};
    const Table table = find(isa);
    nb::gil_scoped_release release;
    Buffer<char> scratch(table.permuted_scratch(task));
    task.scratch = scratch.data();
    table.permuted_sums(task);
}

// --- points spread over a grid --------------------------------------------------------------------------

template <class T>
std::size_t spread_points(Matrix<T> points, std::optional<Vector<double>> strengths, Vector<double> origin,
                          Vector<double> scale, std::vector<std::size_t> cells, int order,
                          OutVector<double> grid, const std::string& isa) {
    const std::size_t n = points.shape(0), dim = points.shape(1);
    require(dim >= 1 && dim <= 3, "points must have 1 to 3 columns");
    require(order == 4 || order == 8, "order must be 4 or 8");
    require(origin.shape(0) == dim && scale.shape(0) == dim && cells.size() == dim, "sizes differ");
    require(!strengths || strengths->shape(0) == n, "one strength per point is needed");
    SpreadTask<T> task{points.data(), strengths ? strengths->data() : nullptr, n, dim, origin.data(),
                       scale.data(), {1, 1, 1}, order, grid.data()};
    std::size_t nodes = 1;
    for (std::size_t k = 0; k < dim; ++k) {
        require(cells[k] >= 1 && cells[k] <= (std::size_t{1} << 32), "cells");
        task.cells[k] = cells[k];
        require(nodes <= grid.shape(0) / (cells[k] + order), "grid size");
        nodes *= cells[k] + order;
    }
    require(grid.shape(0) == nodes, "grid size");
    require_aligned(points, origin, scale, grid);
    if (strengths) require_aligned(*strengths);
    const Table table = find(isa);
    nb::gil_scoped_release release;
    if constexpr (std::is_same_v<T, double>) return table.spread_d(task);
    else return table.spread_f(task);
}

template <class T> void bind_spread(nb::module_& m, const char* name) {
    m.def(name, &spread_points<T>, array("points"), nb::arg("strengths").none(), array("origin"),
          array("scale"), nb::arg("cells"), nb::arg("order"), array("grid"), nb::arg("isa"));
}

// --- description ------------------------------------------------------------------------------------

std::string compiler() {
#if defined(__clang__)
    return "clang " __clang_version__;
#elif defined(__GNUC__)
    return "gcc " __VERSION__;
#else
    return "unknown compiler";
#endif
}

std::string describe() {
    std::string text = compiler() + ", C++" + std::to_string(__cplusplus / 100 % 100);
#if !defined(NDEBUG)
    text += ", assertions on";
#endif
    text += ", instruction sets:";
    for (const std::string& name : instruction_sets()) text += " " + name;
    return text;
}

}  // namespace

NB_MODULE(_core, m) {
    m.doc() = "The compiled part of mercer's engine.";
    m.def("describe", &describe, "Compiler, C++ standard and instruction sets, as one line of text.");
    m.def("instruction_sets", &instruction_sets, "Usable here, the best one last.");
    bind_program<double>(m, "Program64");
    bind_program<float>(m, "Program32");
    nb::class_<Profile> profile(m, "Profile");
    profile.def(nb::init<std::vector<StepTuple>, int, const std::string&>(), nb::arg("steps"),
                nb::arg("result"), nb::arg("isa"));
    bind_profile<double>(profile);
    bind_profile<float>(profile);
    bind_coordinates<double>(m);
    bind_coordinates<float>(m);
    bind_sequences(m);
    m.def("minimise_working_set", &minimise_working_set, array("matrix"), array("gradient"), array("values"),
          array("lower"), array("upper"), array("start"), nb::arg("tolerance"), nb::arg("max_steps"),
          nb::arg("isa"));
    m.def("permuted_sums", &permuted_sums, array("K"), array("L"), array("permutations"), array("out"),
          nb::arg("isa"));
    bind_spread<double>(m, "spread64");
    bind_spread<float>(m, "spread32");
    m.attr("MAX_SLOTS") = max_slots;
    m.attr("MAX_STEPS") = max_steps;
    m.attr("MAX_COLUMNS") = max_columns;
    bind_function<double>(m, "exp64", [](const Table& t) { return t.exp_d; });
    bind_function<float>(m, "exp32", [](const Table& t) { return t.exp_f; });
    bind_function<double>(m, "two_to64", [](const Table& t) { return t.two_to_d; });
    bind_function<float>(m, "two_to32", [](const Table& t) { return t.two_to_f; });
    bind_function<double>(m, "log64", [](const Table& t) { return t.log_d; });
    bind_function<float>(m, "log32", [](const Table& t) { return t.log_f; });
}
