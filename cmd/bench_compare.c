/* bench_compare.c: `lockstep bench --compare A B`: two files of results side by side. */
#include <math.h>
#include <stdio.h>

#include "base/units.h"
#include "bench.h"
#include "bench/compare.h"
#include "report_parts.h"

static json_t *side_json(const char *file, const ls_bench_results *r, double rate)
{
    return json_pack("{s:s, s:i, s:f}", "file", file, "results", r->n, "samples_per_s", rate);
}

static void print_json(const ls_bench_comparison *c, json_t *a, json_t *b)
{
    static const char *const ways[] = {"steps", "unpaired", "paired"};
    static const char *const verdicts[] = {"same", "faster", "slower", "unknown"};
    json_t *fields = json_array();

    for (int i = 0; i < c->n_fields; i++)
        json_array_append_new(fields, json_pack("{s:s, s:s, s:s}", "field", c->fields[i].name, "a",
                                                c->fields[i].a, "b", c->fields[i].b));
    cli_print_json_take(json_pack(
        "{s:s, s:o, s:o, s:{s:o, s:o, s:o}, s:s, s:s, s:o, s:b, s:b}", "event", "bench-compare", "a", a, "b",
        b, "ratio", "lo", report_number_json(c->ratio.lo), "mid", report_number_json(c->ratio.mid), "hi",
        report_number_json(c->ratio.hi), "verdict", verdicts[c->verdict], "interval", ways[c->way],
        "differences", fields, "same_measurement", (int)c->same, "oversubscribed", (int)c->oversubscribed));
}

/* Of several results the spread is in the verdict; of one, that of its own steps is all there is. */
static void print_side(const char *name, const char *file, const ls_bench_results *r, double rate)
{
    const ls_bench_result *x = &r->of[0];
    char text[LS_UNITS_TEXT];

    printf("%-13s %s: %s samples/s", name, file, ls_units_rate(rate, text));
    if (r->n > 1)
        printf(" in the mean of %d repeats\n", r->n);
    else if (isfinite(x->rate.error))
        printf(" +- %s\n", ls_units_rate(x->rate.error, text));
    else
        printf("\n");
}

static void print_text(const ls_bench_comparison *c)
{
    if (c->n_fields == 0) printf("differ in     nothing that is recorded\n");
    for (int i = 0; i < c->n_fields; i++)
        printf("%s%s: %s and %s%s\n", i == 0 ? "differ in     " : "              ", c->fields[i].name,
               c->fields[i].a, c->fields[i].b, c->fields[i].other ? " (!)" : "");
    if (!c->same) printf("warning       what is marked (!) makes them two different measurements\n");
    if (c->oversubscribed) printf("warning       oversubscribed: threads without a core of their own\n");
    if (c->verdict == LS_UNKNOWN)
        printf("verdict       B has %.3f times the rate of A; a single step has no spread to judge by\n",
               c->ratio.mid);
    else
        /* Two runs tell of themselves: what changes from run to run is not in the spread of their steps. */
        printf("verdict       %s%s%s: B has %.3f times the rate of A, 95 %%: %.3f to %.3f\n",
               c->way == LS_COMPARE_STEPS ? "of these two runs: " : "", c->verdict == LS_SAME ? "" : "B is ",
               ls_verdict_text(c->verdict), c->ratio.mid, c->ratio.lo, c->ratio.hi);
    printf("interval      from %s\n", ls_compare_way_text(c->way));
}

int bench_compare(const cli_args *args)
{
    const char *files[2] = {args->model, args->settings[0]};
    ls_bench_results r[2] = {{0}};
    ls_bench_comparison c;
    ls_err err = {0};
    ls_status st = LS_OK;

    for (int i = 0; i < 2; i++) LS_TRY(ls_bench_results_read(&r[i], files[i], &err));
    ls_bench_compare(&c, &r[0], &r[1]);
    if (args->json) {
        print_json(&c, side_json(files[0], &r[0], c.rate_a), side_json(files[1], &r[1], c.rate_b));
        goto out;
    }
    print_side("A", files[0], &r[0], c.rate_a);
    print_side("B", files[1], &r[1], c.rate_b);
    print_text(&c);
out:
    for (int i = 0; i < 2; i++) ls_bench_results_release(&r[i]);
    return st == LS_OK ? CLI_DONE : cli_fail("bench", &err);
}
