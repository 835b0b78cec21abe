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
#define BROAD 4 /* vectors in a row of a block of gradients, where inputs are few */
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

/* Mish of a column of vectors, in place, and its slopes where they are wanted. */
static NOINLINE void NAME(bend)(float *x, float *slope, idx rows) {
    for (idx r = 0; r < rows; r++) {
        F found, value = NAME(mish)(LOAD(x + r * PANEL), &found);
        STORE(x + r * PANEL, value);
        if (slope) STORE(slope + r * PANEL, found);
    }
}

/* What becomes of a sum once it is complete. */
static INLINE F NAME(finish)(F sum, const int after, const float *gate) {
    if (after == AFTER_RELU) return WHERE(~(sum <= SET(0.0f)), sum); /* what is not a number stays so */
    if (after == AFTER_GATE) return WHERE(LOAD(gate) > SET(0.0f), sum);
    if (after == AFTER_SLOPE) return sum * LOAD(gate);
    return sum;
}

/* A block of sums into place, each with what becomes of it. */
static INLINE void NAME(store)(const int high, const int wide, F sum[TALL][WIDE], const int after, const float *gate, float *out,
                               idx apart) {
    UNROLL for (int r = 0; r < high; r++) UNROLL for (int v = 0; v < wide; v++) {
        idx at = AT(v, apart) + r * PANEL;
        STORE(out + at, NAME(finish)(sum[r][v], after, gate + at));
    }
}

