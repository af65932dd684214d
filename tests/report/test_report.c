/* test_report.c: documents and tables: escaping, their three forms, files that are replaced as a whole, and
 * pages that ask the network for nothing. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/replace.h"
#include "base/whole.h"
#include "check.h"
#include "faults.h"
#include "report/report.h"
#include "report/report_internal.h"

#define EVIL "<script>alert(\"1\")</script> & 'x'"

static int count(const char *text, const char *part)
{
    int n = 0;

    for (const char *p = text; (p = strstr(p, part)) != NULL; p++) n++;
    return n;
}

static ls_status make_sheet(ls_sheet **out, ls_err *err)
{
    const ls_sheet_column columns[] = {{"run", 'l'}, {"samples/s", 'r'}};
    ls_status st = LS_OK;

    LS_TRY(ls_sheet_create(out, "runs", "Runs", columns, 2, err));
    ls_sheet_cell(*out, "%s", "a,b");
    ls_sheet_cell(*out, "%d", 12);
    ls_sheet_cell(*out, "%s", "say \"hi\" | <b>");
    ls_sheet_cell(*out, "%s", "two\nlines");
    ls_sheet_cell(*out, "%s", "-1,234,567.8");
    ls_sheet_cell(*out, "%s", "1,23");
    ls_sheet_cell(*out, "%s", "last"); /* the second cell of its row is missing */
out:
    return st;
}

static void tables_in_three_forms(void)
{
    ls_sheet *s = NULL;
    ls_text csv = {0}, markdown = {0}, html = {0};
    ls_err err = {0};

    REQUIRE_OK(make_sheet(&s, &err), &err);
    REQUIRE_OK(ls_sheet_csv(s, &csv, &err), &err);
    CHECK_EQ_STR(csv.data, "run,samples/s\r\n\"a,b\",12\r\n\"say \"\"hi\"\" | "
                           "<b>\",\"two\nlines\"\r\n-1234567.8,\"1,23\"\r\nlast,\r\n");
    REQUIRE_OK(ls_sheet_markdown(s, &markdown, &err), &err);
    CHECK_EQ_STR(markdown.data, "| run | samples/s |\n|---|---:|\n| a,b | 12 |\n| say \"hi\" \\| &lt;b> | "
                                "two lines |\n| -1,234,567.8 | 1,23 |\n"
                                "| last |  |\n");
    REQUIRE_OK(ls_sheet_html(s, &html, &err), &err);
    CHECK_CONTAINS(html.data, "<td>say &quot;hi&quot; | &lt;b&gt;</td>");
    CHECK_CONTAINS(html.data, "<td class=\"r\">12</td>");
    ls_text_release(&csv);
    ls_text_release(&markdown);
    ls_text_release(&html);
    ls_sheet_destroy(s);
}

/* What a spreadsheet would calculate is text, and numbers stay numbers. */
static void csv_holds_no_formulas(void)
{
    static const char *const cases[][2] = {
        {"=1+1", "'=1+1"},
        {"=HYPERLINK(\"http://x\",\"y\")", "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\""},
        {"+1+cmd|' /C calc'!A0", "'+1+cmd|' /C calc'!A0"},
        {"-2+3", "'-2+3"},
        {"-x", "'-x"},
        {"@SUM(A1)", "'@SUM(A1)"},
        {"\t=1", "'\t=1"},
        {"\r=1", "\"'\r=1\""},
        {"-0x10", "'-0x10"},
        {"-inf", "'-inf"},
        {"-0.25", "-0.25"},
        {"-1e-05", "-1e-05"},
        {"+3", "+3"},
        {"-.5", "-.5"},
        {"-1,234", "-1234"},
        {"-", "-"},
        {"", ""},
        {"a=b", "a=b"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ls_text out = {0};
        ls_csv_cell(&out, cases[i][0]);
        CHECK_EQ_STR(out.data != NULL ? out.data : "", cases[i][1]);
        ls_text_release(&out);
    }
}

/* Readers see texts, programs numbers and the columns that are theirs alone. */
static void numbers_for_programs(void)
{
    const ls_sheet_column columns[] = {{"rate", 'r'}, {"p16", '-'}, {"name", 'l'}};
    ls_text csv = {0}, markdown = {0}, html = {0};
    ls_sheet *s = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_sheet_create(&s, "rates", NULL, columns, 3, &err), &err);
    ls_sheet_mark_column(s, 0, 2);
    ls_sheet_number(s, -1234.56789, "%s", "-1.2 k");
    ls_sheet_number(s, (double)NAN, "%s", "none");
    ls_sheet_cell(s, "%s", "=a");
    ls_sheet_mark(s, 3);
    REQUIRE_OK(ls_sheet_csv(s, &csv, &err), &err);
    CHECK_EQ_STR(csv.data, "rate,p16,name\r\n-1234.56789,,'=a\r\n");
    REQUIRE_OK(ls_sheet_markdown(s, &markdown, &err), &err);
    CHECK_EQ_STR(markdown.data, "| rate | name |\n|---:|---|\n| -1.2 k | =a |\n");
    REQUIRE_OK(ls_sheet_html(s, &html, &err), &err);
    CHECK_CONTAINS(html.data, "<td><span class=\"swatch c3\"></span>=a</td>");
    CHECK_CONTAINS(html.data, "<th class=\"r\"><span class=\"swatch c2\"></span>rate</th>");
    CHECK_EQ_INT(count(html.data, "p16"), 0);
    ls_text_release(&csv);
    ls_text_release(&markdown);
    ls_text_release(&html);
    ls_sheet_destroy(s);
}

