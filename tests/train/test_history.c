/* test_history.c: curves from metrics.jsonl and one step from traces; what is damaged is left out or
 * refused, with its place. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "check.h"
#include "faults.h"
#include "train/history.h"
#include "train/run_pages.h"
#include "train/timeline.h"

static ls_status parse(ls_history *h, const char *text, ls_err *err)
{
    *h = (ls_history){0};
    *err = (ls_err){0};
    return ls_history_parse(h, text, strlen(text), "metrics.jsonl", err);
}

static void curves(void)
{
    ls_history h;
    ls_err err;

    REQUIRE_OK(
        parse(&h,
              "{\"step\": 10, \"epoch\": 0.5, \"time_s\": 1.5, \"train/loss_step\": 2.25, \"lr\": 0.1}\n"
              "{\"step\": 20, \"epoch\": 1, \"time_s\": 2.5, \"train/loss_step\": null, "
              "\"not_finite\": {\"train/loss_step\": \"nan\"}}\n"
              "{\"step\": 20, \"epoch\": 1, \"time_s\": 2.75, \"val/loss_epoch\": 3}\n"
              "{\"step\": 30, \"epoch\": 1.5, \"time_s\": 3.5, \"train/lo", /* is being written */
              &err),
        &err);
    CHECK_EQ_INT(h.n_curves, 3);
    const ls_curve *loss = ls_history_curve(&h, "train/loss_step"),
                   *val = ls_history_curve(&h, "val/loss_epoch");
    REQUIRE(loss != NULL && val != NULL && ls_history_curve(&h, "lr") != NULL);
    CHECK(ls_history_curve(&h, "not_finite") == NULL && ls_history_curve(&h, "step") == NULL);
    CHECK_EQ_INT(loss->n, 2);
    CHECK_NEAR(loss->value[0], 2.25, 0);
    CHECK(isnan(loss->value[1]));
    CHECK_NEAR(loss->epoch[1], 1, 0);
    CHECK_NEAR(val->value[0], 3, 0);
    /* Each step's time counts once, as it was first reported. */
    CHECK_EQ_INT(h.n_times, 2);
    CHECK_NEAR(h.step[1], 20, 0);
    CHECK_NEAR(h.time_s[1], 2.5, 0);
    ls_history_release(&h);

    REQUIRE_OK(parse(&h, "", &err), &err);
    CHECK_EQ_INT(h.n_curves, 0);
    ls_history_release(&h);
}

