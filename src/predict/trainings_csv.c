/* trainings_csv.c: the CSV of bench/large_batch.py, a row for each training.
 *
 * The file comes from outside: nothing of it is believed before it was looked at, and a refusal names the
 * line. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/printable.h"
#include "base/text.h"
#include "base/whole.h"
#include "predict/trainings.h"

enum { FILE_BYTES = 1 << 20, CELL = 64, WORD = 80 };

typedef enum column { SERIES, RANKS, SEED, BATCH, STEPS, END, EPOCH_1, BEST, FINAL, COLUMNS } column;

static const char *const column_names[COLUMNS] = {"series", "ranks",   "seed", "batch", "steps",
                                                  "end",    "epoch_1", "best", "final"};

typedef struct row {
    char series[CELL];
    int64_t ranks, seed, batch, steps;
    double epoch_1, best;
    bool diverged;
    int line;
} row;

typedef struct reader {
    ls_trainings *t;
    const char *path, *at, *end; /* the rest of the text */
    int line;                    /* of what was read last */
    column order[COLUMNS];
    row *rows;
    int n;
    ls_err *err;
} reader;

/* -- lines and cells --------------------------------------------------------------------------------------
 */

/* The next line that is not empty, without its end; false after the last. */
static bool next_line(reader *r, const char **text, size_t *n)
{
    while (r->at < r->end) {
        const char *stop = memchr(r->at, '\n', (size_t)(r->end - r->at));
        *text = r->at;
        *n = (size_t)((stop != NULL ? stop : r->end) - r->at);
        r->at = stop != NULL ? stop + 1 : r->end;
        r->line++;
        if (*n > 0 && (*text)[*n - 1] == '\r') --*n;
        if (*n > 0) return true;
    }
    return false;
}

/* The cells of a line, at most `most`; returns how many there are.  What is too long for a cell is cut: no
 * value is that long. */
static int cut(const char *text, size_t n, char cells[][CELL], int most)
{
    int count = 0;

    for (;;) {
        const char *comma = memchr(text, ',', n);
        const size_t length = comma != NULL ? (size_t)(comma - text) : n;
        if (count < most) snprintf(cells[count], CELL, "%.*s", (int)(length < CELL ? length : CELL), text);
        count++;
        if (comma == NULL) return count;
        n -= length + 1;
        text = comma + 1;
    }
}

static ls_status refuse(const reader *r, column c, const char *value, const char *expected)
{
    char shown[WORD];

    ls_printable(value, strlen(value), shown, sizeof shown);
    return ls_fail(r->err, LS_INVALID, "%s:%d: %s: \"%s\": expected %s", r->path, r->line, column_names[c],
                   shown, expected);
}

/* That may be one: begins with a digit, and was not cut. */
static bool is_number(const char *text)
{
    return text[0] >= '0' && text[0] <= '9' && strlen(text) < CELL - 1;
}

static ls_status whole(const reader *r, column c, const char *text, int64_t least, int64_t *out)
{
    char *end;

    *out = strtoll(text, &end, 10);
    if (is_number(text) && *end == '\0' && *out >= least && *out <= (int64_t)1 << 53) return LS_OK;
    return refuse(r, c, text, least > 0 ? "a whole number from 1 on" : "a whole number from 0 on");
}

static ls_status share(const reader *r, column c, const char *text, double *out)
{
    char *end;

    *out = strtod(text, &end);
    if (is_number(text) && *end == '\0' && *out >= 0 && *out <= 1) return LS_OK;
    return refuse(r, c, text, "an accuracy from 0 to 1");
}

/* -- rows -------------------------------------------------------------------------------------------------
 */

