/* detect.c: from options and environment to the way this process was started.
 *
 * The order decides where variables of several launchers lie about: ranks of mpirun first, then tasks of
 * srun, then machines joined by hand, then ranks started here.  A variable that does not belong to the way
 * taken is ignored (batch scripts often set MASTER_ADDR for other programs); an option that does not is an
 * error. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "launch/launch.h"

typedef struct look {
    const ls_launch_options *o;
    ls_env_fn get;
    void *ctx;
    ls_err *err;
} look;

const char *ls_launch_env(void *ctx, const char *name)
{
    (void)ctx;
    return getenv(name);
}

#define RANKS_MAX 1000000

/* -- numbers ----------------------------------------------------------------------------------------------
 */

static ls_status to_number(const char *name, const char *text, int lo, int *out, ls_err *err)
{
    char *end;
    const long x = strtol(text, &end, 10);

    if (end == text || *end != '\0' || x < lo || x > RANKS_MAX)
        return ls_fail(err, LS_INVALID, "%s=%.60s: expected a whole number from %d", name, text, lo);
    *out = (int)x;
    return LS_OK;
}

/* A variable as a number from `lo`; `missing` when it is not set or empty. */
static ls_status number(const look *l, const char *name, int lo, int missing, int *out)
{
    const char *text = l->get(l->ctx, name);

    *out = missing;
    if (text == NULL || text[0] == '\0') return LS_OK;
    return to_number(name, text, lo, out, l->err);
}

/* The first of several variables that is set; *name says which (NULL: none). */
static ls_status first_number(const look *l, const char *const *names, int lo, const char **name, int *out)
{
    ls_status st = LS_OK;

    *name = NULL;
    *out = -1;
    for (; *names != NULL && *name == NULL; names++) {
        LS_TRY(number(l, *names, lo, -1, out));
        if (*out >= 0) *name = *names;
    }
out:
    return st;
}

static bool is_set(const look *l, const char *name)
{
    const char *text = l->get(l->ctx, name);

    return text != NULL && text[0] != '\0';
}

/* -- ranks of mpirun and srun -----------------------------------------------------------------------------
 */

/* Options that ask this process to start ranks, when somebody else did. */
static ls_status check_no_launch(const look *l, const ls_place *p, const char *variable)
{
    const ls_launch_options *o = l->o;

    if (o->ranks > 0 && o->ranks != p->size)
        return ls_fail(l->err, LS_INVALID,
                       "-n %d, but %s started %d ranks (%s): leave -n out, or start "
                       "without %s",
                       o->ranks, p->how, p->size, variable, p->how);
    if (o->nodes > 0 || o->node_rank != NULL || o->master != NULL)
        return ls_fail(l->err, LS_INVALID,
                       "--nodes, --node-rank and --master join machines by hand, but %s started this rank "
                       "(%s): leave them out, or start without %s",
                       p->how, variable, p->how);
    return LS_OK;
}

static ls_status check_rank(const look *l, const ls_place *p, const char *rank_name, const char *size_name)
{
    if (p->rank >= p->size)
        return ls_fail(l->err, LS_INVALID, "%s=%d is not below %s=%d", rank_name, p->rank, size_name,
                       p->size);
    if (p->local_rank >= p->local_size)
        return ls_fail(l->err, LS_INVALID, "rank %d: local rank %d is not below the %d ranks of its machine",
                       p->rank, p->local_rank, p->local_size);
    return LS_OK;
}

/* The variables by which launchers of MPI name a rank. */
static const struct mpi_names {
    const char *rank, *size, *local_rank, *local_size;
} mpi_names[] = {
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
};

