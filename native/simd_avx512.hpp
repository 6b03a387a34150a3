// What AVX-512 does better with its own instructions: exponentials and powers.
//
// Scaling by powers of two, exponents and mantissas are single instructions, and a table of sixteen
// fits one or two registers. log2(x) = e - log2(c) + log2(1 + r) with c near 1/m from the table and
// r = m c - 1 small; x^p = 2^(p log2 x). Coefficients and table: tools/coefficients.py.
#pragma once

#include <immintrin.h>

namespace MERCER_ISA {

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

constexpr int nearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;

// 0 below the smallest normal number, infinity above the largest. Of a minimum with NaN the second
// operand comes out.
inline Vec<double> exponential(Vec<double> x) {
    const Vec<double> y = _mm512_min_pd(fill(720.0), x);
    const Vec<double> n = _mm512_roundscale_pd(y * 0x1.71547652b82fep0, nearest);
    Vec<double> r = y - n * 0x1.62e42fefa3800p-1;
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
    return _mm512_maskz_scalef_pd(_mm512_cmp_pd_mask(x, fill(-708.0), _CMP_NLT_UQ), p, n);
}

inline Vec<float> exponential(Vec<float> x) {
    const Vec<float> y = _mm512_min_ps(fill(90.0f), x);
    const Vec<float> n = _mm512_roundscale_ps(y * 0x1.715476p0f, nearest);
    Vec<float> r = y - n * 0x1.62e400p-1f;
    r = r - n * 0x1.7f7d1cp-20f;
    Vec<float> p = fill(0x1.6d10fcp-10f);
    p = p * r + 0x1.120b62p-7f;
    p = p * r + 0x1.55551ap-5f;
    p = p * r + 0x1.5554dep-3f;
    p = p * r + 0.5f;
    p = p * r + 1.0f;
    p = p * r + 1.0f;
    return _mm512_maskz_scalef_ps(_mm512_cmp_ps_mask(x, fill(-86.9f), _CMP_NLT_UQ), p, n);
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
    Vec<double> y = exponent * (p * r + (l + Vec<double>(_mm512_getexp_pd(x))));
    const auto kept = _mm512_cmp_pd_mask(y, fill(-1021.0), _CMP_NLT_UQ);
    y = _mm512_min_pd(fill(1100.0), y);
    const Vec<double> n = _mm512_roundscale_pd(y, nearest);
    const Vec<double> f = y - n;
    Vec<double> q = fill(0x1.e5e9f548e5725p-28);
    q = q * f + 0x1.b6571de2f2351p-24;
    q = q * f + 0x1.62bfe46117445p-20;
    q = q * f + 0x1.ffcb76789860fp-17;
    q = q * f + 0x1.430913037846p-13;
    q = q * f + 0x1.5d87fe908f88ap-10;
    q = q * f + 0x1.3b2ab6fba385fp-7;
    q = q * f + 0x1.c6b08d7044119p-5;
    q = q * f + 0x1.ebfbdff82c59p-3;
    q = q * f + 0x1.62e42fefa39f7p-1;
    q = q * f + 1.0;
    return _mm512_maskz_scalef_pd(kept, q, n);
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
    Vec<float> y = exponent * (p * r + (l + Vec<float>(_mm512_getexp_ps(x))));
    const auto kept = _mm512_cmp_ps_mask(y, fill(-125.0f), _CMP_NLT_UQ);
    y = _mm512_min_ps(fill(140.0f), y);
    const Vec<float> n = _mm512_roundscale_ps(y, nearest);
    const Vec<float> f = y - n;
    Vec<float> q = fill(0x1.5ec866p-10f);
    q = q * f + 0x1.3cbf6p-7f;
    q = q * f + 0x1.c6afeep-5f;
    q = q * f + 0x1.ebfa4cp-3f;
    q = q * f + 0x1.62e43p-1f;
    q = q * f + 1.0f;
    return _mm512_maskz_scalef_ps(kept, q, n);
}

}  // namespace MERCER_ISA
