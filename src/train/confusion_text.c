/* confusion_text.c: the counts of a classifier's answers for people: on the terminal and on a page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/whole.h"
#include "events/table.h"
#include "train/confusion.h"

enum {
    ROWS = 40,              /* classes in a table; of more, the worst */
    COLUMNS = 12,           /* classes of a matrix on a terminal */
    PAGE_COLUMNS = 32,      /* ... and on a page */
    MOST_BYTES = 64 << 20,  /* of a file */
    MOST_CLASSES = 1 << 20, /* in a file */
};

/* One class as the file has it. */
typedef struct row {
    int64_t class, samples, right;
    char name[48];
    double accuracy; /* 2: it has no samples */
} row;

/* Names come from outside, and end up on a terminal: what is no plain text is replaced. */
static void set_name(row *r, const json_t *o)
{
    const char *name = json_string_value(json_object_get(o, "name"));

    if (name != NULL)
        snprintf(r->name, sizeof r->name, "%.40s", name);
    else
        snprintf(r->name, sizeof r->name, "%lld", (long long)r->class);
    for (char *c = r->name; *c != '\0'; c++)
        if ((unsigned char)*c < 0x20 || *c == 0x7f) *c = '?';
}

static int64_t count_of(const json_t *o, const char *key)
{
    const json_int_t n = json_integer_value(json_object_get(o, key));

    return n > 0 ? n : 0;
}

/* The classes, in their order; *n of them. */
static ls_status read_rows(const json_t *o, row **out, size_t *n, ls_err *err)
{
    const json_t *list = json_object_get(o, "per_class"), *item;
    size_t i;

    *n = json_array_size(list);
    if (*n == 0 || *n > MOST_CLASSES) return ls_fail(err, LS_DATA, "per_class: no list of classes");
    *out = ls_alloc(LS_MEM_CLI, sizeof **out * *n);
    if (*out == NULL) return ls_fail(err, LS_NOMEM, "no memory for %zu classes", *n);
    json_array_foreach(list, i, item)
    {
        row *r = &(*out)[i];
        *r = (row){.class = count_of(item, "class"),
                   .samples = count_of(item, "samples"),
                   .right = count_of(item, "right")};
        r->accuracy = r->samples > 0 ? (double)r->right / (double)r->samples : 2;
        set_name(r, item);
    }
    return LS_OK;
}

static int worst_first(const void *a, const void *b)
{
    const row *x = a, *y = b;

    if (x->accuracy != y->accuracy) return x->accuracy < y->accuracy ? -1 : 1;
    return x->class < y->class ? -1 : x->class > y->class;
}

/* What a class is taken for most often, with the name; "" where it never is. */
static void mistaken_for(const json_t *o, const row *rows, size_t n, const row *r, char *buf, size_t size)
{
    const json_t *line = json_array_get(json_object_get(o, "matrix"), (size_t)r->class);
    size_t best = n;
    json_int_t most = 0;

    buf[0] = '\0';
    for (size_t k = 0; k < n && k < json_array_size(line); k++) {
        const json_int_t v = json_integer_value(json_array_get(line, k));
        if ((int64_t)k == r->class || v <= most) continue;
        most = v;
        best = k;
    }
    if (best < n) snprintf(buf, size, "%s (%lld)", rows[best].name, (long long)most);
}

/* -- terminal ---------------------------------------------------------------------------------------------
 */

static ls_status add_classes(const json_t *o, const row *rows, const row *order, size_t n, ls_text *out,
                             ls_err *err)
{
    const size_t shown = n < ROWS ? n : ROWS;
    ls_table *t = NULL;
    ls_status st = LS_OK;

    LS_TRY(ls_table_create(&t, "lrrrl", err));
    ls_table_row(t, (const char *[]){"class", "samples", "right", "accuracy", "taken for most often"});
    ls_table_rule(t);
    for (size_t i = 0; i < shown; i++) {
        char samples[32], right[32], accuracy[32] = "", other[80];
        snprintf(samples, sizeof samples, "%lld", (long long)order[i].samples);
        snprintf(right, sizeof right, "%lld", (long long)order[i].right);
        if (order[i].samples > 0) snprintf(accuracy, sizeof accuracy, "%.4f", order[i].accuracy);
        mistaken_for(o, rows, n, &order[i], other, sizeof other);
        ls_table_row(t, (const char *[]){order[i].name, samples, right, accuracy, other});
    }
    LS_TRY(ls_table_print(t, out, err));
    if (shown < n) ls_text_add(out, "(%zu classes, the worst %zu of them)\n", n, shown);
out:
    ls_table_destroy(t);
    return st;
}

