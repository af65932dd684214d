/* How far ahead weights are gathered: by arithmetic that can be followed by hand. */
#include "check.h"
#include "train/prefetch.h"

static const ls_rates rates = {.bytes = 100, .flops = 1000};

/* A gather takes 1 s and what follows 2 s: without gathering ahead each is waited for, with it only the
 * first. */
static void what_is_exposed(void)
{
    const ls_unit_gather list[4] = {{100, 200, 2000}, {100, 200, 2000}, {100, 200, 2000}, {100, 200, 2000}};

    CHECK_NEAR(ls_prefetch_exposed(list, 4, 0, rates), 4, 1e-9);
    CHECK_NEAR(ls_prefetch_exposed(list, 4, 1, rates), 1, 1e-9);
    CHECK_NEAR(ls_prefetch_exposed(list, 4, 2, rates), 1, 1e-9);
    CHECK_NEAR(ls_prefetch_exposed(list, 0, 1, rates), 0, 0);
}

/* A wire that is slower than the processor is busy all the time: 3 s each, of which 1 s is computed beside.
 */
static void a_slow_wire(void)
{
    const ls_unit_gather list[3] = {{300, 600, 1000}, {300, 600, 1000}, {300, 600, 1000}};

    CHECK_NEAR(ls_prefetch_exposed(list, 3, 0, rates), 9, 1e-9);
    CHECK_NEAR(ls_prefetch_exposed(list, 3, 1, rates), 7, 1e-9);
    CHECK_EQ_INT(ls_prefetch_ahead(list, 3, rates), 1);
}

/* A long unit behind two that are soon there and take long to compute: it must begin two units ahead. */
static void more_than_one_ahead(void)
{
    const ls_unit_gather list[4] = {{100, 200, 3000}, {100, 200, 3000}, {500, 1000, 100}, {100, 200, 100}};

    CHECK_NEAR(ls_prefetch_exposed(list, 4, 1, rates), 1 + 2 + 0.9, 1e-9);
    CHECK_NEAR(ls_prefetch_exposed(list, 4, 2, rates), 1 + 0.9, 1e-9);
    CHECK_EQ_INT(ls_prefetch_ahead(list, 4, rates), 2);
}

/* Where nothing is gained, nothing is taken. */
static void no_more_than_needed(void)
{
    const ls_unit_gather list[3] = {{0.001, 0.002, 1000}, {0.001, 0.002, 1000}, {0.001, 0.002, 1000}};

    CHECK_EQ_INT(ls_prefetch_ahead(list, 3, rates), 0);
    CHECK_EQ_INT(ls_prefetch_ahead(list, 0, rates), 0);
}

int main(void)
{
    CHECK_RUN(what_is_exposed);
    CHECK_RUN(a_slow_wire);
    CHECK_RUN(more_than_one_ahead);
    CHECK_RUN(no_more_than_needed);
    return CHECK_DONE();
}
