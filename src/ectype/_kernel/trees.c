/* Grows trees, by gradient boosting and at random. As in kernel.c memory is the caller's, and no result depends on the
   machine: sums that decide where a tree splits are sums of whole numbers.

   Python sees bins_*, boosting_* and forest_*; it checks sizes before it passes any pointer. Trees grow a part at a time, so
   that Python hears an interrupt; what is under way is kept in the block. */

#include "kernel.h"

#define BINS 256  /* of one input, at most */

/* --- bins ----------------------------------------------------------------------------------------------------------- */

/* The bin of every value: how many edges of its input it lies above. Edges are in order, and infinite beyond the last. A
   search of eight steps by any input, without a branch that nobody could predict. */
API void bins_of(const float *X, int64_t n, int64_t d, const float *edges, uint8_t *out) {
    for (idx r = 0; r < n; r++) {
        for (idx j = 0; j < d; j++) {
            const float *edge = edges + j * (BINS - 1);
            float x = X[r * d + j];
            uint32_t at = 0;
            UNROLL for (uint32_t step = BINS / 2; step; step /= 2) at += step & -(uint32_t)(x > edge[at + step - 1]);
            out[r * d + j] = (uint8_t)at;
        }
    }
}

/* --- boosting ------------------------------------------------------------------------------------------------------- */

/* What boosting is given, as ctypes lays it out: pointers, whole numbers, then doubles. */
struct boosting {
    const uint8_t *binned;     /* the bin of every row and input */
    const float *edges;        /* of every input, room for BINS - 1 of them */
    const int32_t *bins;       /* how many every input has */
    const int32_t *y;          /* the code of every row's label, or null: then there are targets */
    const float *targets;      /* a probability for every row and class, or null */
    const float *weights;      /* how much every row counts, or null: all the same */
    const int32_t *directions; /* of every input: 1 if scores may only rise with it, -1 if only fall, 0 if both; or null */
    float *scores;             /* of every row, for every output; what came before, then what came of it */
    int32_t *feature;          /* of every node, trees of 2 leaves - 1 nodes one after the other; -1 at a leaf */
    float *threshold;          /* up to which rows go left */
    int32_t *left, *right;     /* the nodes below, counted in the tree */
    float *value;              /* what a leaf adds */
    int64_t n, d, classes, leaves, depth;
    int64_t trees, under_way;  /* trees grown before, and whether there is a part of another; kept up to date */
    uint64_t seed;
    double rate, l2, least, share;
};

struct split { double gain; idx feature, bin; int64_t g, h; };
struct leaf {
    idx start, n, node, depth;
    int64_t *sums;     /* for every bin of the tree's inputs: gradients above, hessians below */
    int64_t g, h;
    double low, high;  /* what its value may be */
    struct split best;
};
struct standing { idx leaves, nodes, n_inputs, all_bins; double g_unit, h_unit; }; /* of the tree that grows */
struct growth { /* what growing trees needs */
    struct standing *now;
    int32_t *rows, *aside;
    int64_t *packed;   /* gradient and hessian of every row */
    int64_t *sums;     /* room for those of all leaves */
    idx room;          /* for those of one leaf */
    int32_t *inputs;   /* those that the tree may look at */
    int32_t *starts;   /* where the sums of each begin */
    float *chances;    /* of every row and output, in the round at work */
    struct leaf *leaf;
};

static idx outputs_of(const struct boosting *job) { return job->classes == 2 ? 1 : (idx)job->classes; }
static idx inputs_of(const struct boosting *job) {
    idx n = (idx)(job->share * (double)job->d + 0.999);
    return n < 1 ? 1 : n > job->d ? job->d : n;
}

