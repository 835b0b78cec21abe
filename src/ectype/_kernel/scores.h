/* Normal scores of rows for one instruction set: rows.c has sets.h include this file once for each.

   A lane of a vector is a row. Multiplications and additions are never fused, every sum is one chain in the order of its
   index, and no lane is added to another: all processors give the same bits. */

#define ACROSS (WIDTH / 2) /* rows in a vector */
#define BESIDE (WIDTH == 16 ? 4 : 2) /* vectors that are correlated at once */
typedef double NAME(doubles) __attribute__((vector_size(8 * ACROSS)));
typedef uint64_t NAME(longs) __attribute__((vector_size(8 * ACROSS)));
#define V NAME(doubles)
#define U NAME(longs)
#define CHOOSE(mask, x, y) ((V)(((U)(x) & (U)(mask)) | ((U)(y) & ~(U)(mask))))
#define HORNER(sum, x, terms) for (size_t i = 0; i < sizeof(terms) / sizeof *(terms); i++) sum = sum * (x) + (terms)[i]

/* From 1 to below 2, by 52 random bits. */
static INLINE V NAME(chance)(U counter, uint64_t seed) {
    U x = counter * UINT64_C(0x9E3779B97F4A7C15) + seed; /* hashed() of kernel.h */
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    x = x ^ x >> 31;
    return (V)(x >> 12 | ONE);
}

/* log(x) for x from 2^-52 to 1: that of a number near 1, by the series of the area tangent, and the exponent's. */
static INLINE V NAME(log)(V x) {
    U bits = (U)x;
    U above = (U)((bits & MANTISSA) > ROOT_OF_TWO) & 1; /* beyond the square root of 2 the next exponent is nearer */
    U exponent = (bits >> 52) + above;
    V near = (V)((bits & MANTISSA) | (ONE - (above << 52))), power = (V)(exponent - 1023 + (U)(MAGIC - (V){0})) - MAGIC;
    V s = (near - 1.0) / (near + 1.0), square = s * s, sum = square * (2.0 / 19);
    HORNER(sum, square, LOG);
    return s * sum + power * 0.69314718055994530942;
}

/* Cosine and sine of so many turns, from 0 to below 1. */
static INLINE void NAME(circle)(V turns, V *cosine, V *sine) {
    V quarters = turns * 4.0, moved = quarters + MAGIC, x = (quarters - (moved - MAGIC)) * 1.57079632679489661923;
    V square = x * x, s = square * 0.0, c = s;
    HORNER(s, square, SINE);
    HORNER(c, square, COSINE);
    U quadrant = (U)moved, odd = -(quadrant & 1);
    s = s * x;
    *cosine = (V)((U)CHOOSE(odd, s, c) ^ ((quadrant + 1) & 2) << 62);
    *sine = (V)((U)CHOOSE(odd, c, s) ^ (quadrant & 2) << 62);
}

/* Standard normal numbers of LOT rows, two for each pair of scores (Box and Muller). */
static void NAME(normals)(uint64_t seed, int64_t first, int64_t pairs, double *out) {
    U lane;
    for (int i = 0; i < ACROSS; i++) lane[i] = (uint64_t)i;
    for (int64_t p = 0; p < pairs; p++, out += 2 * LOT) {
        uint64_t own = hashed(seed, (uint64_t)p);
        for (int r = 0; r < LOT; r += ACROSS) {
            U counter = (lane + (uint64_t)(first + r)) * 2 + 1;
            V cosine, sine, far = ROOTS(NAME(log)(2.0 - NAME(chance)(counter, own)) * -2.0);
            NAME(circle)(NAME(chance)(counter + 1, own) - 1.0, &cosine, &sine);
            *(V *)(out + r) = far * cosine;
            *(V *)(out + LOT + r) = far * sine;
        }
    }
}

