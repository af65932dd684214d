/* test_query.c: fields of runs, conditions over them, order by them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "faults.h"
#include "runs/query.h"

enum { N = 4 };

static ls_run_info infos[N];
static ls_run_row rows[N];

static void make(int k, const char *folder, ls_run_state state, const char *summary, const char *config)
{
    ls_err err = {0};

    infos[k] = (ls_run_info){.state = state,
                             .written = state,
                             .steps = 10 * (k + 1),
                             .epochs = k,
                             .started = 1000 - k,
                             .ranks = k,
                             .heartbeat = (double)NAN,
                             .opened = (double)NAN};
    snprintf(infos[k].folder, sizeof infos[k].folder, "%s", folder);
    snprintf(infos[k].name, sizeof infos[k].name, "mnist");
    infos[k].summary = json_loads(summary, 0, NULL);
    rows[k] = (ls_run_row){.info = &infos[k]};
    REQUIRE_OK(ls_run_settings_parse(&rows[k].settings, config, strlen(config), &err), &err);
}

static void begin(void)
{
    make(0, "a", LS_RUN_COMPLETED,
         "{\"metrics\":{\"last\":{\"acc\":0.5},\"test\":{\"acc\":0.4}},\"wall_s\":3}",
         "optimizer:\n  lr: 0.1\nseed: 7\n");
    make(1, "b", LS_RUN_KILLED, "{\"metrics\":{\"last\":{\"acc\":0.9},\"best\":{\"value\":0.95,\"step\":3}}}",
         "optimizer:\n  lr: 1e-2\ntrain:\n  best_metric: \"val/acc\"\n");
    make(2, "mnist-c", LS_RUN_RUNNING, "{}", "optimizer:\n  lr: 0.5\n  name: sgd\n");
    make(3, "d", LS_RUN_COMPLETED, "{\"metrics\":{\"last\":{\"acc\":0.7}},\"samples_per_s\":{\"p50\":100}}",
         "optimizer:\n  lr: 2\n");
}

static void end(void)
{
    for (int k = 0; k < N; k++) {
        ls_run_settings_release(&rows[k].settings);
        json_decref(infos[k].summary);
    }
}

static void fields_have_values(void)
{
    const char *of;

    begin();
    CHECK_NEAR(ls_run_field(&rows[0], "acc").number, 0.5, 0);
    CHECK_NEAR(ls_run_field(&rows[0], "val/acc").number, 0.5, 0);
    CHECK_NEAR(ls_run_field(&rows[0], "test/acc").number, 0.4, 0);
    CHECK_NEAR(ls_run_field(&rows[1], "optimizer.lr").number, 0.01, 0);
    CHECK_EQ_STR(ls_run_field(&rows[2], "state").text, "running");
    CHECK_NEAR(ls_run_field(&rows[1], "metric").number, 0.95, 0);
    CHECK_NEAR(ls_run_best(&rows[1], &of), 0.95, 0);
    CHECK_EQ_STR(of, "val/acc");
    CHECK_EQ_INT(ls_run_field(&rows[2], "acc").kind, LS_RUN_NONE);
    CHECK_NEAR(ls_run_field(&rows[0], "seconds").number, 3, 0);
    CHECK_NEAR(ls_run_field(&rows[3], "samples_per_s").number, 100, 0);
    snprintf(infos[3].trouble, sizeof infos[3].trouble, "cut");
    CHECK_EQ_STR(ls_run_field(&rows[3], "state").text, "damaged");
    end();
}

/* Which of the runs a condition holds for, as digits. */
static const char *holding(const char *text)
{
    static char out[N + 1];
    ls_run_condition c;
    ls_err err = {0};
    int n = 0;

    REQUIRE_OK(ls_run_condition_parse(&c, text, &err), &err);
    for (int k = 0; k < N; k++)
        if (ls_run_holds(&rows[k], &c)) out[n++] = (char)('0' + k);
    out[n] = '\0';
    return out;
}

static void conditions_hold(void)
{
    static const char *const cases[][2] = {{"acc>0.5", "13"},
                                           {"acc>=0.5", "013"},
                                           {"acc<0.9", "03"},
                                           {"acc<=0.9", "013"},
                                           {"acc=0.50", "0"},
                                           {"acc!=0.5", "123"},
                                           {"state=running", "2"},
                                           {"state!=completed", "12"},
                                           {"optimizer.lr>0.1", "23"},
                                           {"optimizer.lr==0.01", "1"},
                                           {"run~mnist-*", "2"},
                                           {"run=b", "1"},
                                           {"seed=7", "0"},
                                           {"seed=", "123"},
                                           {"optimizer.name=sgd", "2"},
                                           {"optimizer.lr~0.*", "02"},
                                           {"acc=high", ""},
                                           {"state>failed", "12"},
                                           {"steps>=30", "23"},
                                           {"name=mnist", "0123"}};
    static const char *const none[] = {"", "acc", "=1", ">", "acc!0.5", "!x"};
    ls_run_condition c;

    begin();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        CHECK_EQ_STR(holding(cases[i][0]), cases[i][1]);
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++) {
        ls_err err = {0};
        CHECK_STATUS(ls_run_condition_parse(&c, none[i], &err), LS_INVALID, &err);
        CHECK_CONTAINS(err.text, "state=running");
    }
    end();
}

static void check_order(const char *by, const char *want)
{
    char got[64] = "";
    ls_err err = {0};

    begin();
    REQUIRE_OK(ls_run_sort(rows, N, by, &err), &err);
    for (int k = 0, at = 0; k < N; k++)
        at += snprintf(got + at, sizeof got - (size_t)at, "%.20s ", rows[k].info->folder);
    CHECK_EQ_STR(got, want);
    for (int k = 0; k < N; k++) ls_run_settings_release(&rows[k].settings);
    for (int k = 0; k < N; k++) json_decref(infos[k].summary);
}

static void rows_are_ordered(void)
{
    ls_err err = {0};

    check_order("acc", "a d b mnist-c ");
    check_order("-acc", "b d a mnist-c "); /* what has none comes last, either way */
    check_order("optimizer.lr", "b a mnist-c d ");
    check_order("-optimizer.lr", "d mnist-c a b ");
    check_order("state", "a d b mnist-c ");
    check_order("started", "d mnist-c b a ");
    check_order("metric", "b a mnist-c d ");
    begin();
    CHECK_STATUS(ls_run_sort(rows, N, "optimizer.lrr", &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "did you mean \"optimizer.lr\"?");
    end();
}

static ls_status sort(void *arg, ls_err *err)
{
    return ls_run_sort(rows, N, arg, err);
}

static void memory_runs_out(void)
{
    char by[] = "-acc";

    begin();
    check_faults("an order of runs", sort, by);
    end();
}

int main(void)
{
    CHECK_RUN(fields_have_values);
    CHECK_RUN(conditions_hold);
    CHECK_RUN(rows_are_ordered);
    CHECK_RUN(memory_runs_out);
    return CHECK_DONE();
}
