/* sheet.c: tables as HTML, Markdown and CSV. */
#include "report/sheet.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "report/report_internal.h"

struct ls_sheet {
    ls_arena *arena; /* holds this and all that belongs to it, but for the list of cells */
    const char *id, *title;
    ls_sheet_column *columns;
    int n_columns;
    const char **cells;
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

void ls_sheet_cell(ls_sheet *s, const char *fmt, ...)
{
    char *text;
    va_list ap;
    int n;

    if (!LS_GROW(LS_MEM_CLI, s->cells, s->n_cells + 1, s->capacity)) {
        s->failed = true;
        return;
    }
    va_start(ap, fmt);
    n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    LS_BUG_IF(n < 0);
    text = ls_arena_alloc(s->arena, (size_t)n + 1);
    if (text == NULL) {
        s->failed = true;
        return;
    }
    va_start(ap, fmt);
    vsnprintf(text, (size_t)n + 1, fmt, ap);
    va_end(ap);
    s->cells[s->n_cells++] = text;
}

/* -- the three forms ---------------------------------------------------------------------------------------
 */

static int64_t n_rows(const ls_sheet *s)
{
    return (s->n_cells + s->n_columns - 1) / s->n_columns;
}

/* Row -1 is the head. */
static const char *cell(const ls_sheet *s, int64_t row, int column)
{
    const int64_t i = row * s->n_columns + column;

    if (row < 0) return s->columns[column].name;
    return i < s->n_cells ? s->cells[i] : "";
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
            ls_text_add(out, k == 0 ? "| " : " | ");
            add_markdown(out, cell(s, row, k));
        }
        ls_text_add(out, " |\n");
        if (row >= 0) continue;
        for (int k = 0; k < s->n_columns; k++)
            ls_text_add(out, s->columns[k].align == 'r' ? "|---:" : "|---");
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

static void add_csv(ls_text *out, const char *text)
{
    if (has_thousands(text)) {
        for (; *text != '\0'; text++)
            if (*text != ',') ls_text_add(out, "%c", *text);
    } else if (strpbrk(text, ",\"\r\n") == NULL) {
        ls_text_add(out, "%s", text);
    } else {
        ls_text_add(out, "\"");
        for (; *text != '\0'; text++) ls_text_add(out, *text == '"' ? "\"\"" : "%c", *text);
        ls_text_add(out, "\"");
    }
}

ls_status ls_sheet_csv(const ls_sheet *s, ls_text *out, ls_err *err)
{
    if (s->failed) return finished(s, out, err);
    for (int64_t row = -1; row < n_rows(s); row++) {
        for (int k = 0; k < s->n_columns; k++) {
            if (k > 0) ls_text_add(out, ",");
            add_csv(out, cell(s, row, k));
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
        ls_text_add(out, "<%s%s>", tag, s->columns[k].align == 'r' ? " class=\"r\"" : "");
        lsi_xml_text(out, cell(s, row, k));
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
