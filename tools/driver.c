/* Runs the cases that tools/bits.py writes to its standard input, and writes parameters and answers to its standard
   output: for machines without Python, which an emulator plays. */

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

#define POINTERS (offsetof(struct job, layers) / sizeof(void *))

static int get(void *to, size_t bytes) { return fread(to, 1, bytes, stdin) == bytes; }

int main(void) {
    BINARY;
    for (int64_t bytes; get(&bytes, sizeof bytes);) {
        union { void *pointers[POINTERS]; struct job job; } given;
        struct { int64_t steps, restart, rows, activation, at_once; } more;
        size_t parameters = (size_t)bytes;
        for (size_t i = 0; i < POINTERS; i++) {
            if (i && !get(&bytes, sizeof bytes)) return 1;
            given.pointers[i] = bytes ? malloc((size_t)bytes) : 0;
            if (bytes && !get(given.pointers[i], (size_t)bytes)) return 1;
        }
        struct job *job = &given.job;
        if (!get(&job->layers, sizeof *job - offsetof(struct job, layers)) || !get(&more, sizeof more)) return 1;

        void *block = malloc((size_t)training_size(job));
        training_begin(job, block);
        training_steps(job, block, more.steps / 2);
        if (more.restart) training_restart(job, block);
        training_steps(job, block, more.steps - more.steps / 2);
        training_read(job, block);
        fwrite(job->theta, 1, parameters, stdout);

        int32_t layers = (int32_t)job->layers, at_once = (int32_t)more.at_once;
        size_t answers = (size_t)(more.rows * job->widths[layers]);
        float *out = malloc(sizeof(float) * answers);
        void *network = malloc((size_t)network_size(job->widths, layers, at_once));
        network_fold(job->theta, job->widths, layers, at_once, network);
        network_answer(job->widths, layers, (int32_t)more.activation, 0, at_once, network, job->X, more.rows, out);
        fwrite(out, sizeof(float), answers, stdout);
    }
    return 0;
}
