/* test_study.c: the folder of a study: whose it is, the order of points, going on after a stop, damage, and
 * two studies compared.  Points are made up by a runner of the test. */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "faults.h"
#include "study/compare.h"
#include "study/study.h"

static char work[512];

static const char *in_work(const char *name)
{
    static char path[16][1024];
    static int n;
    char *at = path[n++ % 16];

    snprintf(at, sizeof path[0], "%s/%s", work, name);
    return at;
}

static void write_text(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");

    REQUIRE(f != NULL);
    fputs(text, f);
    fclose(f);
}

/* -- a runner that makes results up -----------------------------------------------------------------------
 */

typedef struct maker {
    int calls, stop_after, fail_after; /* 0: never */
    double factor;                     /* of all rates; 0: 1 */
    char seen[512];                    /* "1.1 2.1 ...": counts and repeats in their order */
    char last[1024];                   /* the last command */
    int kept, damaged;
} maker;

static ls_status make(void *ctx, const ls_study_job *job, ls_text *line, ls_err *err)
{
    maker *m = ctx;
    const double rate = (m->factor > 0 ? m->factor : 1) * 1000 * job->ranks * (job->ranks > 1 ? 0.9 : 1) *
                        (1 + 0.01 * job->repeat + 0.001 * job->ranks * job->repeat);
    size_t at = strlen(m->seen);

    m->calls++;
    snprintf(m->seen + at, sizeof m->seen - at, "%s%d.%d", at > 0 ? " " : "", job->count, job->repeat);
    m->last[0] = '\0';
    for (int i = 0; job->argv[i] != NULL; i++) {
        at = strlen(m->last);
        snprintf(m->last + at, sizeof m->last - at, "%s%s", i > 0 ? " " : "", job->argv[i]);
    }
    if (m->stop_after > 0 && m->calls > m->stop_after) return ls_fail(err, LS_CANCELLED, "stopped");
    if (m->fail_after > 0 && m->calls > m->fail_after) {
        ls_text_add(line, "no JSON\n");
        return LS_OK;
    }
    if (job->study->train)
        ls_text_add(line,
                    "{\"event\": \"summary\", \"state\": \"completed\", \"ranks\": %d, \"steps\": 10, "
                    "\"wall_s\": %g, "
                    "\"metrics\": {\"test\": {\"loss\": 0.3, \"acc\": 0.9}}, \"ledger_s\": {\"data\": 0.5}, "
                    "\"samples_per_s\": {\"p16\": %g, \"p50\": %g, \"p84\": %g}, "
                    "\"step_s\": {\"p16\": 0.1, \"p50\": 0.1, \"p84\": 0.1}}\n",
                    job->ranks, 1e6 / rate, rate * 0.98, rate, rate * 1.02);
    else
        ls_text_add(line,
                    "{\"event\": \"bench\", \"ranks\": %d, \"threads\": %d, \"steps\": 10, "
                    "\"samples_per_s\": {\"p16\": %g, \"p50\": %g, \"p84\": %g}, "
                    "\"step_s\": {\"p16\": 0.1, \"p50\": 0.1, \"p84\": 0.1}, \"comm_exposed_s\": 0.01}\n",
                    job->ranks, job->study->threads, rate * 0.98, rate, rate * 1.02);
    return LS_OK;
}

static void note(void *ctx, const ls_study_news *n)
{
    maker *m = ctx;

    m->kept += n->state == LS_STUDY_KEPT;
    m->damaged += n->state == LS_STUDY_DAMAGED;
    if (n->state == LS_STUDY_DAMAGED) CHECK_CONTAINS(n->why, "points/ranks-");
}

static ls_study_wish wish(const char *counts, const char *mode, int repeats)
{
    return (ls_study_wish){
        .experiment = "mnist", .counts = counts, .mode = mode, .repeats = repeats, .steps = 7};
}

/* Asks, opens and runs; the status of the first that fails. */
static ls_status study(const ls_study_wish *w, const char *dir, bool fresh, maker *m, ls_err *err)
{
    const ls_study_how how = {make, m, note, m};
    ls_study s = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_study_ask(&s, w, err));
    LS_TRY(ls_study_open(&s, dir, fresh, NULL, err));
    LS_TRY(ls_study_run(&s, &how, err));
