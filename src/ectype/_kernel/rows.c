/* Random rows of a space: normal scores that depend on each other (a Gaussian copula), each taken through the
   distribution of its column. A row depends on its number and the seed, not on the rows that are drawn with it. And keys by
   which rows are found again. */

#include "kernel.h"

#define LOT 32      /* rows at a time */
#define TOGETHER 4  /* scores that are summed at once */
#define COLUMNS 8   /* columns that are written at once: a line of the cache */
#define FARTHEST 7.0 /* beyond, scores count as this: one in 4e11 does */
#define MAGIC 6755399441055744.0 /* 1.5 * 2^52: adding it rounds to whole numbers, and these are in the lowest bits */
#define ONE UINT64_C(0x3FF0000000000000)
#define MANTISSA UINT64_C(0x000FFFFFFFFFFFFF)
#define ROOT_OF_TWO UINT64_C(0x0006A09E667F3BCC)

enum { NORMAL, CURVE, STEPS };

/* What rows are drawn from, as ctypes lays it out. */
struct drawing {
    const double *factor;   /* scores from normal numbers, TOGETHER scores after TOGETHER scores; null if independent */
    const int32_t *order;   /* which score each of these is */
    const int32_t *kinds;   /* of every column */
    const int64_t *starts;  /* where its numbers begin */
    const int32_t *counts;  /* of its intervals, or of its steps, which a power of two is */
    const double *numbers;  /* mean and deviation; values at even probabilities; or ends of steps, then values */
    const int32_t *whole;   /* whether values are rounded */
    const double *low, *high;
    const int32_t *gaps;    /* the score that says whether there is no value, or -1 */
    const double *cuts;     /* above which there is none */
    int64_t columns, scores;
    int64_t rank;           /* how many normal numbers make all scores of a row, if they depend on each other */
    uint64_t seed;
};

struct scoring {
    void (*normals)(uint64_t, int64_t, int64_t, double *);
    void (*correlate)(const struct drawing *, const double *, double *);
    void (*column)(const struct drawing *, int64_t, const double *, double *);
};

/* Coefficients of series, the highest power first. */
static const double LOG[] = {2.0 / 17, 2.0 / 15, 2.0 / 13, 2.0 / 11, 2.0 / 9, 2.0 / 7, 2.0 / 5, 2.0 / 3, 2.0};
static const double SINE[] = {-1 / 1307674368000.0, 1 / 6227020800.0, -1 / 39916800.0, 1 / 362880.0,
                              -1 / 5040.0,          1 / 120.0,        -1 / 6.0,        1.0};
static const double COSINE[] = {1 / 20922789888000.0, -1 / 87178291200.0, 1 / 479001600.0, -1 / 3628800.0, 1 / 40320.0,
                                -1 / 720.0,           1 / 24.0,           -0.5,            1.0};
static const double EXPONENTIAL[] = {1 / 6227020800.0, 1 / 479001600.0, 1 / 39916800.0, 1 / 3628800.0, 1 / 362880.0,
                                     1 / 40320.0,      1 / 5040.0,      1 / 720.0,      1 / 120.0,     1 / 24.0,
                                     1 / 6.0,          0.5,             1.0,            1.0};
static const double ABOVE[] = {6.37396220353165, 33.912866078383, 112.079291497871, 221.213596169931, 220.206867912376};
static const double BELOW[] = {16.064177579207, 86.7807322029461, 296.564248779674,
                               637.333633378831, 793.826512519948, 440.413735824752};

static INLINE double to_whole(double x) { /* half to even; from 2^52 on there are whole numbers only */
    const double large = 4503599627370496.0;
    double up = x + large - large, down = x - large + large;
    return x >= large || x <= -large ? x : x >= 0 ? up : down;
}

#define EACH "scores.h"
#include "sets.h"

static const struct scoring *scoring(void) {
    int set = set_in_use();
#if defined(__x86_64__)
    if (set == 2) return &scoring_avx512;
    if (set == 1) return &scoring_avx2;
#endif
    (void)set;
    return &scoring_plain;
}

/* --- rows ----------------------------------------------------------------------------------------------------------- */

struct room_for_rows { double *normals, *scores, *values; };

static struct room_for_rows lay_out_rows(struct room *room, const struct drawing *job) {
    struct room_for_rows rows;
    int64_t most = (job->scores > job->rank ? job->scores : job->rank) + 1; /* normal numbers come in pairs */
    rows.normals = take(room, sizeof(double) * LOT * (size_t)most);
    rows.scores = job->factor ? take(room, sizeof(double) * LOT * (size_t)job->scores) : rows.normals;
    rows.values = take(room, sizeof(double) * LOT * COLUMNS);
    return rows;
}

