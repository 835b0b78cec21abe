/* Trains multi-layer perceptrons, and answers with them. Plain C without a library: memory is the caller's, and exp,
   cosine and random numbers are our own, so that no two machines with fused multiply-add differ in any bit.

   Python sees kernel_*, training_* and network_*; it checks sizes before it passes any pointer. */

#include "kernel.h"

#define VERSION 4
#define PANEL 16      /* columns of a panel */
#define MOST_LAYERS 16
#define CARDS 1024    /* the least size of the deck that groups are drawn from */

enum { RELU, MISH };
enum { LOSS_CROSS_ENTROPY, LOSS_RHO };
enum { PENALTY_NONE, PENALTY_BOUNDED, PENALTY_NORM };
enum { ORDER_DRAWN, ORDER_SHUFFLED };
enum { AFTER_NOTHING, AFTER_RELU, AFTER_GATE, AFTER_SLOPE };

/* Inputs that are made from the columns of rows: these themselves, then pieces of them, each the product of a column
   and a slope plus a shift, between 0 and 1. */
struct pieces {
    const int32_t *column;
    const float *slope, *shift;
    int64_t columns, pieces;
};

/* What a training is given, as ctypes lays it out: pointers, whole numbers, then doubles. */
struct job {
    float *theta, *first, *second; /* flat parameters; Adam's moments, or null: then they start at zero and are lost */
    const float *X;                /* the rows, one after the other */
    const int32_t *y;              /* the code of every row's label, or null: then there are targets */
    const float *targets;          /* a probability for every row and class, or null */
    const float *weights;          /* how much every row counts, or null: all the same */
    const int32_t *starts, *counts; /* where groups of rows start, and how many rows each has */
    const int32_t *places;         /* the groups, each as often as it is drawn in comparison with the others */
    const int32_t *widths;         /* of the inputs and of every layer */
    const struct pieces *pieces;   /* how the inputs are made from the columns of X, or null: they are these */
    int64_t layers, batch, groups, n_places, order, activation, loss, penalty;
    int64_t stage_steps, round_steps; /* steps taken before, in this stage and in this round; kept up to date */
    int64_t all_steps;             /* that the round will take, over which the step size falls */
    int64_t warm;                  /* steps of a stage over which it rises */
    uint64_t seed;
    double rate, keep_first, keep_second, epsilon, decay, lambda, anneal;
};

struct parameters {
    float *now, *first, *second;
    const float *before; /* what the memory term pulls them to, or null */
    float *away;         /* if so, sixteen sums of squares of how far they are from there */
};
struct layer {
    idx in, out;
    struct parameters weights, biases;
};
struct net {
    int layers, activation;
    idx rows; /* room for so many at once */
    struct layer layer[MOST_LAYERS];
    float *x[MOST_LAYERS + 1];  /* the inputs of every layer, then the scores */
    float *slope[MOST_LAYERS];  /* of the activation at every layer's outputs, where that is not told by the output */
    float *d[MOST_LAYERS];      /* the gradient of the loss at every layer's outputs */
    float *turned;              /* room for the weights of a layer, transposed for the way back */
};
struct product { /* out = after(a w + bias) */
    const float *a; idx a_row, a_apart, k; /* how far rows are apart, and panels of 16 columns */
    const float *w; idx w_apart, n;
    const float *bias, *gate;
    float *out; idx out_apart;
    int after;
    idx ahead; /* how far ahead rows of a are fetched meanwhile, or 0 */
};
struct inputs { const float *X; idx ahead; }; /* rows one after the other, and where the next ones are; or null */
struct step { float keep_first, keep_second, length, shrink, least, pull; };
struct arithmetic {
    void (*forward)(const struct net *, struct inputs, idx);
    void (*loss)(const struct job *, const int32_t *, float *, float *);
    void (*backward)(const struct net *, const struct step *);
    void (*answer)(const struct net *, struct inputs, idx, float *, float *);
};

static idx whole(idx n) { return (n + PANEL - 1) / PANEL * PANEL; }

/* Blocks of at most `most` rows, as equal as can be: not a few high ones and a low one. */
struct blocks { idx n, high, higher; }; /* how many, the rows of each, and how many have one more */

