/* What the parts of the kernel share: names, memory, and random numbers. */

#ifndef KERNEL_H
#define KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__x86_64__)
#include <emmintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

#if defined(_WIN32)
#define API __declspec(dllexport)
#else
#define API __attribute__((visibility("default")))
#endif
#define INLINE inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#define LINE 64 /* bytes of a cache line */

typedef ptrdiff_t idx; /* long has 32 bits on Windows */

static INLINE idx lesser(idx a, idx b) { return a < b ? a : b; }

/* --- memory: one block, the caller's -------------------------------------------------------------------------------- */

/* A build that looks for errors (tools/fuzz_kernel.py) also watches the lines between arrays. */
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#define GUARD __asan_poison_memory_region
#define UNGUARD __asan_unpoison_memory_region
#else
#define GUARD(at, bytes) ((void)0)
#define UNGUARD(at, bytes) ((void)0)
#endif

struct room { char *start; size_t used; };

static INLINE void *take(struct room *room, size_t bytes) {
    size_t at = room->used;
    room->used += (bytes + LINE - 1) / LINE * LINE + LINE; /* a line apart, so that arrays do not meet in the cache */
    if (!room->start) return 0;
    GUARD(room->start + at + bytes, room->used - at - bytes);
    return room->start + at;
}

static INLINE struct room room_in(void *block) {
    struct room room = {(char *)(((uintptr_t)block + LINE - 1) / LINE * LINE), 0};
    return room;
}

/* --- instruction sets ----------------------------------------------------------------------------------------------- */

int set_in_use(void); /* 0 plain, 1 AVX2, 2 AVX-512 */

/* --- random numbers ------------------------------------------------------------------------------------------------- */

static INLINE uint64_t hashed(uint64_t seed, uint64_t counter) { /* splitmix64: the n-th number of a stream, in any order */
    uint64_t x = seed + (counter + 1) * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

static INLINE uint32_t below(uint64_t bits, uint32_t n) { return (uint32_t)((bits & 0xFFFFFFFF) * n >> 32); }

/* --- numbers that no library computes ------------------------------------------------------------------------------- */

static INLINE double square_root(double x) {
#if defined(__x86_64__)
    return _mm_cvtsd_f64(_mm_sqrt_pd(_mm_set1_pd(x)));
#elif defined(__aarch64__)
    return vgetq_lane_f64(vsqrtq_f64(vdupq_n_f64(x)), 0);
#else
    return __builtin_sqrt(x);
#endif
}

/* exp(x) for x from -87 to 87, to about 2 units in the last place; beyond, that of the nearest of these. What is not a
   number stays so, and is never made a whole one: no two processors agree on which. */
static INLINE float exponential_of(float x) {
    x = x < -87.0f ? -87.0f : x > 87.0f ? 87.0f : x;
    const float magic = 12582912.0f; /* 1.5 * 2^23: adding it rounds to whole numbers, and these are in the lowest bits */
    float moved = x * 1.44269504f + magic, k = moved - magic, r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
    float p = 1.9875691500e-4f;
    p = p * r + 1.3981999507e-3f, p = p * r + 8.3334519073e-3f, p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f, p = p * r + 5.0000001201e-1f, p = p * r * r + r + 1.0f;
    uint32_t bits;
    float scale;
    memcpy(&bits, &moved, sizeof bits);
    bits = (bits + 127) << 23; /* what is above the whole number leaves */
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

#endif