static struct growth lay_out_growth(struct room *room, const struct boosting *job) {
    struct growth t;
    size_t n = (size_t)job->n, d = (size_t)job->d;
    memset(&t, 0, sizeof t);
    for (idx j = 0; j < job->d; j++) t.room += job->bins[j];
    t.now = take(room, sizeof *t.now);
    t.rows = take(room, sizeof(int32_t) * n), t.aside = take(room, sizeof(int32_t) * n);
    t.packed = take(room, sizeof(int64_t) * n);
    t.sums = take(room, sizeof(int64_t) * (size_t)t.room * (size_t)job->leaves);
    t.inputs = take(room, sizeof(int32_t) * d), t.starts = take(room, sizeof(int32_t) * d);
    t.chances = take(room, sizeof(float) * n * (size_t)outputs_of(job));
    t.leaf = take(room, sizeof(struct leaf) * (size_t)job->leaves);
    return t;
}

/* The bytes that boosting needs. */
API int64_t boosting_size(const struct boosting *job) {
    struct room room = {0, 0};
    lay_out_growth(&room, job);
    return (int64_t)room.used + LINE;
}

/* The probability of every output, from the scores. */
static void chances(const struct boosting *job, float *out) {
    idx k = outputs_of(job);
    if (k == 1) {
        for (idx r = 0; r < job->n; r++) out[r] = 1.0f / (1.0f + exponential_of(-job->scores[r]));
        return;
    }
    for (idx r = 0; r < job->n; r++) {
        const float *s = job->scores + r * k;
        float most = s[0], sum = 0.0f;
        for (idx c = 1; c < k; c++) most = s[c] > most ? s[c] : most;
        for (idx c = 0; c < k; c++) sum += out[r * k + c] = exponential_of(s[c] - most);
        for (idx c = 0; c < k; c++) out[r * k + c] /= sum;
    }
}

static INLINE float wanted(const struct boosting *job, idx r, idx class) {
    return job->y ? (float)(job->y[r] == class) : job->targets[r * job->classes + class];
}

/* The nearest whole number within limits; what is not a number is at the upper one. */
static INLINE int64_t rounded(float x, float low, float high) {
    x = x < high ? x : high;
    x = x > low ? x : low;
    return (int64_t)(int32_t)(x < 0 ? x - 0.5f : x + 0.5f);
}

/* Gradients and hessians of an output as whole numbers, such that no sum over all rows is too large. */
static void gradients(const struct boosting *job, const struct growth *t, idx output) {
    idx k = outputs_of(job), class = k == 1 ? 1 : output;
    float most_g = 1e-12f, most_h = 1e-12f;
    for (idx r = 0; r < job->n; r++) {
        float p = t->chances[r * k + output], w = job->weights ? job->weights[r] : 1.0f;
        float g = w * (p - wanted(job, r, class)), h = w * p * (1.0f - p);
        g = g < 0 ? -g : g;
        most_g = g > most_g ? g : most_g, most_h = h > most_h ? h : most_h;
    }
    float limit = (float)(job->n < 65536 ? 32767 : 2147483647 / job->n - 1);
    t->now->g_unit = (double)most_g / (double)limit, t->now->h_unit = (double)most_h / (double)limit;
    float by_g = limit / most_g, by_h = limit / most_h;
    for (idx r = 0; r < job->n; r++) {
        float p = t->chances[r * k + output], w = job->weights ? job->weights[r] : 1.0f;
        float g = w * (p - wanted(job, r, class)) * by_g, h = w * p * (1.0f - p) * by_h;
        t->packed[r] = rounded(g, -limit, limit) * 4294967296LL + rounded(h, 0.0f, limit);
    }
}

static INLINE int64_t g_of(int64_t packed) { return (int64_t)(int32_t)((uint64_t)packed >> 32); }
static INLINE int64_t h_of(int64_t packed) { return (int64_t)(uint32_t)packed; }

