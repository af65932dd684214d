/* table.c: keeps the cells, finds the widths, prints. */
#include "events/table.h"

#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"

#define GAP "  "

struct ls_table {
    ls_arena *arena; /* of `align` and all cells */
    const char *align;
    int n_columns;
    char ***rows; /* NULL is a rule */
    int64_t n_rows;
    size_t capacity;
    bool failed;
};

int lsi_width(const char *text)
{
    int n = 0;
    for (; text && *text; text++) n += ((unsigned char)*text & 0xC0) != 0x80;
    return n;
}

ls_status ls_table_create(ls_table **out, const char *align, ls_err *err)
{
    ls_status st = LS_OK;
    *out = NULL;
    ls_table *t = ls_alloc(LS_MEM_CLI, sizeof *t);
    if (!t) return ls_fail(err, LS_NOMEM, "table: out of memory");
    LS_TRY(ls_arena_create(&t->arena, LS_MEM_CLI, err));
    t->n_columns = (int)strlen(align);
    t->align = ls_arena_strdup(t->arena, align);
    if (!t->align) {
        st = ls_fail(err, LS_NOMEM, "table: out of memory");
        goto out;
    }
    *out = t;
    t = NULL;
out:
    ls_table_destroy(t);
    return st;
}

void ls_table_destroy(ls_table *t)
{
    if (!t) return;
    ls_arena_destroy(t->arena);
    ls_free(t->rows);
    ls_free(t);
}

static void add_row(ls_table *t, char **cells)
{
    if (!LS_GROW(LS_MEM_CLI, t->rows, t->n_rows + 1, t->capacity)) {
        t->failed = true;
        return;
    }
    t->rows[t->n_rows++] = cells;
}

void ls_table_row(ls_table *t, const char *const *cells)
{
    char **copy = ls_arena_alloc(t->arena, (size_t)t->n_columns * sizeof *copy);
    for (int c = 0; copy && c < t->n_columns; c++) {
        copy[c] = ls_arena_strdup(t->arena, cells[c] ? cells[c] : "");
        if (!copy[c]) copy = NULL;
    }
    if (!copy) {
        t->failed = true;
        return;
    }
    add_row(t, copy);
}

void ls_table_rule(ls_table *t)
{
    add_row(t, NULL);
}

static int column_width(const ls_table *t, int column)
{
    int widest = 0;
    for (int64_t r = 0; r < t->n_rows; r++) {
        int n = t->rows[r] ? lsi_width(t->rows[r][column]) : 0;
        if (n > widest) widest = n;
    }
    return widest;
}

static void add_blanks(ls_text *out, int n)
{
    ls_text_add(out, "%*s", n, "");
}

static void print_row(const ls_table *t, char **cells, const int *widths, ls_text *out)
{
    int owed = 0; /* blanks that are written only when something follows them */
    for (int c = 0; c < t->n_columns; c++) {
        int text = lsi_width(cells[c]), pad = widths[c] - text;
        bool right = t->align[c] == 'r';
        if (right) owed += pad;
        if (text > 0) {
            add_blanks(out, owed);
            ls_text_add(out, "%s", cells[c]);
            owed = 0;
        }
        if (!right) owed += pad;
        owed += (int)strlen(GAP);
    }
    ls_text_add(out, "\n");
}

static void print_rule(const ls_table *t, const int *widths, ls_text *out)
{
    for (int c = 0; c < t->n_columns; c++) {
        if (c > 0) ls_text_add(out, "%s", GAP);
        for (int i = 0; i < widths[c]; i++) ls_text_add(out, "-");
    }
    ls_text_add(out, "\n");
}

ls_status ls_table_print(const ls_table *t, ls_text *out, ls_err *err)
{
    int *widths = ls_alloc(LS_MEM_CLI, ((size_t)t->n_columns + 1) * sizeof *widths);
    if (!widths || t->failed) {
        ls_free(widths);
        return ls_fail(err, LS_NOMEM, "table: out of memory");
    }
    for (int c = 0; c < t->n_columns; c++) widths[c] = column_width(t, c);
    for (int64_t r = 0; r < t->n_rows; r++) {
        if (t->rows[r]) {
            print_row(t, t->rows[r], widths, out);
        } else {
            print_rule(t, widths, out);
        }
    }
    ls_free(widths);
    return out->failed ? ls_fail(err, LS_NOMEM, "table: out of memory") : LS_OK;
}
