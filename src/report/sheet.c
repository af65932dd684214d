/* sheet.c: tables as HTML, Markdown and CSV. */
#include "report/sheet.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "report/report_internal.h"

typedef struct sheet_cell {
    const char *text, *csv; /* csv: NULL where it is the text */
    int colour;             /* 0: no mark */
} sheet_cell;

struct ls_sheet {
    ls_arena *arena; /* holds this and all that belongs to it, but for the list of cells */
    const char *id, *title;
    ls_sheet_column *columns;
    int *colours; /* of the columns; 0: no mark */
    int n_columns;
    sheet_cell *cells;
    int64_t n_cells;
    size_t capacity;
    bool failed;
};

ls_status ls_sheet_create(ls_sheet **out, const char *id, const char *title, const ls_sheet_column *columns,
                          int n_columns, ls_err *err)
{
    ls_arena *arena = NULL;
    ls_sheet *s = NULL;
    ls_status st = LS_OK;

    *out = NULL;
    LS_BUG_IF(n_columns < 1);
    LS_TRY(lsi_check_id(id, err));
    LS_TRY(ls_arena_create(&arena, LS_MEM_CLI, err));
    s = ls_arena_alloc(arena, sizeof *s);
    if (s == NULL || (s->columns = ls_arena_alloc(arena, (size_t)n_columns * sizeof *columns)) == NULL ||
        (s->colours = ls_arena_alloc(arena, (size_t)n_columns * sizeof *s->colours)) == NULL ||
        (s->id = ls_arena_strdup(arena, id)) == NULL ||
        (title != NULL && (s->title = ls_arena_strdup(arena, title)) == NULL)) {
        st = ls_fail(err, LS_NOMEM, "no memory for a table");
        goto out;
    }
    for (int i = 0; i < n_columns; i++) {
        s->columns[i] = (ls_sheet_column){ls_arena_strdup(arena, columns[i].name), columns[i].align};
        s->failed |= s->columns[i].name == NULL;
    }
    s->n_columns = n_columns;
    s->arena = arena;
    *out = s;
    arena = NULL;
out:
    ls_arena_destroy(arena);
    return st;
}

void ls_sheet_destroy(ls_sheet *s)
{
    if (s == NULL) return;
    ls_free(s->cells);
    ls_arena_destroy(s->arena);
}

const char *lsi_sheet_id(const ls_sheet *s)
{
    return s->id;
}

/* Room for one more; NULL, and the sheet has failed, when there is none. */
static sheet_cell *add_cell(ls_sheet *s)
{
    if (!LS_GROW(LS_MEM_CLI, s->cells, s->n_cells + 1, s->capacity)) {
        s->failed = true;
        return NULL;
    }
    s->cells[s->n_cells] = (sheet_cell){.text = ""};
    return &s->cells[s->n_cells++];
}

/* A new cell with this text; NULL when there is no memory for a cell. */
static sheet_cell *add_text(ls_sheet *s, const char *fmt, va_list ap)
{
    sheet_cell *c = add_cell(s);
    va_list again;
    char *text;
    int n;

    if (c == NULL) return NULL;
    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    LS_BUG_IF(n < 0);
    text = ls_arena_alloc(s->arena, (size_t)n + 1);
    if (text == NULL) {
        s->failed = true;
        return c;
    }
    vsnprintf(text, (size_t)n + 1, fmt, ap);
    c->text = text;
    return c;
}

void ls_sheet_cell(ls_sheet *s, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    (void)add_text(s, fmt, ap);
    va_end(ap);
}

void ls_sheet_number(ls_sheet *s, double value, const char *fmt, ...)
{
    sheet_cell *c;
    va_list ap;

    va_start(ap, fmt);
    c = add_text(s, fmt, ap);
    va_end(ap);
    if (c == NULL) return;
    c->csv = isfinite(value) ? ls_arena_printf(s->arena, "%.9g", value) : "";
    s->failed |= c->csv == NULL;
}

void ls_sheet_mark(ls_sheet *s, int colour)
{
    if (s->n_cells > 0) s->cells[s->n_cells - 1].colour = colour;
}

void ls_sheet_mark_column(ls_sheet *s, int column, int colour)
{
    s->colours[column] = colour;
}

/* -- the three forms ---------------------------------------------------------------------------------------
 */

static int64_t n_rows(const ls_sheet *s)
{
    return (s->n_cells + s->n_columns - 1) / s->n_columns;
}

/* Row -1 is the head. */
static sheet_cell cell(const ls_sheet *s, int64_t row, int column)
{
    const int64_t i = row * s->n_columns + column;

    if (row < 0) return (sheet_cell){.text = s->columns[column].name, .colour = s->colours[column]};
    return i < s->n_cells ? s->cells[i] : (sheet_cell){.text = ""};
}

static bool is_shown(const ls_sheet *s, int column)
{
    return s->columns[column].align != '-';
}

static ls_status finished(const ls_sheet *s, const ls_text *out, ls_err *err)
{
    if (s->failed || out->failed) return ls_fail(err, LS_NOMEM, "no memory for table \"%s\"", s->id);
    return LS_OK;
}