static void add_up(const struct boosting *job, const struct growth *t, struct leaf *leaf) {
    idx d = job->d, m = t->now->n_inputs;
    int64_t *sums = leaf->sums;
    memset(sums, 0, sizeof(int64_t) * (size_t)t->now->all_bins);
    for (idx i = leaf->start; i < leaf->start + leaf->n; i++) {
        if (i + 16 < leaf->start + leaf->n) __builtin_prefetch(job->binned + t->rows[i + 16] * d);
        int32_t r = t->rows[i];
        const uint8_t *of = job->binned + r * d;
        int64_t packed = t->packed[r];
        if (m == d) for (idx j = 0; j < d; j++) sums[t->starts[j] + of[j]] += packed;
        else for (idx j = 0; j < m; j++) sums[t->starts[j] + of[t->inputs[j]]] += packed;
    }
}

static double value_of(const struct boosting *job, const struct growth *t, int64_t g, int64_t h, double low, double high) {
    double curve = (double)h * t->now->h_unit + job->l2, v = curve > 0 ? -(double)g * t->now->g_unit / curve : 0;
    return v < low ? low : v > high ? high : v;
}

/* How much lower the loss is for a leaf of this value, twice. */
static INLINE double worth(const struct boosting *job, const struct growth *t, int64_t g, int64_t h, double v) {
    return -(2 * (double)g * t->now->g_unit + ((double)h * t->now->h_unit + job->l2) * v) * v;
}

static void look(const struct boosting *job, const struct growth *t, struct leaf *leaf) {
    double g_unit = t->now->g_unit, h_unit = t->now->h_unit, l2 = job->l2, all_g = (double)leaf->g * g_unit;
    double all_h = (double)leaf->h * h_unit, before = all_g * all_g / (all_h + l2);
    leaf->best.gain = 1e-7;
    leaf->best.feature = -1;
    if (leaf->n < 2 || all_h < 2 * job->least || (job->depth && leaf->depth >= job->depth)) return;
    for (idx j = 0; j < t->now->n_inputs; j++) {
        idx input = t->inputs[j], last = job->bins[input] - 1;
        const int64_t *sums = leaf->sums + t->starts[j];
        int32_t way = job->directions ? job->directions[input] : 0;
        int64_t packed = 0;
        for (idx b = 0; b < last; b++) {
            if (!sums[b]) continue;
            packed += sums[b];
            double g = (double)g_of(packed) * g_unit, h = (double)h_of(packed) * h_unit;
            if (h < job->least) continue;
            double other = all_h - h;
            if (other < job->least) break;
            double rest = all_g - g, gain = g * g / (h + l2) + rest * rest / (other + l2) - before;
            if (!(gain > leaf->best.gain)) continue; /* nor if it is not a number */
            if (job->directions) { /* values between the bounds, and in order */
                int64_t lg = g_of(packed), lh = h_of(packed), rg = leaf->g - lg, rh = leaf->h - lh;
                double l = value_of(job, t, lg, lh, leaf->low, leaf->high), r = value_of(job, t, rg, rh, leaf->low, leaf->high);
                if ((way > 0 && l > r) || (way < 0 && l < r)) continue;
                double whole = worth(job, t, leaf->g, leaf->h, value_of(job, t, leaf->g, leaf->h, leaf->low, leaf->high));
                gain = worth(job, t, lg, lh, l) + worth(job, t, rg, rh, r) - whole;
                if (!(gain > leaf->best.gain)) continue;
            }
            leaf->best = (struct split){gain, j, b, g_of(packed), h_of(packed)};
        }
    }
}

/* The rows of a leaf, those that go left first; how many these are. */
static idx divide(const struct boosting *job, const struct growth *t, const struct leaf *leaf) {
    const uint8_t *of = job->binned + t->inputs[leaf->best.feature];
    idx left = leaf->start, right = 0, d = job->d;
    for (idx i = leaf->start; i < leaf->start + leaf->n; i++) {
        int32_t r = t->rows[i];
        int below = of[r * d] <= leaf->best.bin;
        t->rows[left] = r, t->aside[right] = r; /* one of both counts */
        left += below, right += !below;
    }
    memcpy(t->rows + left, t->aside, sizeof(int32_t) * (size_t)right);
    return left - leaf->start;
}

