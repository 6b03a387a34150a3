// The tape of a profile on a small tile of vectors, with its first two derivatives (order-2 jets).
#pragma once

#include "simd.hpp"
#include "task.hpp"

namespace MERCER_ISA {

using mercer::Op;
using mercer::Step;
using mercer::Tape;

// f(x), f'(x), f''(x) of one function; only what ORDER asks for is computed.
template <class T> struct Three {
    Vec<T> f, d, dd;
};

template <class T, int ORDER> inline Three<T> unary(const Step& s, Vec<T> x) {
    const Vec<T> one = fill(T(1));
    Three<T> r{};
    switch (s.op) {
    case Op::linear:
        r = {x, one, Vec<T>{}};
        break;
    case Op::exponential:  // of a power of two: see `apply`
        r.f = two_to(x);
        r.d = r.dd = r.f;
        break;
    case Op::logarithm:
        r.f = logarithm<T>(x);
        if (ORDER > 0) { r.d = one / x; r.dd = -r.d * r.d; }
        break;
    case Op::power:
    case Op::large_power: {
        const T p = static_cast<T>(s.p);
        r.f = s.op == Op::power ? power(x, p) : exponential(p * logarithm<T>(x));
        if (ORDER > 0) { const Vec<T> q = one / x; r.d = p * r.f * q; r.dd = (p - 1) * r.d * q; }
        if (ORDER > 0 && p > 0) {  // 0 / 0 at zero, where the derivatives are 0 or infinite
            const Vec<T> infinity = fill(std::numeric_limits<T>::infinity());
            r.d = x == T(0) ? (p > 1 ? Vec<T>{} : infinity) : r.d;
            r.dd = x == T(0) ? (p > 2 ? Vec<T>{} : p > 1 ? infinity : -infinity) : r.dd;
        }
        break;
    }
    case Op::root:
        r.f = root<T>(x);
        if (ORDER > 0) { r.d = T(0.5) / r.f; r.dd = T(-0.5) * r.d / x; }
        break;
    case Op::inverse:
        r.f = one / x;
        r.d = -r.f * r.f;
        r.dd = T(-2) * r.d * r.f;
        break;
    case Op::inverse_root:
        r.f = one / root<T>(x);
        r.d = T(-0.5) * r.f * r.f * r.f;
        r.dd = T(-1.5) * r.d * r.f * r.f;
        break;
    case Op::whole_power: {
        const int p = static_cast<int>(s.p);
        Vec<T> below = one, two_below = Vec<T>{};  // x^(p-1), x^(p-2)
        for (int i = 1; i < p; ++i) { two_below = below; below = below * x; }
        r.f = below * x;
        r.d = T(p) * below;
        r.dd = T(p) * T(p - 1) * two_below;
        break;
    }
    case Op::matern3: {
        const Vec<T> z = root<T>(x), e = exponential(-z);
        r.f = (one + z) * e;
        if (ORDER > 0) { r.d = T(-0.5) * e; r.dd = T(0.25) * e / z; }
        break;
    }
    case Op::matern5: {
        const Vec<T> z = root<T>(x), e = exponential(-z);
        r.f = (one + z + x * T(1.0 / 3)) * e;
        if (ORDER > 0) { r.d = T(-1.0 / 6) * (one + z) * e; r.dd = T(1.0 / 12) * e; }
        break;
    }
    default:
        break;
    }
    return r;
}

// Where each slot's value and derivatives are: arrays of vectors, aligned to cache lines.
template <class T, int ORDER> struct Slots {
    T* at[mercer::max_slots][ORDER + 1];
};

template <class T, int ORDER, Op OP>
inline void apply(const Step& s, const Slots<T, ORDER>& t, std::size_t count) {
    // exp(a x + b) = 2^(a' x + b'), whose argument needs no reduction beyond its own fraction
    constexpr double unit = OP == Op::exponential ? 0x1.71547652b82fep0 : 1.0;
    const T inner = static_cast<T>(s.a * unit), b = static_cast<T>(s.b * unit);
    const T a = static_cast<T>(s.a);
    Step step = s;
    step.op = OP;  // a constant for the compiler: one loop per function
    T *x[ORDER + 1], *out[ORDER + 1];  // copies, which the stores cannot change
    for (int k = 0; k <= ORDER; ++k) { x[k] = t.at[s.x][k]; out[k] = t.at[s.out][k]; }
    for (std::size_t i = 0; i < count * lanes<T>; i += lanes<T>) {
        const Three<T> r = unary<T, ORDER>(step, inner * load(x[0] + i) + b);
        if constexpr (ORDER > 0) {
            const Vec<T> x1 = a * load(x[1] + i);
            if constexpr (ORDER > 1)
                store(out[2] + i, r.dd * x1 * x1 + r.d * (a * load(x[2] + i)));
            store(out[1] + i, r.d * x1);
        }
        store(out[0] + i, r.f);
    }
}

template <class T, int ORDER, Op OP>
inline void apply_binary(const Step& s, const Slots<T, ORDER>& t, std::size_t count) {
    const T a = static_cast<T>(s.a), b = static_cast<T>(s.b);
    T *left[ORDER + 1], *right[ORDER + 1], *out[ORDER + 1];
    for (int k = 0; k <= ORDER; ++k) {
        left[k] = t.at[s.x][k]; right[k] = t.at[s.y][k]; out[k] = t.at[s.out][k];
    }
    for (std::size_t i = 0; i < count * lanes<T>; i += lanes<T>) {
        const Vec<T> x = load(left[0] + i), y = load(right[0] + i);
        Vec<T> x1{}, y1{}, x2{}, y2{};
        if constexpr (ORDER > 0) { x1 = load(left[1] + i); y1 = load(right[1] + i); }
        if constexpr (ORDER > 1) { x2 = load(left[2] + i); y2 = load(right[2] + i); }
        Vec<T> v{}, d{}, dd{};
        if constexpr (OP == Op::add) {
            v = a * x + b * y; d = a * x1 + b * y1; dd = a * x2 + b * y2;
        } else if constexpr (OP == Op::multiply) {
            v = a * x * y;
            d = a * (x1 * y + x * y1);
            dd = a * (x2 * y + T(2) * x1 * y1 + x * y2);
        } else {  // cut
            const auto inside = (a * x + b) >= T(0);
            v = inside ? y : Vec<T>{}; d = inside ? y1 : Vec<T>{}; dd = inside ? y2 : Vec<T>{};
        }
        store(out[0] + i, v);
        if constexpr (ORDER > 0) store(out[1] + i, d);
        if constexpr (ORDER > 1) store(out[2] + i, dd);
    }
}

template <class T, int ORDER>
inline void run(const Tape& tape, const Slots<T, ORDER>& t, std::size_t count) {
    for (int i = 0; i < tape.count; ++i) {
        const Step& s = tape.steps[i];
        switch (s.op) {
        case Op::linear: apply<T, ORDER, Op::linear>(s, t, count); break;
        case Op::exponential: apply<T, ORDER, Op::exponential>(s, t, count); break;
        case Op::logarithm: apply<T, ORDER, Op::logarithm>(s, t, count); break;
        case Op::power: apply<T, ORDER, Op::power>(s, t, count); break;
        case Op::large_power: apply<T, ORDER, Op::large_power>(s, t, count); break;
        case Op::root: apply<T, ORDER, Op::root>(s, t, count); break;
        case Op::inverse: apply<T, ORDER, Op::inverse>(s, t, count); break;
        case Op::inverse_root: apply<T, ORDER, Op::inverse_root>(s, t, count); break;
        case Op::whole_power: apply<T, ORDER, Op::whole_power>(s, t, count); break;
        case Op::matern3: apply<T, ORDER, Op::matern3>(s, t, count); break;
        case Op::matern5: apply<T, ORDER, Op::matern5>(s, t, count); break;
        case Op::add: apply_binary<T, ORDER, Op::add>(s, t, count); break;
        case Op::multiply: apply_binary<T, ORDER, Op::multiply>(s, t, count); break;
        case Op::cut: apply_binary<T, ORDER, Op::cut>(s, t, count); break;
        }
    }
}

// The value alone, in place: a single step on all vectors at once, several on a few at a time.
template <class T> inline void evaluate(const Tape& tape, T* u, std::size_t count) {
    constexpr std::size_t few = 24;  // of each slot
    if (tape.count == 1 && tape.steps[0].out == tape.result) {
        Slots<T, 0> slots{};
        slots.at[tape.steps[0].x][0] = slots.at[tape.steps[0].y][0] = slots.at[tape.result][0] = u;
        run<T, 0>(tape, slots, count);
        return;
    }
    bool direct = tape.count > 0;  // is the result written by the last step only? then into place
    for (int i = 0; i < tape.count; ++i)
        direct = direct && (tape.steps[i].out == tape.result) == (i == tape.count - 1);
    alignas(64) T spare[mercer::max_slots][few * lanes<T>];
    for (std::size_t first = 0; first < count; first += few) {
        const std::size_t some = count - first < few ? count - first : few;
        T* values = u + first * lanes<T>;
        Slots<T, 0> slots{};
        for (int i = 1; i < mercer::max_slots; ++i) slots.at[i][0] = spare[i];
        slots.at[0][0] = values;
        if (direct) slots.at[tape.result][0] = values;
        run<T, 0>(tape, slots, some);
        if (tape.result && !direct) std::memcpy(values, spare[tape.result], some * lanes<T> * sizeof(T));
    }
}

}  // namespace MERCER_ISA