static struct blocks blocks_of(idx rows, idx most) {
    idx n = (rows + most - 1) / most;
    return (struct blocks){n, rows / n, rows % n};
}

/* --- instruction sets ----------------------------------------------------------------------------------------------- */

#define EACH "lanes.h"
#include "sets.h"
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* The best instruction set of this processor: 0 plain, 1 AVX2, 2 AVX-512. Asked of the processor itself, since not every
   compiler comes with a library that knows; and once, since virtual machines make it slow. */
static int best_set(void) {
    int best = 0;
#if defined(__x86_64__)
    unsigned a, b, c, d, c7, d7, b7 = 0, low, high;
    if (__get_cpuid(1, &a, &b, &c, &d) && (c >> 27 & 1) && __get_cpuid_count(7, 0, &a, &b7, &c7, &d7)) {
        __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
        if ((low & 0x6) == 0x6 && (b7 >> 5 & 1) && (c >> 12 & 1)) best = 1;
        unsigned wanted = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31; /* F, DQ, BW, VL */
        if (best && (low & 0xE6) == 0xE6 && (b7 & wanted) == wanted) best = 2;
    }
#endif
    return best;
}

static int chosen = -1;

API int32_t kernel_version(void) { return VERSION; }

/* Use an instruction set, or the best one below it that is there; with -1 the best of all. Gives which. */
API int32_t kernel_set(int32_t wanted) {
    int best = best_set();
    chosen = wanted >= 0 && wanted < best ? wanted : best;
    return chosen;
}

int set_in_use(void) { return chosen < 0 ? kernel_set(-1) : chosen; }

static const struct arithmetic *arithmetic(void) {
    int set = set_in_use();
#if defined(__x86_64__)
    if (set == 2) return &arithmetic_avx512;
    if (set == 1) return &arithmetic_avx2;
#endif
    (void)set;
    return &arithmetic_plain;
}

/* Numbers below the normal ones count as zero while we compute: Adam's moments of dead units would fade through them, a
   hundred times slower. */
static uint64_t flush_small(void) {
    uint64_t before = 0;
#if defined(__x86_64__)
    before = _mm_getcsr();
    _mm_setcsr((unsigned)before | 0x8040);
#elif defined(__aarch64__)
    __asm__ volatile("mrs %0, fpcr" : "=r"(before));
    __asm__ volatile("msr fpcr, %0" ::"r"(before | 1u << 24));
#endif
    return before;
}

static void restore(uint64_t before) {
#if defined(__x86_64__)
    _mm_setcsr((unsigned)before);
#elif defined(__aarch64__)
    __asm__ volatile("msr fpcr, %0" ::"r"(before));
#else
    (void)before;
#endif
}

/* --- layout ---------------------------------------------------------------------------------------------------------- */

static float *floats(struct room *room, idx n) { return take(room, sizeof(float) * (size_t)n); }

static void lay_out(struct net *net, struct room *room, const int32_t *widths, int layers, int activation, idx rows) {
    net->layers = layers, net->activation = activation, net->rows = rows;
    for (int i = 0; i <= layers; i++) net->x[i] = floats(room, whole(widths[i]) * rows);
    for (int i = 0; i < layers; i++) {
        struct layer *l = &net->layer[i];
        memset(l, 0, sizeof *l);
        l->in = widths[i], l->out = widths[i + 1];
        l->weights.now = floats(room, whole(l->out) * l->in), l->biases.now = floats(room, whole(l->out));
        net->slope[i] = net->d[i] = 0;
    }
}

static struct parameters with_moments(struct room *room, struct parameters p, idx n, int penalty) {
    p.first = floats(room, n), p.second = floats(room, n);
    p.before = penalty ? floats(room, n) : 0;
    p.away = floats(room, PANEL);
    return p;
}

