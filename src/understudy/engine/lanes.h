/* The arithmetic of the kernel for one instruction set: kernel.c has sets.h include this file once for each.

   Sums are the only place where the order of operations could show in a result. Every sum here is one chain in the order
   of its index, and no lane of a vector is ever added to another. So neither WIDTH, nor the size of blocks, nor how many
   rows are answered at once changes a bit.

   Matrices lie in panels of 16 columns; in a panel, rows of 16 floats follow each other. */

typedef float NAME(floats) __attribute__((vector_size(4 * WIDTH)));
typedef int32_t NAME(ints) __attribute__((vector_size(4 * WIDTH)));
typedef uint32_t NAME(bits) __attribute__((vector_size(4 * WIDTH)));
#define F NAME(floats)
#define I NAME(ints)
#define LOAD(p) (*(const F *)(p))
#define STORE(p, x) (*(F *)(p) = (x))
#define PER_PANEL (PANEL / WIDTH)
/* Where the v-th vector of a row lies, if panels begin `apart` from each other. */
#define AT(v, apart) ((v) / PER_PANEL * (apart) + (v) % PER_PANEL * WIDTH)
/* x where the mask is set, else zero; or else y. */
#define WHERE(mask, x) ((F)((I)(x) & (mask)))
#define CHOOSE(mask, x, y) ((F)(((I)(x) & (mask)) | ((I)(y) & ~(mask))))

/* exp(x) for x <= 0, within two units in the last place; never below 2^-125. What is not a number stays so, whatever its
   bits. */
static INLINE F NAME(exp)(F x) {
    const F lowest = SET(-86.6f), shift = SET(12582912.0f); /* 1.5 * 2^23: adding it rounds to a whole number */
    x = CHOOSE(x < lowest, lowest, x);
    F n = FMA(x, SET(1.44269504f), shift);
    NAME(bits) exponent = (NAME(bits))n - (NAME(bits))shift;
    n -= shift;
    F r = FMA(n, SET(-0.693359375f), x); /* x - n log 2, with log 2 in two parts */
    r = FMA(n, SET(2.12194440e-4f), r);
    F p = SET(1.9875691500e-4f);
    p = FMA(p, r, SET(1.3981999507e-3f));
    p = FMA(p, r, SET(8.3334519073e-3f));
    p = FMA(p, r, SET(4.1665795894e-2f));
    p = FMA(p, r, SET(1.6666665459e-1f));
    p = FMA(p, r, SET(5.0000001201e-1f));
    p = FMA(p, r * r, r) + SET(1.0f);
    return (F)((NAME(bits))p + (exponent << 23 & (NAME(bits))(x == x)));
}

/* Mish, x tanh(log(1 + e^x)), and its slope. With t = e^-|x| neither half of the line overflows. */
static INLINE F NAME(mish)(F x, F *slope) {
    const F one = SET(1.0f), two = SET(2.0f);
    I right = x > SET(0.0f);
    F t = NAME(exp)(CHOOSE(right, -x, x));
    F square = t * t, twice = t + t;
    F above = CHOOSE(right, one + twice, square + twice), below = above + CHOOSE(right, two * square, two);
    F bend = above / below; /* tanh(log(1 + e^x)) */
    F sigmoid = CHOOSE(right, one, t) / (one + t);
    *slope = FMA(x * (one - bend * bend), sigmoid, bend);
    return x * bend;
}

/* What becomes of a block of sums once they are complete. */
static INLINE F NAME(finish)(F sum, int after, const float *gate, float *slope) {
    if (after == AFTER_RELU) return WHERE(~(sum <= SET(0.0f)), sum); /* what is not a number stays so */
    if (after == AFTER_MISH) {
        F found, value = NAME(mish)(sum, &found);
        if (slope) STORE(slope, found);
        return value;
    }
    if (after == AFTER_GATE) return WHERE(LOAD(gate) > SET(0.0f), sum);
    if (after == AFTER_SLOPE) return sum * LOAD(gate);
    return sum;
}

