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

// Slots of N vectors each, for value and derivatives.
template <class T, int N, int ORDER> struct Slots {
    Vec<T> value[mercer::max_slots][N];
    Vec<T> first[ORDER > 0 ? mercer::max_slots : 1][N];
    Vec<T> second[ORDER > 1 ? mercer::max_slots : 1][N];
};

template <class T, int N, int ORDER, Op OP>
inline void apply(const Step& s, Slots<T, N, ORDER>& t) {
    // exp(a x + b) = 2^(a' x + b'), whose argument needs no reduction beyond its own fraction
    constexpr double unit = OP == Op::exponential ? 0x1.71547652b82fep0 : 1.0;
    const T inner = static_cast<T>(s.a * unit), b = static_cast<T>(s.b * unit);
    const T a = static_cast<T>(s.a);
    Step step = s;
    step.op = OP;  // a constant for the compiler: one loop per function
    for (int i = 0; i < N; ++i) {
        const Three<T> r = unary<T, ORDER>(step, inner * t.value[s.x][i] + b);
        if constexpr (ORDER > 1) {
            const Vec<T> x1 = a * t.first[s.x][i], x2 = a * t.second[s.x][i];
            t.second[s.out][i] = r.dd * x1 * x1 + r.d * x2;
        }
        if constexpr (ORDER > 0) t.first[s.out][i] = r.d * (a * t.first[s.x][i]);
        t.value[s.out][i] = r.f;
    }
}

template <class T, int N, int ORDER>
inline void apply_binary(const Step& s, Slots<T, N, ORDER>& t) {
    const T a = static_cast<T>(s.a), b = static_cast<T>(s.b);
    for (int i = 0; i < N; ++i) {
        const Vec<T> x = t.value[s.x][i], y = t.value[s.y][i];
        Vec<T> x1{}, y1{}, x2{}, y2{};
        if constexpr (ORDER > 0) { x1 = t.first[s.x][i]; y1 = t.first[s.y][i]; }
        if constexpr (ORDER > 1) { x2 = t.second[s.x][i]; y2 = t.second[s.y][i]; }
        Vec<T> v{}, d{}, dd{};
        if (s.op == Op::add) {
            v = a * x + b * y; d = a * x1 + b * y1; dd = a * x2 + b * y2;
        } else if (s.op == Op::multiply) {
            v = a * x * y;
            d = a * (x1 * y + x * y1);
            dd = a * (x2 * y + T(2) * x1 * y1 + x * y2);
        } else {  // cut
            const auto inside = (a * x + b) >= T(0);
            v = inside ? y : Vec<T>{}; d = inside ? y1 : Vec<T>{}; dd = inside ? y2 : Vec<T>{};
        }
        t.value[s.out][i] = v;
        if constexpr (ORDER > 0) t.first[s.out][i] = d;
        if constexpr (ORDER > 1) t.second[s.out][i] = dd;
    }
}

template <class T, int N, int ORDER> inline void run(const Tape& tape, Slots<T, N, ORDER>& t) {
    for (int i = 0; i < tape.count; ++i) {
        const Step& s = tape.steps[i];
        switch (s.op) {
        case Op::linear: apply<T, N, ORDER, Op::linear>(s, t); break;
        case Op::exponential: apply<T, N, ORDER, Op::exponential>(s, t); break;
        case Op::logarithm: apply<T, N, ORDER, Op::logarithm>(s, t); break;
        case Op::power: apply<T, N, ORDER, Op::power>(s, t); break;
        case Op::large_power: apply<T, N, ORDER, Op::large_power>(s, t); break;
        case Op::root: apply<T, N, ORDER, Op::root>(s, t); break;
        case Op::inverse: apply<T, N, ORDER, Op::inverse>(s, t); break;
        case Op::inverse_root: apply<T, N, ORDER, Op::inverse_root>(s, t); break;
        case Op::whole_power: apply<T, N, ORDER, Op::whole_power>(s, t); break;
        case Op::matern3: apply<T, N, ORDER, Op::matern3>(s, t); break;
        case Op::matern5: apply<T, N, ORDER, Op::matern5>(s, t); break;
        default: apply_binary<T, N, ORDER>(s, t); break;
        }
    }
}

}  // namespace MERCER_ISA
