/* fuzz_collectives.c: arbitrary bytes as times of exchanges, and the links that come of them. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "predict/fit.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { FITTED = 40 }; /* more take too long to find anything */

static bool is_sound(const ls_fit_link *l)
{
    for (int k = 0; k < LS_FIT_FIGURES; k++)
        if (!(l->figure[k] >= 0) || !isfinite(l->figure[k])) return false;
    return l->measured ? l->figure[LS_FIT_RATE] > 0 : l->figure[LS_FIT_RATE] == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ls_collective_times t = {0};
    ls_fit f;
    ls_err err = {0};
    const ls_status st = ls_collectives_parse(&t, (const char *)data, size, &err);

    if (st != LS_OK && err.text[0] == '\0') abort(); /* a refusal says why */
    /* What is accepted has links, none of whose figures is nonsense. */
    if (st == LS_OK && t.n > 0 && t.n <= FITTED && ls_fit_network(&f, t.of, t.n, &err) == LS_OK)
        if (!is_sound(&f.inside) || !is_sound(&f.node) || !(f.error >= 0) || !(f.error_per_doubling >= 0))
            abort();
    ls_collective_times_release(&t);
    return 0;
}
