/* flights.c: inputs and results of steps that are on their way.
 *
 * What the host writes for a step lies in staging memory until the copy queue has taken it, and what it will
 * read lies there from when the copy queue has brought it.  There are LSI_IN_FLIGHT of each, so that the host
 * can write for a step and read of a step while the device works on another.
 *
 * What is fed, which is the most, does not wait until the device is done with the step before: a queue of its
 * own takes it to a slot beside the memory that nodes read, and when that step is over, it only has to be
 * moved over on the device. */
#include <string.h>

#include "exec/queued_internal.h"
#include "exec/results.h"

enum { ALIGN = 64 };

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN - 1) / ALIGN * ALIGN;
}

static bool is_small(const ls_tensor *t)
{
    return t->bytes <= LSI_SMALL;
}

static lsi_flight *flight_of(const lsi_queued *q, uint64_t run)
{
    return (lsi_flight *)&q->flights[run % LSI_IN_FLIGHT];
}

/* Room for all small inputs, twice: defaults are written before what replaces them. */
static size_t inputs_room(const ls_plan *p)
{
    size_t sum = LSI_SMALL;

    for (int i = 0; i < p->n_inputs; i++)
        if (is_small(&p->inputs[i])) sum += 2 * aligned(p->inputs[i].bytes);
    return sum;
}

static size_t place_results(const ls_plan *p, size_t *at)
{
    size_t sum = ALIGN;

    for (int i = 0; i < p->n_fetches; i++) {
        at[i] = is_small(&p->fetches[i]) ? sum : SIZE_MAX;
        if (is_small(&p->fetches[i])) sum += aligned(p->fetches[i].bytes);
    }
    return sum;
}

static size_t place_slots(const ls_plan *p, size_t *at)
{
    size_t sum = 0;

    for (int i = 0; i < p->n_inputs; i++) {
        at[i] = sum;
        sum += aligned(p->inputs[i].bytes);
    }
    return sum;
}

size_t lsi_flights_bytes(const ls_plan *p)
{
    return p->queued != NULL ? LSI_IN_FLIGHT * p->queued->slots_bytes : 0;
}

size_t lsi_flights_staging(const ls_plan *p)
{
    return p->queued != NULL ? LSI_IN_FLIGHT * p->queued->staging_bytes : 0;
}

static ls_status make_slots(ls_plan *p, lsi_flight *f, ls_err *err)
{
    ls_status st = LS_OK;

    f->fresh = ls_alloc(LS_MEM_PLAN, sizeof *f->fresh * ((size_t)p->n_inputs + 1));
    if (f->fresh == NULL) return ls_fail(err, LS_NOMEM, "plan: no memory");
    LS_TRY(lsi_queues(p)->make_event(p->dev, &f->landed, err));
    st = ls_buffer_alloc(&f->slots, p->dev, p->queued->slots_bytes, err);
    if (st != LS_OK) ls_fail_in(err, st, "plan: memory for inputs on their way");
out:
    return st;
}

ls_status lsi_flights_make(ls_plan *p, ls_err *err)
{
    lsi_queued *q = p->queued;
    size_t results;
    ls_status st = LS_OK;

    q->result_at = ls_alloc(LS_MEM_PLAN, sizeof *q->result_at * ((size_t)p->n_fetches + 1));
    q->slot_at = ls_alloc(LS_MEM_PLAN, sizeof *q->slot_at * ((size_t)p->n_inputs + 1));
    if (q->result_at == NULL || q->slot_at == NULL) return ls_fail(err, LS_NOMEM, "plan: no memory");
    q->slots_bytes = place_slots(p, q->slot_at);
    q->inputs_room = inputs_room(p);
    results = place_results(p, q->result_at);
    q->staging_bytes = aligned(q->inputs_room) + results;
    for (int i = 0; i < LSI_IN_FLIGHT; i++) {
        lsi_flight *f = &q->flights[i];
        void *memory = NULL;
        LS_TRY(ls_staging_alloc(&memory, p->dev, q->staging_bytes, err));
        f->inputs = memory;
        f->results = f->inputs + aligned(q->inputs_room);
        LS_TRY(lsi_queues(p)->make_event(p->dev, &f->fed, err));
        LS_TRY(lsi_queues(p)->make_event(p->dev, &f->over, err));
        LS_TRY(make_slots(p, f, err));
    }
out:
    return st;
}

