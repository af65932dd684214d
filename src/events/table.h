/* table.h: text in aligned columns, for model summaries and final results. */
#ifndef LS_EVENTS_TABLE_H
#define LS_EVENTS_TABLE_H

#include "base/text.h"
#include "lockstep/status.h"

typedef struct ls_table ls_table;

/* `align` has one character per column: 'l' or 'r'. */
ls_status ls_table_create(ls_table **out, const char *align, ls_err *err) LS_MUST_CHECK;
void ls_table_destroy(ls_table *t); /* accepts NULL */

/* Adds a row: `cells` has one text per column, copied; NULL is an empty cell.  When memory runs out, the
 * table remembers, and print fails. */
void ls_table_row(ls_table *t, const char *const *cells);
/* A line of dashes under what was added so far. */
void ls_table_rule(ls_table *t);

/* Appends the table to `out`, two blanks between columns, no blanks at the end of lines. */
ls_status ls_table_print(const ls_table *t, ls_text *out, ls_err *err) LS_MUST_CHECK;

/* Columns of a terminal that UTF-8 text takes, at one per character; 0 for NULL. */
int lsi_width(const char *text);

#endif
