/* Runs the cases that tools/bits.py writes to its standard input, and writes what they give to its standard output: for
   machines without Python, which an emulator plays. */

#include <stdio.h>
#include <stdlib.h>

#if defined(_WIN32)
#include <fcntl.h>
#include <io.h>
#define BINARY (_setmode(0, _O_BINARY), _setmode(1, _O_BINARY)) /* else line ends would be changed */
#else
#define BINARY ((void)0)
#endif

#include "kernel.c"
#include "answers.c"
#include "radial.c"
#include "rows.c"
#include "trees.c"

#define MOST 16
#define WORK 5000 /* of one call: little, so that trees grow in many */

struct record { void *arrays[MOST]; size_t bytes[MOST]; int64_t numbers[64]; };

static void get(void *to, size_t bytes) {
    if (fread(to, 1, bytes, stdin) != bytes) exit(1);
}

static void put(const void *from, size_t bytes) { fwrite(from, 1, bytes, stdout); }

static void *room_for(int64_t bytes) { return malloc((size_t)bytes + 1); }

static void read_record(struct record *r) {
    int64_t numbers, arrays, bytes;
    get(&numbers, sizeof numbers), get(&arrays, sizeof arrays);
    if (numbers > (int64_t)sizeof r->numbers || arrays > MOST) exit(1);
    get(r->numbers, (size_t)numbers);
    for (int64_t i = 0; i < arrays; i++) {
        get(&bytes, sizeof bytes);
        r->bytes[i] = (size_t)bytes, r->arrays[i] = bytes ? room_for(bytes) : 0;
        if (bytes) get(r->arrays[i], (size_t)bytes);
    }
}

/* Fills a job: pointers first, then its numbers. Gives the numbers that come after these. */
static const int64_t *fill(void *job, size_t pointers, size_t size, const struct record *r) {
    memcpy(job, r->arrays, sizeof(void *) * pointers);
    memcpy((char *)job + sizeof(void *) * pointers, r->numbers, size - sizeof(void *) * pointers);
    return r->numbers + (size - sizeof(void *) * pointers) / sizeof(int64_t);
}

static void network(struct record *r) {
    struct job job;
    size_t pointers = offsetof(struct job, layers) / sizeof(void *), own = pointers - 1; /* the last is of pieces */
    void **of = r->arrays + own;
    struct pieces pieces = {of[0], of[1], of[2], 0, 0};
    r->arrays[own] = pieces.column ? &pieces : 0;
    const int64_t *more = fill(&job, pointers, sizeof job, r);
    int64_t steps = more[0], restart = more[1], rows = more[2];
    int32_t activation = (int32_t)more[3], at_once = (int32_t)more[4], layers = (int32_t)job.layers;
    pieces.columns = more[5], pieces.pieces = more[6];

    void *block = room_for(training_size(&job));
    training_begin(&job, block);
    training_steps(&job, block, steps / 2);
    if (restart) training_restart(&job, block);
    training_steps(&job, block, steps - steps / 2);
    training_read(&job, block);
    put(job.theta, r->bytes[0]);

    size_t answers = sizeof(float) * (size_t)(rows * job.widths[layers]);
    float *out = malloc(answers);
    void *laid_out = room_for(network_size(job.widths, layers, at_once));
    network_fold(job.theta, job.widths, layers, at_once, laid_out);
    network_answer(job.widths, layers, activation, job.pieces, at_once, laid_out, job.X, rows, out);
    put(out, answers);
}

static void boost(struct record *r) {
    struct boosting job;
    size_t pointers = offsetof(struct boosting, n) / sizeof(void *);
    int64_t trees = *fill(&job, pointers, sizeof job, r);
    uint8_t *bins = room_for(job.n * job.d);
    bins_of(r->arrays[0], job.n, job.d, job.edges, bins);
    job.binned = bins;
    void *block = room_for(boosting_size(&job));
    while (job.trees < trees) boosting_grow(&job, block, trees, WORK);
    put(bins, (size_t)(job.n * job.d));
    for (size_t i = 7; i < pointers; i++) put(r->arrays[i], r->bytes[i]); /* scores, then nodes */
}

