/* Includes the file EACH once for every instruction set of the processors that a build is for, having defined

     NAME(x)     x with the name of the instruction set     WIDTH     floats in a vector
     SET(x)      a vector of equal numbers                  FMA       a * b + c, rounded once (where there is one)
     ROOT(x)     square roots, correctly rounded            HIGH      rows of a block of accumulators
     WIDE        vectors in a row of such a block           ROOTS(x)  those of half as many doubles
     TALL        rows of a block of single vectors          SIDE      as WIDE for gradients: within 16 columns
     SPARE       whether blocks leave registers for other work */

#define JOIN_(a, b) a##_##b
#define JOIN(a, b) JOIN_(a, b)

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2,fma"))), apply_to = function)
#else
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#endif
#define NAME(x) JOIN(x, avx2)
#define WIDTH 8
#define HIGH 6
#define WIDE 2
#define TALL 12
#define SIDE 2
#define SPARE 0
#define SET _mm256_set1_ps
#define FMA _mm256_fmadd_ps
#define ROOT _mm256_sqrt_ps
#define ROOTS _mm256_sqrt_pd
#include EACH
#include "unset.h"
#if defined(__clang__)
#pragma clang attribute pop
#pragma clang attribute push(__attribute__((target("avx2,fma,avx512f,avx512vl,avx512dq,avx512bw"))), apply_to = function)
#else
#pragma GCC pop_options
#pragma GCC push_options
#pragma GCC target("avx2,fma,avx512f,avx512vl,avx512dq,avx512bw")
#endif
#define NAME(x) JOIN(x, avx512)
#define WIDTH 16
#define HIGH 8
#define WIDE 2
#define TALL 16
#define SIDE 1
#define SPARE 1
#define SET _mm512_set1_ps
#define FMA _mm512_fmadd_ps
#define ROOT _mm512_sqrt_ps
#define ROOTS _mm512_sqrt_pd
#include EACH
#include "unset.h"
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

/* Processors without fused multiply-add: the same, but for the last bits. */
#define NAME(x) JOIN(x, plain)
#define WIDTH 4
#define HIGH 4
#define WIDE 2
#define TALL 8
#define SIDE 2
#define SPARE 0
#define SET _mm_set1_ps
#define FMA(a, b, c) ((a) * (b) + (c))
#define ROOT _mm_sqrt_ps
#define ROOTS _mm_sqrt_pd
#include EACH
#include "unset.h"

#elif defined(__aarch64__)
#include <arm_neon.h>
#define NAME(x) JOIN(x, plain)
#define WIDTH 4
#define HIGH 6
#define WIDE 4
#define TALL 16
#define SIDE 4
#define SPARE 0
#define SET vdupq_n_f32
#define FMA(a, b, c) vfmaq_f32(c, a, b)
#define ROOT vsqrtq_f32
#define ROOTS vsqrtq_f64
#include EACH
#include "unset.h"

#else
#if !defined(QUAD)
#define QUAD
typedef float quad __attribute__((vector_size(16)));
typedef double pair __attribute__((vector_size(16)));
static INLINE quad quad_of(float x) { return (quad){x, x, x, x}; }
static INLINE quad quad_fma(quad a, quad b, quad c) {
    for (int i = 0; i < 4; i++) c[i] = __builtin_fmaf(a[i], b[i], c[i]);
    return c;
}
static INLINE quad quad_root(quad a) {
    for (int i = 0; i < 4; i++) a[i] = __builtin_sqrtf(a[i]);
    return a;
}
static INLINE pair pair_root(pair a) { return (pair){__builtin_sqrt(a[0]), __builtin_sqrt(a[1])}; }
#endif
#define NAME(x) JOIN(x, plain)
#define WIDTH 4
#define HIGH 4
#define WIDE 2
#define TALL 8
#define SIDE 2
#define SPARE 0
#define SET quad_of
#define FMA quad_fma
#define ROOT quad_root
#define ROOTS pair_root
#include EACH
#include "unset.h"
#endif

#undef EACH
