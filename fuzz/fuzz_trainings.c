/* fuzz_trainings.c: arbitrary bytes as the CSV of measured trainings. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "predict/trainings.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* An answer has figures in order; what is no answer says why. */
static void check_answer(const ls_trainings *t, int64_t batch)
{
    ls_reached r;

    ls_trainings_ask(t, batch, &r);
    if ((r.how == LS_REACH_UNKNOWN) != (r.why[0] != '\0')) abort();
    if (r.how == LS_REACH_UNKNOWN) return;
    if (!(r.steps.lo >= 1 - 1e-9 && r.steps.lo <= r.steps.mid * (1 + 1e-9) && isfinite(r.steps.hi) &&
          r.steps.mid <= r.steps.hi * (1 + 1e-9)))
        abort();
    if (r.how == LS_REACH_INTERPOLATED && !(r.below < batch && batch < r.above)) abort();
}

static void read_as(const char *text, size_t size, int64_t samples, const char *series)
{
    ls_trainings t = {.target = 0.5, .samples = samples};
    ls_err err = {0};

    if (ls_trainings_csv(&t, text, size, "fuzz", series, &err) == LS_OK) {
        if (t.n < 1) abort();
        ls_trainings_name(&t, "fuzz");
        for (int64_t batch = 0, i = 0; (batch = ls_trainings_next(&t, batch)) > 0 && i < 50; i++) {
            check_answer(&t, batch);
            check_answer(&t, batch + 1);
            check_answer(&t, batch / 2 + 1);
        }
        if (ls_trainings_limit(&t) > 0 && ls_trainings_seeds(&t, ls_trainings_limit(&t)).all < 1) abort();
    } else if (err.text[0] == '\0' || err.status != LS_INVALID) {
        abort(); /* a refusal says why */
    }
    ls_trainings_release(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    read_as((const char *)data, size, 0, "");
    read_as((const char *)data, size, 60000, "a");
    return 0;
}
