/* plans_here.c: plans of experiments, for ranks that are not there. */
#include "plans_here.h"

#include <stdio.h>

#include "check.h"
#include "config/experiment.h"
#include "train/outline.h"

void plans_here_open(plans_here *p, const char *experiment, const char *const *settings, int ranks, int here)
{
    const char *all[16];
    char text[32];
    int n = 0;
    ls_experiment x = {0};
    ls_outline o = {0};
    ls_err err = {0};
    const ls_outline_options how = {.ranks = ranks, .here = here, .threads = 1, .untimed = true};

    *p = (plans_here){0};
    snprintf(text, sizeof text, "ranks=%d", ranks);
    all[n++] = text;
    while (settings != NULL && settings[n - 1] != NULL && n < 15) {
        all[n] = settings[n - 1];
        n++;
    }
    REQUIRE_OK(ls_experiment_load(&x, experiment, all, n, &err), &err);
    REQUIRE_OK(ls_outline_open(&o, x.trial, x.cfg, &how, &err), &err);
    for (p->n = 0; p->n < o.n_plans; p->n++) {
        ls_document *d = &p->plan[p->n];
        REQUIRE_OK(ls_document_make(d, o.plans[p->n].plan, &err), &err);
        d->part = o.plans[p->n].part;
        d->stage = o.plans[p->n].stage;
        d->runs = o.plans[p->n].runs;
        d->batch = o.batch;
        p->traffic += (double)o.plans[p->n].runs * ls_plan_traffic(o.plans[p->n].plan);
    }
    p->parameters = ls_step_count_params(o.step, "*");
    ls_outline_release(&o);
    ls_experiment_release(&x);
}

void plans_here_release(plans_here *p)
{
    for (int i = 0; i < p->n; i++) ls_document_release(&p->plan[i]);
    *p = (plans_here){0};
}
