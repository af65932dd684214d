/* test_compare.c: results are read from files, refused with their line, and compared as their spread allows.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "bench/compare.h"
#include "check.h"

enum { ROOM = 16384 };

/* A line as bench prints it, with what the tests need. */
static size_t add_line(char *text, size_t at, double mean, double error, int time, const char *more)
{
    return at + (size_t)snprintf(
                    text + at, ROOM - at,
                    "{\"event\":\"bench\",\"experiment\":\"mnist\",\"settings\":[\"seed=1\",\"ranks=2\"],"
                    "\"ranks\":2,\"threads\":1,\"steps\":100,\"batches\":10,\"time\":%d,"
                    "\"mean_samples_per_s\":%.17g,\"stderr_samples_per_s\":%.17g%s}\n",
                    time, mean, error, more);
}

static void lines_are_read(void)
{
    char text[ROOM];
    size_t n = 0;
    ls_bench_results r;
    ls_err err = {0};

    n += (size_t)snprintf(text, ROOM, "{\"event\":\"profile\",\"ops\":[]}\n\n");
    n = add_line(text, n, 100, 2, 7, ",\"host\":\"a\",\"batch_global\":16,\"oversubscribed\":true");
    n = add_line(text, n, 110, 3, 9, ",\"batch_global\":16");
    REQUIRE_OK(ls_bench_results_parse(&r, text, n, &err), &err);
    CHECK_EQ_INT(r.n, 2);
    CHECK_EQ_STR(r.of[0].experiment, "mnist");
    CHECK_EQ_STR(r.of[0].settings, "seed=1 ranks=2");
    CHECK_EQ_STR(r.of[0].host, "a");
    CHECK_EQ_STR(r.of[1].host, "");
    CHECK(r.of[0].oversubscribed && !r.of[1].oversubscribed);
    CHECK_NEAR(r.of[1].rate.mean, 110, 0);
    CHECK_NEAR(r.of[1].rate.error, 3, 0);
    CHECK_EQ_INT(r.of[1].rate.batches, 10);
    CHECK_EQ_INT(r.of[1].time, 9);
    CHECK_EQ_INT(r.of[0].batch_global, 16);
    ls_bench_results_release(&r);
    /* One object over several lines. */
    n = (size_t)snprintf(text, ROOM,
                         "{\n \"event\": \"bench\",\n \"experiment\": \"x\", \"ranks\": 1, \"steps\": 1,\n"
                         " \"mean_samples_per_s\": 5, \"stderr_samples_per_s\": null\n}\n");
    REQUIRE_OK(ls_bench_results_parse(&r, text, n, &err), &err);
    CHECK_EQ_INT(r.n, 1);
    CHECK(isnan(r.of[0].rate.error)); /* a single step */
    ls_bench_results_release(&r);
}

static void refused(const char *text, const char *why)
{
    ls_bench_results r;
    ls_err err = {0};

    CHECK_STATUS(ls_bench_results_parse(&r, text, strlen(text), &err), LS_DATA, &err);
    CHECK_CONTAINS(err.text, why);
    ls_bench_results_release(&r);
}

static void broken_files_are_refused(void)
{
    char text[ROOM];
    size_t n = add_line(text, 0, 100, 2, 7, "");

    snprintf(text + n, ROOM - n, "{\"event\":\"ben");
    refused(text, "line 2: no JSON");
    add_line(text, n, -3, 2, 7, "");
    refused(text, "line 2: \"mean_samples_per_s\"");
    add_line(text, n, 100, 2, 7, ",\"mode\":\"real\"");
    refused(text, "line 2: mnist on 2 ranks of 1 threads");
    refused("", "line 1");
    refused("{\"event\":\"plan\"}\n", "line 1: there is no result");
    refused("[1, 2]\n", "line 1: no JSON object");
    refused("{\"event\":\"bench\",\"mean_samples_per_s\":1}", "is missing");
}

/* n repeats with means around `mean`; times begin at `first` and are `every` apart. */
static ls_bench_results repeats(const double *means, int n, int first, int every, char *more)
{
    char text[ROOM];
    size_t at = 0;
    ls_bench_results r;
    ls_err err = {0};

    for (int i = 0; i < n; i++) at = add_line(text, at, means[i], means[i] * 0.01, first + i * every, more);
    REQUIRE_OK(ls_bench_results_parse(&r, text, at, &err), &err);
    return r;
}