/* A block of a product: `high` rows of a times `wide` vectors of columns of w. */
static INLINE void NAME(block)(const int high, const int wide, const struct product *p, const float *a, const float *w,
                               const float *bias, const float *gate, float *out, idx ahead) {
    F sum[TALL][WIDE];
    UNROLL for (int v = 0; v < wide; v++) {
        F start = SET(0.0f);
        if (bias) start = LOAD(bias + v * WIDTH);
        UNROLL for (int r = 0; r < high; r++) sum[r][v] = start;
    }
    for (idx k0 = 0; k0 < p->k; k0 += PANEL, a += p->a_apart) {
        idx end = lesser(p->k - k0, PANEL);
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
    switch (p->after) {
    case AFTER_RELU: NAME(store)(high, wide, sum, AFTER_RELU, gate, out, p->out_apart); break;
    case AFTER_GATE: NAME(store)(high, wide, sum, AFTER_GATE, gate, out, p->out_apart); break;
    case AFTER_SLOPE: NAME(store)(high, wide, sum, AFTER_SLOPE, gate, out, p->out_apart); break;
    default: NAME(store)(high, wide, sum, AFTER_NOTHING, gate, out, p->out_apart);
    }
}

/* Calls f with a constant for the number of rows, so that every block keeps its sums in registers. */
#define ONE_OF(n, call) case n: call; break;
#define UP_TO_4(f, ...) ONE_OF(1, f(1, __VA_ARGS__)) ONE_OF(2, f(2, __VA_ARGS__)) ONE_OF(3, f(3, __VA_ARGS__)) \
    ONE_OF(4, f(4, __VA_ARGS__))
#define UP_TO_6(f, ...) UP_TO_4(f, __VA_ARGS__) ONE_OF(5, f(5, __VA_ARGS__)) ONE_OF(6, f(6, __VA_ARGS__))
#define UP_TO_8(f, ...) UP_TO_6(f, __VA_ARGS__) ONE_OF(7, f(7, __VA_ARGS__)) ONE_OF(8, f(8, __VA_ARGS__))
#define UP_TO_12(f, ...) UP_TO_8(f, __VA_ARGS__) ONE_OF(9, f(9, __VA_ARGS__)) ONE_OF(10, f(10, __VA_ARGS__)) \
    ONE_OF(11, f(11, __VA_ARGS__)) ONE_OF(12, f(12, __VA_ARGS__))
#define UP_TO_16(f, ...) UP_TO_12(f, __VA_ARGS__) ONE_OF(13, f(13, __VA_ARGS__)) ONE_OF(14, f(14, __VA_ARGS__)) \
    ONE_OF(15, f(15, __VA_ARGS__)) ONE_OF(16, f(16, __VA_ARGS__))
#define UP_TO(most) JOIN(UP_TO, most)
#define WITH_ROWS(most, n, f, ...) switch (n) { UP_TO(most)(f, __VA_ARGS__) }

/* out = after(a w + bias), for the first `rows` rows. */
static NOINLINE void NAME(multiply)(const struct product *p, idx rows) {
    idx vectors = (p->n + WIDTH - 1) / WIDTH;
    for (idx v = 0; v < vectors;) {
        int wide = vectors - v >= WIDE ? WIDE : 1;
        struct blocks blocks = blocks_of(rows, wide == 1 ? TALL : HIGH);
        idx at = AT(v, p->out_apart), ahead = v ? 0 : p->ahead;
        const float *a = p->a, *w = p->w + AT(v, p->w_apart), *bias = p->bias ? p->bias + v * WIDTH : 0;
        for (idx b = 0; b < blocks.n; b++) {
            idx high = blocks.high + (b < blocks.higher);
            const float *gate = (p->gate ? p->gate : p->out) + at;
            if (wide == 1) { WITH_ROWS(TALL, high, NAME(block), 1, p, a, w, bias, gate, p->out + at, ahead) }
            else { WITH_ROWS(HIGH, high, NAME(block), WIDE, p, a, w, bias, gate, p->out + at, ahead) }
            a += high * p->a_row, at += high * PANEL;
        }
        v += wide;
    }
}

/* One step of Adam for a vector of parameters, given the sum of its gradients over the batch. The moments lack the
   constant factors of their definitions: `step` has them. The memory term needs to know how far parameters are `away`. */
static INLINE void NAME(adam)(F gradient, idx at, const struct parameters *p, const struct step *s, F *away) {
    F theta = LOAD(p->now + at), before = theta;
    if (p->before) before = LOAD(p->before + at), gradient = FMA(SET(s->pull), theta - before, gradient);
    F first = FMA(SET(s->keep_first), LOAD(p->first + at), gradient);
    F second = FMA(gradient, gradient, SET(s->keep_second) * LOAD(p->second + at));
    STORE(p->first + at, first);
    STORE(p->second + at, second);
    theta = FMA(SET(s->shrink), theta, -(SET(s->length) * first / (ROOT(second) + SET(s->least))));
    STORE(p->now + at, theta);
    if (p->before) *away = FMA(theta - before, theta - before, *away);
}

/* The sums of squares that the vector at a place adds to. */
static INLINE F *NAME(away)(const struct parameters *p, idx at) { return (F *)(p->away + (at & (PANEL - WIDTH))); }

/* The steps of a block of weights, at once: panel after panel, since sums of squares are in the order in which weights lie. */
static INLINE void NAME(take_steps)(const int high, const int wide, F (*sum)[BROAD], const struct parameters *p, idx at, idx apart,
                                    const struct step *s) {
    const int sums = wide < PER_PANEL ? wide : PER_PANEL;
    F away[PER_PANEL], *kept = NAME(away)(p, at);
    UNROLL for (int q = 0; q < sums; q++) away[q] = kept[q];
    UNROLL for (int v = 0; v < wide; v++) UNROLL for (int r = 0; r < high; r++)
        NAME(adam)(sum[r][v], at + AT(v, apart) + r * PANEL, p, s, &away[v % PER_PANEL]);
    UNROLL for (int q = 0; q < sums; q++) kept[q] = away[q];
}

/* Steps that are still to be taken. Roots and quotients are slow, but in a unit of their own: where there are registers to
   SPARE, the steps of one block are taken between the sums of the next. */
struct NAME(waiting) {
    F gradient[PANEL + BROAD]; /* those of a block of weights, then of biases */
    const struct parameters *of[PANEL + BROAD];
    idx at[PANEL + BROAD], n;
};

static INLINE void NAME(take_one)(const struct NAME(waiting) *w, idx n, const struct step *s) {
    NAME(adam)(w->gradient[n], w->at[n], w->of[n], s, NAME(away)(w->of[n], w->at[n]));
}

/* Lets the steps of a block wait. */
static INLINE void NAME(put_off)(const int high, const int wide, F (*sum)[BROAD], const struct parameters *p, idx at, idx apart,
                                 struct NAME(waiting) *w) {
    UNROLL for (int v = 0; v < wide; v++) UNROLL for (int r = 0; r < high; r++, w->n++)
        w->gradient[w->n] = sum[r][v], w->of[w->n] = p, w->at[w->n] = at + AT(v, apart) + r * PANEL;
}

/* A block of the gradient of weights, `high` inputs by `wide` vectors of outputs from the v-th on, and the steps that follow
   from it; with the first inputs, also those of biases. */
static INLINE void NAME(descend)(const int high, const int wide, const struct layer *l, idx i, idx v0, const float *x, const float *d,
                                 idx rows, struct NAME(waiting) *w, const struct step *s) {
    F sum[TALL][BROAD], own[1][BROAD];
    UNROLL for (int v = 0; v < wide; v++) {
        own[0][v] = SET(0.0f);
        UNROLL for (int r = 0; r < high; r++) sum[r][v] = SET(0.0f);
    }
    idx apart = rows * PANEL, pause = rows >= 2 * PANEL ? rows / PANEL : 1, next = pause, done = 0;
    for (idx b = 0; b < rows; b++, x += PANEL, d += PANEL) {
        F y[BROAD];
        UNROLL for (int v = 0; v < wide; v++) y[v] = LOAD(d + AT(v, apart));
        UNROLL for (int r = 0; r < high; r++) {
            F t = SET(x[r]);
            UNROLL for (int v = 0; v < wide; v++) sum[r][v] = FMA(t, y[v], sum[r][v]);
        }
        if (!SPARE) continue;
        if (!i) UNROLL for (int v = 0; v < wide; v++) own[0][v] += y[v];
        if (--next || done == w->n) continue;
        NAME(take_one)(w, done++, s);
        next = pause;
    }
    idx at = AT(v0, l->in * PANEL) + i * PANEL;
    if (SPARE) {
        for (; done < w->n; done++) NAME(take_one)(w, done, s);
        w->n = 0;
        NAME(put_off)(high, wide, sum, &l->weights, at, l->in * PANEL, w);
        if (!i) NAME(put_off)(1, wide, own, &l->biases, v0 * WIDTH, PANEL, w);
    } else NAME(take_steps)(high, wide, sum, &l->weights, at, l->in * PANEL, s);
}

/* The step of the v-th vector of biases alone. */
static INLINE void NAME(descend_alone)(const struct layer *l, idx v, const float *d, idx rows, const struct step *s) {
    F sum = SET(0.0f);
    for (idx b = 0; b < rows; b++) sum += LOAD(d + b * PANEL);
    NAME(adam)(sum, v * WIDTH, &l->biases, s, NAME(away)(&l->biases, v * WIDTH));
}

/* The step of one layer, from its inputs x and the gradient d of its outputs. */
static NOINLINE void NAME(improve)(const struct layer *l, const float *x, const float *d, idx rows, struct NAME(waiting) *w,
                                   const struct step *s) {
    idx vectors = (l->out + WIDTH - 1) / WIDTH, apart = rows * PANEL;
    for (idx v = 0; v < vectors;) {
        int broad = l->in <= TALL / BROAD && vectors - v >= BROAD, wide = broad ? BROAD : vectors - v >= SIDE ? SIDE : 1;
        const float *dv = d + AT(v, apart);
        for (idx i = 0, high; i < l->in; i += high) {
            const float *xi = x + i / PANEL * apart + i % PANEL;
            idx left = lesser(l->in - i, PANEL - i % PANEL);
            high = blocks_of(left, wide == 1 ? TALL : wide == SIDE ? HIGH : TALL / BROAD).high;
            if (wide == 1) { WITH_ROWS(TALL, high, NAME(descend), 1, l, i, v, xi, dv, rows, w, s) }
            else if (wide == SIDE) { WITH_ROWS(HIGH, high, NAME(descend), SIDE, l, i, v, xi, dv, rows, w, s) }
            else { WITH_ROWS(4, high, NAME(descend), BROAD, l, i, v, xi, dv, rows, w, s) }
        }
        for (int q = 0; q < wide && !SPARE; q++) NAME(descend_alone)(l, v + q, dv + AT(q, apart), rows, s);
        v += wide;
    }
}

/* 16 rows of 16, to columns, the first `columns` of them and those up to a multiple of 4: in pieces of 4 rows, or of two
   times 4 where vectors are wider. */
static INLINE void NAME(transpose)(const float *from, float *to, idx columns) {
    typedef float quad __attribute__((vector_size(16)));
#define QUAD_AT(r) (*(const quad *)(f + (r) * PANEL))
#if WIDTH >= 8
    typedef float piece __attribute__((vector_size(32)));
#define ROW(r) __builtin_shufflevector(QUAD_AT(r), QUAD_AT((r) + 4), 0, 1, 2, 3, 4, 5, 6, 7)
#define IN_TURN(x, y, a, b) __builtin_shufflevector(x, y, a, a + 8, b, b + 8, a + 4, a + 12, b + 4, b + 12)
#define IN_PAIRS(x, y, a, b) __builtin_shufflevector(x, y, a, b, a + 8, b + 8, a + 4, b + 4, a + 12, b + 12)
#else
    typedef quad piece;
#define ROW(r) QUAD_AT(r)
#define IN_TURN(x, y, a, b) __builtin_shufflevector(x, y, a, a + 4, b, b + 4)
#define IN_PAIRS(x, y, a, b) __builtin_shufflevector(x, y, a, b, a + 4, b + 4)
#endif
    for (int i = 0; i < PANEL; i += sizeof(piece) / sizeof(float)) for (idx j = 0; j < columns; j += 4) {
        const float *f = from + i * PANEL + j;
        float *t = to + j * PANEL + i;
        piece a = ROW(0), b = ROW(1), c = ROW(2), d = ROW(3);
        piece low_ab = IN_TURN(a, b, 0, 1), high_ab = IN_TURN(a, b, 2, 3);
        piece low_cd = IN_TURN(c, d, 0, 1), high_cd = IN_TURN(c, d, 2, 3);
        *(piece *)t = IN_PAIRS(low_ab, low_cd, 0, 1);
        *(piece *)(t + PANEL) = IN_PAIRS(low_ab, low_cd, 2, 3);
        *(piece *)(t + 2 * PANEL) = IN_PAIRS(high_ab, high_cd, 0, 1);
        *(piece *)(t + 3 * PANEL) = IN_PAIRS(high_ab, high_cd, 2, 3);
    }
#undef QUAD_AT
#undef ROW
#undef IN_TURN
#undef IN_PAIRS
}

/* The weights of a layer transposed, for the way back. */
static INLINE void NAME(turn)(const struct layer *l, float *turned) {
    for (idx j = 0; j < l->out; j += PANEL) for (idx i = 0; i < l->in; i += PANEL) {
        const float *from = l->weights.now + j * l->in + i * PANEL;
        float padded[PANEL * PANEL] __attribute__((aligned(64)));
        if (l->in - i < PANEL) {
            memset(padded, 0, sizeof padded);
            memcpy(padded, from, sizeof(float) * PANEL * (l->in - i));
            from = padded;
        }
        NAME(transpose)(from, turned + i * whole(l->out) + j * PANEL, lesser(l->out - j, PANEL));
    }
}

/* Scores of up to 16 rows, classes first; rows that are not there count as zeros. */
static INLINE void NAME(scores_of)(const float *z, idx apart, idx n, idx classes, float *t) {
    if (n == PANEL) {
        for (idx c = 0; c < classes; c += PANEL)
            NAME(transpose)(z + c / PANEL * apart, t + c * PANEL, lesser(classes - c, PANEL));
        return;
    }
    for (idx c = 0; c < classes; c++) {
        const float *from = z + c / PANEL * apart + c % PANEL;
        for (idx r = 0; r < n; r++) t[c * PANEL + r] = from[r * PANEL];
        for (idx r = n; r < PANEL; r++) t[c * PANEL + r] = 0.0f;
    }
}

/* The way back. */
static INLINE void NAME(put_back)(const float *t, idx n, idx classes, float *z, idx apart) {
    for (idx c = 0; c < classes; c++) for (idx r = 0; r < n; r++) z[c / PANEL * apart + r * PANEL + c % PANEL] = t[c * PANEL + r];
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

/* The gradient of the loss with respect to the scores of up to 16 rows, in place of their probabilities. */
static INLINE void NAME(slope)(const struct job *job, const int32_t *rows, idx n, idx classes, float *t) {
    int32_t codes[PANEL] = {0};
    for (idx r = 0; r < n && job->y; r++) codes[r] = job->y[rows[r]];
    if (job->loss == LOSS_RHO) NAME(rho_slope)(t, classes, codes);
    else if (job->targets) {
        for (idx r = 0; r < n; r++) for (idx c = 0; c < classes; c++) t[c * PANEL + r] -= job->targets[rows[r] * classes + c];
    } else NAME(label_slope)(t, classes, codes);
    if (job->weights) for (idx r = 0; r < n; r++) {
        float weight = job->weights[rows[r]];
        for (idx c = 0; c < classes; c++) t[c * PANEL + r] *= weight;
    }
}

/* The gradient of the loss with respect to the scores of a batch, in their place. Every pass is over all rows, so that 16 of
   them can be computed while others are waited for. */
static NOINLINE void NAME(loss)(const struct job *job, const int32_t *rows, float *z, float *t) {
    idx batch = job->batch, classes = job->widths[job->layers], apart = batch * PANEL, size = whole(classes);
    for (idx at = 0; at < batch; at += PANEL) NAME(scores_of)(z + at * PANEL, apart, lesser(batch - at, PANEL), classes, t + at * size);
    for (idx at = 0; at < batch; at += PANEL) NAME(softmax)(t + at * size, classes);
    for (idx at = 0; at < batch; at += PANEL) NAME(slope)(job, rows + at, lesser(batch - at, PANEL), classes, t + at * size);
    for (idx at = 0; at < batch; at += PANEL) NAME(put_back)(t + at * size, lesser(batch - at, PANEL), classes, z + at * PANEL, apart);
}

/* Scores of the first `rows` rows, from the inputs given, or from those in net->x[0]. */
static NOINLINE void NAME(forward)(const struct net *net, struct inputs inputs, idx rows) {
    idx apart = net->rows * PANEL;
    for (int i = 0; i < net->layers; i++) {
        const struct layer *l = &net->layer[i];
        int hidden = i + 1 < net->layers, mish = hidden && net->activation == MISH;
        int own = inputs.X && i == 0; /* as they lie in memory, not in panels */
        struct product p = {own ? inputs.X : net->x[i], own ? l->in : PANEL, own ? PANEL : apart, l->in, l->weights.now, l->in * PANEL, l->out, l->biases.now, 0,
                            net->x[i + 1], apart, hidden && !mish ? AFTER_RELU : AFTER_NOTHING, own ? inputs.ahead : 0};
        NAME(multiply)(&p, rows);
        for (idx v = 0; mish && v * WIDTH < l->out; v++)
            NAME(bend)(net->x[i + 1] + AT(v, apart), net->slope[i] ? net->slope[i] + AT(v, apart) : 0, rows);
    }
}

/* From the gradient of the scores, in net->d[layers - 1], to that of every layer's outputs; then all steps. */
static NOINLINE void NAME(backward)(const struct net *net, const struct step *s) {
    idx apart = net->rows * PANEL;
    for (int i = net->layers - 1; i > 0; i--) {
        const struct layer *l = &net->layer[i];
        int mish = net->activation == MISH;
        NAME(turn)(l, net->turned);
        struct product p = {net->d[i], PANEL, apart, l->out, net->turned, whole(l->out) * PANEL, l->in, 0,
                            mish ? net->slope[i - 1] : net->x[i], net->d[i - 1], apart, mish ? AFTER_SLOPE : AFTER_GATE, 0};
        NAME(multiply)(&p, net->rows);
    }
    struct NAME(waiting) w;
    w.n = 0;
    for (int i = 0; i < net->layers; i++) NAME(improve)(&net->layer[i], net->x[i], net->d[i], net->rows, &w, s);
    for (idx n = 0; n < w.n; n++) NAME(take_one)(&w, n, s);
}

/* Probabilities of `rows` rows, from the inputs given, or from those in net->x[0]. */
static NOINLINE void NAME(answer)(const struct net *net, struct inputs inputs, idx rows, float *t, float *out) {
    idx classes = net->layer[net->layers - 1].out, apart = net->rows * PANEL;
    NAME(forward)(net, inputs, rows);
    for (idx at = 0; at < rows; at += PANEL) {
        idx n = lesser(rows - at, PANEL);
        NAME(scores_of)(net->x[net->layers] + at * PANEL, apart, n, classes, t);
        NAME(softmax)(t, classes);
        for (idx r = 0; r < n; r++) for (idx c = 0; c < classes; c++) out[(at + r) * classes + c] = t[c * PANEL + r];
    }
}

static const struct arithmetic NAME(arithmetic) = {NAME(forward), NAME(loss), NAME(backward), NAME(answer)};

#undef F
#undef I
#undef LOAD
#undef STORE
#undef PER_PANEL
#undef AT
#undef WHERE
#undef CHOOSE
#undef BROAD
#undef ONE_OF
#undef WITH_ROWS