/* A block of a product: `high` rows of a times `wide` vectors of columns of w. */
static INLINE void NAME(block)(const int high, const int wide, const struct product *p, const float *a, const float *w,
                               const float *bias, const float *gate, float *slope, float *out, idx ahead) {
    F sum[HIGH][WIDE];
    UNROLL for (int v = 0; v < wide; v++) {
        F start = SET(0.0f);
        if (bias) start = LOAD(bias + v * WIDTH);
        UNROLL for (int r = 0; r < high; r++) sum[r][v] = start;
    }
    for (idx k0 = 0; k0 < p->k; k0 += PANEL, a += p->a_apart) {
        idx end = p->k - k0 < PANEL ? p->k - k0 : PANEL;
        if (ahead) UNROLL for (int r = 0; r < high; r++) __builtin_prefetch(a + r * p->a_row + ahead);
        for (idx k = 0; k < end; k++, w += PANEL) {
            F x[WIDE];
            UNROLL for (int v = 0; v < wide; v++) x[v] = LOAD(w + AT(v, p->w_apart));
            UNROLL for (int r = 0; r < high; r++) {
                F s = SET(a[r * p->a_row + k]);
                UNROLL for (int v = 0; v < wide; v++) sum[r][v] = FMA(s, x[v], sum[r][v]);
            }
        }
    }
    UNROLL for (int r = 0; r < high; r++) UNROLL for (int v = 0; v < wide; v++) {
        idx at = AT(v, p->out_apart) + r * PANEL;
        STORE(out + at, NAME(finish)(sum[r][v], p->after, gate + at, slope ? slope + at : 0));
    }
}

/* Calls f with a constant for the number of rows, so that every block keeps its sums in registers. */
#define ONE_OF(n, call) case n: call; break;
#if HIGH == 8
#define WITH_ROWS(n, f, ...) switch (n) { ONE_OF(1, f(1, __VA_ARGS__)) ONE_OF(2, f(2, __VA_ARGS__)) \
    ONE_OF(3, f(3, __VA_ARGS__)) ONE_OF(4, f(4, __VA_ARGS__)) ONE_OF(5, f(5, __VA_ARGS__)) \
    ONE_OF(6, f(6, __VA_ARGS__)) ONE_OF(7, f(7, __VA_ARGS__)) ONE_OF(8, f(8, __VA_ARGS__)) }
#elif HIGH == 6
#define WITH_ROWS(n, f, ...) switch (n) { ONE_OF(1, f(1, __VA_ARGS__)) ONE_OF(2, f(2, __VA_ARGS__)) \
    ONE_OF(3, f(3, __VA_ARGS__)) ONE_OF(4, f(4, __VA_ARGS__)) ONE_OF(5, f(5, __VA_ARGS__)) ONE_OF(6, f(6, __VA_ARGS__)) }
#else
#define WITH_ROWS(n, f, ...) switch (n) { ONE_OF(1, f(1, __VA_ARGS__)) ONE_OF(2, f(2, __VA_ARGS__)) \
    ONE_OF(3, f(3, __VA_ARGS__)) ONE_OF(4, f(4, __VA_ARGS__)) }
#endif

/* out = after(a w + bias), for the first `rows` rows. */
static NOINLINE void NAME(multiply)(const struct product *p, idx rows) {
    idx blocks = (rows + HIGH - 1) / HIGH, vectors = (p->n + WIDTH - 1) / WIDTH;
    for (idx v = 0; v < vectors;) {
        int wide = vectors - v >= WIDE ? WIDE : 1;
        idx column = AT(v, p->out_apart);
        const float *w = p->w + AT(v, p->w_apart), *bias = p->bias ? p->bias + v * WIDTH : 0;
        for (idx b = 0; b < blocks; b++) { /* blocks as equal as can be, not a few high ones and a low one */
            idx first = rows * b / blocks, high = rows * (b + 1) / blocks - first, at = column + first * PANEL;
            const float *a = p->a + first * p->a_row, *gate = p->gate ? p->gate + at : p->out + at;
            float *slope = p->slope ? p->slope + at : 0;
            if (wide == WIDE) { WITH_ROWS(high, NAME(block), WIDE, p, a, w, bias, gate, slope, p->out + at, v ? 0 : p->ahead) }
            else { WITH_ROWS(high, NAME(block), 1, p, a, w, bias, gate, slope, p->out + at, v ? 0 : p->ahead) }
        }
        v += wide;
    }
}

/* One step of Adam for a vector of parameters, given the sum of its gradients over the batch. The moments lack the
   constant factors of their definitions: `step` has them. */
