/* queued_internal.h: a plan on a device with queues. */
#ifndef LS_EXEC_QUEUED_INTERNAL_H
#define LS_EXEC_QUEUED_INTERNAL_H

#include "exec/plan_internal.h"
#include "exec/results.h"

enum {
    LSI_IN_FLIGHT = 2,         /* runs that the device may have before it: so far ahead is the host at most */
    LSI_SMALL = LS_PLAN_RESULT /* bytes: inputs and results up to that have room of their own on their way */
};

/* Bytes of an input that were fed and are not where nodes read them yet. */
typedef struct lsi_fed {
    size_t from, to; /* equal: none */
} lsi_fed;

/* Inputs and results of one run on their way; run r has flight r % LSI_IN_FLIGHT. */
typedef struct lsi_flight {
    char *inputs, *results; /* staging memory */
    size_t used;            /* of `inputs` */
    bool open;              /* what was there before is gone, and inputs are being written */
    ls_event *fed, *over;   /* inputs have been taken; results are there */
    ls_buffer slots;        /* of the device's: where inputs that are fed land while the run before goes on */
    lsi_fed *fresh;         /* per input */
    ls_event *landed;
} lsi_flight;

/* When a node ran: of the device's nodes by events, of the host's by its clock. */
typedef struct lsi_noted {
    ls_event *begun, *ended;
    uint64_t begun_ns, ended_ns, progressed_ns;
} lsi_noted;

typedef struct lsi_queued {
    ls_queue copies; /* takes inputs and brings results: that of the nodes, where they are all in one */
    int32_t *order[LS_QUEUE_N]; /* positions in the schedule of each queue's nodes */
    int32_t n[LS_QUEUE_N];
    /* Per position: how many nodes of another queue must be over that the queue has not waited for yet. */
    int32_t (*waits)[LS_QUEUE_N];
    ls_event **marks;        /* per position; NULL: no other queue waits for it */
    lsi_noted *noted;        /* per position; NULL until a run is */
    uint64_t runs;           /* begun so far */
    uint64_t sound;          /* this one and all before were over before anything had failed */
    ls_recording *recording; /* all nodes of a run; NULL: none yet */
    bool unrecorded;         /* and there never will be one */
    size_t inputs_room;
    size_t *slot_at; /* per input: where in a flight's slots */
    size_t slots_bytes;
    size_t staging_bytes; /* of the host's memory, of one flight */
    size_t *result_at;    /* per fetched value: where in a flight's results; SIZE_MAX: too large */
    lsi_flight flights[LSI_IN_FLIGHT];
} lsi_queued;

static inline const ls_queues *lsi_queues(const ls_plan *p)
{
    return p->dev->backend->queues;
}

/* -- flights.c --------------------------------------------------------------------------------------------
 */

ls_status lsi_flights_make(ls_plan *p, ls_err *err) LS_MUST_CHECK;
void lsi_flights_release(ls_plan *p);
/* Bytes on the device that inputs on their way take. */
size_t lsi_flights_bytes(const ls_plan *p);
/* The same of the host's memory that they pass through. */
size_t lsi_flights_staging(const ls_plan *p);
/* What was fed so far goes to where nodes read it, also when no run comes. */
void lsi_flights_land(ls_plan *p);
/* Before the nodes of a run are enqueued, and after. */
void lsi_flights_depart(ls_plan *p);
void lsi_flights_arrive(ls_plan *p);
/* Waits until the event is reached; meanwhile other ranks get what they need. */
void lsi_queued_join(ls_plan *p, ls_event *e);

#endif