out:
    ls_study_release(&s);
    return st;
}

/* -- order ------------------------------------------------------------------------------------------------
 */

/* Every repeat takes every count once, no two repeats in a row in the same order, and over pairs of repeats
 * every count comes as early as late. */
static void order_is_balanced(void)
{
    int order[6], before[6] = {0}, sum[6];

    for (int n = 2; n <= 6; n++) {
        memset(sum, 0, sizeof sum);
        for (int repeat = 1; repeat <= 2 * n; repeat++) {
            int seen = 0;
            ls_study_order(n, repeat, order);
            for (int i = 0; i < n; i++) {
                seen |= 1 << order[i];
                sum[order[i]] += i;
            }
            CHECK_EQ_INT(seen, (1 << n) - 1);
            if (repeat > 1) CHECK(memcmp(order, before, sizeof order[0] * (size_t)n) != 0);
            memcpy(before, order, sizeof order);
        }
        for (int i = 1; i < n; i++) CHECK_EQ_INT(sum[i], sum[0]);
    }
}

/* -- going on ---------------------------------------------------------------------------------------------
 */

static void a_stopped_study_goes_on(void)
{
    const char *dir = in_work("stopped");
    const ls_study_wish w = wish("2,1,4", "weak", 2);
    maker m = {.stop_after = 2};
    struct stat first, again;
    ls_err err = {0};

    CHECK_STATUS(study(&w, dir, false, &m, &err), LS_CANCELLED, &err);
    CHECK_EQ_STR(m.seen, "1.1 2.1 4.1");
    REQUIRE(stat(in_work("stopped/points/ranks-0001-repeat-01.json"), &first) == 0);
    CHECK(access(in_work("stopped/points/ranks-0004-repeat-01.json"), F_OK) != 0);
    m = (maker){0};
    err = (ls_err){0};
    CHECK_OK(study(&w, dir, false, &m, &err), &err);
    CHECK_EQ_STR(m.seen, "4.1 4.2 2.2 1.2");
    CHECK_EQ_INT(m.kept, 2);
    REQUIRE(stat(in_work("stopped/points/ranks-0001-repeat-01.json"), &again) == 0);
    CHECK_EQ_INT(first.st_ino, again.st_ino);
    CHECK_EQ_INT(first.st_mtim.tv_nsec, again.st_mtim.tv_nsec);

    /* A torn file, and one of another point, are measured again, and that is said. */
    write_text(in_work("stopped/points/ranks-0002-repeat-01.json"), "{\"event\": \"bench\", \"ra");
    write_text(
        in_work("stopped/points/ranks-0004-repeat-02.json"),
        "{\"event\": \"bench\", \"ranks\": 2, \"threads\": 1, \"steps\": 1, \"samples_per_s\": {\"p16\": 1, "
        "\"p50\": 1, \"p84\": 1}, \"step_s\": {\"p16\": 1, \"p50\": 1, \"p84\": 1}}");
    m = (maker){0};
    CHECK_OK(study(&w, dir, false, &m, &err), &err);
    CHECK_EQ_STR(m.seen, "2.1 4.2");
    CHECK_EQ_INT(m.damaged, 2);

    /* More repeats and more counts belong to the same study. */
    m = (maker){0};
    CHECK_OK(study(
                 &(ls_study_wish){
                     .experiment = "mnist", .counts = "1,8", .mode = "weak", .repeats = 3, .steps = 7},
                 dir, false, &m, &err),
             &err);
    CHECK_EQ_STR(m.seen, "8.1 8.2 2.3 4.3 8.3 1.3");
}

static void what_is_no_result_is_not_kept(void)
{
    const ls_study_wish w = wish("1,2", "weak", 1);
    maker m = {.fail_after = 1};
    ls_err err = {0};

    CHECK_STATUS(study(&w, in_work("bad"), false, &m, &err), LS_DATA, &err);
    CHECK_CONTAINS(err.text, "2 ranks, repeat 1");
    CHECK(access(in_work("bad/points/ranks-0001-repeat-01.json"), F_OK) == 0);
    CHECK(access(in_work("bad/points/ranks-0002-repeat-01.json"), F_OK) != 0);
}