static void lay_out_training(struct net *net, struct room *room, const struct job *job) {
    int layers = (int)job->layers, penalty = job->penalty != PENALTY_NONE;
    idx most = 0;
    lay_out(net, room, job->widths, layers, (int)job->activation, job->batch);
    for (int i = 0; i < layers; i++) {
        struct layer *l = &net->layer[i];
        l->weights = with_moments(room, l->weights, whole(l->out) * l->in, penalty);
        l->biases = with_moments(room, l->biases, whole(l->out), penalty);
        if (i && whole(l->in) * whole(l->out) > most) most = whole(l->in) * whole(l->out);
        if (i + 1 < layers && job->activation == MISH) net->slope[i] = floats(room, whole(l->out) * job->batch);
        net->d[i] = i + 1 < layers ? floats(room, whole(l->out) * job->batch) : net->x[layers];
    }
    net->turned = floats(room, most);
}

/* Flat parameters into panels, and back. Gives where the next layer's begin. */
static const float *fold(const float *flat, float *w, float *b, idx in, idx out) {
    for (idx p = 0; p < out; p += PANEL) for (idx i = 0; i < in; i++) {
        idx n = out - p < PANEL ? out - p : PANEL;
        memcpy(w + p * in + i * PANEL, flat + i * out + p, sizeof(float) * (size_t)n);
    }
    memcpy(b, flat + in * out, sizeof(float) * (size_t)out);
    return flat + in * out + out;
}

static float *unfold(float *flat, const float *w, const float *b, idx in, idx out) {
    for (idx p = 0; p < out; p += PANEL) for (idx i = 0; i < in; i++) {
        idx n = out - p < PANEL ? out - p : PANEL;
        memcpy(flat + i * out + p, w + p * in + i * PANEL, sizeof(float) * (size_t)n);
    }
    memcpy(flat + in * out, b, sizeof(float) * (size_t)out);
    return flat + in * out + out;
}

/* Fewer than 16 numbers, by halves: how many is the same for row after row, so that no branch comes as a surprise. */
static INLINE void copy_few(float *to, const float *from, idx n) {
    UNROLL for (idx part = PANEL / 2; part; part /= 2) if (n & part) {
        memcpy(to, from, sizeof(float) * (size_t)part);
        to += part, from += part;
    }
}

/* Rows of X into the panels of the first layer's inputs. */
static void gather(const struct net *net, const struct pieces *of, const float *X, const int32_t *rows, idx first, idx n) {
    idx d = of ? (idx)of->columns : net->layer[0].in, apart = net->rows * PANEL;
    for (idx r = 0; r < n; r++) {
        const float *from = X + (rows ? rows[r] : first + r) * d;
        float *to = net->x[0] + r * PANEL;
        idx i = 0;
        for (; i + PANEL <= d; i += PANEL, to += apart) memcpy(to, from + i, sizeof(float) * PANEL);
        copy_few(to, from + i, d - i);
        if (!of) continue;
        for (idx k = 0, at = d - i; k < of->pieces; k++, at++) {
            if (at == PANEL) to += apart, at = 0;
            float x = from[of->column[k]] * of->slope[k] + of->shift[k];
            x = x < 0.0f ? 0.0f : x;
            to[at] = x > 1.0f ? 1.0f : x;
        }
    }
}

/* --- numbers that no library computes ------------------------------------------------------------------------------- */

static double cosine(double half_turns) { /* cos(pi x), for x from 0 to 1: minus the sine of pi (x - 1/2) */
    static const double terms[] = {-7.6471637318198165e-13, 1.6059043836821613e-10,  -2.5052108385441720e-08,
                                   2.7557319223985893e-06,  -1.9841269841269841e-04, 8.3333333333333332e-03,
                                   -1.6666666666666666e-01, 1.0};
    double x = 3.14159265358979323846 * (0.5 - half_turns), square = x * x, sum = 0;
    for (int i = 0; i < 8; i++) sum = sum * square + terms[i];
    return sum * x;
}

static double exponential(double x) { /* for x from 0 to 80: the series of x / 1024, squared ten times */
    double sum = 1, term = 1;
    x = (x > 80 ? 80 : x) / 1024;
    for (int i = 1; i < 12; i++) sum += term *= x / i;
    for (int i = 0; i < 10; i++) sum *= sum;
    return sum;
}

static double power(double x, int64_t n) {
    double result = 1;
    for (; n; n >>= 1, x *= x) if (n & 1) result *= x;
    return result;
}

/* --- which rows ----------------------------------------------------------------------------------------------------- */

