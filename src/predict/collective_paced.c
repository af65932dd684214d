/* collective_paced.c: rounds of messages where each member goes on when its own are over.
 *
 * A message begins when its sender has been in the round for the latency of the way, and its receiver is in
 * it, too: long messages are agreed upon first.  A member that has sent and received what the round asks for
 * goes on.  In between, messages share links as in share.c; rates are found anew when some have begun or
 * ended, those within a ten thousandth of the whole together. */
#include <math.h>

#include "predict/collective_internal.h"
#include "predict/share_internal.h"

#define TOGETHER 1e-4

/* What a member's message of the round it is in does. */
typedef enum message_state { NOT_YET, WAITS, FLOWS, OVER } message_state;

typedef struct member {
    int32_t round; /* -1: has not begun */
    double began;  /* it */
    double over;   /* when what it has of the round was over */
    bool received;
    message_state message;
    double start_at; /* of its message, when it waits */
    double left;     /* bytes of it */
} member;

typedef struct paced {
    const lsi_job *j;
    const lsi_rounds *all;
    int32_t n; /* members */
    lsi_shares s;
    lsi_rates w;
    ls_flow *flows;           /* of member i in round r: place r * n + i, as classes */
    int32_t *target, *source; /* likewise; -1: none */
    member *members;
    int32_t *active, *ended;
    int32_t n_active;
    double end; /* when the last member was through */
} paced;

static int64_t place_of(const paced *p, int32_t round, int32_t i)
{
    return (int64_t)round * p->n + i;
}

/* -- rounds -----------------------------------------------------------------------------------------------
 */

/* Its message can begin when both are there. */
static void let_start(paced *p, int32_t from, double receiver_began)
{
    member *m = &p->members[from];

    m->message = WAITS;
    m->start_at = fmax(m->began + p->s.tasks[place_of(p, m->round, from)].latency_s, receiver_began);
}

static void begin(paced *p, int32_t i, int32_t round, double now)
{
    member *m = &p->members[i];
    int32_t to, from;

    while (round < p->all->n && p->target[place_of(p, round, i)] < 0 && p->source[place_of(p, round, i)] < 0)
        round++;
    *m = (member){.round = round, .began = now, .over = now};
    if (round == p->all->n) {
        p->end = fmax(p->end, now);
        return;
    }
    to = p->target[place_of(p, round, i)];
    from = p->source[place_of(p, round, i)];
    m->received = from < 0;
    m->message = to < 0 ? OVER : NOT_YET;
    if (to >= 0 && p->members[to].round == round) let_start(p, i, p->members[to].began);
    if (from >= 0 && p->members[from].round == round && p->members[from].message == NOT_YET)
        let_start(p, from, now);
}

static void go_on_if_through(paced *p, int32_t i)
{
    const member *m = &p->members[i];

    if (m->received && m->message == OVER) begin(p, i, m->round + 1, m->over);
}

static void end_message(paced *p, int32_t i, double at)
{
    member *m = &p->members[i];
    const int32_t to = p->target[place_of(p, m->round, i)];

    m->message = OVER;
    m->over = fmax(m->over, at);
    p->members[to].received = true;
    p->members[to].over = fmax(p->members[to].over, at);
    go_on_if_through(p, i);
    go_on_if_through(p, to);
}

/* -- time -------------------------------------------------------------------------------------------------
 */

static bool start_messages(paced *p, double until)
{
    bool changed = false;

    p->n_active = 0;
    for (int32_t i = 0; i < p->n; i++) {
        member *m = &p->members[i];
        if (m->message == WAITS && m->start_at <= until) {
            m->message = FLOWS;
            m->left = p->s.tasks[place_of(p, m->round, i)].bytes;
            changed = true;
        }
        if (m->message == FLOWS) p->active[p->n_active++] = (int32_t)place_of(p, m->round, i);
    }
    return changed;
}

static double rate_of(const paced *p, int32_t i)
{
    return p->s.classes[place_of(p, p->members[i].round, i)].rate;
}

static double next_event(const paced *p, double now)
{
    double next = INFINITY;

    for (int32_t i = 0; i < p->n; i++) {
        const member *m = &p->members[i];
        if (m->message == WAITS) next = fmin(next, m->start_at);
        if (m->message == FLOWS) next = fmin(next, now + m->left / rate_of(p, i));
    }
    return next;
}

/* Messages that are over soon after `to` are over now, at their own time. */
static bool advance(paced *p, double now, double to, double soon)
{
    int32_t n_ended = 0;

    for (int32_t i = 0; i < p->n; i++) {
        member *m = &p->members[i];
        if (m->message != FLOWS) continue;
        m->left -= (to - now) * rate_of(p, i);
        if (m->left <= soon * rate_of(p, i)) p->ended[n_ended++] = i;
    }
    for (int32_t k = 0; k < n_ended; k++) {
        const int32_t i = p->ended[k];
        end_message(p, i, to + fmax(p->members[i].left, 0) / rate_of(p, i));
    }
    return n_ended > 0;
}