static INLINE void NAME(adam)(F gradient, idx at, const struct parameters *p, const struct step *s) {
    F theta = LOAD(p->now + at);
    if (p->before) gradient = FMA(SET(s->pull), theta - LOAD(p->before + at), gradient);
    F first = FMA(SET(s->keep_first), LOAD(p->first + at), gradient);
    F second = FMA(gradient, gradient, SET(s->keep_second) * LOAD(p->second + at));
    STORE(p->first + at, first);
    STORE(p->second + at, second);
    STORE(p->now + at, FMA(SET(s->shrink), theta, -(SET(s->length) * first / (ROOT(second) + SET(s->least)))));
}

/* A block of the gradient of weights, `high` inputs by `wide` vectors of outputs, and the step that follows from it. */
static INLINE void NAME(descend)(const int high, const int wide, const float *x, const float *d, idx d_apart, idx rows,
                                 const struct parameters *p, idx at, idx w_apart, const struct step *s) {
    F sum[HIGH][WIDE];
    UNROLL for (int r = 0; r < high; r++) UNROLL for (int v = 0; v < wide; v++) sum[r][v] = SET(0.0f);
    for (idx b = 0; b < rows; b++, x += PANEL, d += PANEL) {
        F y[WIDE];
        UNROLL for (int v = 0; v < wide; v++) y[v] = LOAD(d + AT(v, d_apart));
        UNROLL for (int r = 0; r < high; r++) {
            F t = SET(x[r]);
            UNROLL for (int v = 0; v < wide; v++) sum[r][v] = FMA(t, y[v], sum[r][v]);
        }
    }
    UNROLL for (int r = 0; r < high; r++) UNROLL for (int v = 0; v < wide; v++)
        NAME(adam)(sum[r][v], at + AT(v, w_apart) + r * PANEL, p, s);
}

/* A 16 x 16 block, rows to columns, in pieces of 4 x 4. */
static INLINE void NAME(transpose)(const float *from, float *to) {
    typedef float quad __attribute__((vector_size(16)));
    for (int i = 0; i < PANEL; i += 4) UNROLL for (int j = 0; j < PANEL; j += 4) {
        const float *f = from + i * PANEL + j;
        float *t = to + j * PANEL + i;
        quad a = *(const quad *)f, b = *(const quad *)(f + PANEL);
        quad c = *(const quad *)(f + 2 * PANEL), d = *(const quad *)(f + 3 * PANEL);
        quad low_ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), high_ab = __builtin_shufflevector(a, b, 2, 6, 3, 7);
        quad low_cd = __builtin_shufflevector(c, d, 0, 4, 1, 5), high_cd = __builtin_shufflevector(c, d, 2, 6, 3, 7);
        *(quad *)t = __builtin_shufflevector(low_ab, low_cd, 0, 1, 4, 5);
        *(quad *)(t + PANEL) = __builtin_shufflevector(low_ab, low_cd, 2, 3, 6, 7);
        *(quad *)(t + 2 * PANEL) = __builtin_shufflevector(high_ab, high_cd, 0, 1, 4, 5);
        *(quad *)(t + 3 * PANEL) = __builtin_shufflevector(high_ab, high_cd, 2, 3, 6, 7);
    }
}

/* The weights of 16 inputs, `height` of which there are, turned into columns. */
static INLINE void NAME(turn_panel)(const struct layer *l, idx panel, idx height) {
    idx apart = (l->out + PANEL - 1) / PANEL * PANEL * PANEL;
    for (idx j = 0; j < l->out; j += PANEL) {
        const float *from = l->weights.now + j * l->in + panel * PANEL * PANEL;
        float padded[PANEL * PANEL] __attribute__((aligned(64)));
        if (height < PANEL) {
            memset(padded, 0, sizeof padded);
            memcpy(padded, from, sizeof(float) * PANEL * height);
            from = padded;
        }
        NAME(transpose)(from, l->turned + panel * apart + j * PANEL);
    }
}

