/* sheet.h: a table of texts that becomes HTML, Markdown or CSV. */
#ifndef LS_REPORT_SHEET_H
#define LS_REPORT_SHEET_H

#include "base/text.h"
#include "lockstep/status.h"

typedef struct ls_sheet ls_sheet;

typedef struct ls_sheet_column {
    const char *name;
    char align; /* 'l', 'r', or '-': a column that only CSV has, for what a reader of the page need not see */
} ls_sheet_column;

/* An empty table.  `id` names its files ID.csv and ID.md and is made as a chart's; `title` may be NULL. */
ls_status ls_sheet_create(ls_sheet **out, const char *id, const char *title, const ls_sheet_column *columns,
                          int n_columns, ls_err *err) LS_MUST_CHECK;
void ls_sheet_destroy(ls_sheet *s); /* accepts NULL */

/* The next cell, row by row from the left.  When memory runs out, the sheet remembers, and writers fail. */
void ls_sheet_cell(ls_sheet *s, const char *fmt, ...) LS_PRINTF(2, 3);
/* A cell that readers see as the text, and programs as `value` with 9 digits: in CSV it is a number, or empty
 * where `value` is not finite. */
void ls_sheet_number(ls_sheet *s, double value, const char *fmt, ...) LS_PRINTF(3, 4);
/* Give the last cell, or the name of a column, a mark in a colour of the charts (chart.h), on the page alone.
 */
void ls_sheet_mark(ls_sheet *s, int colour);
void ls_sheet_mark_column(ls_sheet *s, int column, int colour);

/* Append the sheet; a last row that is not full has empty cells.  LS_NOMEM when a cell is missing.
 * CSV is RFC 4180: quoted where needed, lines end in CR LF; a number loses the commas between its thousands,
 * which programs that read CSV would not take for one.  Any other text that begins with = + - @, a tab or a
 * carriage return gets an apostrophe in front: a spreadsheet would take it for a formula, and names come from
 * outside. */
ls_status ls_sheet_markdown(const ls_sheet *s, ls_text *out, ls_err *err) LS_MUST_CHECK;
ls_status ls_sheet_csv(const ls_sheet *s, ls_text *out, ls_err *err) LS_MUST_CHECK;
ls_status ls_sheet_html(const ls_sheet *s, ls_text *out, ls_err *err) LS_MUST_CHECK;
/* One such text as a cell of CSV, for tables that are written line by line. */
void ls_csv_cell(ls_text *out, const char *text);

#endif