void lsi_flights_release(ls_plan *p)
{
    lsi_queued *q = p->queued;

    for (int i = 0; i < LSI_IN_FLIGHT; i++) {
        lsi_flight *f = &q->flights[i];
        if (f->fed != NULL) lsi_queues(p)->free_event(p->dev, f->fed);
        if (f->over != NULL) lsi_queues(p)->free_event(p->dev, f->over);
        if (f->landed != NULL) lsi_queues(p)->free_event(p->dev, f->landed);
        ls_staging_free(p->dev, f->inputs);
        ls_buffer_free(&f->slots);
        ls_free(f->fresh);
    }
    ls_free(q->result_at);
    ls_free(q->slot_at);
}

/* -- inputs -----------------------------------------------------------------------------------------------
 */

/* The flight of the run to come, when what had it before has landed. */
static lsi_flight *open_flight(ls_plan *p)
{
    lsi_flight *f = flight_of(p->queued, p->queued->runs + 1);

    if (f->open) return f;
    lsi_queued_join(p, f->over); /* which is behind f->fed */
    f->open = true;
    f->used = 0;
    return f;
}

static void send(ls_plan *p, const ls_tensor *t, size_t offset, const void *staged, size_t bytes)
{
    lsi_queues(p)->write(p->dev, p->queued->copies, t->buffer, t->offset + offset, staged, bytes);
}

/* What was fed goes from its slots to where nodes read it, in its turn. */
static void land(ls_plan *p, lsi_flight *f)
{
    const ls_queues *to = lsi_queues(p);
    bool waited = false;

    for (int i = 0; i < p->n_inputs; i++) {
        const ls_tensor *t = &p->inputs[i];
        lsi_fed *fresh = &f->fresh[i];
        if (fresh->from == fresh->to) continue;
        if (!waited) {
            to->mark(p->dev, LS_QUEUE_FEED, f->landed);
            to->wait(p->dev, p->queued->copies, f->landed);
        }
        waited = true;
        to->move(p->dev, p->queued->copies, t->buffer, t->offset + fresh->from, &f->slots,
                 p->queued->slot_at[i] + fresh->from, fresh->to - fresh->from);
        *fresh = (lsi_fed){0};
    }
}

void lsi_flights_land(ls_plan *p)
{
    lsi_flight *f = flight_of(p->queued, p->queued->runs + 1);

    if (f->open) land(p, f);
}

/* Later bytes of an input must not be overtaken by earlier ones. */
static void land_before(ls_plan *p, const ls_tensor *t)
{
    lsi_flight *f = flight_of(p->queued, p->queued->runs + 1);
    const lsi_fed *fresh = &f->fresh[t - p->inputs];

    if (f->open && fresh->from < fresh->to) land(p, f);
}

bool lsi_queued_write(ls_plan *p, const ls_tensor *t, size_t offset, const void *from, size_t bytes)
{
    lsi_flight *f;

    land_before(p, t);
    if (bytes > LSI_SMALL || offset > t->bytes || bytes > t->bytes - offset) return false;
    f = open_flight(p);
    if (aligned(bytes) > p->queued->inputs_room - f->used) return false;
    memcpy(f->inputs + f->used, from, bytes);
    if (bytes > 0) send(p, t, offset, f->inputs + f->used, bytes);
    f->used += aligned(bytes);
    return true;
}