/* A damaged line is left out, named and counted; those before and after it stay. */
static void damaged_metrics(void)
{
#define BEFORE "{\"step\": 1, \"epoch\": 0, \"time_s\": 0, \"a\": 1}\n"
#define AFTER  "{\"step\": 2, \"epoch\": 1, \"time_s\": 1, \"a\": 2}\n"
    static const struct {
        const char *text, *says;
    } cases[] = {
        {BEFORE "hello\n" AFTER, "no JSON object: "},
        {BEFORE "[1]\n" AFTER, "no JSON object"},
        {BEFORE "\n" AFTER "\n", "no JSON object"},
        {BEFORE "{\"step\": 7, \"epoch\": \"x\", \"time_s\": 0, \"b\": 3}\n" AFTER,
         "\"step\", \"epoch\" and \"time_s\" are not all there"},
        {BEFORE "{\"epoch\": 1, \"time_s\": 0}\n" AFTER, "are not all there"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ls_history h;
        ls_err err;
        REQUIRE_OK(parse(&h, cases[i].text, &err), &err);
        CHECK_EQ_INT(h.damage.lines, i == 2 ? 2 : 1);
        CHECK_EQ_INT(h.damage.first, 2);
        CHECK_CONTAINS(h.damage.why, cases[i].says);
        CHECK_EQ_INT(h.n_curves, 1);
        const ls_curve *a = ls_history_curve(&h, "a");
        REQUIRE(a != NULL && CHECK_EQ_INT(a->n, 2));
        CHECK_NEAR(a->value[1], 2, 0);
        CHECK_EQ_INT(h.n_times, 2);
        ls_history_release(&h);
    }

    ls_text many = {0};
    ls_history h;
    ls_err err;
    ls_text_add(&many, "{\"step\": 1, \"epoch\": 0, \"time_s\": 0");
    for (int i = 0; i <= LS_HISTORY_CURVES; i++) ls_text_add(&many, ", \"m%d\": 1", i);
    ls_text_add(&many, "}\n");
    CHECK_STATUS(parse(&h, many.data, &err), LS_DATA, &err);
    CHECK_CONTAINS(err.text, "more than 256 metrics");
    ls_history_release(&h);
    ls_text_release(&many);
}

#define SPAN(cat, name, ts, dur)                                                                             \
    "{\"ph\":\"X\",\"pid\":0,\"cat\":\"" cat "\",\"name\":\"" name "\",\"ts\":" #ts ",\"dur\":" #dur         \
    ",\"args\":{\"layer\":\"fc\"}}"

static ls_status timeline(ls_timeline *t, const char *a, const char *b, ls_err *err)
{
    const char *const texts[] = {a, b}, *const paths[] = {"trace-00000.json", "trace-00001.json"};
    const size_t lengths[] = {strlen(a), b != NULL ? strlen(b) : 0};

    *err = (ls_err){0};
    return ls_timeline_parse(t, b != NULL ? 2 : 1, texts, lengths, paths, err);
}

static void one_step_of_every_rank(void)
{
    const char *a = "[" SPAN("node", "matmul", 1000, 500) "," SPAN("step", "step 4", 1000, 600) "," SPAN(
        "node", "matmul", 2000,
        300) "," SPAN("backward", "matmul", 2300,
                      200) "," SPAN("exchange", "exchange", 2500,
                                    100) "," SPAN("node", "all_reduce_wait", 2600,
                                                  300) "," SPAN("node", "sgd", 2900,
                                                                50) "," SPAN("step", "step 5", 2000,
                                                                             1000) "]";
    const char *b = "[" SPAN("node", "conv2d", 2100, 800) "," SPAN("step", "step 5", 2050, 900) "," SPAN(
        "step", "step 6", 4000, 900) "]";
    static const ls_span_kind kinds[] = {LS_SPAN_FORWARD, LS_SPAN_BACKWARD, LS_SPAN_EXCHANGE,
                                         LS_SPAN_WAIT,    LS_SPAN_UPDATE,   LS_SPAN_FORWARD};
    ls_timeline t;
    ls_err err;

    REQUIRE_OK(timeline(&t, a, b, &err), &err);
    CHECK_EQ_INT(t.step, 5); /* the last that both have */
    CHECK_EQ_INT(t.n_ranks, 2);
    REQUIRE(CHECK_EQ_INT(t.n_spans, 6));
    for (int i = 0; i < 6; i++) CHECK_EQ_INT(t.spans[i].kind, kinds[i]);
    CHECK_EQ_STR(t.spans[0].name, "matmul fc");
    CHECK_NEAR(t.spans[0].begin_ms, 0, 1e-12);
    CHECK_NEAR(t.spans[3].begin_ms, 0.6, 1e-12);
    CHECK_NEAR(t.spans[3].end_ms, 0.9, 1e-12);
    CHECK_EQ_INT(t.spans[5].rank, 1);
    CHECK_NEAR(t.spans[5].begin_ms, 0.1, 1e-12); /* on the clock that both share */
    ls_timeline_release(&t);

    /* Clocks of two machines: each step begins at its own zero. */
    b = "[" SPAN("node", "conv2d", 900100, 800) "," SPAN("step", "step 5", 900050, 900) "]";
    REQUIRE_OK(timeline(&t, a, b, &err), &err);
    CHECK_NEAR(t.spans[5].begin_ms, 0.05, 1e-9);
    ls_timeline_release(&t);
}

static void damaged_traces(void)
{
    static const struct {
        const char *a, *b, *says;
    } cases[] = {
        {"[" SPAN("step", "step 1", 0, 1), NULL, "trace-00000.json is no whole trace"},
        {"{}", NULL, "no whole trace"},
        {"[]", NULL, "step -1 is not in it"},
        {"[" SPAN("step", "step 1", 0, 1) "]", "[" SPAN("step", "step 0", 0, 1) "]",
         "trace-00000.json: step 0 is not"},
        {"[1, null, {\"cat\":\"step\",\"name\":\"step 3\",\"ts\":\"x\",\"dur\":1}]", NULL,
         "step 3 is not in it"},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ls_timeline t;
        ls_err err;
        CHECK_STATUS(timeline(&t, cases[i].a, cases[i].b, &err), LS_DATA, &err);
        CHECK_CONTAINS(err.text, cases[i].says);
        ls_timeline_release(&t);
    }
}

/* Everything that a page about two runs takes memory for. */
static ls_status make_page(void *arg, ls_err *err)
{
    static const char lines[] =
        "{\"step\": 10, \"epoch\": 0.5, \"time_s\": 1, \"train/loss_step\": 2, \"lr\": 0.1}\n"
        "{\"step\": 20, \"epoch\": 1, \"time_s\": 2, \"val/loss_epoch\": 1}\n";
    ls_past_run runs[2] = {{.name = "a", .path = "/nowhere"}, {.name = "b", .path = "/nowhere"}};
    ls_report *page = NULL;
    ls_text html = {0};
    ls_status st = LS_OK;

    (void)arg;
    for (int k = 0; k < 2; k++) {
        runs[k].summary = json_loads(
            "{\"state\": \"paused\", \"metrics\": {\"last\": {\"loss\": 1}}, \"ledger_s\": {\"compute\": 2}}",
            0, NULL);
        LS_TRY(ls_history_parse(&runs[k].history, lines, strlen(lines), "metrics.jsonl", err));
    }
    LS_TRY(ls_report_create(&page, "Runs", err));
    LS_TRY(ls_run_pages(page, runs, 2, err));
    LS_TRY(ls_report_html(page, &html, err));
    CHECK_CONTAINS(html.data, "a is not complete: its state is &quot;paused&quot;");
    CHECK_CONTAINS(html.data, ">loss: training; dashed: validation</text>");
    CHECK_CONTAINS(html.data, ">b</text>");
out:
    for (int k = 0; k < 2; k++) ls_past_run_release(&runs[k]);
    ls_text_release(&html);
    ls_report_destroy(page);
    return st;
}

static ls_status make_timeline(void *arg, ls_err *err)
{
    const char *text = "[" SPAN("node", "matmul", 1000, 500) "," SPAN("step", "step 4", 1000, 600) "]";
    ls_timeline t;
    ls_err own;
    const ls_status st = timeline(&t, text, text, &own);

    (void)arg;
    *err = own;
    ls_timeline_release(&t);
    return st;
}

static void memory_runs_out(void)
{
    check_faults("a page about runs", make_page, NULL);
    check_faults("a timeline", make_timeline, NULL);
}

int main(void)
{
    CHECK_RUN(curves);
    CHECK_RUN(damaged_metrics);
    CHECK_RUN(one_step_of_every_rank);
    CHECK_RUN(damaged_traces);
    CHECK_RUN(memory_runs_out);
    return CHECK_DONE();
}
