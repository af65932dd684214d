/* chart.c: the frame of a figure. */
#include "report/chart.h"

#include "report/report_internal.h"
#include "style.h" /* made by the build: style_chart_css, from web/style */

enum { WIDTH = 760, HEIGHT = 380 };

ls_status lsi_chart_draw(const ls_chart *c, bool alone, ls_text *out, ls_err *err)
{
    ls_text_add(out, "<svg class=\"chart\" viewBox=\"0 0 %d %d\" role=\"img\"%s>\n", WIDTH, HEIGHT,
                alone ? " xmlns=\"http://www.w3.org/2000/svg\"" : "");
    if (alone) ls_text_add(out, "<style>\n%s</style>\n", style_chart_css);
    ls_text_add(out, "<title>");
    lsi_xml_text(out, c->title);
    ls_text_add(out, "</title>\n</svg>\n");
    return out->failed ? ls_fail(err, LS_NOMEM, "no memory for chart \"%s\"", c->id) : LS_OK;
}

void lsi_chart_json(const ls_chart *c, ls_text *out)
{
    ls_text_add(out, "{\"title\":");
    lsi_script_text(out, c->title);
    ls_text_add(out, "}");
}

ls_status ls_chart_svg(const ls_chart *c, ls_text *out, ls_err *err)
{
    ls_status st = LS_OK;

    LS_TRY(lsi_check_id(c->id, err));
    LS_TRY(lsi_chart_draw(c, true, out, err));
out:
    return st;
}