void ls_plan_feed(ls_plan *p, const char *name, size_t offset, const void *from, size_t bytes)
{
    const ls_tensor *t = ls_plan_input(p, name);
    lsi_flight *f;
    lsi_fed *fresh;

    if (p->queued == NULL || t == NULL || bytes == 0 || offset > t->bytes || bytes > t->bytes - offset) {
        ls_plan_write_input(p, name, offset, from, bytes);
        return;
    }
    f = open_flight(p);
    fresh = &f->fresh[t - p->inputs];
    if (fresh->from < fresh->to && fresh->to != offset) land(p, f); /* they are no one stretch */
    if (fresh->from == fresh->to) *fresh = (lsi_fed){offset, offset};
    fresh->to += bytes;
    lsi_queues(p)->write(p->dev, LS_QUEUE_FEED, &f->slots, p->queued->slot_at[t - p->inputs] + offset, from,
                         bytes);
}

/* Nodes of the run come after its inputs. */
void lsi_flights_depart(ls_plan *p)
{
    const ls_queues *to = lsi_queues(p);
    lsi_flight *f = open_flight(p);

    land(p, f);
    f->open = false;
    p->queued->runs++;
    if (p->queued->copies != LS_QUEUE_COPY) return; /* they are in the same queue */
    to->mark(p->dev, LS_QUEUE_COPY, f->fed);
    to->wait(p->dev, LS_QUEUE_COMPUTE, f->fed);
    to->wait(p->dev, LS_QUEUE_COMM, f->fed);
}

/* -- results ----------------------------------------------------------------------------------------------
 */

/* All of the run is before the reading of its results, and that before whatever comes next, of this plan or
 * another: no queue needs to know what the others did in earlier runs. */
void lsi_flights_arrive(ls_plan *p)
{
    const ls_queues *to = lsi_queues(p);
    const lsi_flight *f = flight_of(p->queued, p->queued->runs);
    const ls_queue copies = p->queued->copies;

    for (int k = 0; k < LS_QUEUE_DEVICE_N; k++) {
        if (copies != LS_QUEUE_COPY || k == LS_QUEUE_COPY || k == LS_QUEUE_FEED) continue;
        to->mark(p->dev, (ls_queue)k, p->dev->end[k]);
        to->wait(p->dev, LS_QUEUE_COPY, p->dev->end[k]);
    }
    for (int i = 0; i < p->n_fetches; i++) {
        const ls_tensor *t = &p->fetches[i];
        if (p->queued->result_at[i] == SIZE_MAX || t->bytes == 0) continue;
        if (t->buffer->host_visible) /* of a node that the host has run */
            memcpy(f->results + p->queued->result_at[i], ls_buffer_host(t->buffer, t->offset), t->bytes);
        else
            to->read(p->dev, copies, t->buffer, t->offset, f->results + p->queued->result_at[i], t->bytes);
    }
    to->mark(p->dev, copies, f->over);
    to->mark(p->dev, copies, p->dev->end[LS_QUEUE_COPY]);
    for (int k = 0; k < LS_QUEUE_DEVICE_N; k++)
        if (k != (int)copies && k != LS_QUEUE_FEED) to->wait(p->dev, (ls_queue)k, p->dev->end[LS_QUEUE_COPY]);
}

ls_status ls_plan_result(ls_plan *p, const ls_tensor *t, uint64_t run, void *to, size_t bytes, ls_err *err)
{
    lsi_queued *q = p->queued;
    const size_t at = q != NULL ? q->result_at[t - p->fetches] : SIZE_MAX;
    ls_status st = LS_OK;

    if (at == SIZE_MAX || bytes > t->bytes) {
        LS_TRY(ls_plan_join(p, err));
        return ls_tensor_read(t, 0, to, bytes, err);
    }
    LS_BUG_IF(run == 0 || run > q->runs || run + LSI_IN_FLIGHT <= q->runs);
    if (run <= q->sound) { /* what has failed since is no matter of it; only the device itself may be gone */
        LS_TRY(lsi_queues(p)->join(p->dev, flight_of(q, run)->over, err));
    } else {
        lsi_queued_join(p, flight_of(q, run)->over);
        LS_TRY(lsi_plan_outcome(p, err));
        q->sound = run;
    }
    memcpy(to, flight_of(q, run)->results + at, bytes);
out:
    return st;
}

uint64_t ls_plan_over_at(const ls_plan *p, uint64_t run)
{
    return lsi_queues(p)->when(p->dev, flight_of(p->queued, run)->over);
}