static ls_status read_header(reader *r)
{
    char cells[COLUMNS + 1][CELL] = {{0}}, shown[WORD];
    bool seen[COLUMNS] = {false};
    const char *text;
    size_t length;
    int n;

    if (!next_line(r, &text, &length))
        return ls_fail(r->err, LS_INVALID,
                       "%s: the file is empty; expected the CSV of a study: series,ranks,seed,batch,steps,"
                       "end,epoch_1,best,final",
                       r->path);
    n = cut(text, length, cells, COLUMNS + 1);
    for (int i = 0; i < n && i <= COLUMNS; i++) {
        int c = 0;
        while (c < COLUMNS && strcmp(cells[i], column_names[c]) != 0) c++;
        if (c < COLUMNS && !seen[c]) {
            seen[c] = true;
            r->order[i] = (column)c;
            continue;
        }
        ls_printable(cells[i], strlen(cells[i]), shown, sizeof shown);
        return ls_fail(
            r->err, LS_INVALID,
            "%s:%d: column \"%s\" %s; expected series,ranks,seed,batch,steps,end,epoch_1,best,final", r->path,
            r->line, shown, c < COLUMNS ? "occurs twice" : "is not known");
    }
    for (int c = 0; c < COLUMNS; c++)
        if (!seen[c])
            return ls_fail(r->err, LS_INVALID,
                           "%s:%d: column \"%s\" is missing; expected "
                           "series,ranks,seed,batch,steps,end,epoch_1,best,final",
                           r->path, r->line, column_names[c]);
    return LS_OK;
}

static ls_status read_cells(const reader *r, row *w, char cells[][CELL])
{
    const char *of[COLUMNS];
    double final;
    ls_status st = LS_OK;

    for (int i = 0; i < COLUMNS; i++) of[r->order[i]] = cells[i];
    *w = (row){.line = r->line};
    snprintf(w->series, sizeof w->series, "%s", of[SERIES]);
    if (w->series[0] == '\0' || strlen(of[SERIES]) >= CELL - 1) /* may have been cut */
        LS_TRY(refuse(r, SERIES, of[SERIES], "a name of up to 62 characters"));
    LS_TRY(whole(r, RANKS, of[RANKS], 1, &w->ranks));
    LS_TRY(whole(r, SEED, of[SEED], 0, &w->seed));
    LS_TRY(whole(r, BATCH, of[BATCH], 1, &w->batch));
    LS_TRY(whole(r, STEPS, of[STEPS], 1, &w->steps));
    if (w->batch % w->ranks != 0)
        LS_TRY(refuse(r, BATCH, of[BATCH], "the samples of all ranks, a multiple of ranks"));
    w->diverged = strcmp(of[END], "diverged") == 0;
    if (!w->diverged && strcmp(of[END], "completed") != 0)
        LS_TRY(refuse(r, END, of[END], "completed or diverged"));
    LS_TRY(share(r, EPOCH_1, of[EPOCH_1], &w->epoch_1));
    LS_TRY(share(r, BEST, of[BEST], &w->best));
    LS_TRY(share(r, FINAL, of[FINAL], &final));
    if (w->best < w->epoch_1 || w->best < final)
        LS_TRY(refuse(r, BEST, of[BEST], "at least what epoch_1 and final are"));
out:
    return st;
}

/* The same training twice; and as many updates as whole epochs of these data have. */
static ls_status check_row(const reader *r, const row *w)
{
    const int64_t epoch = r->t->samples > 0 ? (r->t->samples + w->batch - 1) / w->batch : 1;

    for (int i = 0; i < r->n; i++) {
        const row *o = &r->rows[i];
        if (o->batch == w->batch && o->ranks == w->ranks && o->seed == w->seed &&
            strcmp(o->series, w->series) == 0)
            return ls_fail(
                r->err, LS_INVALID,
                "%s:%d: series %s, %lld ranks, seed %lld are in line %d already; leave one of them "
                "out",
                r->path, r->line, w->series, (long long)w->ranks, (long long)w->seed, o->line);
    }
    if (w->diverged || w->steps % epoch == 0) return LS_OK;
    return ls_fail(r->err, LS_INVALID,
                   "%s:%d: steps: %lld updates of %lld samples are not whole epochs of %lld samples; is the "
                   "study of other data?  --samples N says how many those of the experiment are",
                   r->path, r->line, (long long)w->steps, (long long)w->batch, (long long)r->t->samples);
}

static ls_status read_rows(reader *r)
{
    char cells[COLUMNS][CELL];
    const char *text;
    size_t length;
    ls_status st = LS_OK;

    r->rows = ls_alloc(LS_MEM_CLI, sizeof *r->rows * LS_TRAININGS_MAX);
    if (r->rows == NULL) return ls_fail(r->err, LS_NOMEM, "no memory for %s", r->path);
    while (next_line(r, &text, &length)) {
        const int n = cut(text, length, cells, COLUMNS);
        if (n != COLUMNS)
            return ls_fail(r->err, LS_INVALID, "%s:%d: %d cells; the header has %d", r->path, r->line, n,
                           (int)COLUMNS);
        if (r->n == LS_TRAININGS_MAX)
            return ls_fail(r->err, LS_INVALID, "%s:%d: more than %d rows", r->path, r->line,
                           (int)LS_TRAININGS_MAX);
        LS_TRY(read_cells(r, &r->rows[r->n], cells));
        LS_TRY(check_row(r, &r->rows[r->n]));
        r->n++;
    }
    if (r->n == 0)
        st = ls_fail(r->err, LS_INVALID, "%s: there are no trainings in it, only the header", r->path);
out:
    return st;
}

