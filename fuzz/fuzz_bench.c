/* fuzz_bench.c: arbitrary bytes as a file of results of bench. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "bench/compare.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ls_bench_results r;
    ls_bench_comparison c;
    ls_err err = {0};

    if (ls_bench_results_parse(&r, (const char *)data, size, &err) == LS_OK) {
        /* What is accepted is as fast as itself. */
        if (r.n < 1) abort();
        ls_bench_compare(&c, &r, &r);
        if (c.n_fields != 0 || !(fabs(c.ratio.mid - 1) < 1e-9)) abort();
        if (c.verdict != LS_SAME && c.verdict != LS_UNKNOWN) abort();
    } else if (err.text[0] == '\0') {
        abort(); /* a refusal says why */
    }
    ls_bench_results_release(&r);
    return 0;
}
