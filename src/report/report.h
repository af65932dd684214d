/* report.h: a document of headings, paragraphs, tables and charts, written as one HTML file that needs no
 * network and no scripts to be read, with every chart as SVG and every table as CSV and Markdown beside it.
 *
 * Texts are plain and are escaped: names may come from outside.  What is added is turned into text at once,
 * so that the caller may free it.  The first failure is kept, and ends the writing later. */
#ifndef LS_REPORT_REPORT_H
#define LS_REPORT_REPORT_H

#include "report/chart.h"
#include "report/sheet.h"

typedef struct ls_report ls_report;

ls_status ls_report_create(ls_report **out, const char *title, ls_err *err) LS_MUST_CHECK;
void ls_report_destroy(ls_report *r); /* accepts NULL */

void ls_report_heading(ls_report *r, const char *fmt, ...) LS_PRINTF(2, 3);
void ls_report_paragraph(ls_report *r, const char *fmt, ...) LS_PRINTF(2, 3);
/* A paragraph that stands out: what a reader must know before believing a number. */
void ls_report_note(ls_report *r, const char *fmt, ...) LS_PRINTF(2, 3);
/* Lines as they are: a command, a configuration. */
void ls_report_code(ls_report *r, const char *text);
/* What is added from here to ls_report_unfold is shown once the reader clicks on `title`. */
void ls_report_fold(ls_report *r, const char *title);
void ls_report_unfold(ls_report *r);
/* What is added from here to ls_report_choice_end is shown in turns: an option begins what belongs to its
 * name, and the reader chooses one, without scripts, too.  The option that is `chosen` is shown at first;
 * exactly one is.  An option may hold a choice of its own, which holds none. */
void ls_report_choice(ls_report *r, const char *title);
void ls_report_option(ls_report *r, const char *name, bool chosen);
void ls_report_choice_end(ls_report *r);
void ls_report_sheet(ls_report *r, const ls_sheet *s);
void ls_report_chart(ls_report *r, const ls_chart *c);

/* The page loads itself anew after so many seconds; 0: never, as it begins. */
void ls_report_reload(ls_report *r, int seconds);

/* The page alone, appended to `out`. */
ls_status ls_report_html(const ls_report *r, ls_text *out, ls_err *err) LS_MUST_CHECK;
/* FOLDER/report.html, and ID.svg, ID.csv, ID.md of every chart and table; each is replaced as a whole. */
ls_status ls_report_write(const ls_report *r, const char *folder, ls_err *err) LS_MUST_CHECK;

/* False when the build had nothing to bundle the script with: the page then shows all, and answers nothing.
 */
bool ls_report_interactive(void);

#endif