/* Where a tree's nodes begin. */
static idx first_node(const struct boosting *job) { return (idx)job->trees * (2 * (idx)job->leaves - 1); }

/* Split a leaf into itself, which becomes the left one, and another. */
static void part(const struct boosting *job, const struct growth *t, struct leaf *leaf, struct leaf *other, int more) {
    idx at = first_node(job) + leaf->node, n = divide(job, t, leaf), input = t->inputs[leaf->best.feature];
    idx nodes = t->now->nodes;
    struct split s = leaf->best;
    int64_t *spare = other->sums;
    int32_t way = job->directions ? job->directions[input] : 0;
    job->feature[at] = (int32_t)input, job->threshold[at] = job->edges[input * (BINS - 1) + s.bin];
    job->left[at] = (int32_t)nodes, job->right[at] = (int32_t)nodes + 1;
    *other = (struct leaf){leaf->start + n, leaf->n - n, nodes + 1, leaf->depth + 1, spare, leaf->g - s.g, leaf->h - s.h,
                           leaf->low, leaf->high, {0, -1, 0, 0, 0}};
    leaf->n = n, leaf->node = nodes, leaf->depth++, leaf->g = s.g, leaf->h = s.h;
    if (way) {
        double l = value_of(job, t, leaf->g, leaf->h, leaf->low, leaf->high);
        double middle = (l + value_of(job, t, other->g, other->h, leaf->low, leaf->high)) / 2;
        if (way > 0) leaf->high = middle, other->low = middle;
        else leaf->low = middle, other->high = middle;
    }
    if (!more) return;
    struct leaf *small = leaf->n < other->n ? leaf : other, *large = small == leaf ? other : leaf;
    int64_t *both = leaf->sums; /* of the leaf before: the larger one's are what the smaller one's leave of them */
    small->sums = spare, large->sums = both;
    add_up(job, t, small);
    for (idx b = 0; b < t->now->all_bins; b++) both[b] -= spare[b];
    look(job, t, leaf), look(job, t, other);
}

static void choose_inputs(const struct boosting *job, const struct growth *t) {
    idx d = job->d, at = 0, m = inputs_of(job);
    for (idx j = 0; j < d; j++) t->inputs[j] = (int32_t)j;
    if (m < d) {
        for (idx j = 0; j < m; j++) {
            uint64_t bits = hashed(job->seed, (uint64_t)job->trees * (uint64_t)d + (uint64_t)j);
            idx other = j + (idx)below(bits, (uint32_t)(d - j));
            int32_t kept = t->inputs[j];
            t->inputs[j] = t->inputs[other], t->inputs[other] = kept;
        }
    }
    for (idx j = 0; j < m; j++) t->starts[j] = (int32_t)at, at += job->bins[t->inputs[j]];
    t->now->n_inputs = m, t->now->all_bins = at;
}

/* A tree that is one leaf yet. */
static void sow(const struct boosting *job, const struct growth *t) {
    struct leaf *root = &t->leaf[0];
    t->now->leaves = t->now->nodes = 1;
    choose_inputs(job, t);
    *root = (struct leaf){0, job->n, 0, 0, t->sums, 0, 0, -1e30, 1e30, {0, -1, 0, 0, 0}};
    for (idx r = 0; r < job->n; r++) {
        t->rows[r] = (int32_t)r;
        root->g += g_of(t->packed[r]), root->h += h_of(t->packed[r]);
    }
    add_up(job, t, root);
    look(job, t, root);
}

/* Split the leaf where it gains the most. Gives how many rows that leaf had, or 0 if none is worth it. */
static idx branch(const struct boosting *job, const struct growth *t) {
    idx n = t->now->leaves;
    struct leaf *best = &t->leaf[0];
    if (n >= job->leaves) return 0;
    for (idx i = 1; i < n; i++) best = t->leaf[i].best.gain > best->best.gain ? &t->leaf[i] : best;
    if (best->best.feature < 0) return 0;
    idx rows = best->n;
    t->leaf[n].sums = t->sums + n * t->room;
    part(job, t, best, &t->leaf[n], n + 1 < job->leaves);
    t->now->leaves++, t->now->nodes += 2;
    return rows;
}