/* Cards that are shuffled whenever all of them were drawn. */
struct deck { int32_t *cards; idx n, at; uint64_t shuffles, seed; };

static int32_t drawn(struct deck *deck) {
    if (deck->at == deck->n) {
        uint64_t seed = hashed(deck->seed, deck->shuffles++);
        for (idx i = deck->n - 1; i > 0; i--) {
            idx j = below(hashed(seed, (uint64_t)i), (uint32_t)i + 1);
            int32_t card = deck->cards[i];
            deck->cards[i] = deck->cards[j], deck->cards[j] = card;
        }
        deck->at = 0;
    }
    return deck->cards[deck->at++];
}

struct decks { struct deck *of_rows, *of_groups; };

static idx cards_of_groups(const struct job *job) { return job->n_places * ((CARDS + job->n_places - 1) / job->n_places); }

static struct decks lay_out_decks(struct room *room, const struct job *job) {
    struct decks decks = {0, 0};
    if (job->order != ORDER_SHUFFLED) return decks;
    decks.of_rows = take(room, sizeof(struct deck) * (size_t)(job->groups + 1));
    decks.of_groups = decks.of_rows ? decks.of_rows + job->groups : 0;
    for (idx g = 0; g < job->groups; g++) {
        int32_t *cards = take(room, sizeof(int32_t) * (size_t)job->counts[g]);
        if (decks.of_rows) decks.of_rows[g].cards = cards;
    }
    int32_t *cards = take(room, sizeof(int32_t) * (size_t)cards_of_groups(job));
    if (decks.of_groups) decks.of_groups->cards = cards;
    return decks;
}

static void fill_decks(const struct decks *decks, const struct job *job) {
    if (!decks->of_rows) return;
    for (idx g = 0; g < job->groups; g++) {
        struct deck *deck = &decks->of_rows[g];
        deck->n = deck->at = job->counts[g], deck->shuffles = 0, deck->seed = hashed(job->seed, (uint64_t)g + 1);
        for (idx i = 0; i < deck->n; i++) deck->cards[i] = job->starts[g] + (int32_t)i;
    }
    struct deck *groups = decks->of_groups;
    groups->n = groups->at = cards_of_groups(job), groups->shuffles = 0, groups->seed = hashed(job->seed, 0);
    for (idx i = 0; i < groups->n; i++) groups->cards[i] = job->places[i % job->n_places];
}

static int32_t drawn_at_random(const struct job *job, uint64_t number) {
    uint64_t bits = hashed(job->seed, number);
    int32_t group = job->places[below(bits >> 32, (uint32_t)job->n_places)];
    return job->starts[group] + (int32_t)below(bits, (uint32_t)job->counts[group]);
}

/* The rows of the next batch: a group as often as it has places, then one of its rows. */
static void draw(const struct job *job, const struct decks *decks, uint64_t step, int32_t *rows) {
    idx d = job->pieces ? (idx)job->pieces->columns : job->widths[0];
    for (idx b = 0; b < job->batch; b++) {
        if (decks->of_rows) rows[b] = drawn(&decks->of_rows[job->groups == 1 ? 0 : drawn(decks->of_groups)]);
        else rows[b] = drawn_at_random(job, step * (uint64_t)job->batch + (uint64_t)b);
        const float *x = job->X + rows[b] * d; /* they are anywhere in memory, and there is time until they are needed */
        for (idx i = PANEL; i < d; i += PANEL) __builtin_prefetch(x + i - PANEL);
        __builtin_prefetch(x + d - 1);
    }
}

/* --- training ------------------------------------------------------------------------------------------------------- */

struct training {
    struct net net;
    struct decks decks;
    int32_t *rows;  /* of the next batch, then of the one at work */
    float *scratch; /* scores, 16 rows after 16 rows, classes first */
    double *kept;   /* what Adam has kept of the moments before this stage; steps in pieces multiply it as those at once */
};

static struct training lay_out_all(struct room *room, const struct job *job) {
    struct training t;
    lay_out_training(&t.net, room, job);
    t.rows = take(room, sizeof(int32_t) * 2 * (size_t)job->batch);
    t.scratch = floats(room, whole(job->widths[job->layers]) * whole(job->batch));
    t.kept = take(room, sizeof(double) * 2);
    t.decks = lay_out_decks(room, job);
    return t;
}

