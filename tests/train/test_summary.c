/* test_summary.c: the spread of step times is that of the latest steps, however often it is asked for. */
#include <math.h>

#include "check.h"
#include "train/summary.h"

enum { KEPT = 65536 }; /* as summary.c keeps */

static void note(ls_summary *s, double seconds)
{
    ls_summary_note_step(s, &(ls_step_times){.all = seconds, .exposed = seconds / 4, .waiting = seconds / 8},
                         8);
}

static void none_yet(void)
{
    ls_summary s = {0};

    CHECK(isnan(ls_summary_spread(&s, s.steps).p50));
    ls_summary_release(&s);
}

/* Fast steps first, then slow ones, asked in between as every checkpoint does: once as many slow ones have
 * been seen as are kept, no fast one counts. */
static void the_oldest_are_forgotten(void)
{
    ls_summary s = {0};

    for (int i = 0; i < KEPT; i++) note(&s, 2.0 + (double)(i * 7919 % KEPT) / KEPT);
    CHECK_NEAR(ls_summary_spread(&s, s.steps).p50, 2.5, 1e-3);
    for (int i = 0; i < KEPT; i++) {
        note(&s, 4.0);
        if (i % 9973 == 0) (void)ls_summary_spread(&s, s.steps);
        /* A quarter of what is kept is slow: the 84th percentile is, the median is not. */
        if (i == KEPT / 4) {
            CHECK_NEAR(ls_summary_spread(&s, s.steps).p84, 4, 0);
            CHECK(ls_summary_spread(&s, s.steps).p50 < 3);
            CHECK_NEAR(ls_summary_spread(&s, s.exposed).p84, 1, 0);
        }
    }
    CHECK_NEAR(ls_summary_spread(&s, s.steps).p16, 4, 0);
    CHECK_NEAR(ls_summary_spread(&s, s.exposed).p16, 1, 0);
    CHECK_NEAR(ls_summary_spread(&s, s.waiting).p16, 0.5, 0);
    ls_summary_release(&s);
}

/* In the order in which they came: asking moves none of them. */
static void asking_changes_nothing(void)
{
    ls_summary s = {0};

    for (int i = 0; i < 10; i++) note(&s, 10 - i);
    CHECK_NEAR(ls_summary_spread(&s, s.steps).p50, 5.5, 0);
    for (int i = 0; i < 10; i++) CHECK_NEAR(s.steps[i], 10 - i, 0);
    ls_summary_release(&s);
}

int main(void)
{
    CHECK_RUN(none_yet);
    CHECK_RUN(asking_changes_nothing);
    CHECK_RUN(the_oldest_are_forgotten);
    return CHECK_DONE();
}
