"""What C files of copies are put together from: functions that read tables. Only those in use are written."""

from __future__ import annotations

HEAD = """/* {title}

   Made by ectype {version}. C99, with no library but libm: cc -std=c99 -c {file}

   A row is an array of {d} doubles, one for each column, in this order:

{columns}

   A gap is NAN, where there may be one. Words become numbers by {name}_level(column, word).

   int {name}_predict(const double *row)
       The label, as a position in {name}_class_names; -1 for a row that the copy refuses: a gap where there must be
       none, or a number that is not finite.
   int {name}_predict_proba(const double *row, double *probabilities)
       The same, and the probability of every class.
   double {name}_level(int column, const char *word)
       A level of a column as its number: -1 for one that is not known, NAN for NULL{empty}.

   For the declarations alone, define {macro}_DECLARATIONS and include this file. Do not compile it with -ffast-math,
   which takes NAN for a number. */

#ifndef {macro}_C
#define {macro}_C
enum {{ {name}_columns = {d}, {name}_classes = {n_c} }};
extern const char *const {name}_column_names[{d}];
extern const char *const {name}_class_names[{n_c}];
double {name}_level(int column, const char *word);
int {name}_predict(const double *row);
int {name}_predict_proba(const double *row, double *probabilities);

#ifndef {macro}_DECLARATIONS
#include <math.h>
#include <string.h>

enum {{ CLASSES = {n_c}, INPUTS = {inputs} }};
"""

STANDARD = """
/* In standard deviations, at most a million of them. */
static float standard(double x, double center, double scale) {
    x = (x - center) / scale;
    return (float)(x < -1e6 ? -1e6 : x > 1e6 ? 1e6 : x);
}
"""

SOFTMAX = """
static void softmax(double *scores) {
    double most = scores[0], sum = 0;
    int k;
    for (k = 1; k < CLASSES; k++) if (scores[k] > most) most = scores[k];
    for (k = 0; k < CLASSES; k++) sum += scores[k] = exp(scores[k] - most);
    for (k = 0; k < CLASSES; k++) scores[k] /= sum;
}
"""

NETWORK = """
struct layer { const float *weights, *biases; int inputs, outputs; };
struct piece { int input; float slope, shift; };

/* Layers, the last without an activation: mish, or the positive part. The inputs are followed by pieces of them. */
static void network(const struct layer *layers, int count, int mish, const struct piece *pieces, int n, const float *x,
                    double *scores) {
    float even[WIDEST], odd[WIDEST];
    int l, i, k;
    for (i = 0; i < INPUTS; i++) even[i] = x[i];
    for (i = 0; i < n; i++) {
        float cut = x[pieces[i].input] * pieces[i].slope + pieces[i].shift;
        even[INPUTS + i] = cut < 0 ? 0 : cut > 1 ? 1 : cut;
    }
    for (l = 0; l < count; l++) {
        const float *from = l % 2 ? odd : even;
        float *to = l % 2 ? even : odd;
        for (k = 0; k < layers[l].outputs; k++) {
            double sum = layers[l].biases[k];
            const float *weight = layers[l].weights + k;
            for (i = 0; i < layers[l].inputs; i++) sum += (double)from[i] * weight[i * layers[l].outputs];
            if (l == count - 1) scores[k] = sum;
            else if (!mish) to[k] = sum > 0 ? (float)sum : 0;
            else {
                double t = exp(sum > 0 ? -sum : sum), above = sum > 0 ? 1 + 2 * t : t * t + 2 * t;
                to[k] = (float)(sum * above / (above + (sum > 0 ? 2 * t * t : 2)));
            }
        }
    }
}
"""

LINEAR = """
static void linear(const double *weights, const double *biases, const float *x, double *scores) {
    int i, k;
    for (k = 0; k < CLASSES; k++) {
        scores[k] = 0;
        for (i = 0; i < INPUTS; i++) scores[k] += x[i] * weights[i * CLASSES + k];
        scores[k] += biases[k];
    }
}
"""