/* Trees at random, then what they say of rows. */
static void plant(struct record *r) {
    struct extra_trees job;
    size_t pointers = offsetof(struct extra_trees, n) / sizeof(void *);
    const int64_t *more = fill(&job, pointers, sizeof job, r);
    int64_t trees = more[0], rows = more[1], nodes = 0, k = job.classes, most = (int64_t)(r->bytes[4] / sizeof(int32_t)) * trees;
    int32_t *feature = room_for(4 * most), *children = room_for(8 * most), *levels = room_for(4 * most);
    int32_t *roots = room_for(4 * trees), *outputs = room_for(4 * trees), *depths = room_for(4 * trees);
    float *threshold = room_for(4 * most);
    double *values = room_for(8 * k * most), *scores = room_for(8 * k * rows);
    void *block = room_for(forest_size(&job));
    for (int64_t tree = 0; tree < trees; tree++) {
        int64_t size = 0;
        forest_begin(&job, block, tree);
        while (!size) size = forest_grow(&job, block, WORK);
        for (size_t i = 4; i < pointers; i++) put(r->arrays[i], (size_t)size * (i == pointers - 1 ? 4 * (size_t)k : 4));
        roots[tree] = (int32_t)nodes, outputs[tree] = 0;
        for (int64_t i = 0; i < size; i++, nodes++) {
            int leaf = job.feature[i] < 0;
            feature[nodes] = leaf ? 0 : job.feature[i], threshold[nodes] = job.threshold[i];
            children[2 * nodes] = leaf ? (int32_t)nodes : roots[tree] + job.left[i];
            children[2 * nodes + 1] = leaf ? (int32_t)nodes : roots[tree] + job.right[i];
            for (int64_t c = 0; c < k; c++) values[nodes * k + c] = (double)job.value[i * k + c];
        }
    }
    if (!trees_levels(children, nodes, levels)) exit(1);
    for (int64_t tree = 0; tree < trees; tree++) depths[tree] = levels[roots[tree]];
    for (int64_t i = 0; i < rows * k; i++) scores[i] = 0;
    struct forest forest = {feature, threshold, children, values, roots, outputs, depths, 0, 0, 0, trees, k, k, job.d, 0};
    trees_lay_out(&forest, room_for(trees_size(&forest)));
    trees_add(&forest, r->arrays[pointers], rows, scores, room_for((int64_t)sizeof(float) * ABREAST * job.d));
    put(scores, sizeof(double) * (size_t)(rows * k));
}

static void answer_radial(struct record *r) {
    int64_t apart = r->numbers[0], d = r->numbers[1], k = r->numbers[2], n = r->numbers[3];
    double gamma;
    memcpy(&gamma, r->numbers + 4, sizeof gamma);
    float *out = room_for(4 * n * k);
    radial_answer(r->arrays[0], apart, r->arrays[1], d, k, (float)gamma, r->arrays[2], n, out);
    put(out, sizeof(float) * (size_t)(n * k));
}

/* The factor of a correlation; then rows, by the factor that Python laid out from the same. */
static void draw_rows(struct record *r) {
    struct drawing job;
    size_t pointers = offsetof(struct drawing, columns) / sizeof(void *);
    const int64_t *more = fill(&job, pointers, sizeof job, r);
    int64_t rows = more[0], size = job.scores;
    double least, *loads = room_for(8 * size * size), *left = room_for(8 * size), *out = room_for(8 * rows * job.columns);
    int32_t *order = room_for(4 * size);
    memcpy(&least, more + 1, sizeof least);
    if (job.factor) {
        int64_t rank = rows_factor(r->arrays[pointers], size, least, loads, left, order);
        put(loads, sizeof(double) * (size_t)(rank * size)), put(order, sizeof(int32_t) * (size_t)size);
    }
    rows_draw(&job, room_for(rows_size(&job)), 0, rows, out);
    put(out, sizeof(double) * (size_t)(rows * job.columns));
}

int main(void) {
    BINARY;
    for (int kind; (kind = getchar()) != EOF;) {
        static struct record r;
        read_record(&r);
        if (kind == 'n') network(&r);
        else if (kind == 'b') boost(&r);
        else if (kind == 'p') plant(&r);
        else if (kind == 'r') answer_radial(&r);
        else if (kind == 'd') draw_rows(&r);
        else return 1;
    }
    return 0;
}