/* -- whose folder -----------------------------------------------------------------------------------------
 */

static void another_question_is_refused(void)
{
    const char *dir = in_work("whose"), *more[] = {"seed=7"};
    ls_study_wish w = wish("1,2", "weak", 1);
    struct dirent *e;
    maker m = {0};
    ls_err err = {0};
    bool kept = false;
    DIR *d;

    CHECK_OK(study(&w, dir, false, &m, &err), &err);
    w.mode = "strong";
    CHECK_STATUS(study(&w, dir, false, &m, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "mode: weak and strong");
    CHECK_CONTAINS(err.text, "--fresh");
    CHECK_CONTAINS(err.text, "--dir");
    err = (ls_err){0};
    w = wish("1,2", "weak", 1);
    w.threads = 2;
    w.settings = more;
    w.n_settings = 1;
    CHECK_STATUS(study(&w, dir, false, &m, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "threads: 1 and 2");
    CHECK_CONTAINS(err.text, "seed: not given and 7");
    CHECK_EQ_INT(m.calls, 2);
    err = (ls_err){0};
    CHECK_OK(study(&w, dir, true, &m, &err), &err);
    CHECK_EQ_INT(m.calls, 4);
    /* What was there is not lost. */
    d = opendir(work);
    while (d != NULL && (e = readdir(d)) != NULL) kept |= strncmp(e->d_name, "whose-before-", 13) == 0;
    if (d != NULL) closedir(d);
    CHECK(kept);
    /* A folder with somebody's files is left alone. */
    mkdir(in_work("mine"), 0777);
    write_text(in_work("mine/letter"), "dear");
    CHECK_STATUS(study(&w, in_work("mine"), true, &m, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "is no study");
    CHECK(access(in_work("mine/letter"), F_OK) == 0);
}

static void bad_questions(void)
{
    static const struct {
        const char *counts, *mode, *says;
    } cases[] = {{NULL, "weak", "which rank counts"}, {"1,2", NULL, "--mode weak"},
                 {"1,2", "wek", "weak or strong"},    {"1,two", "weak", "1,two"},
                 {"0,1", "weak", "from 1"},           {"1,2,1", "weak", "1 occurs twice"},
                 {"1,2,", "weak", "expected counts"}, {"1,3", "strong", "3 ranks cannot share"}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const ls_study_wish w = wish(cases[i].counts, cases[i].mode, 1);
        maker m = {0};
        ls_err err = {0};
        CHECK_STATUS(study(&w, in_work("never"), false, &m, &err), LS_INVALID, &err);
        CHECK_CONTAINS(err.text, cases[i].says);
        CHECK_EQ_INT(m.calls, 0);
    }
    CHECK(access(in_work("never"), F_OK) != 0);
}

/* -- commands ---------------------------------------------------------------------------------------------
 */

static void batch_stays(void)
{
    const char *settings[] = {"batch.per_rank=48"};
    ls_study_wish w = wish("2,4", "weak", 1);
    maker m = {0};
    ls_err err = {0};

    w.settings = settings;
    w.n_settings = 1;
    CHECK_OK(study(&w, in_work("weak"), false, &m, &err), &err);
    CHECK_EQ_STR(m.last, "lockstep bench mnist batch.per_rank=48 --device cpu --steps 7 --json -n 4 "
                         "--threads 1");
    w.mode = "strong";
    CHECK_OK(study(&w, in_work("strong"), false, &m, &err), &err);
    CHECK_EQ_STR(m.last, "lockstep bench mnist batch.global=96 --device cpu --steps 7 --json -n 4 "
                         "--threads 1");
    w = (ls_study_wish){
        .experiment = "mnist", .counts = "1,2", .mode = "weak", .repeats = 1, .ranks_per_node = 3};
    CHECK_OK(study(&w, in_work("nodes"), false, &m, &err), &err);
    CHECK_EQ_STR(m.last, "lockstep bench mnist batch.per_rank=64 --device cpu --json --threads 1");
    CHECK(access(in_work("nodes/points/nodes-0002-repeat-01.json"), F_OK) == 0);
}

/* -- results ----------------------------------------------------------------------------------------------
 */

static void load(const char *dir, ls_study *s, ls_study_results *r)
{
    ls_study_points p;
    ls_err err = {0};

    REQUIRE_OK(ls_study_load(s, dir, &err), &err);
    REQUIRE_OK(ls_study_points_load(&p, s, &err), &err);
    ls_study_judge(s, &p, r);
    ls_study_points_release(&p);
}

static void results_of_known_points(void)
{
    const ls_study_wish w = wish("1,2,4096", "weak", 3);
    maker m = {0};
    ls_study s;
    ls_study_results r;
    ls_err err = {0};
    ls_text table = {0};
    json_t *o;

    CHECK_OK(study(&w, in_work("known"), false, &m, &err), &err);
    load(in_work("known"), &s, &r);
    CHECK(r.complete && r.any_oversubscribed);
    CHECK_EQ_INT(r.rows[0].repeats, 3);
    CHECK_NEAR(r.rows[0].efficiency.hi, 1, 0);
    CHECK_NEAR(r.rows[0].mean, 1000 * 1.022, 1e-6);
    CHECK_NEAR(r.rows[0].error, 1000 * 0.011 / sqrt(3), 1e-6);
    /* The mean of the logarithms of 0.9 (1 + 0.012 k) / (1 + 0.011 k). */
    CHECK_NEAR(log(r.rows[1].efficiency.mid),
               log(0.9) + (log(1.012 / 1.011) + log(1.024 / 1.022) + log(1.036 / 1.033)) / 3, 1e-9);
    CHECK(r.rows[1].efficiency.lo < r.rows[1].efficiency.mid &&
          r.rows[1].efficiency.mid < r.rows[1].efficiency.hi);
    CHECK(!r.rows[0].oversubscribed && r.rows[2].oversubscribed);
    CHECK_NEAR(r.rows[1].compute_s, 0.09, 1e-9);
    /* Marked in every output, and never shown as an efficiency like the others. */
    CHECK_OK(ls_study_table(&s, &r, &table, &err), &err);
    CHECK_CONTAINS(table.data, "oversubscribed");
    CHECK_CONTAINS(table.data, "no scaling");
    o = ls_study_json(&s, &r, "x.html");
    CHECK(json_is_true(json_object_get(json_array_get(json_object_get(o, "points"), 2), "oversubscribed")));
    CHECK(json_is_false(json_object_get(json_array_get(json_object_get(o, "points"), 0), "oversubscribed")));
    CHECK_EQ_STR(json_string_value(json_object_get(o, "event")), "scale");
    json_decref(o);
    ls_text_release(&table);
    ls_study_release(&s);
}

/* A study that trains: time to solution and what was learned, by rank count. */
static void trained_points(void)
{
    ls_study_wish w = {.experiment = "mnist", .counts = "1,2", .mode = "strong", .repeats = 2, .train = true};
    maker m = {0};
    ls_study s;
    ls_study_results r;
    ls_err err = {0};

    CHECK_OK(study(&w, in_work("trained"), false, &m, &err), &err);
    CHECK_CONTAINS(m.last,
                   "lockstep train mnist batch.global=64 --device cpu --quiet --json -n 1 --threads 1 ");
    CHECK_CONTAINS(m.last, "trained/runs/ranks-0001-repeat-02");
    CHECK_CONTAINS(m.last, "--run-dir=");
    load(in_work("trained"), &s, &r);
    CHECK_EQ_STR(r.score_name, "acc");
    CHECK_NEAR(r.rows[1].score.mid, 0.9, 1e-12);
    CHECK_NEAR(r.rows[0].solution_s.hi, 1e6 / (1000 * 1.011), 1e-2);
    CHECK_NEAR(r.rows[0].data_wait_s, 0.05, 1e-9);
    ls_study_release(&s);
    w.steps = 3;
    CHECK_STATUS(study(&w, in_work("trained2"), false, &m, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "train.steps");
}

/* A run that was paused goes on; what a run of another end left is left alone. */
static void trained_points_go_on(void)
{
    const ls_study_wish w = {
        .experiment = "mnist", .counts = "1", .mode = "weak", .repeats = 1, .train = true};
    const char *folders[] = {"again/runs", "again/runs/ranks-0001-repeat-01",
                             "again/runs/ranks-0001-repeat-01/checkpoints",
                             "again/runs/ranks-0001-repeat-01/checkpoints/last"};
    maker m = {0};
    ls_err err = {0};

    CHECK_OK(study(&w, in_work("again"), false, &m, &err), &err);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) mkdir(in_work(folders[i]), 0777);
    write_text(in_work("again/runs/ranks-0001-repeat-01/checkpoints/last/manifest.json"), "{}");
    write_text(in_work("again/runs/ranks-0001-repeat-01/summary.json"), "{\"state\": \"paused\"}");
    CHECK(remove(in_work("again/points/ranks-0001-repeat-01.json")) == 0);
    CHECK_OK(study(&w, in_work("again"), false, &m, &err), &err);
    CHECK_CONTAINS(m.last, "--resume=");
    CHECK_CONTAINS(m.last, "again/runs/ranks-0001-repeat-01");
    write_text(in_work("again/runs/ranks-0001-repeat-01/summary.json"), "{\"state\": \"completed\"}");
    CHECK(remove(in_work("again/points/ranks-0001-repeat-01.json")) == 0);
    CHECK_OK(study(&w, in_work("again"), false, &m, &err), &err);
    CHECK_CONTAINS(m.last, "--run-dir=");
    CHECK_CONTAINS(m.last, "again/runs/ranks-0001-repeat-01-try-2");
}

static void read_text(const char *path, char *text, size_t size)
{
    FILE *f = fopen(path, "r");

    REQUIRE(f != NULL);
    text[fread(text, 1, size - 1, f)] = '\0';
    fclose(f);
}

/* Cells below the head that are neither empty nor a number, but for the last `named` of each line. */
static int not_numbers(char *csv, int named)
{
    int wrong = 0;

    for (char *line = strtok(csv, "\r\n"), *rest; line != NULL; line = strtok(NULL, "\r\n")) {
        if (strncmp(line, "ranks,", 6) == 0) continue;
        for (int i = 0; i < named; i++) *strrchr(line, ',') = '\0';
        for (char *at = line; at != NULL; at = *rest == ',' ? rest + 1 : NULL) {
            strtod(at, &rest);
            if (*rest != ',' && *rest != '\0') {
                printf("  no number: %s\n", at);
                wrong++;
                rest = "";
            }
        }
    }
    return wrong;
}

static void report_files(void)
{
    static const char *const files[] = {"report.html", "throughput.svg", "efficiency.svg",
                                        "ledger.svg",  "points.csv",     "table.md"};
    char path[LS_STUDY_PATH_MAX], csv[4096] = "";
    ls_err err = {0};

    CHECK_OK(ls_study_rebuild(in_work("known"), path, &err), &err);
    CHECK_EQ_STR(path, in_work("known/report.html"));
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++) {
        char name[64];
        snprintf(name, sizeof name, "known/%s", files[i]);
        CHECK(access(in_work(name), R_OK) == 0);
    }
    read_text(in_work("known/points.csv"), csv, sizeof csv);
    CHECK_CONTAINS(csv, "4096,1,1,1,10,");
    CHECK_CONTAINS(csv, "2,3,1,0,10,");
    CHECK_EQ_INT(not_numbers(csv, 0), 0);
    read_text(in_work("known/table.csv"), csv, sizeof csv);
    CHECK_CONTAINS(csv, "efficiency_lo,efficiency,efficiency_hi");
    CHECK_CONTAINS(csv, ",samples_per_s_p16,samples_per_s_p50,samples_per_s_p84,");
    CHECK_EQ_INT(not_numbers(csv, 2), 0); /* but for the names of two kinds */
    read_text(in_work("known/machine.csv"), csv, sizeof csv);
    CHECK_EQ_INT(not_numbers(csv, 0), 0);
    CHECK_OK(ls_study_rebuild(in_work("trained/study.json"), path, &err), &err);
    CHECK(access(in_work("trained/time.svg"), R_OK) == 0);
    CHECK(access(in_work("trained/accuracy.svg"), R_OK) == 0);
}

/* -- two studies ------------------------------------------------------------------------------------------
 */

static void compared(const char *b, double factor, ls_verdict want)
{
    const ls_study_wish w = wish("1,2", "weak", 4);
    maker m = {.factor = factor};
    ls_comparison c = {0};
    ls_err err = {0};

    CHECK_OK(study(&w, b, false, &m, &err), &err);
    CHECK_OK(ls_study_compare(&c, in_work("a"), b, false, &err), &err);
    CHECK_EQ_INT(c.n, 2);
    CHECK_EQ_INT(c.all.verdict, want);
    CHECK_EQ_INT(c.of[0].verdict, want);
    CHECK_NEAR(c.all.ratio.mid, factor, 1e-5);
    CHECK(c.all.ratio.lo < factor && factor < c.all.ratio.hi);
    ls_comparison_release(&c);
}

static void comparing(void)
{
    const ls_study_wish w = wish("1,2", "weak", 4), other = wish("1,2", "strong", 2);
    maker m = {0};
    ls_comparison c = {0};
    ls_err err = {0};

    CHECK_OK(study(&w, in_work("a"), false, &m, &err), &err);
    compared(in_work("fast"), 1.2, LS_FASTER);
    compared(in_work("slow"), 0.8, LS_SLOWER);
    compared(in_work("same"), 1.005, LS_SAME);
    CHECK_OK(study(&other, in_work("other"), false, &m, &err), &err);
    CHECK_STATUS(ls_study_compare(&c, in_work("a"), in_work("other"), false, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "mode: weak and strong");
    ls_comparison_release(&c);
    err = (ls_err){0};
    CHECK_OK(ls_study_compare(&c, in_work("a"), in_work("other"), true, &err), &err);
    CHECK(c.parts & LS_STUDY_QUESTION);
    ls_comparison_release(&c);
    CHECK_STATUS(ls_study_compare(&c, in_work("a"), in_work("nowhere"), false, &err), LS_INVALID, &err);
    CHECK_CONTAINS(err.text, "is no study");
    ls_comparison_release(&c);
}

/* What two settings are worth is what a comparison is for: each is named with both values. */
static void settings_are_compared(void)
{
    static const char *const a[] = {"seed=1", "parallel.overlap=true", "seed=3"},
                             *const same[] = {"parallel.overlap=true", "seed=3"},
                             *const b[] = {"seed=3", "parallel.overlap=false", "parallel.wire=fp32"};
    ls_study_wish w = wish("1,2", "weak", 2);
    maker m = {0};
    ls_comparison c = {0};
    ls_err err = {0};

    w.settings = a, w.n_settings = 3;
    CHECK_OK(study(&w, in_work("on"), false, &m, &err), &err);
    w.settings = same, w.n_settings = 2; /* in another order, and the last of two counts */
    CHECK_OK(study(&w, in_work("on"), false, &m, &err), &err);
    w.settings = b, w.n_settings = 3;
    CHECK_OK(study(&w, in_work("off"), false, &m, &err), &err);
    CHECK_OK(ls_study_compare(&c, in_work("on"), in_work("off"), false, &err), &err);
    CHECK(c.parts & LS_STUDY_SETTING);
    CHECK_CONTAINS(c.differences.data, "parallel.overlap: true and false; parallel.wire: not given and fp32");
    CHECK(strstr(c.differences.data, "seed") == NULL);
    ls_comparison_release(&c);
}

/* One repeat knows nothing of other runs: its verdict is no surer than that of two. */
static void one_repeat_is_compared(void)
{
    ls_study_wish w = wish("1", "weak", 1);
    maker m = {0}, fast = {.factor = 1.2};
    ls_comparison c = {0};
    ls_err err = {0};

    CHECK_OK(study(&w, in_work("once"), false, &m, &err), &err);
    CHECK_OK(study(&w, in_work("once-fast"), false, &fast, &err), &err);
    CHECK_OK(ls_study_compare(&c, in_work("once"), in_work("once-fast"), false, &err), &err);
    CHECK_EQ_INT(c.all.verdict, LS_SAME);
    CHECK(c.all.assumed && c.of[0].assumed);
    ls_comparison_release(&c);
}

/* -- bytes from outside -----------------------------------------------------------------------------------
 */

static void description_survives(void)
{
    ls_study s, again;
    ls_text text = {0};
    ls_err err = {0};

    REQUIRE_OK(ls_study_load(&s, in_work("known"), &err), &err);
    CHECK_OK(ls_study_text(&s, &text, &err), &err);
    CHECK_OK(ls_study_parse(&again, text.data, text.length, &err), &err);
    CHECK_EQ_INT(ls_study_differences(&s, &again, NULL), 0);
    ls_study_release(&again);
    for (size_t n = 0; n + 1 < text.length; n += 7) {
        ls_err why = {0};
        CHECK_STATUS(ls_study_parse(&again, text.data, n, &why), LS_DATA, &why);
        CHECK(why.text[0] != '\0');
        ls_study_release(&again);
    }
    ls_study_release(&s);
    ls_text_release(&text);
}

/* Without memory a study is not taken for a damaged or an empty one. */
static ls_status load_and_show(void *arg, ls_err *err)
{
    ls_study s = {0};
    ls_study_points p = {0};
    ls_study_results r;
    ls_text table = {0}, again = {0};
    ls_status st = LS_OK;

    LS_TRY(ls_study_load(&s, arg, err));
    LS_TRY(ls_study_points_load(&p, &s, err));
    CHECK_EQ_INT(p.n_there, s.n_counts * s.repeats);
    ls_study_judge(&s, &p, &r);
    LS_TRY(ls_study_table(&s, &r, &table, err));
    LS_TRY(ls_study_text(&s, &again, err));
out:
    ls_text_release(&table);
    ls_text_release(&again);
    ls_study_points_release(&p);
    ls_study_release(&s);
    return st;
}

/* What others did when the study began stays with it, and is said. */
static void busy_machines_are_remembered(void)
{
    const ls_study_wish w = wish("1,2", "weak", 1);
    char path[LS_STUDY_PATH_MAX], page[65536] = "";
    const ls_study_how how = {.run = make, .run_ctx = &(maker){0}};
    ls_err err = {0};
    ls_study s;
    FILE *f;

    for (int turn = 0; turn < 2; turn++) {
        REQUIRE_OK(ls_study_ask(&s, &w, &err), &err);
        ls_study_look_around(&s);
        CHECK(s.busy >= 0 && s.busy <= 1);
        s.busy = turn == 0 ? 0.42 : 0.77; /* the second time all is measured already */
        CHECK_OK(ls_study_open(&s, in_work("busy"), false, NULL, &err), &err);
        CHECK_OK(ls_study_run(&s, &how, &err), &err);
        ls_study_release(&s);
    }
    CHECK_OK(ls_study_rebuild(in_work("busy"), path, &err), &err);
    f = fopen(path, "r");
    REQUIRE(f != NULL);
    page[fread(page, 1, sizeof page - 1, f)] = '\0';
    fclose(f);
    CHECK(strstr(page, "kept 42 % of its processors busy") != NULL);
}

static void memory_runs_out(void)
{
    char dir[1024];

    snprintf(dir, sizeof dir, "%s", in_work("a"));
    check_faults("loading a study", load_and_show, dir);
}

int main(void)
{
    check_new_folder(work, sizeof work);
    CHECK_RUN(order_is_balanced);
    CHECK_RUN(bad_questions);
    CHECK_RUN(a_stopped_study_goes_on);
    CHECK_RUN(what_is_no_result_is_not_kept);
    CHECK_RUN(another_question_is_refused);
    CHECK_RUN(batch_stays);
    CHECK_RUN(results_of_known_points);
    CHECK_RUN(trained_points);
    CHECK_RUN(trained_points_go_on);
    CHECK_RUN(report_files);
    CHECK_RUN(comparing);
    CHECK_RUN(settings_are_compared);
    CHECK_RUN(one_repeat_is_compared);
    CHECK_RUN(description_survives);
    CHECK_RUN(busy_machines_are_remembered);
    CHECK_RUN(memory_runs_out);
    {
        char command[600];
        snprintf(command, sizeof command, "rm -rf '%s'", work);
        CHECK_EQ_INT(system(command), 0);
    }
    return CHECK_DONE();
}
