/* predict_page_step.c: on the page of predictions: where the time of a step goes, one step in time, and what
 * would help, at every number of ranks that was asked for. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "predict_page.h"

enum { PARTS = 4, LANES = 3 };
#define NAME_MAX_HERE (PREDICT_LINE + 32)

/* An answer of that line of the table: of a strategy, at a batch. */
static bool is_of(const predict_table *t, const predict_row *r, int line)
{
    return t->way[r->way].line == line && r->why[0] == '\0';
}

/* "ddp, 32" as the end of a file's name: "ddp-32". */
static void slug_of(const predict_table *t, int line, char slug[PREDICT_LINE])
{
    size_t n = 0;

    for (const char *at = t->line[line]; *at != '\0'; at++)
        if (*at == ' ')
            slug[n++] = '-';
        else if (*at != ',')
            slug[n++] = *at;
    slug[n] = '\0';
}

/* -- parts ------------------------------------------------------------------------------------------------
 */

/* Bars of one line. */
typedef struct bars {
    double *room; /* values of part k: room + k * most */
    char (*text)[NAME_MAX_HERE];
    const char **name;
    int n;
} bars;

static void bars_release(bars *b)
{
    ls_free(b->room);
    ls_free(b->text);
    ls_free(b->name);
}

static ls_status bars_of(bars *b, const predict_table *t, int line, ls_err *err)
{
    const size_t most = (size_t)t->n + 1;

    *b = (bars){.room = ls_alloc(LS_MEM_CLI, sizeof *b->room * PARTS * most),
                .text = ls_alloc(LS_MEM_CLI, sizeof *b->text * most),
                .name = ls_alloc(LS_MEM_CLI, sizeof *b->name * most)};
    if (b->room == NULL || b->text == NULL || b->name == NULL)
        return ls_fail(err, LS_NOMEM, "no memory for a chart");
    for (int i = 0; i < t->n; i++) {
        const predict_row *r = &t->rows[i];
        const ls_predict_parts *p = &r->p.parts;
        const double parts[PARTS] = {p->compute_s, p->core_s, p->exposed_s, p->straggle_s};
        if (!is_of(t, r, line)) continue;
        snprintf(b->text[b->n], sizeof b->text[0], "%d rank%s", r->ranks, r->ranks == 1 ? "" : "s");
        b->name[b->n] = b->text[b->n];
        for (int k = 0; k < PARTS; k++) b->room[(size_t)k * most + (size_t)b->n] = 1e3 * parts[k];
        b->n++;
    }
    return LS_OK;
}

/* One line's chart. */
static ls_status add_parts(ls_report *doc, const predict_table *t, int line, ls_err *err)
{
    static const char *const part_names[PARTS] = {"computing", "processor for the wire", "waiting for bytes",
                                                  "waiting for slower ranks"};
    ls_chart_series series[PARTS] = {{0}};
    char id[PREDICT_LINE + 16] = "parts", title[PREDICT_LINE + 32] = "A step, by ranks", slug[PREDICT_LINE];
    bars b = {0};
    ls_status st = LS_OK;

    LS_TRY(bars_of(&b, t, line, err));
    if (t->n_lines > 1) {
        slug_of(t, line, slug);
        snprintf(id, sizeof id, "parts-%s", slug);
        snprintf(title, sizeof title, "A step of %s, by ranks", t->line[line]);
    }
    for (int k = 0; k < PARTS; k++)
        series[k] =
            (ls_chart_series){.name = part_names[k], .n = b.n, .y = b.room + (size_t)k * ((size_t)t->n + 1)};
    ls_report_chart(doc, &(ls_chart){.id = id,
                                     .title = title,
                                     .kind = LS_CHART_BARS,
                                     .x_label = "ms",
                                     .series = series,
                                     .n_series = PARTS,
                                     .categories = b.name,
                                     .n_categories = b.n});
out:
    bars_release(&b);
    return st;
}

static bool has_answer(const predict_table *t, int line)
{
    for (int i = 0; i < t->n; i++)
        if (is_of(t, &t->rows[i], line)) return true;
    return false;
}

/* -- one step in time -------------------------------------------------------------------------------------
 */

/* "-64-ddp": what the files of a row's charts end in. */
static void row_id(const predict_table *t, const predict_row *r, const char *what, char id[NAME_MAX_HERE])
{
    char slug[PREDICT_LINE];

    slug_of(t, t->way[r->way].line, slug);
    snprintf(id, NAME_MAX_HERE, "%s-%d-%s", what, r->ranks, slug);
}

/* Neighbours in a lane that lie closer than an eye can part them are one span: a step may have thousands. */
static void draw_span(ls_chart_span *drawn, int *n, int last[LANES], ls_chart_span s, double close)
{
    ls_chart_span *before = last[s.lane] >= 0 ? &drawn[last[s.lane]] : NULL;

    if (before != NULL && s.begin - before->end <= close &&
        (s.end - s.begin <= close || before->end - before->begin <= close)) {
        if (s.end > before->end) before->end = s.end;
        return;
    }
    last[s.lane] = *n;
    drawn[(*n)++] = s;
}

