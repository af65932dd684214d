/* runs_metrics.c: `lockstep runs metrics RUN`: metrics.jsonl as a table: a row per report, a column per name.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/output.h"
#include "base/whole.h"
#include "events/metrics_reader.h"
#include "grid.h"
#include "report/sheet.h"
#include "runs.h"

/* It is read as a whole; a larger one is refused before it takes the memory. */
#define MOST_BYTES ((size_t)1 << 30)
enum { COLUMNS_MOST = 300 };

typedef struct metrics {
    json_t **rows;
    int64_t n;
    size_t capacity;
    const char *names[COLUMNS_MOST]; /* the rows' */
    int n_names;
    ls_metrics_damage damage;
} metrics;

/* Columns in the order in which they are met: validations bring theirs when the first one is over. */
static ls_status add_names(metrics *m, json_t *row, ls_err *err)
{
    const char *name;
    json_t *value;

    json_object_foreach(row, name, value)
    {
        int i = 0;
        while (i < m->n_names && strcmp(m->names[i], name) != 0) i++;
        if (i < m->n_names) continue;
        if (m->n_names == COLUMNS_MOST) return ls_fail(err, LS_DATA, "more than %d names", COLUMNS_MOST);
        m->names[m->n_names++] = name;
    }
    return LS_OK;
}

static ls_status parse(metrics *m, const char *text, size_t n, const char *path, ls_err *err)
{
    ls_metrics_reader r;
    json_t *row;
    ls_status st = LS_OK;

    ls_metrics_reader_begin(&r, text, n);
    while (st == LS_OK && (row = ls_metrics_next(&r)) != NULL) {
        if (!LS_GROW(LS_MEM_CLI, m->rows, m->n + 1, m->capacity)) {
            st = ls_fail(err, LS_NOMEM, "no memory for the metrics of a run");
            json_decref(row);
            break;
        }
        m->rows[m->n++] = row;
        st = add_names(m, row, err);
    }
    m->damage = r.damage;
    if (st != LS_OK) ls_fail_in(err, st, "%s, line %lld", path, (long long)r.line);
    return st;
}

static void print_csv(const metrics *m)
{
    char buf[512];
    ls_text line = {0};

    for (int k = 0; k < m->n_names; k++) {
        if (k > 0) ls_text_add(&line, ",");
        ls_csv_cell(&line, grid_shown(m->names[k], buf, sizeof buf));
    }
    printf("%s\r\n", line.data != NULL ? line.data : "");
    for (int64_t i = 0; i < m->n; i++) {
        for (int k = 0; k < m->n_names; k++) {
            const json_t *v = json_object_get(m->rows[i], m->names[k]);
            if (k > 0) putchar(',');
            if (json_is_integer(v)) printf("%lld", (long long)json_integer_value(v));
            if (json_is_real(v)) printf("%.9g", json_real_value(v));
        }
        fputs("\r\n", stdout);
    }
    ls_text_release(&line);
    ls_output_flush();
}

static void print_json(const metrics *m, const char *path)
{
    json_t *columns = json_object();

    for (int k = 0; k < m->n_names; k++) {
        json_t *column = json_array();
        for (int64_t i = 0; i < m->n; i++) {
            json_t *v = json_object_get(m->rows[i], m->names[k]);
            json_array_append_new(column, json_is_number(v) ? json_incref(v) : json_null());
        }
        json_object_set_new(columns, m->names[k], column);
    }
    cli_print_json_take(json_pack("{s:s, s:o, s:I, s:I, s:o}", "event", "metrics", "run",
                                  runs_text_json(path), "rows", (json_int_t)m->n, "damaged_lines",
                                  (json_int_t)m->damage.lines, "columns", columns));
}

int runs_metrics(const cli_args *args)
{
    char path[LS_PATH_MAX], file[LS_PATH_MAX + 32], *text = NULL;
    metrics m = {0};
    ls_err err = {0};
    ls_status st = LS_OK;
    size_t n;

    LS_TRY(runs_find(path, args, 0, &err));
    snprintf(file, sizeof file, "%s/metrics.jsonl", path);
    LS_TRY(ls_whole_plain(&text, &n, file, MOST_BYTES, &err));
    LS_TRY(parse(&m, text, n, file, &err));
    /* A run that was killed may have left half a line, and is worth looking at all the same. */
    ls_metrics_warn(&m.damage, file);
    if (args->json)
        print_json(&m, path);
    else
        print_csv(&m);
out:
    for (int64_t i = 0; i < m.n; i++) json_decref(m.rows[i]);
    ls_free(m.rows);
    ls_free(text);
    return st == LS_OK ? CLI_DONE : cli_fail("runs", &err);
}