/* The step of one layer, from its inputs x and the gradient d of its outputs. */
static NOINLINE void NAME(improve)(const struct layer *l, const float *x, const float *d, idx rows, const struct step *s) {
    idx vectors = (l->out + WIDTH - 1) / WIDTH, w_apart = l->in * PANEL, apart = rows * PANEL;
    for (idx panel = 0; panel * PANEL < l->in; panel++) {
        idx height = l->in - panel * PANEL < PANEL ? l->in - panel * PANEL : PANEL, blocks = (height + HIGH - 1) / HIGH;
        for (idx v = 0; v < vectors;) {
            int wide = vectors - v >= WIDE ? WIDE : 1;
            const float *dv = d + AT(v, apart);
            for (idx b = 0; b < blocks; b++) {
                idx first = height * b / blocks, high = height * (b + 1) / blocks - first;
                idx at = AT(v, w_apart) + (panel * PANEL + first) * PANEL;
                const float *xv = x + panel * apart + first;
                if (wide == WIDE) { WITH_ROWS(high, NAME(descend), WIDE, xv, dv, apart, rows, &l->weights, at, w_apart, s) }
                else { WITH_ROWS(high, NAME(descend), 1, xv, dv, apart, rows, &l->weights, at, w_apart, s) }
            }
            v += wide;
        }
        if (l->turned) NAME(turn_panel)(l, panel, height);
    }
    for (idx v = 0; v < vectors; v++) {
        const float *dv = d + AT(v, apart);
        F sum = SET(0.0f);
        for (idx b = 0; b < rows; b++) sum += LOAD(dv + b * PANEL);
        NAME(adam)(sum, v * WIDTH, &l->biases, s);
    }
}

/* Class probabilities of 16 rows, in place of their scores; classes come first. */
static INLINE void NAME(softmax)(float *t, idx classes) {
    for (int v = 0; v < PANEL; v += WIDTH) {
        F most = LOAD(t + v), sum = SET(0.0f);
        for (idx c = 1; c < classes; c++) {
            F x = LOAD(t + c * PANEL + v);
            most = CHOOSE(~(x <= most), x, most);
        }
        for (idx c = 0; c < classes; c++) {
            F e = NAME(exp)(LOAD(t + c * PANEL + v) - most);
            STORE(t + c * PANEL + v, e);
            sum += e;
        }
        F share = SET(1.0f) / sum;
        for (idx c = 0; c < classes; c++) STORE(t + c * PANEL + v, LOAD(t + c * PANEL + v) * share);
    }
}

/* 1 - p_y for 16 rows: the sum of the other probabilities, since subtracting would lose what is below 1e-7. */
static INLINE F NAME(missing)(const float *t, idx classes, I code) {
    F sum = SET(0.0f);
    I c = {0};
    for (idx k = 0; k < classes; k++, c += 1) sum += WHERE(code != c, LOAD(t + k * PANEL));
    return sum;
}

/* The gradient of the cross-entropy with respect to the scores, p - [c = y], in place of p. */
static INLINE void NAME(label_slope)(float *t, idx classes, const int32_t *codes) {
    for (int v = 0; v < PANEL; v += WIDTH) {
        I code, c = {0};
        memcpy(&code, codes + v, sizeof code);
        F missing = NAME(missing)(t + v, classes, code);
        for (idx k = 0; k < classes; k++, c += 1) {
            float *p = t + k * PANEL + v;
            STORE(p, CHOOSE(code == c, -missing, LOAD(p)));
        }
    }
}

/* The gradient of rho^2 = ((1 - p_y)^2 + sum of p_c^2 over c != y) / n_c with respect to the scores, in place of p. */
static INLINE void NAME(rho_slope)(float *t, idx classes, const int32_t *codes) {
    const F scale = SET(2.0f / (float)classes);
    for (int v = 0; v < PANEL; v += WIDTH) {
        I code, c = {0};
        memcpy(&code, codes + v, sizeof code);
        F missing = NAME(missing)(t + v, classes, code), own = SET(0.0f), squares = SET(0.0f);
        for (idx k = 0; k < classes; k++, c += 1) {
            F p = LOAD(t + k * PANEL + v), other = WHERE(code != c, p);
            own += WHERE(code == c, p);
            squares = FMA(other, other, squares);
        }
        F least = -FMA(missing, missing, squares);
        c = (I){0};
        for (idx k = 0; k < classes; k++, c += 1) {
            F p = LOAD(t + k * PANEL + v), slope = FMA(missing, own, p - squares);
            STORE(t + k * PANEL + v, scale * p * CHOOSE(code == c, least, slope));
        }
    }
}