static ls_status find_mpirun(const look *l, ls_start *s, bool *found)
{
    ls_status st = LS_OK;

    *found = false;
    for (size_t i = 0; i < sizeof mpi_names / sizeof mpi_names[0] && !*found; i++) {
        const struct mpi_names *m = &mpi_names[i];
        ls_place *p = &s->place;
        if (!is_set(l, m->rank) || !is_set(l, m->size)) continue;
        /* One rank needs nobody: so it is in a shell under mpirun, too, from which ranks may be started. */
        LS_TRY(number(l, m->size, 1, 1, &p->size));
        if (p->size == 1) continue;
        LS_TRY(number(l, m->rank, 0, 0, &p->rank));
        LS_TRY(number(l, m->local_rank, 0, 0, &p->local_rank));
        LS_TRY(number(l, m->local_size, 1, p->local_rank + 1, &p->local_size));
        p->how = "mpirun";
        s->kind = LS_START_RANK;
        LS_TRY(check_rank(l, p, m->rank, m->size));
        LS_TRY(check_no_launch(l, p, m->rank));
        *found = true;
    }
out:
    return st;
}

/* The shells of sbatch and salloc have SLURM_PROCID and SLURM_NTASKS, too, but no step, or one of the special
 * steps at the end of the range (batch script, interactive shell). */
static bool is_srun_task(const look *l)
{
    const char *step = l->get(l->ctx, "SLURM_STEP_ID");

    if (step == NULL || step[0] == '\0' || !is_set(l, "SLURM_PROCID")) return false;
    return strtoull(step, NULL, 10) < 0xfffffff0ull;
}

/* The first host of a list such as node[001-004,9],other. */
static bool first_host(const char *list, char *host, size_t size)
{
    const size_t name = strcspn(list, ",["), tail = list[name] == '[' ? strcspn(list + name + 1, ",-]") : 0;

    return snprintf(host, size, "%.*s%.*s", (int)name, list, (int)tail, list + name + 1) < (int)size &&
           name > 0;
}

/* Without --mpi=pmix Slurm starts tasks and no more.  Then they have a rendezvous as machines by hand do,
 * each with one rank: on the first machine of the step, at a port that follows from job and step. */
static ls_status join_by_themselves(const look *l, ls_start *s)
{
    static const char *const helpers[] = {"PMIX_NAMESPACE", "PMIX_RANK", "PMI_RANK", "PMI_FD"};
    const char *list = l->get(l->ctx, "SLURM_STEP_NODELIST");
    ls_place *p = &s->place;
    unsigned long long port;

    for (size_t i = 0; i < sizeof helpers / sizeof helpers[0]; i++)
        if (is_set(l, helpers[i])) return LS_OK;
    if (list == NULL || !first_host(list, s->master, sizeof s->master)) return LS_OK;
    /* Jobs are counted for years: their numbers do not end at a million. */
    port = is_set(l, "SLURM_JOB_ID") ? strtoull(l->get(l->ctx, "SLURM_JOB_ID"), NULL, 10) % 20000 * 64 : 0;
    port += strtoull(l->get(l->ctx, "SLURM_STEP_ID"), NULL, 10);
    s->port = 20000 + (int)(port % 20000);
    s->kind = LS_START_MACHINE;
    p->nodes = p->size;
    p->node = p->rank;
    p->local_size = 1;
    return LS_OK;
}

static ls_status find_srun(const look *l, ls_start *s, bool *found)
{
    static const char *const sizes[] = {"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", NULL};
    ls_place *p = &s->place;
    const char *size_name;
    ls_status st = LS_OK;

    *found = false;
    if (!is_srun_task(l)) return LS_OK;
    LS_TRY(first_number(l, sizes, 1, &size_name, &p->size));
    if (p->size <= 1) goto out; /* `srun --pty bash` and the like */
    LS_TRY(number(l, "SLURM_PROCID", 0, 0, &p->rank));
    LS_TRY(number(l, "SLURM_LOCALID", 0, 0, &p->local_rank));
    /* SLURM_TASKS_PER_NODE is a list; the communicator knows the exact number later. */
    p->local_size = p->local_rank + 1;
    LS_TRY(number(l, "SLURM_NODEID", 0, 0, &p->node));
    LS_TRY(number(l, "SLURM_STEP_NUM_NODES", 1, p->node + 1, &p->nodes));
    p->how = "srun";
    s->kind = LS_START_RANK;
    LS_TRY(check_rank(l, p, "SLURM_PROCID", size_name));
    LS_TRY(check_no_launch(l, p, "SLURM_PROCID"));
    LS_TRY(join_by_themselves(l, s));
    *found = true;
out:
    return st;
}