/* The values of all leaves, to where trees are written and to the scores of the rows. */
static void ripen(const struct boosting *job, const struct growth *t, idx output) {
    idx k = outputs_of(job);
    for (idx i = 0; i < t->now->leaves; i++) {
        const struct leaf *leaf = &t->leaf[i];
        idx at = first_node(job) + leaf->node;
        float v = (float)(job->rate * value_of(job, t, leaf->g, leaf->h, leaf->low, leaf->high));
        job->feature[at] = -1, job->value[at] = v;
        for (idx r = leaf->start; r < leaf->start + leaf->n; r++) job->scores[t->rows[r] * k + output] += v;
    }
}

/* Grow trees until there are so many, or so much work is done: rows times inputs, about. A round is a tree for every
   output, and trees follow each other. */
API void boosting_grow(struct boosting *job, void *block, int64_t trees, int64_t work) {
    struct room room = room_in(block);
    struct growth t = lay_out_growth(&room, job);
    idx k = outputs_of(job), n = job->n, m = inputs_of(job);
    while (job->trees < trees && work > 0) {
        idx output = (idx)(job->trees % k);
        if (!job->under_way) {
            if (!output) chances(job, t.chances), work -= 8 * n * k;
            gradients(job, &t, output);
            sow(job, &t);
            job->under_way = 1, work -= n * (m + 8);
        }
        for (idx rows = 1; rows && work > 0;) {
            rows = branch(job, &t);
            work -= rows * (m / 2 + 2) + t.now->all_bins;
            if (!rows) ripen(job, &t, output), job->under_way = 0, job->trees++, work -= 2 * n;
        }
    }
    UNGUARD(room.start, room.used);
}

/* --- trees at random ------------------------------------------------------------------------------------------------ */

/* What a forest of extremely randomised trees is given. */
struct extra_trees {
    const float *X;
    const int32_t *y;
    const float *targets;
    const int32_t *directions; /* as for boosting: of the share of the last class */
    int32_t *feature; float *threshold; int32_t *left, *right;
    float *value;              /* for every node and class */
    int64_t n, d, classes, tries, leaves, depth; /* inputs tried at a node; the most leaves and levels of a tree */
    uint64_t seed;
};
struct stand { /* a node that may still be split */
    idx start, n, node, depth;
    double low, high;
};
struct sapling { /* a tree under way */
    idx first, last; /* of the nodes that wait in a ring; nodes enter once, and have a row at least, so n + 1 have room */
    idx nodes, leaves;
    uint64_t seed, drawn;
    struct stand at;
    int32_t looks;   /* whether a split of that node is looked for */
    idx tried, left; /* inputs that were tried for it, and that may be */
    double sum, purity, gain; /* the mass of its rows, how pure they are, and what the best split gains */
    idx input;
    float threshold;
    double low, high; /* the shares below that split */
};
struct builder {
    int32_t *rows, *aside, *inputs;
    double *mass, *below_mass;
    struct stand *waiting;
    struct sapling *now;
};

static struct builder lay_out_builder(struct room *room, const struct extra_trees *job) {
    struct builder t;
    size_t n = (size_t)job->n, k = (size_t)job->classes;
    t.rows = take(room, sizeof(int32_t) * n), t.aside = take(room, sizeof(int32_t) * n);
    t.inputs = take(room, sizeof(int32_t) * (size_t)job->d);
    t.mass = take(room, sizeof(double) * k), t.below_mass = take(room, sizeof(double) * k);
    t.waiting = take(room, sizeof(struct stand) * (n + 1));
    t.now = take(room, sizeof *t.now);
    return t;
}

