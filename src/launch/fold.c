/* fold.c: lines of several ranks, the same ones once.
 *
 * A line is held back for a moment, in which other ranks may say the same; then it is shown once, with all
 * who said it.  Lines keep the order in which they came first.  Memory is bounded: when many different lines
 * are held back, the oldest is shown at once, and a line without end is cut. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/printable.h"
#include "launch/launch_internal.h"

#define LINE_BYTES 2048
#define HELD_MAX   64
/* Ranks that run into the same say so within milliseconds; a person does not notice this delay. */
#define HOLD_S 0.15

typedef struct held {
    char text[LINE_BYTES];
    size_t length;
    bool *said; /* by source */
    int n_said;
    double since;
} held;

typedef struct source {
    char line[LINE_BYTES]; /* the beginning of a line whose end has not come */
    size_t length;
    bool ended;
} source;

struct lsi_fold {
    int n, first_rank;
    source *sources;
    bool *said;
    held lines[HELD_MAX]; /* the oldest first */
    int n_lines;
    lsi_fold_fn write;
    void *ctx;
};

ls_status lsi_fold_create(lsi_fold **out, int n, int first_rank, lsi_fold_fn write, void *ctx, ls_err *err)
{
    lsi_fold *f = ls_alloc(LS_MEM_CLI, sizeof *f);

    *out = NULL;
    if (f == NULL) return ls_fail(err, LS_NOMEM, "no memory for the output of ranks");
    f->n = n;
    f->first_rank = first_rank;
    f->write = write;
    f->ctx = ctx;
    f->sources = ls_alloc(LS_MEM_CLI, sizeof *f->sources * (size_t)n);
    f->said = ls_alloc(LS_MEM_CLI, sizeof *f->said * (size_t)n * HELD_MAX);
    if (f->sources == NULL || f->said == NULL) {
        lsi_fold_destroy(f);
        return ls_fail(err, LS_NOMEM, "no memory for the output of %d ranks", n);
    }
    for (int i = 0; i < HELD_MAX; i++) f->lines[i].said = f->said + (size_t)i * (size_t)n;
    *out = f;
    return LS_OK;
}

void lsi_fold_destroy(lsi_fold *f)
{
    if (f == NULL) return;
    ls_free(f->sources);
    ls_free(f->said);
    ls_free(f);
}

void lsi_fold_ranks_text(const bool *set, int n, int first_rank, char *buf, size_t size)
{
    int count = 0;
    size_t at;

    for (int i = 0; i < n; i++) count += set[i];
    at = (size_t)snprintf(buf, size, count == 1 ? "rank " : "ranks ");
    for (int i = 0, shown = 0; i < n; i++) {
        int end = i;
        if (!set[i]) continue;
        while (end + 1 < n && set[end + 1]) end++;
        if (at + 32 >= size) {
            snprintf(buf + at, size - at, ",...");
            return;
        }
        at += (size_t)snprintf(buf + at, size - at, "%s%d", shown++ > 0 ? "," : "", first_rank + i);
        if (end > i)
            at += (size_t)snprintf(buf + at, size - at, "%s%d", end > i + 1 ? "-" : ",", first_rank + end);
        i = end;
    }
}

static void show_oldest(lsi_fold *f)
{
    held *h = &f->lines[0];
    bool *said = h->said;
    char ranks[160], clean[4 * LINE_BYTES], line[4 * LINE_BYTES + 200];
    int n;

    lsi_fold_ranks_text(said, f->n, f->first_rank, ranks, sizeof ranks);
    /* A control character of one rank must not move the cursor of the terminal that all share. */
    ls_printable(h->text, h->length, clean, sizeof clean);
    n = snprintf(line, sizeof line, "[%s] %s\n", ranks, clean);
    f->write(f->ctx, line, (size_t)n);
    /* Lines move up, and the list of who said it goes to the end with the empty one: each keeps a list of its
     * own. */
    memset(said, 0, sizeof *said * (size_t)f->n);
    f->n_lines--;
    memmove(&f->lines[0], &f->lines[1], sizeof f->lines[0] * (size_t)f->n_lines);
    f->lines[f->n_lines].said = said;
}

/* A whole line of source i. */
static void take_line(lsi_fold *f, int i, const char *text, size_t length, double now)
{
    held *h = NULL;

    if (length == 0) return;
    for (int k = 0; k < f->n_lines; k++) {
        held *other = &f->lines[k];
        /* A rank that repeats itself means it. */
        if (other->length == length && memcmp(other->text, text, length) == 0 && !other->said[i]) {
            h = other;
            break;
        }
    }
    if (h == NULL) {
        if (f->n_lines == HELD_MAX) show_oldest(f);
        h = &f->lines[f->n_lines++];
        memcpy(h->text, text, length);
        h->length = length;
        h->n_said = 0;
        h->since = now;
    }
    h->said[i] = true;
    h->n_said++;
}

void lsi_fold_add(lsi_fold *f, int i, const char *bytes, size_t n, double now)
{
    source *s = &f->sources[i];

    for (size_t k = 0; k < n; k++) {
        const char c = bytes[k];
        if (c == '\n' || s->length == sizeof s->line - 1) {
            take_line(f, i, s->line, s->length, now);
            s->length = 0;
        }
        if (c != '\n') s->line[s->length++] = c;
    }
    lsi_fold_flush(f, now);
}

void lsi_fold_end(lsi_fold *f, int i, double now)
{
    source *s = &f->sources[i];

    take_line(f, i, s->line, s->length, now);
    s->length = 0;
    s->ended = true;
    lsi_fold_flush(f, now);
}

/* Whether any rank is left that could still say the same line. */
static bool is_complete(const lsi_fold *f, const held *h)
{
    for (int i = 0; i < f->n; i++)
        if (!h->said[i] && !f->sources[i].ended) return false;
    return true;
}

void lsi_fold_flush(lsi_fold *f, double now)
{
    while (f->n_lines > 0 && (now - f->lines[0].since >= HOLD_S || is_complete(f, &f->lines[0])))
        show_oldest(f);
}

void lsi_fold_flush_of(lsi_fold *f, int i)
{
    int last = -1;

    for (int k = 0; k < f->n_lines; k++)
        if (f->lines[k].said[i]) last = k;
    for (int k = 0; k <= last; k++) show_oldest(f);
}

void lsi_fold_flush_all(lsi_fold *f)
{
    while (f->n_lines > 0) show_oldest(f);
}

double lsi_fold_due(const lsi_fold *f)
{
    return f->n_lines > 0 ? f->lines[0].since + HOLD_S : (double)INFINITY;
}
