/* busy.c: how busy a machine is before a study begins: what others compute there spoils its rates.
 *
 * The load average would still count what ended a minute ago, such as the study before this one; so the time
 * that the processors spend is looked at twice, a moment apart. */
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "study/study_internal.h"

/* Busy and all time of all processors since the machine started, in ticks; false where it is not told. */
static bool ticks(double *busy, double *all)
{
    FILE *f = fopen("/proc/stat", "r");
    double user, nice, system, idle, wait, irq, soft, steal;
    int n;

    if (f == NULL) return false;
    n = fscanf(f, "cpu %lf %lf %lf %lf %lf %lf %lf %lf", &user, &nice, &system, &idle, &wait, &irq, &soft,
               &steal);
    fclose(f);
    if (n != 8) return false;
    *busy = user + nice + system + irq + soft + steal;
    *all = *busy + idle + wait;
    return true;
}

void ls_study_look_around(ls_study *s)
{
    const struct timespec moment = {.tv_nsec = 300000000};
    double busy[2], all[2];

    if (s->ranks_per_node > 0 || !ticks(&busy[0], &all[0])) return;
    nanosleep(&moment, NULL);
    if (ticks(&busy[1], &all[1]) && all[1] > all[0]) s->busy = (busy[1] - busy[0]) / (all[1] - all[0]);
}