/* The gradient of the loss with respect to the scores of a batch, in their place. */
static NOINLINE void NAME(loss)(const struct job *job, const int32_t *rows, float *z, float *t) {
    idx classes = job->widths[job->layers], apart = job->batch * PANEL;
    for (idx at = 0; at < job->batch; at += PANEL) {
        idx n = job->batch - at < PANEL ? job->batch - at : PANEL;
        int32_t codes[PANEL] = {0};
        for (idx r = 0; r < n && job->y; r++) codes[r] = job->y[rows[at + r]];
        scores_of(z, apart, at, n, classes, t);
        NAME(softmax)(t, classes);
        if (job->loss == LOSS_RHO) NAME(rho_slope)(t, classes, codes);
        else if (job->targets) {
            for (idx r = 0; r < n; r++) for (idx c = 0; c < classes; c++) t[c * PANEL + r] -= job->targets[rows[at + r] * classes + c];
        } else NAME(label_slope)(t, classes, codes);
        if (job->weights) for (idx r = 0; r < n; r++) {
            float weight = job->weights[rows[at + r]];
            for (idx c = 0; c < classes; c++) t[c * PANEL + r] *= weight;
        }
        for (idx c = 0; c < classes; c++) for (idx r = 0; r < n; r++) z[c / PANEL * apart + (at + r) * PANEL + c % PANEL] = t[c * PANEL + r];
    }
}

/* Scores of the first `rows` rows, from the inputs given, or from those in net->x[0]. */
static NOINLINE void NAME(forward)(const struct net *net, struct inputs inputs, idx rows) {
    idx apart = net->rows * PANEL;
    for (int i = 0; i < net->layers; i++) {
        const struct layer *l = &net->layer[i];
        int after = i + 1 == net->layers ? AFTER_NOTHING : net->activation == MISH ? AFTER_MISH : AFTER_RELU;
        int own = inputs.X && i == 0; /* as they lie in memory, not in panels */
        struct product p = {own ? inputs.X : net->x[i], own ? l->in : PANEL, own ? PANEL : apart, l->in, l->weights.now, l->in * PANEL, l->out, l->biases.now, 0, net->slope[i],
                            net->x[i + 1], apart, after, own ? inputs.ahead : 0};
        NAME(multiply)(&p, rows);
    }
}

/* From the gradient of the scores, in net->d[layers - 1], to that of every layer's outputs; then all steps. */
static NOINLINE void NAME(backward)(const struct net *net, const struct step *s) {
    idx apart = net->rows * PANEL;
    for (int i = net->layers - 1; i > 0; i--) {
        const struct layer *l = &net->layer[i];
        int mish = net->activation == MISH;
        struct product p = {net->d[i], PANEL, apart, l->out, l->turned, (l->out + PANEL - 1) / PANEL * PANEL * PANEL, l->in, 0,
                            mish ? net->slope[i - 1] : net->x[i], 0, net->d[i - 1], apart, mish ? AFTER_SLOPE : AFTER_GATE, 0};
        NAME(multiply)(&p, net->rows);
    }
    for (int i = 0; i < net->layers; i++) NAME(improve)(&net->layer[i], net->x[i], net->d[i], net->rows, s);
}

/* Probabilities of `rows` rows, from the inputs given, or from those in net->x[0]. */
static NOINLINE void NAME(answer)(const struct net *net, struct inputs inputs, idx rows, float *t, float *out) {
    idx classes = net->layer[net->layers - 1].out, apart = net->rows * PANEL;
    NAME(forward)(net, inputs, rows);
    for (idx at = 0; at < rows; at += PANEL) {
        idx n = rows - at < PANEL ? rows - at : PANEL;
        scores_of(net->x[net->layers], apart, at, n, classes, t);
        NAME(softmax)(t, classes);
        for (idx r = 0; r < n; r++) for (idx c = 0; c < classes; c++) out[(at + r) * classes + c] = t[c * PANEL + r];
    }
}

/* The sum of squares of x - y over a multiple of 16 numbers, in sixteen chains. */
static NOINLINE double NAME(distance)(const float *x, const float *y, idx n) {
    F sum[PER_PANEL];
    for (int q = 0; q < PER_PANEL; q++) sum[q] = SET(0.0f);
    for (idx i = 0; i < n; i += PANEL) UNROLL for (int q = 0; q < PER_PANEL; q++) {
        F d = LOAD(x + i + q * WIDTH) - LOAD(y + i + q * WIDTH);
        sum[q] = FMA(d, d, sum[q]);
    }
    float chains[PANEL];
    memcpy(chains, sum, sizeof chains);
    double total = 0;
    for (int i = 0; i < PANEL; i++) total += chains[i];
    return total;
}

static const struct arithmetic NAME(arithmetic) = {NAME(forward), NAME(loss), NAME(backward), NAME(answer), NAME(distance)};

#undef F
#undef I
#undef LOAD
#undef STORE
#undef PER_PANEL
#undef AT
#undef WHERE
#undef CHOOSE
#undef ONE_OF
#undef WITH_ROWS