/* The bytes that a training needs, or -1 if it has too many layers. */
API int64_t training_size(const struct job *job) {
    struct room room = {0, 0};
    if (job->layers < 1 || job->layers > MOST_LAYERS) return -1;
    lay_out_all(&room, job);
    return (int64_t)room.used + LINE;
}

/* Begin: parameters and moments into the block, and the first batch drawn. */
API void training_begin(struct job *job, void *block) {
    struct room room = room_in(block);
    struct training t = lay_out_all(&room, job);
    UNGUARD(room.start, room.used);
    memset(room.start, 0, room.used);
    const float *theta = job->theta, *first = job->first, *second = job->second;
    for (int i = 0; i < t.net.layers; i++) {
        struct layer *l = &t.net.layer[i];
        theta = fold(theta, l->weights.now, l->biases.now, l->in, l->out);
        if (first) first = fold(first, l->weights.first, l->biases.first, l->in, l->out);
        if (second) second = fold(second, l->weights.second, l->biases.second, l->in, l->out);
        if (!l->weights.before) continue;
        memcpy((float *)l->weights.before, l->weights.now, sizeof(float) * (size_t)(whole(l->out) * l->in));
        memcpy((float *)l->biases.before, l->biases.now, sizeof(float) * (size_t)whole(l->out));
    }
    /* The decks' own records lie in the block, and so were set to zero: their cards are found again. */
    room = room_in(block);
    t = lay_out_all(&room, job);
    fill_decks(&t.decks, job);
    t.kept[0] = power(job->keep_first, job->stage_steps), t.kept[1] = power(job->keep_second, job->stage_steps);
    draw(job, &t.decks, (uint64_t)job->round_steps, t.rows);
}

/* The sum of sixteen sums, which begin afresh. */
static double taken(float *chains) {
    double total = 0;
    for (int i = 0; i < PANEL; i++) total += chains[i], chains[i] = 0;
    return total;
}

/* How strongly the memory term pulls, for every unit of distance, summed over the batch. */
static double pull(const struct job *job, const struct net *net) {
    double sum = 0, n = 0;
    for (int i = 0; i < net->layers; i++) {
        const struct layer *l = &net->layer[i];
        sum += taken(l->weights.away);
        sum += taken(l->biases.away);
        n += (double)((l->in + 1) * l->out);
    }
    double scale = job->lambda * (double)job->batch;
    if (job->penalty == PENALTY_NORM) return sum > 0 ? scale / square_root(sum) : 0;
    double tanh = 1 - 2 / (exponential(2 * sum / n) + 1);
    return scale * (1 - tanh * tanh) * 2 / n;
}

/* The size of the next step, with Adam's corrections. Beyond the steps of a round it is zero, if it falls at all. */
static double step_size(const struct job *job, const double *kept) {
    double size = job->rate * square_root(1 - kept[1]) / (1 - kept[0]), k = (double)job->stage_steps + 1;
    double gone = (double)job->round_steps / (double)job->all_steps;
    if (k < (double)job->warm) size *= k / (double)job->warm;
    if (gone > 1) gone = 1;
    if (job->anneal > 0 && gone > 1 - job->anneal) size *= 0.5 + 0.5 * cosine((gone - (1 - job->anneal)) / job->anneal);
    return size;
}

/* So many steps. */
API void training_steps(struct job *job, void *block, int64_t steps) {
    const struct arithmetic *of = arithmetic();
    uint64_t mode = flush_small();
    struct room room = room_in(block);
    struct training t = lay_out_all(&room, job);
    int32_t *rows = t.rows + job->batch;
    double scale = (1 - job->keep_first) / square_root(1 - job->keep_second);
    struct step s = {(float)job->keep_first, (float)job->keep_second, 0, 1, 0, 0};
    s.least = (float)(job->epsilon * (double)job->batch / square_root(1 - job->keep_second));
    for (int64_t i = 0; i < steps; i++) {
        memcpy(rows, t.rows, sizeof(int32_t) * (size_t)job->batch);
        gather(&t.net, job->pieces, job->X, rows, 0, job->batch);
        draw(job, &t.decks, (uint64_t)job->round_steps + 1, t.rows);
        t.kept[0] *= job->keep_first, t.kept[1] *= job->keep_second;
        double size = step_size(job, t.kept);
        s.length = (float)(size * scale), s.shrink = (float)(1 - job->decay * size);
        if (job->penalty != PENALTY_NONE) s.pull = (float)pull(job, &t.net);
        of->forward(&t.net, (struct inputs){0, 0}, job->batch);
        of->loss(job, rows, t.net.x[t.net.layers], t.scratch);
        of->backward(&t.net, &s);
        job->stage_steps++, job->round_steps++;
    }
    restore(mode);
}