/* -- machines by hand -------------------------------------------------------------------------------------
 */

/* HOST, HOST:PORT or [ADDRESS]:PORT. */
static ls_status parse_master(const look *l, const char *text, ls_start *s)
{
    const char *end = text[0] == '[' ? strchr(text, ']') : NULL;
    const char *colon = strrchr(end != NULL ? end : text, ':');
    const char *host = end != NULL ? text + 1 : text;
    size_t n;

    /* Several colons without brackets are an IPv6 address without a port. */
    if (end == NULL && colon != NULL && strchr(text, ':') != colon) colon = NULL;
    n = end != NULL ? (size_t)(end - host) : colon != NULL ? (size_t)(colon - host) : strlen(host);
    if (n == 0 || n >= sizeof s->master)
        return ls_fail(l->err, LS_INVALID, "--master %.300s: expected HOST:PORT", text);
    memcpy(s->master, host, n);
    s->master[n] = '\0';
    if (colon != NULL) {
        char *stop;
        long port = strtol(colon + 1, &stop, 10);
        if (stop == colon + 1 || *stop != '\0' || port < 1 || port > 65535)
            return ls_fail(l->err, LS_INVALID, "--master %.300s: the port must be from 1 to 65535", text);
        s->port = (int)port;
    }
    return LS_OK;
}

static ls_status find_master(const look *l, ls_start *s)
{
    const char *addr = l->get(l->ctx, "MASTER_ADDR");
    ls_status st = LS_OK;

    LS_TRY(number(l, "MASTER_PORT", 1, LS_MASTER_PORT, &s->port));
    if (s->port > 65535) return ls_fail(l->err, LS_INVALID, "MASTER_PORT=%d is above 65535", s->port);
    if (l->o->master != NULL) {
        LS_TRY(parse_master(l, l->o->master, s));
    } else if (addr != NULL && addr[0] != '\0') {
        if (strlen(addr) >= sizeof s->master)
            return ls_fail(l->err, LS_INVALID, "MASTER_ADDR=%.60s...: too long for a host", addr);
        snprintf(s->master, sizeof s->master, "%s", addr);
    }
out:
    return st;
}

/* What is said about the number of machines and ranks, by whom. */
typedef struct counts {
    int nodes, node, world, ranks;
    const char *nodes_by, *node_by;
} counts;

static ls_status read_counts(const look *l, counts *c)
{
    static const char *const nodes[] = {"NNODES", "GROUP_WORLD_SIZE", NULL};
    static const char *const node[] = {"NODE_RANK", "GROUP_RANK", NULL};
    const ls_launch_options *o = l->o;
    ls_status st = LS_OK;

    LS_TRY(first_number(l, nodes, 1, &c->nodes_by, &c->nodes));
    LS_TRY(first_number(l, node, 0, &c->node_by, &c->node));
    LS_TRY(number(l, "WORLD_SIZE", 1, 0, &c->world));
    c->ranks = o->ranks;
    if (o->nodes > 0) {
        c->nodes = o->nodes;
        c->nodes_by = "--nodes";
    }
    if (o->node_rank != NULL) {
        LS_TRY(to_number("--node-rank", o->node_rank, 0, &c->node, l->err));
        c->node_by = "--node-rank";
    }
    if (c->nodes < 0) c->nodes = 0;
out:
    return st;
}

/* Each rank was started by itself, as torchrun does and as by hand with one rank per machine: a machine of
 * one rank each. */