RADIAL = """
/* Sums of how near a row is to the centres. */
static void radial(const float *centres, int n, const float *weights, const float *offset, double gamma,
                   double sharpness, const float *x, double *scores) {
    int c, i, k;
    for (k = 0; k < CLASSES; k++) scores[k] = offset[k];
    for (c = 0; c < n; c++) {
        double far = 0;
        for (i = 0; i < INPUTS; i++) {
            double apart = (double)centres[c * INPUTS + i] - x[i];
            far += apart * apart;
        }
        far = exp(-gamma * far);
        for (k = 0; k < CLASSES; k++) scores[k] += far * weights[c * CLASSES + k];
    }
    for (k = 0; k < CLASSES; k++) scores[k] *= sharpness;
}
"""

TREES = """
/* A node tests an input, which goes left if it is at most the threshold; at a leaf, input is -1 and left its number. */
struct node { int input; float threshold; int left, right; };

static void trees(const struct node *nodes, const int *roots, const int *outputs, int n, const double *values,
                  int width, const double *base, const float *x, double *scores) {
    int t, k;
    for (k = 0; k < CLASSES; k++) scores[k] = base[k];
    for (t = 0; t < n; t++) {
        const struct node *at = nodes + roots[t];
        while (at->input >= 0) at = nodes + (x[at->input] <= at->threshold ? at->left : at->right);
        for (k = 0; k < width; k++) scores[outputs[t] + k] += values[(long)at->left * width + k];
    }
}
"""

SHARES = """
static void shares(double *scores) {
    double sum = 0;
    int k;
    for (k = 0; k < CLASSES; k++) sum += scores[k];
    for (k = 0; k < CLASSES; k++) scores[k] /= sum;
}
"""

LEVELS = """
struct levels {{ int column, first, count; }};
static const char *const words[] = {{{words}}};
static const struct levels known[] = {{{known}}};

double {name}_level(int column, const char *word) {{
    size_t i;
    int k;
    if (!word{empty}) return NAN;
    for (i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].column == column)
            for (k = 0; k < known[i].count; k++) if (!strcmp(words[known[i].first + k], word)) return k;
    return -1;
}}
"""

NO_LEVELS = """
double {name}_level(int column, const char *word) {{
    (void)column;
    return word && strlen(word) ? -1 : NAN;
}}
"""

ENTRY = """
int {name}_predict_proba(const double *row, double *probabilities) {{
    static const unsigned char gaps[] = {{{gaps}}};
    float x[INPUTS];
    int j, k, best = 0;
    for (j = 0; j < {d}; j++) if (row[j] != row[j] ? !gaps[j] : row[j] - row[j] != 0) return -1;
    encode(row, x);
    answer(x, probabilities);
    for (k = 1; k < CLASSES; k++) if (probabilities[k] > probabilities[best]) best = k;
    return best;
}}

int {name}_predict(const double *row) {{
    double probabilities[CLASSES];
    return {name}_predict_proba(row, probabilities);
}}
#endif
#endif
"""

# Reads rows from the standard input, and writes labels and probabilities: a file is compared by it.
ASKER = """#define {macro}_DECLARATIONS
#include "{file}"
#include <math.h>
#include <stdio.h>

int main(void) {{
    static const char kinds[] = "{kinds}";
    static char word[{longest} + 1];
    double row[{name}_columns], found[{name}_classes + 1];
    long rows;
    for (rows = 0;; rows++) {{
        int j, length;
        for (j = 0; j < {name}_columns; j++) {{
            if (kinds[j] == 'n') {{
                if (fread(row + j, sizeof *row, 1, stdin) != 1) return 0;
                continue;
            }}
            if (fread(&length, sizeof length, 1, stdin) != 1) return 0;
            if (length > 0 && fread(word, 1, (unsigned)length, stdin) != (unsigned)length) return 1;
            if (length >= 0) word[length] = 0;
            row[j] = {name}_level(j, length < 0 ? NULL : word);
        }}
        found[0] = {name}_predict_proba(row, found + 1);
        if (rows % 16 == 0 && found[0] != {name}_predict(row)) return 2;
        fwrite(found, sizeof found, 1, stdout);
    }}
}}
"""