/* The bytes that random trees need. */
API int64_t forest_size(const struct extra_trees *job) {
    struct room room = {0, 0};
    lay_out_builder(&room, job);
    return (int64_t)room.used + LINE;
}

static void masses(const struct extra_trees *job, const int32_t *rows, idx n, double *mass) {
    for (idx c = 0; c < job->classes; c++) mass[c] = 0;
    for (idx i = 0; i < n; i++) {
        if (job->y) mass[job->y[rows[i]]] += 1;
        else for (idx c = 0; c < job->classes; c++) mass[c] += (double)job->targets[rows[i] * job->classes + c];
    }
}

/* The sum of squares over the sum: the larger, the purer. */
static double purity(const double *mass, idx classes) {
    double sum = 0, squares = 0;
    for (idx c = 0; c < classes; c++) sum += mass[c], squares += mass[c] * mass[c];
    return sum > 0 ? squares / sum : 0;
}

static double between(double x, double low, double high) { return x < low ? low : x > high ? high : x; }
static idx after(const struct extra_trees *job, idx at) { return at == (idx)job->n ? 0 : at + 1; }
static int32_t way_of(const struct extra_trees *job, idx input) { return job->directions ? job->directions[input] : 0; }

/* The next node that waits. Labels that differ are told apart by any split, if by no good one; targets always differ. */
static void attend(const struct extra_trees *job, const struct builder *t) {
    struct sapling *s = t->now;
    double most = 0;
    s->at = t->waiting[s->first], s->first = after(job, s->first);
    masses(job, t->rows + s->at.start, s->at.n, t->mass);
    s->sum = 0, s->purity = purity(t->mass, job->classes);
    for (idx c = 0; c < job->classes; c++) s->sum += t->mass[c], most = t->mass[c] > most ? t->mass[c] : most;
    s->gain = job->y ? -1 : 1e-9, s->input = -1, s->tried = 0, s->left = job->d, s->looks = 1;
    int mixed = s->at.n > 1 && most < s->sum * (1 - 1e-7);
    if (!mixed || s->leaves >= job->leaves || (job->depth && s->at.depth >= job->depth)) s->left = 0;
}

/* A random split of the node, by an input that was not tried: the best so far, or not. */
static void try_split(const struct extra_trees *job, const struct builder *t) {
    struct sapling *s = t->now;
    idx d = job->d, k = job->classes, start = s->at.start, end = start + s->at.n, n = 0;
    const int32_t *rows = t->rows;
    idx pick = (idx)below(hashed(s->seed, s->drawn++), (uint32_t)s->left);
    int32_t input = t->inputs[pick];
    s->left--;
    t->inputs[pick] = t->inputs[s->left], t->inputs[s->left] = input;
    float low = job->X[rows[start] * d + input], high = low;
    for (idx i = start + 1; i < end; i++) {
        float x = job->X[rows[i] * d + input];
        low = x < low ? x : low, high = x > high ? x : high;
    }
    if (!(low < high)) return;
    s->tried++;
    float part = (float)(hashed(s->seed, s->drawn++) >> 40) * (1.0f / 16777216.0f);
    float threshold = low + part * (high - low);
    if (!(threshold < high)) threshold = low;
    for (idx i = start; i < end; i++) {
        t->aside[n] = rows[i];
        n += !(job->X[rows[i] * d + input] > threshold);
    }
    masses(job, t->aside, n, t->below_mass);
    double l = t->below_mass[k - 1], all = 0, left_purity = purity(t->below_mass, k);
    for (idx c = 0; c < k; c++) all += t->below_mass[c];
    for (idx c = 0; c < k; c++) t->below_mass[c] = t->mass[c] - t->below_mass[c];
    double gain = left_purity + purity(t->below_mass, k) - s->purity;
    if (gain <= s->gain) return;
    double share = between(all > 0 ? l / all : 0, s->at.low, s->at.high);
    double other = between(s->sum > all ? (t->mass[k - 1] - l) / (s->sum - all) : 0, s->at.low, s->at.high);
    int32_t way = way_of(job, input);
    if ((way > 0 && share > other) || (way < 0 && share < other)) return;
    s->gain = gain, s->input = input, s->threshold = threshold, s->low = share, s->high = other;
}

