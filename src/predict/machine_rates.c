/* machine_rates.c: what nodes of an op reach on a machine, from those that were measured: for nodes of the
 * same op that were not. */
#include <math.h>
#include <string.h>

#include "predict/machine_internal.h"

/* No op is known better by its rates than this, and one that was measured once no better than that.  Small
 * nodes that were disturbed may be any times off: more than the last says nothing more. */
#define ERROR_LEAST 0.05
#define ERROR_ALONE 0.3
#define ERROR_MOST  2.0

/* All points of one op and direction. */
typedef struct sample {
    double *flops, *bytes, *seconds;
    int n;
} sample;

static void collect(const ls_machine *m, const ls_machine_op *op, sample *s)
{
    s->n = 0;
    for (int32_t i = 0; i < m->n_nodes; i++) {
        const ls_machine_node *n = &m->nodes[i];
        if (strcmp(n->op, op->op) != 0 || n->backward != op->backward) continue;
        for (int k = 0; k < n->n_points; k++) {
            if (n->point[k].seconds <= 0) continue;
            s->flops[s->n] = n->point[k].flops;
            s->bytes[s->n] = n->point[k].bytes;
            s->seconds[s->n++] = n->point[k].seconds;
        }
    }
}

/* Relative error of rates, of the time of all nodes: long ones count as much as they take. */
static double error_of(const sample *s, const ls_machine_op *op)
{
    double sum = 0, all = 0;

    for (int i = 0; i < s->n; i++) {
        const double flops = op->flop_s > 0 ? s->flops[i] / op->flop_s : 0,
                     bytes = op->bytes_s > 0 ? s->bytes[i] / op->bytes_s : 0;
        const double off = (op->launch_s + fmax(flops, bytes)) / s->seconds[i] - 1;
        sum += s->seconds[i] * off * off;
        all += s->seconds[i];
    }
    return all > 0 ? sqrt(sum / all) : 0;
}

/* By one of both: seconds = launch + work / rate.  What all nodes took together stays what it was: a line
 * through relative errors alone would lie below most of what took long. */
static ls_machine_op by_work(const ls_machine_op *op, const sample *s, const double *work, bool is_flops)
{
    ls_machine_op o = {.op = op->op, .backward = op->backward};
    double a, b, unused, all = 0, seconds = 0;

    lsi_fit_line(work, s->seconds, s->n, &a, &b, &unused);
    for (int i = 0; i < s->n; i++) {
        all += work[i];
        seconds += s->seconds[i];
    }
    if (b <= 0 || seconds <= s->n * a) a = 0;
    o.launch_s = a;
    if (all > 0) *(is_flops ? &o.flop_s : &o.bytes_s) = all / (seconds - s->n * a);
    o.error = error_of(s, &o);
    return o;
}

static void rate(ls_machine_op *op, const sample *s)
{
    const ls_machine_op flops = by_work(op, s, s->flops, true), bytes = by_work(op, s, s->bytes, false);

    *op = flops.flop_s > 0 && (bytes.bytes_s <= 0 || flops.error < bytes.error) ? flops : bytes;
    op->error = fmin(fmax(op->error, s->n < 3 ? ERROR_ALONE : ERROR_LEAST), ERROR_MOST);
}

static bool is_known(const ls_machine *m, const ls_machine_node *n)
{
    for (int32_t i = 0; i < m->n_ops; i++)
        if (m->ops[i].backward == n->backward && strcmp(m->ops[i].op, n->op) == 0) return true;
    return false;
}

ls_status lsi_machine_rate(ls_machine *m, ls_err *err)
{
    const size_t most = (size_t)m->n_nodes * LS_MACHINE_POINTS + 1;
    double *room = ls_alloc(LS_MEM_CLI, 3 * most * sizeof *room);
    sample s = {room, room + most, room + 2 * most, 0};

    m->ops = ls_arena_alloc(m->arena, sizeof *m->ops * ((size_t)m->n_nodes + 1));
    m->n_ops = 0;
    if (room == NULL || m->ops == NULL) {
        ls_free(room);
        return ls_fail(err, LS_NOMEM, "no memory for a machine");
    }
    for (int32_t i = 0; i < m->n_nodes; i++) {
        ls_machine_op *op = &m->ops[m->n_ops];
        if (is_known(m, &m->nodes[i])) continue;
        *op = (ls_machine_op){.op = m->nodes[i].op, .backward = m->nodes[i].backward};
        collect(m, op, &s);
        if (s.n == 0) continue;
        rate(op, &s);
        m->n_ops++;
    }
    ls_free(room);
    return LS_OK;
}
