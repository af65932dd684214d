/* report_internal.h: what the files of this folder share. */
#ifndef LS_REPORT_REPORT_INTERNAL_H
#define LS_REPORT_REPORT_INTERNAL_H

#include "report/chart.h"
#include "report/sheet.h"

/* -- text from outside (escape.c) --------------------------------------------------------------------------
 */

/* Appends `text` so that it is text in HTML and SVG, also inside quoted attributes.  Bytes that XML does not
 * allow, or that are no UTF-8, become U+FFFD: one of them would make a whole SVG unreadable. */
void lsi_xml_text(ls_text *out, const char *text);
/* Appends `text` as a JSON string with its quotes, harmless within <script>. */
void lsi_script_text(ls_text *out, const char *text);
/* Letters, digits, '-' and '_', 1 to 80 of them: a file's name that leads nowhere else. */
ls_status lsi_check_id(const char *id, ls_err *err) LS_MUST_CHECK;

/* -- charts (chart.c) --------------------------------------------------------------------------------------
 */

/* The SVG element.  `alone`: with its own style, as a file needs; otherwise the page's style applies. */
ls_status lsi_chart_draw(const ls_chart *c, bool alone, ls_text *out, ls_err *err) LS_MUST_CHECK;
/* What the script needs to know of it, as JSON. */
void lsi_chart_json(const ls_chart *c, ls_text *out);

/* -- tables (sheet.c) --------------------------------------------------------------------------------------
 */

const char *lsi_sheet_id(const ls_sheet *s);

#endif
