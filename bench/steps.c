/* steps.c: bench_steps EXPERIMENT [key=value ...]: training steps on made-up data by one thread, and no
 * clock: every run executes the same instructions, so that they can be counted.
 *
 * It is the step that `lockstep bench` times (train/rehearsal.h).  The first one makes what libraries make
 * when they are first called; `regress` has those after it counted, by the name of the function they are in.
 */
#include <stdio.h>

#include "train/rehearsal.h"

enum { COUNTED = 2 };

__attribute__((noinline)) static ls_status counted_steps(ls_rehearsal *r, ls_err *err)
{
    bool last = false;
    ls_status st = LS_OK;

    for (int i = 0; i < COUNTED; i++) LS_TRY(ls_rehearsal_step(r, &last, err));
out:
    return st;
}

static ls_status steps(const char *experiment, const char *const *settings, int n, ls_err *err)
{
    ls_experiment x = {0};
    ls_rehearsal r = {0};
    bool last = false;
    ls_status st = LS_OK;

    LS_TRY(ls_experiment_load(&x, experiment, settings, n, err));
    LS_TRY(ls_rehearsal_open(&r, &x, 1, false, NULL, err));
    LS_TRY(ls_rehearsal_step(&r, &last, err));
    LS_TRY(counted_steps(&r, err));
out:
    ls_rehearsal_release(&r);
    ls_experiment_release(&x);
    return st;
}

int main(int argc, char **argv)
{
    ls_err err = {0};

    if (argc < 2) {
        fprintf(stderr, "usage: bench_steps EXPERIMENT [key=value ...]\n");
        return 2;
    }
    if (steps(argv[1], (const char *const *)(argv + 2), argc - 2, &err) == LS_OK) return 0;
    fprintf(stderr, "bench_steps: %s\n", err.text);
    return 1;
}