static ls_status read_single_rank(const look *l, counts *c, ls_start *s)
{
    int rank = -1, here = 1;
    ls_status st = LS_OK;

    LS_TRY(number(l, "RANK", 0, -1, &rank));
    if (rank > 0 && c->world == 0 && c->nodes == 0 && c->ranks == 0)
        return ls_fail(
            l->err, LS_INVALID,
            "RANK=%d says that this is one of several ranks, but not of how many: set WORLD_SIZE, too, or "
            "unset RANK",
            rank);
    if (rank < 0 || c->world == 0) goto out;
    if (!is_set(l, "LOCAL_RANK") && c->node_by != NULL) goto out; /* RANK says no more than NODE_RANK */
    if (c->ranks > 1)
        return ls_fail(
            l->err, LS_INVALID,
            "RANK=%d names one rank, but -n %d asks for %d here: set NODE_RANK instead of RANK and "
            "LOCAL_RANK, or leave -n out",
            rank, c->ranks, c->ranks);
    if (c->nodes_by != NULL && strcmp(c->nodes_by, "--nodes") == 0 && c->nodes != c->world)
        return ls_fail(l->err, LS_INVALID,
                       "RANK=%d of WORLD_SIZE=%d ranks, but --nodes %d: leave --nodes out, or RANK", rank,
                       c->world, c->nodes);
    c->nodes = c->world;
    c->nodes_by = "WORLD_SIZE";
    c->node = rank;
    c->node_by = "RANK";
    c->ranks = 1;
    LS_TRY(number(l, "LOCAL_RANK", 0, 0, &s->place.local_rank));
    LS_TRY(number(l, "LOCAL_WORLD_SIZE", 1, 1, &here));
    s->n_beside = here - 1;
out:
    return st;
}

/* WORLD_SIZE is the number of ranks for torchrun, and of machines in many instructions.  Fills what is not
 * yet known of nodes and ranks; `note` says how it was read. */
static ls_status reconcile(const look *l, counts *c, char *note, size_t note_size)
{
    if (c->world > 0 && c->nodes > 0 && c->ranks > 0 && c->world != c->nodes &&
        c->world != c->nodes * c->ranks)
        return ls_fail(l->err, LS_INVALID,
                       "WORLD_SIZE=%d is neither the number of machines (%s %d) nor of ranks (%d x -n %d = "
                       "%d): correct it, or leave it out",
                       c->world, c->nodes_by, c->nodes, c->nodes, c->ranks, c->nodes * c->ranks);
    if (c->world > 0 && c->nodes > 0 && c->ranks == 0) {
        if (c->world % c->nodes != 0)
            return ls_fail(l->err, LS_INVALID,
                           "WORLD_SIZE=%d ranks cannot be shared evenly by %s %d machines: say -n RANKS",
                           c->world, c->nodes_by, c->nodes);
        c->ranks = c->world / c->nodes;
    }
    if (c->ranks == 0 && c->nodes > 0 && l->o->total > 1) {
        if (l->o->total % c->nodes != 0)
            return ls_fail(l->err, LS_INVALID,
                           "the setting ranks: %d cannot be shared evenly by %s %d machines: say -n RANKS",
                           l->o->total, c->nodes_by, c->nodes);
        c->ranks = l->o->total / c->nodes;
    }
    if (c->ranks == 0) c->ranks = 1;
    if (c->nodes > 0 || c->world == 0) return LS_OK;
    /* Only WORLD_SIZE speaks of machines. */
    c->nodes_by = "WORLD_SIZE";
    if (c->ranks > 1 && c->world % c->ranks == 0 && c->world > c->ranks) {
        c->nodes = c->world / c->ranks;
        snprintf(note, note_size,
                 "WORLD_SIZE=%d read as ranks: %d machines with %d each (if machines were meant: --nodes %d)",
                 c->world, c->nodes, c->ranks, c->world);
    } else {
        c->nodes = c->world;
        if (c->ranks > 1)
            snprintf(note, note_size, "WORLD_SIZE=%d read as machines with %d ranks each, %d in all",
                     c->world, c->ranks, c->world * c->ranks);
    }
    return LS_OK;
}

static ls_status check_node(const look *l, const counts *c, const ls_start *s)
{
    if (c->node < 0)
        return ls_fail(l->err, LS_INVALID,
                       "%s says %d machines, but not which of them this is: set NODE_RANK (or --node-rank) "
                       "on each, 0 on %s, up to %d",
                       c->nodes_by, c->nodes, s->master[0] != '\0' ? s->master : "the first", c->nodes - 1);
    if (c->node >= c->nodes)
        return ls_fail(l->err, LS_INVALID, "%s %d, but there are only %d machines (%s)%s%s: count from 0",
                       c->node_by, c->node, c->nodes, c->nodes_by, s->note[0] != '\0' ? "; " : "", s->note);
    if (s->master[0] == '\0')
        return ls_fail(
            l->err, LS_INVALID,
            "%s says %d machines, but not where they meet: set MASTER_ADDR (or --master HOST:PORT) "
            "to the address of machine 0",
            c->nodes_by, c->nodes);
    if (c->nodes > RANKS_MAX / c->ranks)
        return ls_fail(l->err, LS_INVALID, "%d machines with %d ranks each: more than %d make no sense",
                       c->nodes, c->ranks, RANKS_MAX);
    return LS_OK;
}

