/* plan_graph.c: `lockstep plan --graph FILE.svg|FILE.dot`: the plan as a picture. */
#include <string.h>

#include "base/printable.h"
#include "base/replace.h"
#include "plan.h"

static bool ends_in(const char *path, const char *end)
{
    const size_t n = strlen(path), k = strlen(end);

    return n > k && strcmp(path + n - k, end) == 0;
}

ls_status plan_graph_check(const char *path, ls_err *err)
{
    ls_err why = {0};

    if (!ends_in(path, ".svg") && !ends_in(path, ".dot"))
        return ls_fail(err, LS_INVALID,
                       "--graph %s: the name should end in .svg (a picture) or .dot (for Graphviz)", path);
    if (ls_replace_check(path, &why) != LS_OK)
        return ls_fail(err, LS_INVALID, "--graph: the picture cannot be written: %s", why.text);
    return LS_OK;
}

ls_status plan_graph_write(const char *path, const char *title, const ls_document *d, ls_err *err)
{
    ls_text text = {0};
    char shown[512]; /* a file may be called by any bytes, a picture is read as UTF-8 */
    ls_status st = LS_OK;

    ls_printable(title, strlen(title), shown, sizeof shown);
    if (ends_in(path, ".svg"))
        ls_document_svg(d, shown, &text);
    else
        ls_document_dot(d, shown, &text);
    st = text.failed ? ls_fail(err, LS_NOMEM, "no memory for a picture") : LS_OK;
    if (st == LS_OK) st = ls_replace_file(path, text.data, text.length, err);
    ls_text_release(&text);
    return st;
}
