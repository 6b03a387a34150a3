// Exponentials and powers, which AVX-512 does better with its own instructions.
//
// Scaling by powers of two, exponents and mantissas are single instructions, and a table of sixteen
// fits one or two registers. 2^y = 2^n 2^r with n a multiple of 1/16, whose fraction is looked up,
// and |r| <= 1/32. log2(x) = e - log2(c) + log2(1 + r) with c near 1/m from the table and
// r = m c - 1 small; x^p = 2^(p log2 x). Coefficients and tables: tools/coefficients.py.
#pragma once

#include <immintrin.h>

namespace MERCER_ISA {

alignas(64) constexpr double powers_d[16] = {
    1.0, 0x1.0b5586cf9890fp0, 0x1.172b83c7d517bp0, 0x1.2387a6e756238p0,
    0x1.306fe0a31b715p0, 0x1.3dea64c123422p0, 0x1.4bfdad5362a27p0, 0x1.5ab07dd485429p0,
    0x1.6a09e667f3bcdp0, 0x1.7a11473eb0187p0, 0x1.8ace5422aa0dbp0, 0x1.9c49182a3f090p0,
    0x1.ae89f995ad3adp0, 0x1.c199bdd85529cp0, 0x1.d5818dcfba487p0, 0x1.ea4afa2a490dap0};
alignas(64) constexpr double reciprocals_d[16] = {
    0x1.f07c1f07c1f08p-1, 0x1.d41d41d41d41dp-1, 0x1.bacf914c1badp-1, 0x1.a41a41a41a41ap-1,
    0x1.8f9c18f9c18fap-1, 0x1.7d05f417d05f4p-1, 0x1.6c16c16c16c17p-1, 0x1.5c9882b931057p-1,
    0x1.4e5e0a72f0539p-1, 0x1.4141414141414p-1, 0x1.3521cfb2b78c1p-1, 0x1.29e4129e4129ep-1,
    0x1.1f7047dc11f7p-1, 0x1.15b1e5f75270dp-1, 0x1.0c9714fbcda3bp-1, 0x1.041041041041p-1};
alignas(64) constexpr double logarithms_d[16] = {
    0x1.6bad3758efd81p-5, 0x1.08c588cda79e5p-3, 0x1.acf5e2db4ec91p-3, 0x1.24407ab0e073ap-2,
    0x1.6e221cd9d0cddp-2, 0x1.b47ebf73882a1p-2, 0x1.f7a8568cb06cep-2, 0x1.1bf311e95d00ep-1,
    0x1.3abb3faa02168p-1, 0x1.5848226989d34p-1, 0x1.74b1fd64e0754p-1, 0x1.900e6160002cep-1,
    0x1.aa708f58014d4p-1, 0x1.c3e9ca2e1a055p-1, 0x1.dc899ab3ff56cp-1, 0x1.f45e08bcf0656p-1};
alignas(64) constexpr float powers_f[16] = {
    1.0f, 0x1.0b5586p0f, 0x1.172b84p0f, 0x1.2387a6p0f,
    0x1.306fe0p0f, 0x1.3dea64p0f, 0x1.4bfdaep0f, 0x1.5ab07ep0f,
    0x1.6a09e6p0f, 0x1.7a1148p0f, 0x1.8ace54p0f, 0x1.9c4918p0f,
    0x1.ae89fap0f, 0x1.c199bep0f, 0x1.d5818ep0f, 0x1.ea4afap0f};
alignas(64) constexpr float reciprocals_f[16] = {
    0x1.f07c2p-1f, 0x1.d41d42p-1f, 0x1.bacf92p-1f, 0x1.a41a42p-1f,
    0x1.8f9c18p-1f, 0x1.7d05f4p-1f, 0x1.6c16c2p-1f, 0x1.5c9882p-1f,
    0x1.4e5e0ap-1f, 0x1.414142p-1f, 0x1.3521dp-1f, 0x1.29e412p-1f,
    0x1.1f7048p-1f, 0x1.15b1e6p-1f, 0x1.0c9714p-1f, 0x1.041042p-1f};
alignas(64) constexpr float logarithms_f[16] = {
    0x1.6bad2p-5f, 0x1.08c588p-3f, 0x1.acf5dep-3f, 0x1.24407ap-2f,
    0x1.6e222p-2f, 0x1.b47ecp-2f, 0x1.f7a854p-2f, 0x1.1bf314p-1f,
    0x1.3abb4p-1f, 0x1.58482p-1f, 0x1.74b1fcp-1f, 0x1.900e62p-1f,
    0x1.aa708ep-1f, 0x1.c3e9cap-1f, 0x1.dc899ep-1f, 0x1.f45e06p-1f};

// A rounding shift leaves sixteen times n in the low bits of t; scaling takes the floor of n. The
// result is 0 below the smallest normal number, infinity above the largest. A minimum with NaN
// returns the second operand.
inline Vec<double> sixteenth_power(Vec<double> t) {
    return _mm512_permutex2var_pd(_mm512_load_pd(powers_d), _mm512_castpd_si512(t),
                                  _mm512_load_pd(powers_d + 8));
}
inline Vec<float> sixteenth_power(Vec<float> t) {
    return _mm512_permutexvar_ps(_mm512_castps_si512(t), _mm512_load_ps(powers_f));
}

inline Vec<double> exponential(Vec<double> x) {
    const Vec<double> y = _mm512_min_pd(fill(720.0), x);
    const Vec<double> t = y * 0x1.71547652b82fep0 + 0x1.8p48;
    const Vec<double> n = t - 0x1.8p48;
    Vec<double> r = y - n * 0x1.62e42fefa3800p-1;
    r = r - n * 0x1.ef35793c76730p-45;
    Vec<double> p = fill(0x1.6c17ed4ce9ff6p-10);
    p = p * r + 0x1.11123cf2011fdp-7;
    p = p * r + 0x1.55555554e9466p-5;
    p = p * r + 0x1.555555547d375p-3;
    p = p * r + 0x1.0000000000001p-1;
    p = p * r + 0x1.0000000000003p+0;
    const Vec<double> power = sixteenth_power(t);
    p = power * (p * r) + power;
    return _mm512_maskz_scalef_pd(_mm512_cmp_pd_mask(x, fill(-708.0), _CMP_NLT_UQ), p, n);
}

inline Vec<float> exponential(Vec<float> x) {
    const Vec<float> y = _mm512_min_ps(fill(90.0f), x);
    const Vec<float> t = y * 0x1.715476p0f + 0x1.8p19f;
    const Vec<float> n = t - 0x1.8p19f;
    Vec<float> r = y - n * 0x1.62e400p-1f;
    r = r - n * 0x1.7f7d1cp-20f;
    Vec<float> p = fill(0x1.5556dep-3f);
    p = p * r + 0x1.0001ecp-1f;
    p = p * r + 1.0f;
    const Vec<float> power = sixteenth_power(t);
    p = power * (p * r) + power;
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, fill(-86.9f), _CMP_NLT_UQ), p, n);
}