static ls_status add_matrix(const json_t *o, const row *rows, size_t n, ls_text *out, ls_err *err)
{
    const json_t *matrix = json_object_get(o, "matrix");
    char align[COLUMNS + 2] = "l", cells[COLUMNS + 1][48];
    const char *line[COLUMNS + 1];
    ls_table *t = NULL;
    ls_status st = LS_OK;

    if (n > COLUMNS || json_array_size(matrix) != n) return LS_OK;
    for (size_t k = 0; k < n; k++) align[k + 1] = 'r';
    LS_TRY(ls_table_create(&t, align, err));
    for (size_t k = 0; k <= n; k++) line[k] = k == 0 ? "is \\ taken for" : rows[k - 1].name;
    ls_table_row(t, line);
    ls_table_rule(t);
    for (size_t i = 0; i < n; i++) {
        for (size_t k = 0; k < n; k++) {
            const json_int_t v = json_integer_value(json_array_get(json_array_get(matrix, i), k));
            snprintf(cells[k], sizeof cells[k], "%lld", (long long)v);
            line[k + 1] = v != 0 ? cells[k] : ".";
        }
        line[0] = rows[i].name;
        ls_table_row(t, line);
    }
    ls_text_add(out, "\n");
    LS_TRY(ls_table_print(t, out, err));
out:
    ls_table_destroy(t);
    return st;
}

ls_status ls_confusion_text(const json_t *o, ls_text *out, ls_err *err)
{
    row *rows = NULL, *order = NULL;
    size_t n = 0;
    ls_status st = LS_OK;

    LS_TRY(read_rows(o, &rows, &n, err));
    LS_TRY(read_rows(o, &order, &n, err));
    if (n > ROWS) qsort(order, n, sizeof *order, worst_first);
    LS_TRY(add_classes(o, rows, order, n, out, err));
    LS_TRY(add_matrix(o, rows, n, out, err));
out:
    ls_free(rows);
    ls_free(order);
    return st;
}

/* -- page -------------------------------------------------------------------------------------------------
 */

static ls_status class_sheet(ls_report *page, const json_t *o, const row *rows, size_t n, int number,
                             ls_err *err)
{
    static const ls_sheet_column columns[] = {
        {"class", 'l'}, {"samples", 'r'}, {"right", 'r'}, {"accuracy", 'r'}, {"taken for most often", 'l'}};
    char id[32], other[80];
    ls_sheet *s = NULL;
    ls_status st = LS_OK;

    snprintf(id, sizeof id, "classes-%d", number);
    LS_TRY(ls_sheet_create(&s, id, NULL, columns, 5, err));
    for (size_t i = 0; i < n; i++) {
        ls_sheet_cell(s, "%s", rows[i].name);
        ls_sheet_number(s, (double)rows[i].samples, "%lld", (long long)rows[i].samples);
        ls_sheet_number(s, (double)rows[i].right, "%lld", (long long)rows[i].right);
        if (rows[i].samples > 0)
            ls_sheet_number(s, rows[i].accuracy, "%.4f", rows[i].accuracy);
        else
            ls_sheet_cell(s, "%s", "");
        mistaken_for(o, rows, n, &rows[i], other, sizeof other);
        ls_sheet_cell(s, "%s", other);
    }
    ls_report_sheet(page, s);
out:
    ls_sheet_destroy(s);
    return st;
}

static ls_status matrix_sheet(ls_report *page, const json_t *o, const row *rows, size_t n, int number,
                              ls_err *err)
{
    const json_t *matrix = json_object_get(o, "matrix");
    ls_sheet_column columns[PAGE_COLUMNS + 1] = {{"is, taken for", 'l'}};
    ls_sheet *s = NULL;
    char id[32];
    ls_status st = LS_OK;

    if (n > PAGE_COLUMNS || json_array_size(matrix) != n) return LS_OK;
    for (size_t k = 0; k < n; k++) columns[k + 1] = (ls_sheet_column){rows[k].name, 'r'};
    snprintf(id, sizeof id, "confusion-%d", number);
    LS_TRY(ls_sheet_create(&s, id, NULL, columns, (int)n + 1, err));
    for (size_t i = 0; i < n; i++) {
        ls_sheet_cell(s, "%s", rows[i].name);
        for (size_t k = 0; k < n; k++) {
            const json_int_t v = json_integer_value(json_array_get(json_array_get(matrix, i), k));
            ls_sheet_number(s, (double)v, "%lld", (long long)v);
        }
    }
    ls_report_sheet(page, s);
out:
    ls_sheet_destroy(s);
    return st;
}

ls_status ls_confusion_page(ls_report *page, const char *path, const char *title, int number, ls_err *err)
{
    const char *weights;
    char file[4300], *text = NULL;
    json_t *o = NULL;
    row *rows = NULL;
    size_t bytes = 0, n = 0;
    ls_err why = {0};
    ls_status st = LS_OK;

    snprintf(file, sizeof file, "%s/%s", path, LS_CONFUSION_FILE);
    if (access(file, F_OK) != 0) return LS_OK;
    if (ls_whole_file(&text, &bytes, file, MOST_BYTES, &why) == LS_OK) o = json_loadb(text, bytes, 0, NULL);
    if (o == NULL || read_rows(o, &rows, &n, &why) != LS_OK) {
        ls_report_note(page, "%s: cannot be read as counts of classes", file);
        goto out;
    }
    weights = json_string_value(json_object_get(o, "weights"));
    ls_report_heading(page, "Classes: %s", title);
    ls_report_paragraph(page, "%lld test samples, with the %s weights (step %lld).",
                        (long long)count_of(o, "samples"), weights != NULL ? weights : "given",
                        (long long)count_of(o, "step"));
    LS_TRY(class_sheet(page, o, rows, n, number, err));
    LS_TRY(matrix_sheet(page, o, rows, n, number, err));
out:
    ls_free(rows);
    ls_free(text);
    json_decref(o);
    return st;
}