/* Scores that depend on each other: each is a sum of normal numbers, of one more than the last. */
static void NAME(correlate)(const struct drawing *job, const double *normals, double *scores) {
    for (int r = 0; r < LOT; r += BESIDE * ACROSS) {
        const double *factor = job->factor;
        for (int64_t at = 0; at < job->scores; at += TOGETHER) {
            int64_t terms = at + TOGETHER < job->rank ? at + TOGETHER : job->rank;
            const double *z = normals + r;
            V sum[TOGETHER][BESIDE];
            UNROLL for (int i = 0; i < TOGETHER; i++) UNROLL for (int v = 0; v < BESIDE; v++) sum[i][v] = (V){0};
            for (int64_t k = 0; k < terms; k++, z += LOT, factor += TOGETHER) {
                V x[BESIDE];
                UNROLL for (int v = 0; v < BESIDE; v++) x[v] = *(const V *)(z + v * ACROSS);
                UNROLL for (int i = 0; i < TOGETHER; i++) UNROLL for (int v = 0; v < BESIDE; v++) sum[i][v] += x[v] * factor[i];
            }
            UNROLL for (int i = 0; i < TOGETHER; i++) {
                if (at + i >= job->scores) break;
                double *to = scores + job->order[at + i] * LOT + r;
                UNROLL for (int v = 0; v < BESIDE; v++) *(V *)(to + v * ACROSS) = sum[i][v];
            }
        }
    }
}

/* The probability of a standard normal number to be below each of LOT scores, within 1e-15; above 0 and below 1. */
static INLINE void NAME(probabilities)(const double *scores, double *out) {
    for (int r = 0; r < LOT; r += ACROSS) {
        V z = *(const V *)(scores + r);
        U right = (U)(z > 0.0);
        z = CHOOSE(right, z, -z);
        z = CHOOSE(z <= FARTHEST, z, FARTHEST - (V){0}); /* nor may what is no number be one of an interval */
        V x = z * z * -0.5, moved = x * 1.44269504088896340736 + MAGIC, k = moved - MAGIC;
        V rest = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10, e = rest * 0.0;
        HORNER(e, rest, EXPONENTIAL);
        e = (V)((U)e + ((U)moved << 52)); /* times 2^k */
        V above = z * 0.0352624965998911, below = z * 0.0883883476483184;
        above = above + 0.700383064443688, below = below + 1.75566716318264;
        HORNER(above, z, ABOVE);
        HORNER(below, z, BELOW);
        V tail = e * above / below; /* Hart's approximation, as West gives it in Wilmott, 2005 */
        *(V *)(out + r) = CHOOSE(right, 1.0 - tail, tail);
    }
}

/* Between values at even probabilities, linearly. */
static INLINE void NAME(along)(const double *u, const double *values, int32_t intervals, double *out) {
    for (int r = 0; r < LOT; r++) {
        double at = u[r] * intervals;
        int32_t i = (int32_t)at;
        out[r] = values[i] + (values[i + 1] - values[i]) * (at - i);
    }
}

/* The value whose step each probability is in: the one after all ends that are not above it. */
static INLINE void NAME(stepped)(const double *u, const double *ends, int32_t steps, double *out) {
    int32_t at[LOT] = {0};
    for (int32_t half = steps / 2; half; half /= 2)
        for (int r = 0; r < LOT; r++) at[r] += -(ends[at[r] + half - 1] <= u[r]) & half;
    for (int r = 0; r < LOT; r++) out[r] = ends[steps - 1 + at[r]];
}

/* The values of a column in LOT rows. */
static void NAME(column)(const struct drawing *job, int64_t j, const double *scores, double *out) {
    const double *z = scores + j * LOT, *numbers = job->numbers + job->starts[j];
    const double low = job->low[j], high = job->high[j];
    double u[LOT] __attribute__((aligned(64)));
    if (job->kinds[j] == NORMAL) for (int r = 0; r < LOT; r++) out[r] = numbers[0] + numbers[1] * z[r];
    else {
        NAME(probabilities)(z, u);
        if (job->kinds[j] == CURVE) NAME(along)(u, numbers, job->counts[j], out);
        else NAME(stepped)(u, numbers, job->counts[j], out);
    }
    if (job->whole[j]) for (int r = 0; r < LOT; r++) out[r] = to_whole(out[r]);
    for (int r = 0; r < LOT; r++) out[r] = out[r] < low ? low : out[r] > high ? high : out[r];
    if (job->gaps[j] < 0) return;
    const double *gap = scores + job->gaps[j] * LOT;
    const double cut = job->cuts[j];
    for (int r = 0; r < LOT; r++) out[r] = gap[r] > cut ? __builtin_nan("") : out[r];
}

static const struct scoring NAME(scoring) = {NAME(normals), NAME(correlate), NAME(column)};

#undef ACROSS
#undef BESIDE
#undef V
#undef U
#undef CHOOSE
#undef HORNER
