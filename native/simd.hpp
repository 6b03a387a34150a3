// Vectors of the widest kind the target has, and the elementary functions profiles are made of.
//
// Written with the vector extensions of GCC and Clang: one source for every instruction set. The
// including file sets MERCER_VECTOR_BYTES and compiles with the matching flags; contraction to fused
// multiply-adds is on, nothing else of "fast math" is (infinities and zeros have their meaning).
#pragma once

#include <cstdint>
#include <cstring>
#include <limits>

#ifndef MERCER_VECTOR_BYTES
#error "define MERCER_VECTOR_BYTES before including simd.hpp"
#endif

namespace MERCER_ISA {

template <class T> struct VectorOf;
template <> struct VectorOf<double> {
    typedef double type __attribute__((vector_size(MERCER_VECTOR_BYTES)));
    typedef std::uint64_t bits __attribute__((vector_size(MERCER_VECTOR_BYTES)));
    typedef std::int64_t integers __attribute__((vector_size(MERCER_VECTOR_BYTES)));
};
template <> struct VectorOf<float> {
    typedef float type __attribute__((vector_size(MERCER_VECTOR_BYTES)));
    typedef std::uint32_t bits __attribute__((vector_size(MERCER_VECTOR_BYTES)));
    typedef std::int32_t integers __attribute__((vector_size(MERCER_VECTOR_BYTES)));
};
template <class T> using Vec = typename VectorOf<T>::type;
template <class T> using Bits = typename VectorOf<T>::bits;
template <class T> using Integers = typename VectorOf<T>::integers;  // to shift with the sign
template <class T> constexpr int lanes = MERCER_VECTOR_BYTES / static_cast<int>(sizeof(T));

template <class T> inline Vec<T> load(const T* p) {
    Vec<T> v;
    std::memcpy(&v, p, sizeof v);
    return v;
}
template <class T> inline void store(T* p, Vec<T> v) { std::memcpy(p, &v, sizeof v); }
template <class T> inline Vec<T> fill(T x) { return x - Vec<T>{}; }

template <class To, class From> inline To reinterpret(From v) {
    static_assert(sizeof(To) == sizeof(From));
    To out;
    std::memcpy(&out, &v, sizeof out);
    return out;
}

// Of two numbers. If one may be NaN, it must be the second, and is returned.
template <class T> inline Vec<T> smaller(Vec<T> a, Vec<T> b) { return a < b ? a : b; }
template <class T> inline Vec<T> larger(Vec<T> a, Vec<T> b) { return a > b ? a : b; }

template <class T> inline Vec<T> root(Vec<T> x) {
    for (int i = 0; i < lanes<T>; ++i) x[i] = __builtin_sqrt(x[i]);
    return x;
}
template <> inline Vec<float> root<float>(Vec<float> x) {
    for (int i = 0; i < lanes<float>; ++i) x[i] = __builtin_sqrtf(x[i]);
    return x;
}

#ifdef __AVX512F__
}  // namespace MERCER_ISA
#include "simd_avx512.hpp"
namespace MERCER_ISA {
#else
// exp(x) = 2^n exp(r) with n the integer nearest x / log 2 and |r| <= log(2) / 2. The rounding shift
// leaves n in the low bits of t, from where it moves to the exponent. Below the smallest normal
// number the result is 0. Coefficients: tools/coefficients.py.
inline Vec<double> exponential(Vec<double> x) {
    const Vec<double> low = fill(-708.0), high = fill(709.79);
    const Vec<double> clamped = smaller<double>(high, larger<double>(low, x));
    const double shift = 0x1.8p52;
    const Vec<double> t = clamped * 0x1.71547652b82fep0 + shift;
    const Vec<double> n = t - shift;
    Vec<double> r = clamped - n * 0x1.62e42fefa3800p-1;
    r = r - n * 0x1.ef35793c76730p-45;
    Vec<double> p = fill(0x1.af389eea54156p-26);
    p = p * r + 0x1.28917c9f3a495p-22;
    p = p * r + 0x1.71de0db2eb873p-19;
    p = p * r + 0x1.a019b914881bap-16;
    p = p * r + 0x1.a01a01a7c2f2cp-13;
    p = p * r + 0x1.6c16c17889f3cp-10;
    p = p * r + 0x1.11111111109b5p-7;
    p = p * r + 0x1.5555555553d68p-5;
    p = p * r + 0x1.5555555555556p-3;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    // two factors, so that results up to the largest number do not overflow on the way
    const Bits<double> half = (reinterpret<Bits<double>>(t) << 52) + (std::uint64_t{1022} << 52);
    p = (p * reinterpret<Vec<double>>(half)) * 2.0;
    p = x < low ? Vec<double>{} : p;
    return x > 709.782712893384 ? fill(std::numeric_limits<double>::infinity()) : p;
}

inline Vec<float> exponential(Vec<float> x) {
    const Vec<float> low = fill(-86.9f), high = fill(88.73f);
    const Vec<float> clamped = smaller<float>(high, larger<float>(low, x));
    const float shift = 0x1.8p23f;
    const Vec<float> t = clamped * 0x1.715476p0f + shift;
    const Vec<float> n = t - shift;
    Vec<float> r = clamped - n * 0x1.62e400p-1f;
    r = r - n * 0x1.7f7d1cp-20f;
    Vec<float> p = fill(0x1.6d10fcp-10f);
    p = p * r + 0x1.120b62p-7f;
    p = p * r + 0x1.55551ap-5f;
    p = p * r + 0x1.5554dep-3f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    const Bits<float> half = (reinterpret<Bits<float>>(t) << 23) + (std::uint32_t{126} << 23);
    p = (p * reinterpret<Vec<float>>(half)) * 2.0f;
    p = x < low ? Vec<float>{} : p;
    return x > 88.7228394f ? fill(std::numeric_limits<float>::infinity()) : p;
}

// 2^x in the same way, with |r| <= 1/2; what is subtracted from x is exact.
inline Vec<double> two_to(Vec<double> x) {
    const Vec<double> low = fill(-1021.5), high = fill(1024.0);
    const Vec<double> clamped = smaller<double>(high, larger<double>(low, x));
    const double shift = 0x1.8p52;
    const Vec<double> t = clamped + shift;
    const Vec<double> r = clamped - (t - shift);
    Vec<double> p = fill(0x1.e9d3fe3952179p-32);
    p = p * r + 0x1.e6063f7217bc6p-28;
    p = p * r + 0x1.b524fae627834p-24;
    p = p * r + 0x1.62bfd47773353p-20;
    p = p * r + 0x1.ffcbfc670dcd4p-17;
    p = p * r + 0x1.430913096fd9fp-13;
    p = p * r + 0x1.5d87fe78a5276p-10;
    p = p * r + 0x1.3b2ab6fba1ddap-7;
    p = p * r + 0x1.c6b08d704a0c2p-5;
    p = p * r + 0x1.ebfbdff82c598p-3;
    p = p * r + 0x1.62e42fefa39efp-1;
    p = p * r + 1.0;
    const Bits<double> half = (reinterpret<Bits<double>>(t) << 52) + (std::uint64_t{1022} << 52);
    p = (p * reinterpret<Vec<double>>(half)) * 2.0;
    p = x < low ? Vec<double>{} : p;
    return x >= high ? fill(std::numeric_limits<double>::infinity()) : p;
}

inline Vec<float> two_to(Vec<float> x) {
    const Vec<float> low = fill(-125.5f), high = fill(128.0f);
    const Vec<float> clamped = smaller<float>(high, larger<float>(low, x));
    const float shift = 0x1.8p23f;
    const Vec<float> t = clamped + shift;
    const Vec<float> r = clamped - (t - shift);
    Vec<float> p = fill(0x1.44138ap-13f);
    p = p * r + 0x1.5f0890p-10f;
    p = p * r + 0x1.3b2a54p-7f;
    p = p * r + 0x1.c6af6cp-5f;
    p = p * r + 0x1.ebfbe0p-3f;
    p = p * r + 0x1.62e430p-1f;
    p = p * r + 1.0f;
    const Bits<float> half = (reinterpret<Bits<float>>(t) << 23) + (std::uint32_t{126} << 23);
    p = (p * reinterpret<Vec<float>>(half)) * 2.0f;
    p = x < low ? Vec<float>{} : p;
    return x >= high ? fill(std::numeric_limits<float>::infinity()) : p;
}
#endif

// log(x) = e log 2 + log(m), m in [sqrt(1/2), sqrt(2)), by the series of atanh in s = (m-1)/(m+1).
// log(0) = -inf; negative arguments give NaN. For subnormal ones it stays near that of the smallest
// normal number.
template <class T> struct LogConstants;
template <> struct LogConstants<double> {
    static constexpr int mantissa = 52;
    static constexpr std::uint64_t root_half = 0x3fe6a09e667f3bcd;
    static constexpr double ln2_high = 0x1.62e42fefa3800p-1, ln2_low = 0x1.ef35793c76730p-45;
    static constexpr double rounding = 0x1.8p52;
};
template <> struct LogConstants<float> {
    static constexpr int mantissa = 23;
    static constexpr std::uint32_t root_half = 0x3f3504f3;
    static constexpr float ln2_high = 0x1.62e400p-1f, ln2_low = 0x1.7f7d1cp-20f;
    static constexpr float rounding = 0x1.8p23f;
};

inline Vec<double> atanh_tail(Vec<double> z) {  // (2 atanh(s) / s - 2) / z, z = s^2 <= 0.0295
    Vec<double> p = fill(0x1.0c039e172b8dfp-3);
    p = p * z + 0x1.0fbe95aaf31a8p-3;
    p = p * z + 0x1.3b1c355c3560fp-3;
    p = p * z + 0x1.745cf9048617ap-3;
    p = p * z + 0x1.c71c7201592a1p-3;
    p = p * z + 0x1.2492492476ccbp-2;
    p = p * z + 0x1.9999999999a38p-2;
    return p * z + 0x1.5555555555555p-1;
}
inline Vec<float> atanh_tail(Vec<float> z) {
    Vec<float> p = fill(0x1.ddced8p-3f);
    p = p * z + 0x1.245c44p-2f;
    p = p * z + 0x1.9999ecp-2f;
    return p * z + 0x1.555556p-1f;
}

template <class T> inline Vec<T> logarithm(Vec<T> x) {
    using C = LogConstants<T>;
    const Bits<T> bits = reinterpret<Bits<T>>(x);
    const Bits<T> e =
        reinterpret<Bits<T>>(reinterpret<Integers<T>>(bits - C::root_half) >> C::mantissa);
    const Vec<T> m = reinterpret<Vec<T>>(bits - (e << C::mantissa));
    // the integer e as a number, by way of the low bits of a large one
    const Vec<T> n =
        reinterpret<Vec<T>>(e + reinterpret<Bits<T>>(fill(C::rounding))) - C::rounding;
    const Vec<T> s = (m - T(1)) / (m + T(1));
    const Vec<T> z = s * s;
    const Vec<T> tail = s * (z * atanh_tail(z));
    Vec<T> y = n * C::ln2_high + (s * T(2) + (tail + n * C::ln2_low));
    const T infinity = std::numeric_limits<T>::infinity();
    y = x == T(0) ? fill(-infinity) : y;
    y = x < T(0) ? fill(std::numeric_limits<T>::quiet_NaN()) : y;
    return x < infinity ? y : x;  // infinity and NaN are unchanged
}

#ifndef __AVX512F__
template <class T> inline Vec<T> power(Vec<T> x, T exponent) {
    return exponential(exponent * logarithm<T>(x));
}
#endif

}  // namespace MERCER_ISA
