/* Sums of radial functions for one instruction set: radial.c has sets.h include this file once for each. Nothing is fused,
   and no order of operations depends on the set: the compiler only has wider vectors. */

static void NAME(sums)(const float *centres, int64_t apart, const float *weights, int64_t d, int64_t classes, float gamma,
                       const float *X, int64_t n, float *out) {
    float near[ASIDE];
    for (int64_t r = 0; r < n; r++) {
        const float *x = X + r * d;
        float *to = out + r * classes;
        for (int64_t c = 0; c < classes; c++) to[c] = 0.0f;
        for (int64_t at = 0; at < apart; at += ASIDE) {
            for (idx i = 0; i < ASIDE; i++) near[i] = 0.0f;
            for (int64_t j = 0; j < d; j++) {
                const float *column = centres + j * apart + at;
                for (idx i = 0; i < ASIDE; i++) near[i] += (column[i] - x[j]) * (column[i] - x[j]);
            }
            for (idx i = 0; i < ASIDE; i++) near[i] = exponential_of(-gamma * near[i]);
            for (int64_t c = 0; c < classes; c++) {
                const float *w = weights + c * apart + at;
                float lanes[16] = {0}; /* sixteen sums at once, then their sum */
                for (idx i = 0; i < ASIDE; i += 16) for (idx k = 0; k < 16; k++) lanes[k] += near[i + k] * w[i + k];
                for (idx k = 8; k; k /= 2) for (idx i = 0; i < k; i++) lanes[i] += lanes[i + k];
                to[c] += lanes[0];
            }
        }
    }
}