/* Nothing says where to meet, but variables of torchrun and the like say that this is one process of several:
 * to train alone would be wrong in silence.  Where -n says how many ranks to start here, they may be left
 * over. */
static ls_status check_partial(const look *l)
{
    static const char *const sizes[] = {"WORLD_SIZE", "NNODES", "GROUP_WORLD_SIZE", NULL};
    static const char *const places[] = {"RANK", "NODE_RANK", "GROUP_RANK", "LOCAL_RANK", NULL};
    const char *size_by = NULL, *place_by = NULL;
    int size = 0, place = 0, k = 0;
    ls_status st = LS_OK;

    for (; sizes[k] != NULL && size <= 1; k++) {
        LS_TRY(number(l, sizes[k], 1, 0, &size));
        size_by = sizes[k];
    }
    LS_TRY(first_number(l, places, 0, &place_by, &place));
    if (size <= 1 || l->o->ranks > 0 || l->o->total == size || l->o->total == 0) goto out;
    if (place_by != NULL)
        st = ls_fail(
            l->err, LS_INVALID,
            "%s=%d and %s=%d say that this is one of several processes, but not where they meet: set "
            "MASTER_ADDR "
            "(or --master HOST:PORT) to the address of the first, or start ranks here with -n, or unset both",
            size_by, size, place_by, place);
    else
        st = ls_fail(l->err, LS_INVALID,
                     "%s=%d says that this is one of several processes, but not which, nor where they meet: "
                     "set RANK (or "
                     "NODE_RANK) and MASTER_ADDR, or start ranks here with -n, or unset it",
                     size_by, size);
out:
    return st;
}

static ls_status find_nodes(const look *l, ls_start *s, bool *found)
{
    counts c = {0};
    ls_place *p = &s->place;
    ls_status st = LS_OK;

    *found = false;
    LS_TRY(find_master(l, s));
    if (s->master[0] == '\0' && l->o->nodes <= 1 && l->o->node_rank == NULL) {
        LS_TRY(check_partial(l));
        goto out;
    }
    LS_TRY(read_counts(l, &c));
    LS_TRY(read_single_rank(l, &c, s));
    LS_TRY(reconcile(l, &c, s->note, sizeof s->note));
    if (c.nodes <= 1 && c.node <= 0) goto out; /* one machine: nobody to meet */
    LS_TRY(check_node(l, &c, s));
    s->kind = LS_START_MACHINE;
    p->how = "by hand";
    p->nodes = c.nodes;
    p->node = c.node;
    p->local_size = c.ranks;
    p->size = c.nodes * c.ranks;
    p->rank = c.node * c.ranks;
    *found = true;
out:
    return st;
}

/* -- all ways ---------------------------------------------------------------------------------------------
 */

ls_status ls_launch_detect(ls_start *out, const ls_launch_options *o, ls_env_fn get, void *ctx, ls_err *err)
{
    const look l = {o, get, ctx, err};
    const ls_start alone = {.place = {.size = 1, .local_size = 1, .nodes = 1, .how = "alone"}};
    bool found = false;
    ls_status st = LS_OK;
    int ranks;

    *out = alone;
    LS_TRY(find_mpirun(&l, out, &found));
    if (!found) *out = alone;
    if (!found) LS_TRY(find_srun(&l, out, &found));
    if (!found) *out = alone;
    if (!found) LS_TRY(find_nodes(&l, out, &found));
    if (found) goto out;
    *out = alone;
    ranks = o->ranks > 0 ? o->ranks : o->total;
    if (ranks > 1) {
        out->kind = LS_START_LOCAL;
        out->place.size = out->place.local_size = ranks;
        out->place.how = "-n";
    }
out:
    return st;
}
