/* busy.c: how busy a machine is before a study begins: what others compute there spoils its rates.
 *
 * The load average would still count what ended a minute ago, such as the study before this one; so the time
 * that the processors spend is looked at twice, a moment apart. */
#include <time.h>

#include "base/machine.h"
#include "study/study_internal.h"

void ls_study_look_around(ls_study *s)
{
    const struct timespec moment = {.tv_nsec = 300000000};
    ls_machine_ticks before, after;

    if (s->ranks_per_node > 0) return;
    before = ls_machine_ticks_now();
    nanosleep(&moment, NULL);
    after = ls_machine_ticks_now();
    if (after.all > before.all) s->busy = (after.busy - before.busy) / (after.all - before.all);
}
