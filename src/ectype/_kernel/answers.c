/* What trees say of rows. As in kernel.c memory is the caller's; every row's sum is taken tree by tree, whatever the
   processor and however many rows are asked about at once.

   A tree of few leaves is not walked. Each of its tests is made for many rows at once, and crosses out the leaves that a row
   cannot come to: bit i stands for leaf i, from the left, and the lowest that is left is the row's (QuickScorer; Lucchese et
   al., 2015). */

#include "kernel.h"

#define FEW 32       /* leaves, at most, of a tree whose tests are all made: a bit for each */
#define PACED 8      /* rows that walk down a tree side by side */
#define AT_ONCE 512  /* rows at a time, where all trees are walked */
#define ABREAST 64   /* the most rows at a time, where some are not */

struct test { float threshold; int32_t feature; uint32_t stay; /* the leaves that are left if a row goes right */ };

/* What answers are made from: the nodes of all trees. A leaf is its own child. */
struct forest {
    const int32_t *feature;  /* that a node looks at; any at a leaf */
    const float *threshold;
    const int32_t *children; /* left and right of every node */
    const double *values;    /* of every node, for so many outputs */
    const int32_t *roots, *outputs, *depths;
    const struct test *tests; /* these three are laid out in a block: the tests of trees of few leaves, */
    const int32_t *ends;      /* where those of each tree end, */
    const int32_t *leaves;    /* and the nodes of their leaves; the first is -1 if the tree is walked */
    int64_t trees, width, classes, d, few; /* the last: how many are not walked */
};

/* The levels below every node. Whether all children come after their parents and are there: else no tree may be walked. */
API int32_t trees_levels(const int32_t *children, int64_t nodes, int32_t *levels) {
    for (idx i = (idx)nodes - 1; i >= 0; i--) {
        idx left = children[2 * i], right = children[2 * i + 1];
        levels[i] = 0;
        if (left == i && right == i) continue;
        if (left <= i || right <= i || left >= nodes || right >= nodes) return 0;
        levels[i] = 1 + (levels[left] > levels[right] ? levels[left] : levels[right]);
    }
    return 1;
}

/* The tests of a tree, and the nodes of its leaves from the left; how many tests, or -1 if there are too many leaves. */
static idx tests_of(const struct forest *f, int32_t root, struct test *tests, int32_t *leaves) {
    struct { int32_t node; idx test, first; } waiting[FEW]; /* each leads to a leaf at least */
    idx n = 0, many = 1, found = 0;
    waiting[0].node = root, waiting[0].test = -1;
    while (many--) {
        int32_t node = waiting[many].node;
        if (waiting[many].test >= 0) /* all leaves to the left of that test are known */
            tests[waiting[many].test].stay = ~((UINT32_C(1) << found) - (UINT32_C(1) << waiting[many].first));
        if (f->children[2 * (idx)node] == node) {
            leaves[found++] = node;
            continue;
        }
        if (found + many + 2 > FEW) return -1;
        tests[n].threshold = f->threshold[node], tests[n].feature = f->feature[node];
        waiting[many].node = f->children[2 * (idx)node + 1], waiting[many].test = n++, waiting[many++].first = found;
        waiting[many].node = f->children[2 * (idx)node], waiting[many++].test = -1;
    }
    return n;
}

/* The bytes that trees are laid out in, at most. */
API int64_t trees_size(const struct forest *f) {
    struct room room = {0, 0};
    take(&room, sizeof(struct test) * (FEW - 1) * (size_t)f->trees);
    take(&room, sizeof(int32_t) * (size_t)f->trees);
    take(&room, sizeof(int32_t) * FEW * (size_t)f->trees);
    return (int64_t)room.used + LINE;
}

/* Lay out the trees of few leaves. */
API void trees_lay_out(struct forest *f, void *block) {
    struct room room = room_in(block);
    struct test *tests = take(&room, sizeof(struct test) * (FEW - 1) * (size_t)f->trees);
    int32_t *ends = take(&room, sizeof(int32_t) * (size_t)f->trees);
    int32_t *leaves = take(&room, sizeof(int32_t) * FEW * (size_t)f->trees);
    idx end = 0;
    f->few = 0;
    for (int64_t tree = 0; tree < f->trees; tree++) {
        idx n = tests_of(f, f->roots[tree], tests + end, leaves + tree * FEW);
        if (n < 0) leaves[tree * FEW] = -1;
        else end += n, f->few++;
        ends[tree] = (int32_t)end;
    }
    f->tests = tests, f->ends = ends, f->leaves = leaves;
}

/* The leaves of a tree that rows come to, level by level. */
static void walk(const struct forest *f, int64_t tree, const float *X, idx n, int32_t *found) {
    for (idx r = 0; r < n; r += PACED) {
        idx many = lesser(n - r, PACED);
        int32_t at[PACED];
        for (idx i = 0; i < PACED; i++) at[i] = f->roots[tree];
        for (int32_t level = 0; level < f->depths[tree]; level++)
            for (idx i = 0; i < many; i++) {
                float x = X[(r + i) * f->d + f->feature[at[i]]];
                at[i] = f->children[2 * at[i] + (x > f->threshold[at[i]])];
            }
        for (idx i = 0; i < many; i++) found[r + i] = at[i];
    }
}

/* Add what a tree's leaves say. */
static INLINE void add_leaves(const struct forest *f, int64_t tree, const int32_t *found, idx n, double *scores) {
    double *to = scores + f->outputs[tree];
    if (f->width == 1)
        for (idx i = 0; i < n; i++) to[i * f->classes] += f->values[found[i]];
    else
        for (idx i = 0; i < n; i++)
            for (idx c = 0; c < f->width; c++) to[i * f->classes + c] += f->values[found[i] * f->width + c];
}

#define EACH "tests.h"
#include "sets.h"

/* Add up what the trees say of n rows; `columns` has room for ABREAST rows. Sums of fixed-point numbers are exact. */
API void trees_add(const struct forest *f, const float *X, int64_t n, double *scores, float *columns) {
    int set = set_in_use();
    if (!f->few) {
        for (int64_t first = 0; first < n; first += AT_ONCE) {
            int32_t found[AT_ONCE];
            idx many = lesser((idx)(n - first), AT_ONCE);
            for (int64_t tree = 0; tree < f->trees; tree++) {
                walk(f, tree, X + first * f->d, many, found);
                add_leaves(f, tree, found, many, scores + first * f->classes);
            }
        }
        return;
    }
#if defined(__x86_64__)
    if (set == 2) { add_avx512(f, X, n, scores, columns); return; }
    if (set == 1) { add_avx2(f, X, n, scores, columns); return; }
#endif
    (void)set;
    add_plain(f, X, n, scores, columns);
}
