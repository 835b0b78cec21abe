/* Answers of radial basis functions: weighted sums of how near a row is to each of some centres. Sums are taken in one
   order, whatever the processor and however many rows are asked about at once. */

#include "kernel.h"

#define ASIDE 256 /* centres at a time */

#define EACH "near.h"
#include "sets.h"

/* For n rows: the sum over all centres of exp(-gamma |row - centre|^2) times the centre's weights, for every class.
   Centres are given column by column, so many apart, a multiple of ASIDE; weights of those that are not there are 0. */
API void radial_answer(const float *centres, int64_t apart, const float *weights, int64_t d, int64_t classes, float gamma,
                       const float *X, int64_t n, float *out) {
    int set = set_in_use();
#if defined(__x86_64__)
    if (set == 2) { sums_avx512(centres, apart, weights, d, classes, gamma, X, n, out); return; }
    if (set == 1) { sums_avx2(centres, apart, weights, d, classes, gamma, X, n, out); return; }
#endif
    (void)set;
    sums_plain(centres, apart, weights, d, classes, gamma, X, n, out);
}