static ls_bench_comparison compared(const double *a, int na, const double *b, int nb, int first_b, int every)
{
    ls_bench_results x = repeats(a, na, 100, every, ""), y = repeats(b, nb, first_b, every, "");
    ls_bench_comparison c;

    ls_bench_compare(&c, &x, &y);
    ls_bench_results_release(&x);
    ls_bench_results_release(&y);
    return c;
}

static void verdicts_follow_the_spread(void)
{
    const double hundred[] = {100}, near[] = {102}, far[] = {110}, slow[] = {80};
    const double a3[] = {100, 140, 200}, b3[] = {105, 147, 210}, c3[] = {105, 148, 209};
    ls_bench_comparison c = compared(hundred, 1, far, 1, 5, 1);
    double error = sqrt(2) * 0.01;

    CHECK_EQ_INT(c.way, LS_COMPARE_STEPS);
    CHECK_EQ_INT(c.verdict, LS_FASTER);
    CHECK_NEAR(c.ratio.mid, 1.1, 1e-9);
    /* Ten batches on both sides, equal errors: 18 degrees of freedom, t = 2.10092. */
    CHECK_NEAR(log(c.ratio.hi), log(1.1) + 2.10092 * error, 1e-5);
    CHECK(c.same && c.n_fields == 0);
    CHECK_EQ_INT(compared(hundred, 1, near, 1, 5, 1).verdict, LS_SAME);
    CHECK_EQ_INT(compared(hundred, 1, slow, 1, 5, 1).verdict, LS_SLOWER);
    /* The machine grew faster meanwhile.  Made in turns, B is 5 % faster each time ... */
    c = compared(a3, 3, c3, 3, 105, 10);
    CHECK_EQ_INT(c.way, LS_COMPARE_PAIRED);
    CHECK_EQ_INT(c.verdict, LS_FASTER);
    CHECK_NEAR(c.ratio.mid, 1.05, 0.002);
    CHECK(c.ratio.hi < 1.08);
    /* ... made one after the other, nothing can be said. */
    c = compared(a3, 3, b3, 3, 200, 10);
    CHECK_EQ_INT(c.way, LS_COMPARE_UNPAIRED);
    CHECK_EQ_INT(c.verdict, LS_SAME);
    CHECK_NEAR(c.ratio.mid, 1.05, 1e-9);
    CHECK(c.ratio.lo < 0.7 && c.ratio.hi > 1.5);
    CHECK_EQ_INT(compared(a3, 3, near, 1, 200, 10).way, LS_COMPARE_UNPAIRED);
}

static void differences_are_named(void)
{
    const double x[] = {100};
    ls_bench_results a = repeats(x, 1, 1, 1, ",\"host\":\"left\",\"version\":\"1\",\"cores\":2"),
                     b = repeats(x, 1, 1, 1, ",\"host\":\"right\",\"version\":\"1\",\"cores\":2"),
                     d = repeats(x, 1, 1, 1,
                                 ",\"host\":\"left\",\"version\":\"1\",\"cores\":2,\"mode\":\"real\"");
    ls_bench_comparison c;

    ls_bench_compare(&c, &a, &b);
    CHECK_EQ_INT(c.n_fields, 1);
    CHECK_EQ_STR(c.fields[0].name, "host");
    CHECK_EQ_STR(c.fields[0].b, "right");
    CHECK(c.same); /* another machine may be compared */
    ls_bench_compare(&c, &a, &d);
    CHECK_EQ_INT(c.n_fields, 1);
    CHECK_EQ_STR(c.fields[0].name, "data");
    CHECK_EQ_STR(c.fields[0].a, "none");
    CHECK(!c.same);
    ls_bench_results_release(&a);
    ls_bench_results_release(&b);
    ls_bench_results_release(&d);
}

int main(void)
{
    CHECK_RUN(lines_are_read);
    CHECK_RUN(broken_files_are_refused);
    CHECK_RUN(verdicts_follow_the_spread);
    CHECK_RUN(differences_are_named);
    return CHECK_DONE();
}