/* The bytes that drawing takes, beside the rows. */
API int64_t rows_size(const struct drawing *job) {
    struct room room = {0, 0};
    lay_out_rows(&room, job);
    return (int64_t)room.used + LINE;
}

/* The rows from number `first` on, n of them. */
API void rows_draw(const struct drawing *job, void *block, int64_t first, int64_t n, double *out) {
    const struct scoring *of = scoring();
    struct room room = room_in(block);
    struct room_for_rows rows = lay_out_rows(&room, job);
    int64_t d = job->columns;
    for (int64_t at = 0; at < n; at += LOT) {
        int64_t now = n - at < LOT ? n - at : LOT;
        of->normals(job->seed, first + at, ((job->factor ? job->rank : job->scores) + 1) / 2, rows.normals);
        if (job->factor) of->correlate(job, rows.normals, rows.scores);
        for (int64_t j = 0; j < d; j += COLUMNS) {
            int64_t wide = d - j < COLUMNS ? d - j : COLUMNS;
            for (int64_t i = 0; i < wide; i++) of->column(job, j + i, rows.scores, rows.values + i * LOT);
            for (int64_t r = 0; r < now; r++)
                for (int64_t i = 0; i < wide; i++) out[(at + r) * d + j + i] = rows.values[i * LOT + r];
        }
    }
}

/* --- what makes scores depend on each other -------------------------------------------------------------------------- */

/* Scores have a variance of one each, whatever was left unexplained. */
static void normalise(double *loads, int64_t rank, int64_t size, double *sums) {
    for (int64_t i = 0; i < size; i++) sums[i] = 0;
    for (int64_t k = 0; k < rank; k++) for (int64_t i = 0; i < size; i++) sums[i] += loads[k * size + i] * loads[k * size + i];
    for (int64_t i = 0; i < size; i++) sums[i] = 1 / square_root(sums[i]);
    for (int64_t k = 0; k < rank; k++) for (int64_t i = 0; i < size; i++) loads[k * size + i] *= sums[i];
}

/* Cholesky's factor of a correlation of so many scores, the one that is least explained next, until none has more than
   `least` of its variance left. Row k of `loads` has what the k-th normal number adds to every score, and `order` which
   scores came first; `left` has room for a number each. Gives how many normal numbers it takes. */
API int64_t rows_factor(const double *correlation, int64_t size, double least, double *loads, double *left, int32_t *order) {
    int64_t rank = 0;
    for (int64_t i = 0; i < size; i++) left[i] = 1, order[i] = (int32_t)i;
    for (; rank < size; rank++) {
        int64_t best = rank;
        for (int64_t i = rank + 1; i < size; i++) if (left[order[i]] > left[order[best]]) best = i;
        int32_t pivot = order[best];
        if (!(left[pivot] > least)) break;
        order[best] = order[rank], order[rank] = pivot;
        double *own = loads + rank * size, scale = square_root(left[pivot]);
        memcpy(own, correlation + pivot * size, sizeof(double) * (size_t)size);
        for (int64_t k = 0; k < rank; k++) {
            const double *before = loads + k * size;
            double share = before[pivot];
            for (int64_t i = 0; i < size; i++) own[i] -= share * before[i];
        }
        for (int64_t i = 0; i < size; i++) own[i] /= scale;
        for (int64_t i = 0; i < rank; i++) own[order[i]] = 0; /* but for rounding they are */
        own[pivot] = scale, left[pivot] = 0;
        for (int64_t i = rank + 1; i < size; i++) left[order[i]] -= own[order[i]] * own[order[i]];
    }
    normalise(loads, rank, size, left);
    return rank;
}

/* --- rows that are known ---------------------------------------------------------------------------------------------- */

/* A multilinear hash of every row, modulo 2^64: the upper halves of its numbers times odd constants, and the lower halves,
   too, where both are looked at. Halves, since the low bits of whole numbers are all zero, and a product keeps them so. */
API void rows_keys(const uint64_t *rows, int64_t n, int64_t d, const uint64_t *odd, int32_t both, uint64_t *keys) {
    for (int64_t r = 0; r < n; r++) {
        const uint64_t *row = rows + r * d;
        uint64_t key = 0;
        for (int64_t j = 0; j < d; j++) key += (row[j] >> 32) * odd[j];
        if (both) for (int64_t j = 0; j < d; j++) key += (row[j] & UINT32_MAX) * odd[d + j];
        keys[r] = key;
    }
}