/* The node as it stays: a leaf, or with two more below that wait. */
static void settle(const struct extra_trees *job, const struct builder *t) {
    struct sapling *s = t->now;
    struct stand at = s->at;
    idx d = job->d, k = job->classes, n = 0, right = 0, node = at.node;
    s->looks = 0;
    if (s->input < 0) {
        double share = between(s->sum > 0 ? t->mass[k - 1] / s->sum : 0, at.low, at.high), others = s->sum - t->mass[k - 1];
        job->feature[node] = -1, job->threshold[node] = 0, job->left[node] = job->right[node] = 0;
        for (idx c = 0; c < k - 1; c++)
            job->value[node * k + c] = (float)(others > 0 ? t->mass[c] / others * (1 - share) : (1 - share) / (double)(k - 1));
        job->value[node * k + k - 1] = (float)share;
        return;
    }
    for (idx i = at.start; i < at.start + at.n; i++) {
        int32_t r = t->rows[i];
        int goes_left = !(job->X[r * d + s->input] > s->threshold);
        t->rows[at.start + n] = r, t->aside[right] = r;
        n += goes_left, right += !goes_left;
    }
    memcpy(t->rows + at.start + n, t->aside, sizeof(int32_t) * (size_t)right);
    job->feature[node] = (int32_t)s->input, job->threshold[node] = s->threshold;
    job->left[node] = (int32_t)s->nodes, job->right[node] = (int32_t)s->nodes + 1;
    for (idx c = 0; c < k; c++) job->value[node * k + c] = 0;
    struct stand l = {at.start, n, s->nodes, at.depth + 1, at.low, at.high};
    struct stand r = {at.start + n, right, s->nodes + 1, at.depth + 1, at.low, at.high};
    int32_t way = way_of(job, s->input);
    if (way > 0) l.high = r.low = (s->low + s->high) / 2;
    if (way < 0) l.low = r.high = (s->low + s->high) / 2;
    t->waiting[s->last] = l, s->last = after(job, s->last);
    t->waiting[s->last] = r, s->last = after(job, s->last);
    s->nodes += 2, s->leaves++;
}

/* Begin a tree; its number tells what is drawn for it. */
API void forest_begin(const struct extra_trees *job, void *block, int64_t tree) {
    struct room room = room_in(block);
    struct builder t = lay_out_builder(&room, job);
    memset(t.now, 0, sizeof *t.now);
    t.now->last = after(job, 0), t.now->nodes = t.now->leaves = 1, t.now->seed = hashed(job->seed, (uint64_t)tree);
    t.waiting[0] = (struct stand){0, job->n, 0, 0, 0, 1};
    for (idx r = 0; r < job->n; r++) t.rows[r] = (int32_t)r;
    for (idx j = 0; j < job->d; j++) t.inputs[j] = (int32_t)j;
    UNGUARD(room.start, room.used);
}

/* Let it grow until so much work is done: rows that were looked at. How many nodes it has, or 0 if it is not complete. Of
   the nodes, the first that may be split is: a limit of leaves keeps the widest. */
API int64_t forest_grow(const struct extra_trees *job, void *block, int64_t work) {
    struct room room = room_in(block);
    struct builder t = lay_out_builder(&room, job);
    struct sapling *s = t.now;
    for (; work > 0 && (s->looks || s->first != s->last); work -= 3 * s->at.n + 16) {
        if (!s->looks) attend(job, &t);
        else if (s->left > 0 && s->tried < job->tries) try_split(job, &t);
        else settle(job, &t);
    }
    idx nodes = s->looks || s->first != s->last ? 0 : s->nodes;
    UNGUARD(room.start, room.used);
    return nodes;
}