static ls_status add_timeline(ls_report *doc, const predict_table *t, const predict_row *r, ls_err *err)
{
    static const char *const lanes[LANES] = {"compute", "wait", "exchange"};
    ls_chart_series series[LANES] = {{.name = "computing"}, {.name = "waiting"}, {.name = "exchange"}};
    const ls_predict_args a = predict_args_of(t, r);
    ls_predict_span *spans = NULL;
    ls_chart_span *drawn = NULL;
    char title[120], id[NAME_MAX_HERE];
    int n = 0, count = 0, last[LANES] = {-1, -1, -1};
    ls_status st = LS_OK;

    LS_TRY(predict_answer_timeline(t, &a, &spans, &n, err));
    drawn = ls_alloc(LS_MEM_CLI, sizeof *drawn * (size_t)(n + 1));
    if (drawn == NULL) LS_TRY(ls_fail(err, LS_NOMEM, "no memory for a chart"));
    for (int i = 0; i < n; i++)
        for (int k = 0; k < LANES; k++)
            if (strcmp(spans[i].lane, lanes[k]) == 0)
                draw_span(drawn, &count, last,
                          (ls_chart_span){.lane = k,
                                          .series = k,
                                          .begin = 1e3 * spans[i].begin_s,
                                          .end = 1e3 * spans[i].end_s,
                                          .name = series[k].name},
                          1e3 * r->p.mid / 1000);
    row_id(t, r, "timeline", id);
    snprintf(title, sizeof title, "One step of %d rank%s, %s", r->ranks, r->ranks == 1 ? "" : "s",
             predict_line_of(t, r));
    ls_report_chart(doc, &(ls_chart){.id = id,
                                     .title = title,
                                     .caption = "Of a rank, without jitter.",
                                     .kind = LS_CHART_TIMELINE,
                                     .x_label = "ms",
                                     .series = series,
                                     .n_series = LANES,
                                     .categories = lanes,
                                     .n_categories = LANES,
                                     .spans = drawn,
                                     .n_spans = count});
out:
    ls_free(drawn);
    ls_free(spans);
    return st;
}

/* -- what would help --------------------------------------------------------------------------------------
 */

static void add_sensitivity(ls_report *doc, const predict_table *t, const predict_row *r)
{
    predict_change c[PREDICT_CHANGES];
    const char *categories[PREDICT_CHANGES + 1] = {"as it is"};
    double values[PREDICT_CHANGES + 1] = {1e3 * r->p.mid};
    char title[120], id[NAME_MAX_HERE];
    const int n = predict_sensitivity(t, r, c);

    for (int i = 0; i < n; i++) {
        categories[i + 1] = c[i].brief;
        values[i + 1] = 1e3 * c[i].step_s;
    }
    row_id(t, r, "sensitivity", id);
    snprintf(title, sizeof title, "What would help %d ranks, %s", r->ranks, predict_line_of(t, r));
    ls_report_chart(
        doc, &(ls_chart){.id = id,
                         .title = title,
                         .caption =
                             "The same step with one thing changed: links of twice the bandwidth or half the "
                             "latency, computing twice as fast, exchanges that need no processor "
                             "(wire by itself), parallel.overlap turned round, and "
                             "parallel.bucket_mb four times as large where that changes the plan.",
                         .kind = LS_CHART_BARS,
                         .x_label = "ms of a step",
                         .series = &(ls_chart_series){.name = "a step", .n = n + 1, .y = values},
                         .n_series = 1,
                         .categories = categories,
                         .n_categories = n + 1});
}

/* A line's steps at the ranks that a reader chooses; at first with the most. */
static ls_status add_steps(ls_report *doc, const predict_table *t, int line, ls_err *err)
{
    const predict_row *most = NULL;
    char name[24];
    ls_status st = LS_OK;

    for (int i = 0; i < t->n; i++)
        if (is_of(t, &t->rows[i], line) && (most == NULL || t->rows[i].ranks > most->ranks))
            most = &t->rows[i];
    ls_report_choice(doc, "One step in time, and what would help, with ranks:");
    for (int i = 0; i < t->n; i++) {
        const predict_row *r = &t->rows[i];
        if (!is_of(t, r, line)) continue;
        snprintf(name, sizeof name, "%d", r->ranks);
        ls_report_option(doc, name, r == most);
        LS_TRY(add_timeline(doc, t, r, err));
        if (r->ranks > 1) add_sensitivity(doc, t, r);
    }
    ls_report_choice_end(doc);
out:
    return st;
}

ls_status predict_page_steps(ls_report *doc, const predict_table *t, ls_err *err)
{
    bool first = true;
    ls_status st = LS_OK;

    ls_report_heading(doc, "Where the time of a step goes");
    if (t->n_lines > 1) ls_report_choice(doc, "Strategy:");
    for (int k = 0; k < t->n_lines; k++) {
        if (!has_answer(t, k)) continue;
        if (t->n_lines > 1) ls_report_option(doc, t->line[k], first);
        first = false;
        LS_TRY(add_parts(doc, t, k, err));
        LS_TRY(add_steps(doc, t, k, err));
    }
    if (t->n_lines > 1) ls_report_choice_end(doc);
out:
    return st;
}
