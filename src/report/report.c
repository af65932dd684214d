/* report.c: the document: its text, tables and charts as HTML, and the files that go beside it. */
#include "report/report.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/folders.h"
#include "base/grow.h"
#include "base/replace.h"
#include "report/report_internal.h"
#include "script.h" /* made by the build: report_script, from web/report.ts */
#include "style.h"  /* made by the build: style_chart_css and style_page_css, from web/style */

/* A file beside the page. */
typedef struct attachment {
    char name[96];
    ls_text text;
} attachment;

enum { CHOICES_DEEP = 2 };

struct ls_report {
    ls_text title, body;
    int reload_s; /* 0: never */
    /* Choices so far; how many are open, one in another; of each of these, its number and its options. */
    int choices, open, number[CHOICES_DEEP], options[CHOICES_DEEP];
    attachment *attachments;
    int n_attachments;
    size_t capacity;
    ls_err first; /* the first failure */
};

ls_status ls_report_create(ls_report **out, const char *title, ls_err *err)
{
    ls_report *r = ls_alloc(LS_MEM_CLI, sizeof *r);

    *out = r;
    if (r == NULL) return ls_fail(err, LS_NOMEM, "no memory for a report");
    lsi_xml_text(&r->title, title);
    return LS_OK;
}

void ls_report_destroy(ls_report *r)
{
    if (r == NULL) return;
    for (int i = 0; i < r->n_attachments; i++) ls_text_release(&r->attachments[i].text);
    ls_free(r->attachments);
    ls_text_release(&r->title);
    ls_text_release(&r->body);
    ls_free(r);
}

/* -- what it is made of ------------------------------------------------------------------------------------
 */

static void add_element(ls_report *r, const char *open, const char *close, const char *fmt, va_list ap)
{
    va_list again;
    char *text;
    int n;

    va_copy(again, ap);
    n = vsnprintf(NULL, 0, fmt, again);
    va_end(again);
    LS_BUG_IF(n < 0);
    text = ls_alloc(LS_MEM_CLI, (size_t)n + 1);
    if (text == NULL) {
        ls_fail(&r->first, LS_NOMEM, "no memory for a report");
        return;
    }
    vsnprintf(text, (size_t)n + 1, fmt, ap);
    ls_text_add(&r->body, "%s", open);
    lsi_xml_text(&r->body, text);
    ls_text_add(&r->body, "%s\n", close);
    ls_free(text);
}

void ls_report_heading(ls_report *r, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_element(r, "<h2>", "</h2>", fmt, ap);
    va_end(ap);
}

void ls_report_paragraph(ls_report *r, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_element(r, "<p>", "</p>", fmt, ap);
    va_end(ap);
}

void ls_report_note(ls_report *r, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    add_element(r, "<p class=\"note\">", "</p>", fmt, ap);
    va_end(ap);
}

void ls_report_code(ls_report *r, const char *text)
{
    ls_text_add(&r->body, "<pre>");
    lsi_xml_text(&r->body, text);
    ls_text_add(&r->body, "</pre>\n");
}

void ls_report_fold(ls_report *r, const char *title)
{
    ls_text_add(&r->body, "<details>\n<summary>");
    lsi_xml_text(&r->body, title);
    ls_text_add(&r->body, "</summary>\n");
}

void ls_report_unfold(ls_report *r)
{
    ls_text_add(&r->body, "</details>\n");
}

void ls_report_choice(ls_report *r, const char *title)
{
    LS_BUG_IF(r->open == CHOICES_DEEP);
    r->number[r->open] = ++r->choices;
    r->options[r->open++] = 0;
    ls_text_add(&r->body, "<div class=\"choice\">\n<b>");
    lsi_xml_text(&r->body, title);
    ls_text_add(&r->body, "</b>\n");
}

void ls_report_option(ls_report *r, const char *name, bool chosen)
{
    char id[48];

    LS_BUG_IF(r->open == 0);
    if (r->options[r->open - 1]++ > 0) ls_text_add(&r->body, "</div>\n");
    snprintf(id, sizeof id, "choice-%d-%d", r->number[r->open - 1], r->options[r->open - 1]);
    ls_text_add(&r->body, "<input type=\"radio\" name=\"choice-%d\" id=\"%s\"%s><label for=\"%s\">",
                r->number[r->open - 1], id, chosen ? " checked" : "", id);
    lsi_xml_text(&r->body, name);
    ls_text_add(&r->body, "</label>\n<div class=\"panel\">\n");
}

void ls_report_choice_end(ls_report *r)
{
    LS_BUG_IF(r->open == 0);
    ls_text_add(&r->body, "%s</div>\n", r->options[--r->open] > 0 ? "</div>\n" : "");
}