static void text_is_escaped(void)
{
    static const struct {
        const char *in, *want;
    } cases[] = {
        {EVIL, "&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt; &amp; &#39;x&#39;"},
        {"\x01\x7f", "\xef\xbf\xbd\x7f"}, /* XML has no such control character */
        {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"\xff", "\xef\xbf\xbd"},
        {"\xc0\xbc", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* an over-long '<' */
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* half a pair */
        {"\xe2\x82", "\xef\xbf\xbd\xef\xbf\xbd"},                 /* cut */
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ls_text out = {0};
        lsi_xml_text(&out, cases[i].in);
        CHECK_EQ_STR(out.data, cases[i].want);
        ls_text_release(&out);
    }
    ls_text json = {0};
    lsi_script_text(&json, "</script>\"\\\n");
    CHECK_EQ_STR(json.data, "\"\\u003c/script\\u003e\\u0022\\u005c\\u000a\"");
    ls_text_release(&json);
    ls_text cut = {0};
    lsi_xml_short(&cut, "\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 3);
    CHECK_EQ_STR(cut.data, "\xc3\xa4\xe2\x80\xa6\xc3\xa4");
    ls_text_release(&cut);
}

static ls_status make_report(ls_report **out, ls_err *err)
{
    static const double x[] = {1, 2}, y[] = {3, 4};
    const ls_chart_series series[] = {{.name = EVIL, .n = 2, .x = x, .y = y, .marks = true},
                                      {.name = "two", .n = 2, .x = x, .y = x}};
    const ls_chart chart = {.id = "speed",
                            .title = EVIL,
                            .caption = EVIL,
                            .x_label = EVIL,
                            .y_label = EVIL,
                            .flag_name = EVIL,
                            .series = series,
                            .n_series = 2};
    ls_sheet *s = NULL;
    ls_status st = LS_OK;

    *out = NULL;
    LS_TRY(make_sheet(&s, err));
    LS_TRY(ls_report_create(out, EVIL, err));
    ls_report_heading(*out, "%s", EVIL);
    ls_report_paragraph(*out, "%s", EVIL);
    ls_report_note(*out, "%s", EVIL);
    ls_report_code(*out, EVIL);
    ls_report_chart(*out, &chart);
    ls_report_sheet(*out, s);
out:
    ls_sheet_destroy(s);
    return st;
}

static ls_status make_page(void *arg, ls_err *err)
{
    ls_report *r = NULL;
    ls_text page = {0};
    ls_status st = LS_OK;

    (void)arg;
    LS_TRY(make_report(&r, err));
    LS_TRY(ls_report_html(r, &page, err));
out:
    ls_text_release(&page);
    ls_report_destroy(r);
    return st;
}

static void memory_runs_out(void)
{
    check_faults("a page", make_page, NULL);
}

/* The page holds no tag that a name brought, and no address but that of SVG, which is none that is asked for.
 */
static void pages_are_harmless(void)
{
    ls_report *r;
    ls_text page = {0};
    ls_err err = {0};

    REQUIRE_OK(make_report(&r, &err), &err);
    REQUIRE_OK(ls_report_html(r, &page, &err), &err);
    CHECK_EQ_INT(count(page.data, "alert(\"1\")"), 0);
    CHECK_EQ_INT(count(page.data, "<script>alert"), 0);
    CHECK(count(page.data, "&lt;script&gt;alert(") >= 8);
    CHECK_EQ_INT(count(page.data, "<script"), ls_report_interactive() ? 2 : 0);
    CHECK_EQ_INT(count(page.data, "</script>"), ls_report_interactive() ? 2 : 0);
    CHECK_EQ_INT(count(page.data, "://"), count(page.data, "http://www.w3.org/2000/svg"));
    CHECK_EQ_INT(count(page.data, "@import") + count(page.data, "url(//") + count(page.data, "src="), 0);
    CHECK_CONTAINS(page.data, "default-src 'none'");
    ls_text_release(&page);
    ls_report_destroy(r);
}

static void check_file(const char *folder, const char *name, const char *part)
{
    char path[200], *text = NULL;
    size_t n;
    ls_err err = {0};

    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (!CHECK_OK(ls_whole_file(&text, &n, path, 1 << 20, &err), &err)) return;
    CHECK_CONTAINS(text, part);
    ls_free(text);
    unlink(path);
}

static void files_beside_the_page(void)
{
    char folder[] = "/tmp/ls_report_XXXXXX", below[64];
    ls_report *r;
    ls_err err = {0};

    REQUIRE_OK(make_report(&r, &err), &err);
    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(below, sizeof below, "%s/a/b", folder);
    for (int again = 0; again < 2; again++) REQUIRE_OK(ls_report_write(r, below, &err), &err);
    check_file(below, "report.html", "</html>");
    check_file(below, "speed.svg", "xmlns=\"http://www.w3.org/2000/svg\"");
    check_file(below, "runs.csv", "run,samples/s\r\n");
    check_file(below, "runs.md", "| run |");
    CHECK_EQ_INT(rmdir(below), 0); /* nothing else was left, such as a file written aside */
    snprintf(below, sizeof below, "%s/a", folder);
    rmdir(below);
    rmdir(folder);
    ls_report_destroy(r);
}

static void failures_are_kept(void)
{
    ls_report *r;
    ls_sheet *s = NULL;
    ls_text page = {0};
    ls_err err = {0};

    REQUIRE_OK(make_report(&r, &err), &err);
    REQUIRE_OK(make_sheet(&s, &err), &err);
    ls_report_sheet(r, s); /* a second table for runs.csv */
    CHECK_STATUS(ls_report_html(r, &page, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "runs.csv");
    ls_sheet_destroy(s);
    ls_report_destroy(r);

    err = (ls_err){0};
    CHECK_STATUS(ls_chart_svg(&(ls_chart){.id = "../x", .title = ""}, &page, &err), LS_INVALID, &err);
    ls_text_release(&page);
}

static void a_file_is_replaced_as_a_whole(void)
{
    char folder[] = "/tmp/ls_replace_XXXXXX", path[64], *text = NULL;
    ls_err err = {0};
    size_t n = 0;

    REQUIRE(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/x", folder);
    REQUIRE_OK(ls_replace_file(path, "first", 5, &err), &err);
    REQUIRE_OK(ls_replace_file(path, "2", 1, &err), &err);
    REQUIRE_OK(ls_whole_file(&text, &n, path, 10, &err), &err);
    CHECK_EQ_STR(text, "2");
    ls_free(text);
    REQUIRE_OK(ls_replace_file(path, "0123456789A", 11, &err), &err);
    CHECK_STATUS(ls_whole_file(&text, &n, path, 10, &err), LS_DATA, &err);
    CHECK_CONTAINS(err.text, path);

    /* A folder in the way: refused, and nothing is left beside it. */
    unlink(path);
    REQUIRE(mkdir(path, 0777) == 0);
    err = (ls_err){0};
    CHECK_STATUS(ls_replace_file(path, "x", 1, &err), LS_IO, &err);
    rmdir(path);
    CHECK_EQ_INT(rmdir(folder), 0);
    err = (ls_err){0};
    CHECK_STATUS(ls_replace_file("/nowhere/at/all", "x", 1, &err), LS_IO, &err);
    CHECK_STATUS(ls_whole_file(&text, &n, "/nowhere/at/all", 10, &err), LS_DATA, NULL);
}

/* Radio buttons with what they show behind them: one of each choice is chosen, names are text. */
static void choices_need_no_script(void)
{
    ls_report *r = NULL;
    ls_text page = {0};
    ls_err err = {0};

    REQUIRE_OK(ls_report_create(&r, "t", &err), &err);
    ls_report_choice(r, "Outer <b>");
    ls_report_option(r, "a & b", true);
    ls_report_choice(r, "Inner");
    ls_report_option(r, "1", false);
    ls_report_paragraph(r, "first");
    ls_report_option(r, "2", true);
    ls_report_paragraph(r, "second");
    ls_report_choice_end(r);
    ls_report_option(r, "c", false);
    ls_report_choice_end(r);
    ls_report_choice(r, "Empty");
    ls_report_choice_end(r);
    REQUIRE_OK(ls_report_html(r, &page, &err), &err);
    CHECK_CONTAINS(page.data, "<b>Outer &lt;b&gt;</b>");
    CHECK_CONTAINS(page.data,
                   "name=\"choice-1\" id=\"choice-1-1\" checked><label for=\"choice-1-1\">a &amp; b</label>");
    CHECK_CONTAINS(page.data, "name=\"choice-2\" id=\"choice-2-1\"><label for=\"choice-2-1\">1</label>\n"
                              "<div class=\"panel\">\n<p>first</p>\n</div>\n");
    CHECK_CONTAINS(page.data,
                   "<p>second</p>\n</div>\n</div>\n</div>\n<input type=\"radio\" name=\"choice-1\" "
                   "id=\"choice-1-2\"><label for=\"choice-1-2\">c</label>");
    CHECK_CONTAINS(page.data, "<b>Empty</b>\n</div>\n");
    ls_text_release(&page);
    ls_report_destroy(r);
}

int main(void)
{
    CHECK_RUN(choices_need_no_script);
    CHECK_RUN(tables_in_three_forms);
    CHECK_RUN(csv_holds_no_formulas);
    CHECK_RUN(numbers_for_programs);
    CHECK_RUN(text_is_escaped);
    CHECK_RUN(pages_are_harmless);
    CHECK_RUN(memory_runs_out);
    CHECK_RUN(files_beside_the_page);
    CHECK_RUN(failures_are_kept);
    CHECK_RUN(a_file_is_replaced_as_a_whole);
    return CHECK_DONE();
}
