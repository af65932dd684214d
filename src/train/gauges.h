/* gauges.h: load, memory, power and temperature of the devices of a run, once a second.
 *
 * A thread looks (backend/gauges.h); the thread that trains writes what was seen, when it comes by between
 * steps: into gpu.jsonl of the run directory, lines as those of metrics.jsonl (events/metrics.h), and to
 * TensorBoard.  The first rank of a machine looks at all devices that the machine's ranks compute on; where
 * that is not rank 0, its file is called gpu-RANK.jsonl.
 *
 *     {"step": 120, "epoch": 0.5, "time_s": 9.1, "gpu/0/utilization_percent": 98, "gpu/0/memory_mib": 8123,
 *      "gpu/0/power_w": 512.3, "gpu/0/temperature_c": 61}
 *
 * A device that says nothing of itself has no such file: nothing is ever said of that, nor does it cost a
 * run. */
#ifndef LS_TRAIN_GAUGES_H
#define LS_TRAIN_GAUGES_H

#include "backend/backend.h"
#include "events/events.h"

typedef struct ls_gauges ls_gauges;

typedef struct ls_gauges_options {
    ls_device *dev; /* outlives what is opened here */
    int rank;       /* of this process */
    int ranks;      /* of this machine */
    const char *folder;
    int64_t resumed_at; /* the step; -1: a new run */
    double seconds;     /* of the run until now */
} ls_gauges_options;

/* Begins to look.  *out is NULL where the device has no gauges, or no thread can be had. */
void ls_gauges_open(ls_gauges **out, const ls_gauges_options *o);
/* How far the run is: looks from now on say so.  True: there is something to write.  Accepts NULL, as do the
 * others. */
bool ls_gauges_note(ls_gauges *g, int64_t step, double epoch);
/* Writes what was seen since the last call, to `ev`, too, unless it is NULL. */
void ls_gauges_write(ls_gauges *g, ls_events *ev);
/* Ends when there was at least one look, or there can be none.  `keep`: what was seen is written. */
void ls_gauges_close(ls_gauges *g, bool keep, ls_events *ev);

#endif