/* A bar would end the cell and a new line the row; the other signs are Markdown's or HTML's. */
static void add_markdown(ls_text *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (*text == '\n' || *text == '\r')
            ls_text_add(out, " ");
        else if (*text == '<')
            ls_text_add(out, "&lt;");
        else if (*text == '&')
            ls_text_add(out, "&amp;");
        else
            ls_text_add(out, strchr("|\\`*_[]", *text) != NULL ? "\\%c" : "%c", *text);
    }
}

ls_status ls_sheet_markdown(const ls_sheet *s, ls_text *out, ls_err *err)
{
    if (s->failed) return finished(s, out, err);
    for (int64_t row = -1; row < n_rows(s); row++) {
        for (int k = 0; k < s->n_columns; k++) {
            if (!is_shown(s, k)) continue;
            ls_text_add(out, "| ");
            add_markdown(out, cell(s, row, k).text);
            ls_text_add(out, " ");
        }
        ls_text_add(out, "|\n");
        if (row >= 0) continue;
        for (int k = 0; k < s->n_columns; k++)
            if (is_shown(s, k)) ls_text_add(out, s->columns[k].align == 'r' ? "|---:" : "|---");
        ls_text_add(out, "|\n");
    }
    return finished(s, out, err);
}

/* Is it a number with commas between thousands, such as -12,345.6? */
static bool has_thousands(const char *text)
{
    size_t n;

    if (*text == '-') text++;
    n = strspn(text, "0123456789");
    if (n < 1 || n > 3 || text[n] != ',') return false;
    for (text += n; *text == ','; text += 4)
        if (strspn(text + 1, "0123456789") != 3) return false;
    if (*text == '.') text += 1 + strspn(text + 1, "0123456789");
    return *text == '\0';
}

/* Would a spreadsheet calculate it?  A sign may begin a number, and a dash alone stands for nothing. */
static bool is_formula(const char *text)
{
    char *end;

    if (*text == '\0' || strchr("=+-@\t\r", *text) == NULL || strcmp(text, "-") == 0) return false;
    if ((*text != '+' && *text != '-') || strspn(text + 1, "0123456789.") == 0) return true;
    strtod(text, &end);
    return *end != '\0' || strpbrk(text, "xXpP") != NULL;
}

void ls_csv_cell(ls_text *out, const char *text)
{
    const char *before = is_formula(text) ? "'" : "";

    if (has_thousands(text)) {
        for (; *text != '\0'; text++)
            if (*text != ',') ls_text_add(out, "%c", *text);
    } else if (strpbrk(text, ",\"\r\n") == NULL) {
        ls_text_add(out, "%s%s", before, text);
    } else {
        ls_text_add(out, "\"%s", before);
        for (; *text != '\0'; text++) ls_text_add(out, *text == '"' ? "\"\"" : "%c", *text);
        ls_text_add(out, "\"");
    }
}

ls_status ls_sheet_csv(const ls_sheet *s, ls_text *out, ls_err *err)
{
    if (s->failed) return finished(s, out, err);
    for (int64_t row = -1; row < n_rows(s); row++) {
        for (int k = 0; k < s->n_columns; k++) {
            const sheet_cell c = cell(s, row, k);
            if (k > 0) ls_text_add(out, ",");
            ls_csv_cell(out, c.csv != NULL ? c.csv : c.text);
        }
        ls_text_add(out, "\r\n");
    }
    return finished(s, out, err);
}

static void html_row(const ls_sheet *s, int64_t row, ls_text *out)
{
    const char *tag = row < 0 ? "th" : "td";

    ls_text_add(out, "<tr>");
    for (int k = 0; k < s->n_columns; k++) {
        const sheet_cell c = cell(s, row, k);
        if (!is_shown(s, k)) continue;
        ls_text_add(out, "<%s%s>", tag, s->columns[k].align == 'r' ? " class=\"r\"" : "");
        if (c.colour > 0) ls_text_add(out, "<span class=\"swatch c%d\"></span>", c.colour);
        lsi_xml_text(out, c.text);
        ls_text_add(out, "</%s>", tag);
    }
    ls_text_add(out, "</tr>\n");
}

ls_status ls_sheet_html(const ls_sheet *s, ls_text *out, ls_err *err)
{
    if (s->failed) return finished(s, out, err);
    ls_text_add(out, "<div class=\"table\" id=\"table-%s\">\n<table>\n", s->id);
    if (s->title != NULL) {
        ls_text_add(out, "<caption>");
        lsi_xml_text(out, s->title);
        ls_text_add(out, "</caption>\n");
    }
    ls_text_add(out, "<thead>");
    html_row(s, -1, out);
    ls_text_add(out, "</thead>\n<tbody>\n");
    for (int64_t row = 0; row < n_rows(s); row++) html_row(s, row, out);
    ls_text_add(out, "</tbody>\n</table>\n</div>\n");
    return finished(s, out, err);
}
