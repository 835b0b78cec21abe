/* All tests of trees of few leaves for one instruction set: answers.c has sets.h include this file once for each. */

typedef float NAME(values) __attribute__((vector_size(4 * WIDTH), aligned(4)));
typedef uint32_t NAME(open) __attribute__((vector_size(4 * WIDTH), aligned(4)));
#define VECTORS 4 /* rows at a time, in vectors: what their leaves take stays in registers */

/* The leaves that the rows of some vectors come to. */
static INLINE void NAME(leaves)(const struct test *test, const struct test *end, const float *columns, idx vectors,
                                const int32_t *leaves, int32_t *found) {
    NAME(open) still[VECTORS];
    for (idx v = 0; v < vectors; v++) still[v] = ~(NAME(open)){0};
    for (; test < end; test++) {
        const float *column = columns + test->feature * vectors * WIDTH;
        NAME(values) threshold = SET(test->threshold);
        NAME(open) stay = test->stay | (NAME(open)){0};
        UNROLL for (idx v = 0; v < vectors; v++)
            still[v] &= stay | ~(NAME(open))(*(const NAME(values) *)(column + v * WIDTH) > threshold);
    }
    uint32_t left[VECTORS * WIDTH];
    memcpy(left, still, sizeof still[0] * (size_t)vectors);
    for (idx i = 0; i < vectors * WIDTH; i++) found[i] = leaves[__builtin_ctz(left[i])];
}

/* Add up what all trees say of the rows of some vectors, or of fewer. */
static INLINE void NAME(add_some)(const struct forest *f, const float *X, idx n, double *scores, float *columns,
                                  idx vectors) {
    int32_t found[VECTORS * WIDTH];
    for (idx j = 0; j < f->d; j++)
        for (idx i = 0; i < vectors * WIDTH; i++) columns[j * vectors * WIDTH + i] = X[(i < n ? i : n - 1) * f->d + j];
    idx start = 0;
    for (int64_t tree = 0; tree < f->trees; tree++) {
        const int32_t *leaves = f->leaves + tree * FEW;
        idx end = f->ends[tree];
        if (*leaves < 0) walk(f, tree, X, n, found);
        else NAME(leaves)(f->tests + start, f->tests + end, columns, vectors, leaves, found);
        add_leaves(f, tree, found, n, scores);
        start = end;
    }
}

static void NAME(add)(const struct forest *f, const float *X, int64_t n, double *scores, float *columns) {
    int64_t r = 0;
    for (; n - r >= VECTORS * WIDTH; r += VECTORS * WIDTH)
        NAME(add_some)(f, X + r * f->d, VECTORS * WIDTH, scores + r * f->classes, columns, VECTORS);
    for (; r < n; r += WIDTH)
        NAME(add_some)(f, X + r * f->d, lesser((idx)(n - r), WIDTH), scores + r * f->classes, columns, 1);
}
#undef VECTORS
