/* grid.c: keeps the cells, prints them in either form. */
#include "grid.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/output.h"
#include "base/printable.h"
#include "events/table.h"
#include "report/sheet.h"

enum { COLUMNS_MOST = 200, CELL_MOST = 256 };

typedef struct cell {
    const char *text, *csv; /* csv: NULL where it is the text */
} cell;

struct grid {
    ls_arena *arena;
    const char *name[COLUMNS_MOST];
    char align[COLUMNS_MOST + 1];
    int n_columns;
    cell *cells;
    int64_t n_cells;
    size_t capacity;
    bool failed;
};

ls_status grid_create(grid **out, ls_err *err)
{
    grid *g = ls_alloc(LS_MEM_CLI, sizeof *g);
    ls_status st = LS_OK;

    *out = NULL;
    if (g == NULL) return ls_fail(err, LS_NOMEM, "no memory for a table");
    LS_TRY(ls_arena_create(&g->arena, LS_MEM_CLI, err));
    *out = g;
    g = NULL;
out:
    grid_destroy(g);
    return st;
}

void grid_destroy(grid *g)
{
    if (g == NULL) return;
    ls_arena_destroy(g->arena);
    ls_free(g->cells);
    ls_free(g);
}

const char *grid_shown(const char *text, char *buf, size_t size)
{
    ls_printable(text, strlen(text), buf, size);
    for (char *at = buf; *at != '\0'; at++)
        if (*at == '\n' || *at == '\t') *at = ' ';
    return buf;
}

/* Names and values come from files that anybody may have written: they are made harmless for a terminal once,
 * where they are taken in. */
static const char *keep(grid *g, const char *text)
{
    char buf[CELL_MOST];
    const char *kept = ls_arena_strdup(g->arena, grid_shown(text, buf, sizeof buf));

    g->failed |= kept == NULL;
    return kept != NULL ? kept : "";
}

void grid_column(grid *g, const char *name, char align)
{
    if (g->n_columns == COLUMNS_MOST) return; /* of more, nobody reads any */
    g->align[g->n_columns] = align;
    g->name[g->n_columns++] = keep(g, name);
}

/* Cells follow one another, row after row: who adds them need not know how many columns there are.  Failures
 * are told when it is printed. */
static void add(grid *g, cell c)
{
    if (LS_GROW(LS_MEM_CLI, g->cells, g->n_cells + 1, g->capacity))
        g->cells[g->n_cells++] = c;
    else
        g->failed = true;
}

void grid_text(grid *g, const char *text)
{
    add(g, (cell){text != NULL ? keep(g, text) : "", NULL});
}

void grid_texts(grid *g, const char *text, const char *csv)
{
    add(g, (cell){keep(g, text), keep(g, csv)});
}

void grid_both(grid *g, double value, const char *text)
{
    char number[40] = "";

    if (isfinite(value)) snprintf(number, sizeof number, "%.9g", value);
    add(g, (cell){keep(g, text), keep(g, number)});
}

void grid_number(grid *g, double value, int digits)
{
    char text[40] = "";

    if (isfinite(value)) snprintf(text, sizeof text, "%.*g", digits, value);
    grid_both(g, value, text);
}

static int64_t rows_of(const grid *g)
{
    return g->n_columns > 0 ? g->n_cells / g->n_columns : 0;
}

static int column_width(const grid *g, int k)
{
    int most = lsi_width(g->name[k]);

    for (int64_t r = 0; r < rows_of(g); r++) {
        const int w = lsi_width(g->cells[r * g->n_columns + k].text);
        if (w > most) most = w;
    }
    return most;
}

/* How many columns fit. */
static int columns_shown(const grid *g, int width)
{
    int at = 0, n = 0;

    while (n < g->n_columns) {
        at += column_width(g, n) + (n > 0 ? 2 : 0);
        if (width > 0 && at > width && n > 0) break;
        n++;
    }
    return n;
}

ls_status grid_print(const grid *g, int width, ls_err *err)
{
    const int shown = columns_shown(g, width);
    const char *row[COLUMNS_MOST];
    char align[COLUMNS_MOST + 1];
    ls_table *t = NULL;
    ls_text text = {0};
    ls_status st = LS_OK;

    snprintf(align, sizeof align, "%.*s", shown, g->align);
    LS_TRY(ls_table_create(&t, align, err));
    ls_table_row(t, g->name);
    ls_table_rule(t);
    for (int64_t r = 0; r < rows_of(g); r++) {
        for (int k = 0; k < shown; k++) row[k] = g->cells[r * g->n_columns + k].text;
        ls_table_row(t, row);
    }
    LS_TRY(ls_table_print(t, &text, err));
    if (g->failed) {
        st = ls_fail(err, LS_NOMEM, "no memory for a table");
        goto out;
    }
    fputs(text.data, stdout);
    /* Nobody should take what has no room for what is not there. */
    if (shown < g->n_columns) {
        printf("(%d more columns:", g->n_columns - shown);
        for (int k = shown; k < g->n_columns; k++) printf("%s %s", k > shown ? "," : "", g->name[k]);
        printf("; --wide shows them)\n");
    }
out:
    ls_text_release(&text);
    ls_table_destroy(t);
    return st;
}

ls_status grid_print_csv(const grid *g, ls_err *err)
{
    ls_text text = {0};
    ls_status st = LS_OK;

    for (int64_t r = -1; r < rows_of(g); r++) {
        for (int k = 0; k < g->n_columns; k++) {
            const cell c = r < 0 ? (cell){g->name[k], NULL} : g->cells[r * g->n_columns + k];
            if (k > 0) ls_text_add(&text, ",");
            ls_csv_cell(&text, c.csv != NULL ? c.csv : c.text);
        }
        /* As RFC 4180 has it, and spreadsheets expect. */
        ls_text_add(&text, "\r\n");
    }
    if (g->failed || text.failed)
        st = ls_fail(err, LS_NOMEM, "no memory for a table");
    else if (text.data != NULL)
        fputs(text.data, stdout);
    ls_text_release(&text);
    ls_output_flush();
    return st;
}

int grid_terminal_width(void)
{
    struct winsize w = {0};

    /* A file has no edge: whoever reads it gets all columns. */
    if (isatty(STDOUT_FILENO) != 1) return 0;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}