/* A new file beside the page, to be filled; NULL when the report has failed. */
static attachment *attach(ls_report *r, const char *id, const char *ending)
{
    if (r->first.status != LS_OK) return NULL;
    if (!LS_GROW(LS_MEM_CLI, r->attachments, r->n_attachments + 1, r->capacity)) {
        ls_fail(&r->first, LS_NOMEM, "no memory for a report");
        return NULL;
    }
    attachment *p = &r->attachments[r->n_attachments++];
    *p = (attachment){0};
    snprintf(p->name, sizeof p->name, "%s.%s", id, ending);
    for (int i = 0; i + 1 < r->n_attachments; i++)
        if (strcmp(r->attachments[i].name, p->name) == 0)
            ls_fail(&r->first, LS_INVALID, "two files of the report would be written to %s", p->name);
    return p;
}

void ls_report_sheet(ls_report *r, const ls_sheet *s)
{
    ls_status st = LS_OK;
    attachment *p;

    if ((p = attach(r, lsi_sheet_id(s), "csv")) != NULL) LS_TRY(ls_sheet_csv(s, &p->text, &r->first));
    if ((p = attach(r, lsi_sheet_id(s), "md")) != NULL) LS_TRY(ls_sheet_markdown(s, &p->text, &r->first));
    LS_TRY(ls_sheet_html(s, &r->body, &r->first));
out:
    (void)st; /* kept in r->first */
}

void ls_report_chart(ls_report *r, const ls_chart *c)
{
    ls_status st = LS_OK;
    attachment *p;

    LS_TRY(lsi_check_id(c->id, &r->first));
    if ((p = attach(r, c->id, "svg")) != NULL) LS_TRY(ls_chart_svg(c, &p->text, &r->first));
    ls_text_add(&r->body, "<figure id=\"%s\">\n", c->id);
    LS_TRY(lsi_chart_draw(c, LSI_WIDE, &r->body, &r->first));
    LS_TRY(lsi_chart_draw(c, LSI_NARROW, &r->body, &r->first));
    if (report_script[0] != '\0') {
        ls_text_add(&r->body, "<script type=\"application/json\">");
        LS_TRY(lsi_chart_json(c, &r->body, &r->first));
        ls_text_add(&r->body, "</script>\n");
    }
    if (c->caption != NULL) {
        ls_text_add(&r->body, "<figcaption>");
        lsi_xml_text(&r->body, c->caption);
        ls_text_add(&r->body, "</figcaption>\n");
    }
    ls_text_add(&r->body, "</figure>\n");
out:
    (void)st; /* kept in r->first */
}

/* -- writing -----------------------------------------------------------------------------------------------
 */

void ls_report_reload(ls_report *r, int seconds)
{
    r->reload_s = seconds;
}

bool ls_report_interactive(void)
{
    return report_script[0] != '\0';
}

ls_status ls_report_html(const ls_report *r, ls_text *out, ls_err *err)
{
    if (r->first.status != LS_OK) return ls_fail(err, r->first.status, "%s", r->first.text);
    if (r->title.failed || r->body.failed) return ls_fail(err, LS_NOMEM, "no memory for a report");
    /* The policy keeps the page from asking the network for anything, whatever a name in it contains. */
    ls_text_add(out, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                     "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                     "<meta name=\"color-scheme\" content=\"light dark\">\n");
    if (r->reload_s > 0) ls_text_add(out, "<meta http-equiv=\"refresh\" content=\"%d\">\n", r->reload_s);
    ls_text_add(out,
                "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; "
                "style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:\">\n"
                "<title>%s</title>\n<style>\n%s%s</style>\n</head>\n<body>\n<main>\n<h1>%s</h1>\n%s</main>\n",
                r->title.data != NULL ? r->title.data : "", style_chart_css, style_page_css,
                r->title.data != NULL ? r->title.data : "", r->body.data != NULL ? r->body.data : "");
    if (report_script[0] != '\0') ls_text_add(out, "<script>%s</script>\n", report_script);
    ls_text_add(out, "</body>\n</html>\n");
    return out->failed ? ls_fail(err, LS_NOMEM, "no memory for a report") : LS_OK;
}

static ls_status write_in(const char *folder, const char *name, const ls_text *text, ls_err *err)
{
    char path[4200];

    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return ls_fail(err, LS_IO, "%.200s...: the name is too long", folder);
    return ls_replace_file(path, text->data, text->length, err);
}

ls_status ls_report_write(const ls_report *r, const char *folder, ls_err *err)
{
    ls_text page = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_report_html(r, &page, err));
    LS_TRY(ls_folders_make(folder, err));
    for (int i = 0; i < r->n_attachments; i++)
        LS_TRY(write_in(folder, r->attachments[i].name, &r->attachments[i].text, err));
    LS_TRY(write_in(folder, "report.html", &page, err)); /* last: what it stands for is there */
out:
    ls_text_release(&page);
    return st;
}
