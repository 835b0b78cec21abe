/* Grows trees, by gradient boosting and at random, and answers with them. As in kernel.c memory is the caller's, and no
   result depends on the machine: sums that decide where a tree splits are sums of whole numbers.

   Python sees bins_*, boosting_*, forest_* and trees_*; it checks sizes before it passes any pointer. */

#include "kernel.h"

#define BINS 256  /* of one input, at most */
#define SIDE 8    /* rows that walk down a tree side by side */

/* --- bins ----------------------------------------------------------------------------------------------------------- */

/* The bin of every value: how many edges of its input it lies above. Rows stay rows. */
API void bins_of(const float *X, int64_t n, int64_t d, const float *edges, const int32_t *bins, uint8_t *out) {
    for (idx j = 0; j < d; j++) {
        const float *edge = edges + j * (BINS - 1);
        idx all = bins[j] - 1;
        for (idx r = 0; r < n; r++) {
            float x = X[r * d + j];
            const float *at = edge;
            for (idx left = all; left > 0;) { /* halves without a branch that nobody could predict */
                idx half = left / 2;
                int above = x > at[half];
                at = above ? at + half + 1 : at;
                left = above ? left - half - 1 : half;
            }
            out[r * d + j] = (uint8_t)(at - edge);
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
    int64_t n, d, classes, rounds, leaves, depth;
    int64_t round;             /* rounds made before; kept up to date */
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
struct growth { /* what growing one tree needs */
    int32_t *rows, *aside;
    int64_t *packed;   /* gradient and hessian of every row */
    int64_t *sums;     /* room for those of all leaves */
    int32_t *inputs;   /* those that the tree may look at */
    idx n_inputs, all_bins;
    int32_t *starts;   /* where the sums of each begin */
    float *chances;    /* class probabilities of every row, where there are more than two */
    struct leaf *leaf;
    double g_unit, h_unit;
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
    for (idx j = 0; j < job->d; j++) t.all_bins += job->bins[j];
    t.rows = take(room, sizeof(int32_t) * n), t.aside = take(room, sizeof(int32_t) * n);
    t.packed = take(room, sizeof(int64_t) * n);
    t.sums = take(room, sizeof(int64_t) * (size_t)(t.all_bins * job->leaves));
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

/* Gradients and hessians of an output as whole numbers, such that no sum over all rows is too large. */
static void gradients(const struct boosting *job, struct growth *t, idx output) {
    idx k = outputs_of(job), class = k == 1 ? 1 : output;
    float most_g = 1e-12f, most_h = 1e-12f;
    for (idx r = 0; r < job->n; r++) {
        float p = t->chances[r * k + output], w = job->weights ? job->weights[r] : 1.0f;
        float g = w * (p - wanted(job, r, class)), h = w * p * (1.0f - p);
        g = g < 0 ? -g : g;
        most_g = g > most_g ? g : most_g, most_h = h > most_h ? h : most_h;
    }
    float limit = (float)(job->n < 65536 ? 32767 : 2147483647 / job->n - 1);
    t->g_unit = (double)most_g / (double)limit, t->h_unit = (double)most_h / (double)limit;
    float by_g = limit / most_g, by_h = limit / most_h;
    for (idx r = 0; r < job->n; r++) {
        float p = t->chances[r * k + output], w = job->weights ? job->weights[r] : 1.0f;
        float g = w * (p - wanted(job, r, class)) * by_g, h = w * p * (1.0f - p) * by_h;
        t->packed[r] = (int64_t)(int32_t)(g < 0 ? g - 0.5f : g + 0.5f) * 4294967296LL + (int64_t)(int32_t)(h + 0.5f);
    }
}

static INLINE int64_t g_of(int64_t packed) { return (int64_t)(int32_t)((uint64_t)packed >> 32); }
static INLINE int64_t h_of(int64_t packed) { return (int64_t)(uint32_t)packed; }

static void add_up(const struct boosting *job, const struct growth *t, struct leaf *leaf) {
    idx d = job->d, m = t->n_inputs;
    int64_t *sums = leaf->sums;
    memset(sums, 0, sizeof(int64_t) * (size_t)t->all_bins);
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
    double v = -(double)g * t->g_unit / ((double)h * t->h_unit + job->l2);
    return v < low ? low : v > high ? high : v;
}

/* How much lower the loss is for a leaf of this value, twice. */
static INLINE double worth(const struct boosting *job, const struct growth *t, int64_t g, int64_t h, double v) {
    return -(2 * (double)g * t->g_unit + ((double)h * t->h_unit + job->l2) * v) * v;
}

static void look(const struct boosting *job, const struct growth *t, struct leaf *leaf) {
    double g_unit = t->g_unit, h_unit = t->h_unit, l2 = job->l2, all_g = (double)leaf->g * g_unit;
    double all_h = (double)leaf->h * h_unit, before = all_g * all_g / (all_h + l2);
    leaf->best.gain = 1e-7;
    leaf->best.feature = -1;
    if (leaf->n < 2 || all_h < 2 * job->least || (job->depth && leaf->depth >= job->depth)) return;
    for (idx j = 0; j < t->n_inputs; j++) {
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
            if (gain <= leaf->best.gain) continue;
            if (job->directions) { /* values between the bounds, and in order */
                int64_t lg = g_of(packed), lh = h_of(packed), rg = leaf->g - lg, rh = leaf->h - lh;
                double l = value_of(job, t, lg, lh, leaf->low, leaf->high), r = value_of(job, t, rg, rh, leaf->low, leaf->high);
                if ((way > 0 && l > r) || (way < 0 && l < r)) continue;
                double whole = worth(job, t, leaf->g, leaf->h, value_of(job, t, leaf->g, leaf->h, leaf->low, leaf->high));
                gain = worth(job, t, lg, lh, l) + worth(job, t, rg, rh, r) - whole;
                if (gain <= leaf->best.gain) continue;
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

/* Split a leaf into itself, which becomes the left one, and another. */
static void part(const struct boosting *job, struct growth *t, idx tree, struct leaf *leaf, struct leaf *other, idx nodes, int more) {
    idx at = tree * (2 * job->leaves - 1) + leaf->node, n = divide(job, t, leaf), input = t->inputs[leaf->best.feature];
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
    for (idx b = 0; b < t->all_bins; b++) both[b] -= spare[b];
    look(job, t, leaf), look(job, t, other);
}

static void choose_inputs(const struct boosting *job, struct growth *t, uint64_t tree) {
    idx d = job->d, at = 0;
    for (idx j = 0; j < d; j++) t->inputs[j] = (int32_t)j;
    t->n_inputs = inputs_of(job);
    if (t->n_inputs < d) {
        for (idx j = 0; j < t->n_inputs; j++) {
            idx other = j + (idx)below(hashed(job->seed, tree * (uint64_t)d + (uint64_t)j), (uint32_t)(d - j));
            int32_t kept = t->inputs[j];
            t->inputs[j] = t->inputs[other], t->inputs[other] = kept;
        }
    }
    for (idx j = 0; j < t->n_inputs; j++) t->starts[j] = (int32_t)at, at += job->bins[t->inputs[j]];
    t->all_bins = at;
}

static void grow(const struct boosting *job, struct growth *t, idx tree, idx output) {
    idx k = outputs_of(job), n = 1, nodes = 1, room = 0;
    for (idx j = 0; j < job->d; j++) room += job->bins[j];
    choose_inputs(job, t, (uint64_t)(job->round * k + output));
    struct leaf *root = &t->leaf[0];
    *root = (struct leaf){0, job->n, 0, 0, t->sums, 0, 0, -1e30, 1e30, {0, -1, 0, 0, 0}};
    for (idx r = 0; r < job->n; r++) {
        t->rows[r] = (int32_t)r;
        root->g += g_of(t->packed[r]), root->h += h_of(t->packed[r]);
    }
    add_up(job, t, root);
    look(job, t, root);
    while (n < job->leaves) {
        struct leaf *best = root;
        for (idx i = 1; i < n; i++) best = t->leaf[i].best.gain > best->best.gain ? &t->leaf[i] : best;
        if (best->best.feature < 0) break;
        t->leaf[n].sums = t->sums + n * room;
        part(job, t, tree, best, &t->leaf[n], nodes, n + 1 < job->leaves);
        if (n + 1 == job->leaves) best->best.feature = -1;
        n++, nodes += 2;
    }
    for (idx i = 0; i < n; i++) {
        const struct leaf *leaf = &t->leaf[i];
        idx at = tree * (2 * job->leaves - 1) + leaf->node;
        float v = (float)(job->rate * value_of(job, t, leaf->g, leaf->h, leaf->low, leaf->high));
        job->feature[at] = -1, job->value[at] = v;
        for (idx r = leaf->start; r < leaf->start + leaf->n; r++) job->scores[t->rows[r] * k + output] += v;
    }
}

/* So many rounds: a tree for every output in each, written one after the other. */
API void boosting_rounds(struct boosting *job, void *block, int64_t rounds) {
    struct room room = room_in(block);
    struct growth t = lay_out_growth(&room, job);
    idx k = outputs_of(job);
    for (int64_t i = 0; i < rounds; i++, job->round++) {
        chances(job, t.chances);
        for (idx output = 0; output < k; output++) {
            gradients(job, &t, output);
            grow(job, &t, (idx)job->round * k + output, output);
        }
    }
}

/* --- answers -------------------------------------------------------------------------------------------------------- */

/* What answers are made from: the nodes of all trees. A leaf is its own child. */
struct forest {
    const int32_t *feature;  /* that a node looks at; any at a leaf */
    const float *threshold;
    const int32_t *children; /* left and right of every node */
    const double *values;    /* of every node, for so many outputs */
    const int32_t *roots, *outputs, *depths;
    int64_t trees, width, classes, d;
};

/* Add up what the trees say of n rows. Sums of fixed-point numbers are exact, in any order. */
API void trees_add(const struct forest *f, const float *X, int64_t n, double *scores) {
    for (int64_t first = 0; first < n; first += 512) {
        int64_t end = first + 512 < n ? first + 512 : n;
        for (int64_t tree = 0; tree < f->trees; tree++) {
            for (int64_t r = first; r < end; r += SIDE) {
                idx many = end - r < SIDE ? (idx)(end - r) : SIDE;
                int32_t at[SIDE];
                for (idx i = 0; i < SIDE; i++) at[i] = f->roots[tree];
                for (int32_t level = 0; level < f->depths[tree]; level++)
                    for (idx i = 0; i < many; i++) {
                        float x = X[(r + i) * f->d + f->feature[at[i]]];
                        at[i] = f->children[2 * at[i] + (x > f->threshold[at[i]])];
                    }
                for (idx i = 0; i < many; i++) {
                    const double *said = f->values + at[i] * f->width;
                    double *to = scores + (r + i) * f->classes + f->outputs[tree];
                    for (idx c = 0; c < f->width; c++) to[c] += said[c];
                }
            }
        }
    }
}

/* --- trees at random ------------------------------------------------------------------------------------------------ */

/* What a forest of extremely randomised trees is given. */
struct planting {
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

API int64_t forest_size(const struct planting *job) {
    struct room room = {0, 0};
    take(&room, sizeof(int32_t) * (size_t)job->n), take(&room, sizeof(int32_t) * (size_t)job->n);
    take(&room, sizeof(int32_t) * (size_t)job->d), take(&room, sizeof(double) * 2 * (size_t)job->classes);
    take(&room, sizeof(struct stand) * (size_t)(job->n + 1));
    return (int64_t)room.used + LINE;
}

static void masses(const struct planting *job, const int32_t *rows, idx n, double *mass) {
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

/* One tree; how many nodes it has. Of the leaves, the first that may be split is: the limit keeps the widest. */
API int64_t forest_tree(const struct planting *job, void *block, int64_t tree, int64_t offset) {
    struct room room = room_in(block);
    idx d = job->d, k = job->classes;
    int32_t *rows = take(&room, sizeof(int32_t) * (size_t)job->n), *aside = take(&room, sizeof(int32_t) * (size_t)job->n);
    int32_t *inputs = take(&room, sizeof(int32_t) * (size_t)d);
    double *mass = take(&room, sizeof(double) * 2 * (size_t)k), *below_mass = mass + k;
    struct stand *queue = take(&room, sizeof(struct stand) * (size_t)(job->n + 1));
    idx first = 0, last = 1, nodes = 1, leaves = 1;
    uint64_t drawn = 0, seed = hashed(job->seed, (uint64_t)tree);
    for (idx r = 0; r < job->n; r++) rows[r] = (int32_t)r;
    for (idx j = 0; j < d; j++) inputs[j] = (int32_t)j;
    queue[0] = (struct stand){0, job->n, 0, 0, 0, 1};
    /* A ring would do; nodes enter once, and there are at most n leaves, so that the queue holds n + 1 at a time. */
    while (first != last) {
        struct stand s = queue[first];
        first = (first + 1) % (job->n + 1);
        masses(job, rows + s.start, s.n, mass);
        double sum = 0, most = 0, whole_purity = purity(mass, k), best_gain = 1e-9;
        for (idx c = 0; c < k; c++) sum += mass[c], most = mass[c] > most ? mass[c] : most;
        idx best = -1, at = offset + s.node;
        float threshold = 0;
        double best_low = 0, best_high = 0;
        if (s.n > 1 && most < sum * (1 - 1e-7) && leaves < job->leaves && (!job->depth || s.depth < job->depth)) {
            idx tried = 0, left = d;
            while (tried < job->tries && left > 0) {
                idx pick = (idx)below(hashed(seed, drawn++), (uint32_t)left);
                int32_t input = inputs[pick];
                left--;
                inputs[pick] = inputs[left], inputs[left] = input;
                float low = job->X[rows[s.start] * d + input], high = low;
                for (idx i = s.start + 1; i < s.start + s.n; i++) {
                    float x = job->X[rows[i] * d + input];
                    low = x < low ? x : low, high = x > high ? x : high;
                }
                if (!(low < high)) continue;
                tried++;
                float part = (float)(hashed(seed, drawn++) >> 40) * (1.0f / 16777216.0f);
                float t = low + part * (high - low);
                if (!(t < high)) t = low;
                idx n = 0;
                for (idx i = s.start; i < s.start + s.n; i++) {
                    aside[n] = rows[i];
                    n += job->X[rows[i] * d + input] <= t;
                }
                masses(job, aside, n, below_mass);
                double l = below_mass[k - 1], ls = 0;
                for (idx c = 0; c < k; c++) ls += below_mass[c];
                double left_purity = purity(below_mass, k);
                for (idx c = 0; c < k; c++) below_mass[c] = mass[c] - below_mass[c];
                double gain = left_purity + purity(below_mass, k) - whole_purity;
                if (gain <= best_gain) continue;
                double share = between(ls > 0 ? l / ls : 0, s.low, s.high);
                double other = between(sum > ls ? (mass[k - 1] - l) / (sum - ls) : 0, s.low, s.high);
                int32_t way = job->directions ? job->directions[input] : 0;
                if ((way > 0 && share > other) || (way < 0 && share < other)) continue;
                best_gain = gain, best = input, threshold = t, best_low = share, best_high = other;
            }
        }
        if (best < 0) {
            double share = between(mass[k - 1] / sum, s.low, s.high), others = sum - mass[k - 1];
            job->feature[at] = -1, job->threshold[at] = 0, job->left[at] = job->right[at] = 0;
            for (idx c = 0; c < k - 1; c++)
                job->value[at * k + c] = (float)(others > 0 ? mass[c] / others * (1 - share) : (1 - share) / (double)(k - 1));
            job->value[at * k + k - 1] = (float)share;
            continue;
        }
        idx n = 0, right = 0;
        for (idx i = s.start; i < s.start + s.n; i++) {
            int32_t r = rows[i];
            int goes_left = job->X[r * d + best] <= threshold;
            rows[s.start + n] = r, aside[right] = r;
            n += goes_left, right += !goes_left;
        }
        memcpy(rows + s.start + n, aside, sizeof(int32_t) * (size_t)right);
        job->feature[at] = (int32_t)best, job->threshold[at] = threshold;
        job->left[at] = (int32_t)nodes, job->right[at] = (int32_t)nodes + 1;
        for (idx c = 0; c < k; c++) job->value[at * k + c] = 0;
        struct stand l = {s.start, n, nodes, s.depth + 1, s.low, s.high}, r = {s.start + n, right, nodes + 1, s.depth + 1, s.low, s.high};
        int32_t way = job->directions ? job->directions[best] : 0;
        if (way > 0) l.high = r.low = (best_low + best_high) / 2;
        if (way < 0) l.low = r.high = (best_low + best_high) / 2;
        queue[last] = l, last = (last + 1) % (job->n + 1);
        queue[last] = r, last = (last + 1) % (job->n + 1);
        nodes += 2, leaves++;
    }
    return nodes;
}