inline Vec<double> two_to(Vec<double> x) {
    const Vec<double> y = _mm512_min_pd(fill(1100.0), x);
    const Vec<double> t = y + 0x1.8p48;
    const Vec<double> n = t - 0x1.8p48;
    const Vec<double> r = y - n;
    Vec<double> p = fill(0x1.430a1d090daa3p-13);
    p = p * r + 0x1.5d897e528c1cbp-10;
    p = p * r + 0x1.3b2ab6fb41212p-7;
    p = p * r + 0x1.c6b08d6f2a284p-5;
    p = p * r + 0x1.ebfbdff82c590p-3;
    p = p * r + 0x1.62e42fefa39f3p-1;
    const Vec<double> power = sixteenth_power(t);
    p = power * (p * r) + power;
    return _mm512_maskz_scalef_pd(_mm512_cmp_pd_mask(x, fill(-1021.5), _CMP_NLT_UQ), p, n);
}

inline Vec<float> two_to(Vec<float> x) {
    const Vec<float> y = _mm512_min_ps(fill(140.0f), x);
    const Vec<float> t = y + 0x1.8p19f;
    const Vec<float> n = t - 0x1.8p19f;
    const Vec<float> r = y - n;
    Vec<float> p = fill(0x1.c6b29ap-5f);
    p = p * r + 0x1.ebff92p-3f;
    p = p * r + 0x1.62e430p-1f;
    const Vec<float> power = sixteenth_power(t);
    p = power * (p * r) + power;
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, fill(-125.5f), _CMP_NLT_UQ), p, n);
}

inline Vec<double> power(Vec<double> x, double exponent) {
    const Vec<double> m = _mm512_getmant_pd(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan);
    const __m512i index = _mm512_srli_epi64(_mm512_castpd_si512(m), 48);
    const Vec<double> c = _mm512_permutex2var_pd(
        _mm512_load_pd(reciprocals_d), index, _mm512_load_pd(reciprocals_d + 8));
    const Vec<double> l = _mm512_permutex2var_pd(
        _mm512_load_pd(logarithms_d), index, _mm512_load_pd(logarithms_d + 8));
    const Vec<double> r = m * c - 1.0;
    Vec<double> p = fill(0x1.a6a72854073c2p-3);
    p = p * r - 0x1.ed125b3a2208fp-3;
    p = p * r + 0x1.2776bc11ed5a0p-2;
    p = p * r - 0x1.71546c361d5e1p-2;
    p = p * r + 0x1.ec709dc3e82a2p-2;
    p = p * r - 0x1.71547652e0a35p-1;
    p = p * r + 0x1.71547652b82fep+0;
    return two_to(exponent * (p * r + (l + Vec<double>(_mm512_getexp_pd(x)))));
}

inline Vec<float> power(Vec<float> x, float exponent) {
    const Vec<float> m = _mm512_getmant_ps(x, _MM_MANT_NORM_1_2, _MM_MANT_SIGN_nan);
    const __m512i index = _mm512_srli_epi32(_mm512_castps_si512(m), 19);
    const Vec<float> c = _mm512_permutexvar_ps(index, _mm512_load_ps(reciprocals_f));
    const Vec<float> l = _mm512_permutexvar_ps(index, _mm512_load_ps(logarithms_f));
    const Vec<float> r = m * c - 1.0f;
    Vec<float> p = fill(-0x1.71920ep-2f);
    p = p * r + 0x1.ecba88p-2f;
    p = p * r - 0x1.715476p-1f;
    p = p * r + 0x1.715476p+0f;
    return two_to(exponent * (p * r + (l + Vec<float>(_mm512_getexp_ps(x)))));
}

}  // namespace MERCER_ISA