/* A new stage: Adam begins afresh, from where the parameters are. */
API void training_restart(struct job *job, void *block) {
    struct room room = room_in(block);
    struct training t = lay_out_all(&room, job);
    for (int i = 0; i < t.net.layers; i++) {
        struct layer *l = &t.net.layer[i];
        size_t weights = sizeof(float) * (size_t)(whole(l->out) * l->in), biases = sizeof(float) * (size_t)whole(l->out);
        memset(l->weights.first, 0, weights), memset(l->weights.second, 0, weights);
        memset(l->biases.first, 0, biases), memset(l->biases.second, 0, biases);
    }
    job->stage_steps = 0, t.kept[0] = t.kept[1] = 1;
}

/* The parameters so far, and the moments where there is a place for them. */
API void training_read(const struct job *job, void *block) {
    struct room room = room_in(block);
    struct training t = lay_out_all(&room, job);
    float *theta = job->theta, *first = job->first, *second = job->second;
    for (int i = 0; i < t.net.layers; i++) {
        struct layer *l = &t.net.layer[i];
        theta = unfold(theta, l->weights.now, l->biases.now, l->in, l->out);
        if (first) first = unfold(first, l->weights.first, l->biases.first, l->in, l->out);
        if (second) second = unfold(second, l->weights.second, l->biases.second, l->in, l->out);
    }
}

/* --- answers -------------------------------------------------------------------------------------------------------- */

/* The bytes that a network takes which answers so many rows at once, or -1 if it has too many layers. */
API int64_t network_size(const int32_t *widths, int32_t layers, int32_t rows) {
    struct room room = {0, 0};
    struct net net;
    if (layers < 1 || layers > MOST_LAYERS) return -1;
    lay_out(&net, &room, widths, layers, RELU, rows);
    floats(&room, whole(widths[layers]) * PANEL);
    return (int64_t)room.used + LINE;
}

/* Lay a network out, once. */
API void network_fold(const float *theta, const int32_t *widths, int32_t layers, int32_t rows, void *block) {
    struct room room = room_in(block);
    struct net net;
    lay_out(&net, &room, widths, layers, RELU, rows);
    floats(&room, whole(widths[layers]) * PANEL);
    UNGUARD(room.start, room.used);
    memset(room.start, 0, room.used);
    for (int i = 0; i < layers; i++) {
        struct layer *l = &net.layer[i];
        theta = fold(theta, l->weights.now, l->biases.now, l->in, l->out);
    }
}

/* Probabilities of n rows. The block is written to: threads that ask at the same time need one each. */
API void network_answer(const int32_t *widths, int32_t layers, int32_t activation, const struct pieces *pieces, int32_t rows,
                        void *block, const float *X, int64_t n, float *out) {
    const struct arithmetic *of = arithmetic();
    uint64_t mode = flush_small();
    struct room room = room_in(block);
    struct net net;
    lay_out(&net, &room, widths, layers, activation, rows);
    float *scratch = floats(&room, whole(widths[layers]) * PANEL);
    idx d = pieces ? (idx)pieces->columns : widths[0];
    for (int64_t at = 0; at < n; at += rows) {
        idx now = n - at < rows ? (idx)(n - at) : rows;
        struct inputs inputs = {X + at * d, n - at >= 2 * rows ? rows * d : 0}; /* memory is slow: the next are fetched meanwhile */
        if (pieces) gather(&net, pieces, X, 0, (idx)at, now), inputs.X = 0;
        of->answer(&net, inputs, now, scratch, out + at * widths[layers]);
    }
    restore(mode);
}
