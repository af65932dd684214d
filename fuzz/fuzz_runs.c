/* fuzz_runs.c: arbitrary bytes as owner.json and as summary.json of a run. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "runs/owner_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Times are read back as they are written. */
static void check_time(double t)
{
    char text[32];

    if (isfinite(t) && fabs(lsi_time_parse(lsi_time_text(t, text)) - t) > 1e-3) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ls_run_info i;
    json_t *summary;

    lsi_info_clear(&i);
    i.has_owner = lsi_owner_parse(&i.owner, (const char *)data, size);
    if (i.has_owner && (i.owner.pid <= 0 || i.owner.epoch <= 0 || !isfinite(i.owner.start))) abort();
    if (i.has_owner) check_time(i.owner.start);
    if (i.has_owner) check_time(i.owner.ended);
    summary = json_loadb((const char *)data, size, 0, NULL);
    if (json_is_object(summary)) {
        lsi_info_take_summary(&i, summary);
        summary = NULL;
        check_time(i.started);
        if (i.ranks < 0 || i.steps < -1) abort();
        (void)ls_run_metric(&i, "last", "loss");
    }
    json_decref(summary);
    if (lsi_info_state(&i) == LS_RUN_RUNNING) abort(); /* nobody is alive */
    if (i.owner.end == LS_RUN_RUNNING) abort();
    i.alive = true;
    if (i.summary == NULL && lsi_info_state(&i) != LS_RUN_RUNNING) abort();
    ls_run_info_release(&i);
    return 0;
}