static double run(paced *p, double together)
{
    const double soon = TOGETHER * together;
    double now = 0, next;
    bool changed = true;

    for (int32_t i = 0; i < p->n; i++) p->members[i].round = -1;
    for (int32_t i = 0; i < p->n; i++) begin(p, i, 0, 0);
    for (;;) {
        changed = start_messages(p, now + soon) || changed;
        if (changed) lsi_rates_find(&p->w, p->s.classes, p->active, p->n_active);
        next = next_event(p, now);
        if (isinf(next)) return p->end;
        changed = advance(p, now, next, soon);
        now = next;
    }
}

/* -- making -----------------------------------------------------------------------------------------------
 */

static void make_round(paced *p, int32_t round)
{
    const lsi_round *r = &p->all->of[round];

    for (int32_t i = 0; i < p->n; i++) p->source[place_of(p, round, i)] = -1;
    for (int32_t i = 0; i < p->n; i++) {
        const int32_t to = lsi_round_target(r, p->n, i);
        const int32_t a = lsi_place(p->j->p, i / p->all->per_node);
        const int32_t b = to >= 0 ? lsi_place(p->j->p, to / p->all->per_node) : a;
        p->target[place_of(p, round, i)] = to;
        if (to >= 0) p->source[place_of(p, round, to)] = i;
        p->flows[place_of(p, round, i)] =
            (ls_flow){a, b, p->all->abreast, (a == b ? 1 : p->all->wire) * r->bytes};
    }
}

/* Messages inside machines have no links, and their own latency; a slow processor is a cap. */
static void set_caps(paced *p)
{
    const ls_link *node = &p->j->n->node;
    const int64_t n = (int64_t)p->all->n * p->n;

    for (int64_t f = 0; f < n; f++) {
        const double bytes = p->flows[f].bytes, core = 2 * (node->message_s + bytes * node->core_s_per_byte);
        const ls_transfer_cost inside = lsi_message_inside(&p->j->n->inside, bytes);
        lsi_class *c = &p->s.classes[f];
        if (p->flows[f].from == p->flows[f].to) {
            p->s.tasks[f].latency_s = p->j->n->inside.latency_s;
            c->cap = bytes > 0 ? bytes / (inside.seconds - p->j->n->inside.latency_s) : 1;
        } else if (bytes > 0 && core > 0) {
            c->cap = fmin(c->cap, bytes / core);
        }
    }
}

static ls_status make(paced *p, ls_err *err)
{
    const bool alone = p->all->per_node == 1 && p->all->abreast == 1;
    const size_t n = (size_t)p->n * (size_t)p->all->n;
    ls_status st = LS_OK;

    p->flows = ls_alloc(LS_MEM_CLI, n * sizeof *p->flows);
    p->target = ls_alloc(LS_MEM_CLI, n * sizeof *p->target);
    p->source = ls_alloc(LS_MEM_CLI, n * sizeof *p->source);
    p->members = ls_alloc(LS_MEM_CLI, (size_t)p->n * sizeof *p->members);
    p->active = ls_alloc(LS_MEM_CLI, (size_t)p->n * sizeof *p->active);
    p->ended = ls_alloc(LS_MEM_CLI, (size_t)p->n * sizeof *p->ended);
    if (p->flows == NULL || p->target == NULL || p->source == NULL || p->members == NULL ||
        p->active == NULL || p->ended == NULL)
        return ls_fail(err, LS_NOMEM, "no memory for %zu flows", n);
    for (int32_t r = 0; r < p->all->n; r++) make_round(p, r);
    LS_TRY(lsi_shares_make(&p->s, p->j->n, p->j->nodes, p->flows, (int64_t)n,
                           alone ? LSI_ONE_EACH : LSI_APART, err));
    set_caps(p);
    p->w.capacity = p->s.capacity;
    if (!lsi_rates_make(&p->w, p->s.arena, p->s.n_links, p->n, p->s.n_refs) ||
        !lsi_rates_rank(&p->w, p->s.arena, p->s.classes, (int64_t)n))
        st = ls_fail(err, LS_NOMEM, "no memory for %zu flows", n);
out:
    return st;
}

ls_status lsi_rounds_paced(double *seconds, int64_t *visits, double together, const lsi_job *j,
                           const lsi_rounds *all, ls_err *err)
{
    paced p = {.j = j, .all = all, .n = all->members};
    const ls_status st = make(&p, err);

    if (st == LS_OK) {
        *seconds = run(&p, together);
        *visits += p.w.work.visits;
    }
    lsi_shares_release(&p.s);
    ls_free(p.flows);
    ls_free(p.target);
    ls_free(p.source);
    ls_free(p.members);
    ls_free(p.active);
    ls_free(p.ended);
    return st;
}
