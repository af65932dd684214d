/* grid.h: a table that is printed for people or as CSV.  Texts may come from outside: they are made harmless
 * for terminals and spreadsheets. */
#ifndef LS_CMD_GRID_H
#define LS_CMD_GRID_H

#include <stddef.h>

#include "lockstep/status.h"

typedef struct grid grid;

ls_status grid_create(grid **out, ls_err *err) LS_MUST_CHECK;
void grid_destroy(grid *g); /* accepts NULL */

/* The columns, before any cell; `align` is 'l' or 'r'. */
void grid_column(grid *g, const char *name, char align);
/* The next cell, row by row: a text (NULL: none), or a number with as many digits as people want. */
void grid_text(grid *g, const char *text);
void grid_number(grid *g, double value, int digits);
/* One that people read as the text, and programs as the number, or as the other text. */
void grid_both(grid *g, double value, const char *text);
void grid_texts(grid *g, const char *text, const char *csv);

/* Aligned columns on standard output.  `width` > 0: columns from the right that do not fit are left out, and
 * a line says how many. */
ls_status grid_print(const grid *g, int width, ls_err *err) LS_MUST_CHECK;
ls_status grid_print_csv(const grid *g, ls_err *err) LS_MUST_CHECK;

/* A text from outside as one line that a terminal shows and does not obey (base/printable.h), cut off at
 * `size` bytes; returns buf. */
const char *grid_shown(const char *text, char *buf, size_t size);

/* Columns of the terminal that standard output is; 0: it is none. */
int grid_terminal_width(void);

#endif