/* -- series -----------------------------------------------------------------------------------------------
 */

/* Their names, each once: "none, warmup, lars"; returns how many. */
static int list_series(const reader *r, char *buf, size_t size)
{
    size_t at = 0;
    int n = 0;

    buf[0] = '\0';
    for (int i = 0; i < r->n; i++) {
        char shown[WORD];
        int k = 0;
        while (strcmp(r->rows[k].series, r->rows[i].series) != 0) k++;
        if (k < i) continue;
        ls_printable(r->rows[i].series, strlen(r->rows[i].series), shown, sizeof shown);
        ls_text_fit(buf + at, size - at, "%s%s", n > 0 ? ", " : "", shown);
        at = strlen(buf);
        n++;
    }
    return n;
}

static ls_status choose_series(const reader *r, const char **series)
{
    char names[512];
    const int n = list_series(r, names, sizeof names);

    if ((*series)[0] == '\0' && n > 1)
        return ls_fail(
            r->err, LS_INVALID,
            "%s has %d series (%s), which were trained in different ways; choose one: --study %s:%s", r->path,
            n, names, r->path, r->rows[0].series);
    if ((*series)[0] == '\0') *series = r->rows[0].series;
    for (int i = 0; i < r->n; i++)
        if (strcmp(r->rows[i].series, *series) == 0) return LS_OK;
    return ls_fail(r->err, LS_INVALID, "%s: there is no series \"%s\"; there %s %s", r->path, *series,
                   n == 1 ? "is" : "are", names);
}

/* When it was reached is written of the first epoch alone. */
static ls_training training_of(const ls_trainings *t, const row *w)
{
    const bool at_once = t->samples > 0 && w->epoch_1 >= t->target;

    return (ls_training){.batch = w->batch,
                         .seed = w->seed,
                         .best = w->best,
                         .reached = w->best >= t->target,
                         .steps = at_once ? (t->samples + w->batch - 1) / w->batch : w->steps,
                         .at_most = !at_once};
}

ls_status ls_trainings_csv(ls_trainings *t, const char *text, size_t n, const char *path, const char *series,
                           ls_err *err)
{
    reader r = {.t = t, .path = path, .at = text, .end = text + n, .err = err};
    ls_status st = LS_OK;

    if (memchr(text, '\0', n) != NULL)
        return ls_fail(err, LS_INVALID, "%s: there are bytes in it that are no text", path);
    LS_TRY(read_header(&r));
    LS_TRY(read_rows(&r));
    LS_TRY(choose_series(&r, &series));
    for (int i = 0; i < r.n; i++) {
        const ls_training one = training_of(t, &r.rows[i]);
        if (strcmp(r.rows[i].series, series) == 0) LS_TRY(ls_trainings_add(t, &one, err));
    }
out:
    ls_free(r.rows);
    return st;
}

ls_status ls_trainings_open(ls_trainings *t, const char *word, ls_err *err)
{
    struct stat info;
    const char *colon = stat(word, &info) == 0 ? NULL : strrchr(word, ':');
    char path[4096], *text = NULL;
    size_t n;
    ls_status st = LS_OK;

    snprintf(path, sizeof path, "%.*s", (int)(colon != NULL ? (size_t)(colon - word) : strlen(word)), word);
    if (ls_whole_plain(&text, &n, path, FILE_BYTES, err) != LS_OK) {
        ls_err why = {0};
        ls_fail(&why, LS_INVALID, "--study %s", err != NULL ? err->text : path);
        if (err != NULL) *err = why;
        st = LS_INVALID;
        goto out;
    }
    LS_TRY(ls_trainings_csv(t, text, n, path, colon != NULL ? colon + 1 : "", err));
    ls_trainings_name(t, word);
out:
    ls_free(text);
    return st;
}
