/* cluster.c: what sinfo says of the partitions, and whether a request fits one of them.
 *
 * A job that asks for more than there is would be refused by Slurm with few words, or wait for ever; here the
 * user reads what there is and what to do. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "submit/submit.h"

/* -- reading ----------------------------------------------------------------------------------------------
 */

enum { N_FIELDS = 6, FIELD_MAX = 128, COUNT_DIGITS = 9 };

/* A line's fields, each ended by '|' or the end; false when there are more or fewer, or one is too long. */
static bool split(const char *line, size_t n, char fields[N_FIELDS][FIELD_MAX])
{
    size_t at = 0;

    for (int i = 0; i < N_FIELDS; i++) {
        size_t k = 0;
        while (at < n && line[at] != '|') {
            if (k + 1 >= FIELD_MAX || (unsigned char)line[at] < ' ') return false;
            fields[i][k++] = line[at++];
        }
        fields[i][k] = '\0';
        if ((i + 1 < N_FIELDS) != (at < n)) return false;
        at++;
    }
    return true;
}

/* A whole number; "4+" (at least 4) counts as 4. */
static bool read_count(const char *text, int64_t *out)
{
    const size_t n = strspn(text, "0123456789");

    if (n == 0 || n > COUNT_DIGITS || (text[n] != '\0' && strcmp(text + n, "+") != 0)) return false;
    *out = strtoll(text, NULL, 10);
    return true;
}

/* The upper end of a job's size: "1-infinite", "1-4", "4". */
static bool read_size(const char *text, int64_t *out)
{
    const char *dash = strchr(text, '-');
    const char *last = dash != NULL ? dash + 1 : text;

    *out = INT64_MAX;
    return strcmp(last, "infinite") == 0 || read_count(last, out);
}

static bool read_limit(const char *text, int64_t *out)
{
    *out = INT64_MAX;
    if (strcmp(text, "infinite") == 0 || strcmp(text, "n/a") == 0) return true;
    return ls_submit_time(text, out, NULL) == LS_OK;
}

/* The partition of that name, new at the end where there is none; NULL: no room. */
static ls_submit_partition *partition_named(ls_submit_cluster *c, const char *name)
{
    for (int i = 0; i < c->n; i++)
        if (strcmp(c->partitions[i].name, name) == 0) return &c->partitions[i];
    if (c->n == LS_SUBMIT_PARTITIONS_MAX) return NULL;
    snprintf(c->partitions[c->n].name, LS_SUBMIT_NAME_MAX, "%s", name);
    return &c->partitions[c->n++];
}

static void add_nodes(ls_submit_partition *p, int64_t nodes, int64_t cpus)
{
    ls_submit_size *s = p->sizes;

    p->nodes += nodes;
    for (int i = 0; i < p->n_sizes; i++, s++)
        if (s->cpus == cpus) break;
    if (s == p->sizes + LS_SUBMIT_SIZES_MAX) s--;
    if (s == p->sizes + p->n_sizes) {
        p->n_sizes++;
        *s = (ls_submit_size){.cpus = cpus};
    }
    s->nodes += nodes;
    if (cpus < s->cpus) s->cpus = cpus;
}

/* Partition, whether it is up, nodes, CPUs of each, time limit, size of a job. */
static ls_status add_line(ls_submit_cluster *c, const char *line, size_t n, ls_err *err)
{
    char field[N_FIELDS][FIELD_MAX];
    ls_submit_partition *p;
    int64_t nodes, cpus, time_s, nodes_max;
    size_t name;

    if (!split(line, n, field) || !read_count(field[2], &nodes) || !read_count(field[3], &cpus) ||
        !read_limit(field[4], &time_s) || !read_size(field[5], &nodes_max))
        return ls_fail(err, LS_FORMAT, "sinfo printed a line that is not understood: \"%.*s\"",
                       n < 200 ? (int)n : 200, line);
    name = strlen(field[0]);
    const bool is_default = name > 0 && field[0][name - 1] == '*';
    if (is_default) field[0][--name] = '\0';
    if (name == 0 || name >= LS_SUBMIT_NAME_MAX)
        return ls_fail(err, LS_FORMAT, "sinfo named a partition \"%.100s\"", field[0]);
    p = partition_named(c, field[0]);
    if (p == NULL)
        return ls_fail(err, LS_FORMAT, "sinfo listed more than %d partitions", LS_SUBMIT_PARTITIONS_MAX);
    p->is_default = is_default;
    p->is_up = strcmp(field[1], "up") == 0;
    p->time_s = time_s;
    p->nodes_max = nodes_max;
    add_nodes(p, nodes, cpus);
    return LS_OK;
}

ls_status ls_submit_parse_cluster(ls_submit_cluster *out, const char *text, ls_err *err)
{
    ls_status st = LS_OK;

    out->n = 0;
    memset(out->partitions, 0, sizeof out->partitions);
    while (*text != '\0') {
        const size_t n = strcspn(text, "\n");
        if (n > 0) LS_TRY(add_line(out, text, n, err));
        text += n + (text[n] == '\n');
    }
    if (out->n == 0) st = ls_fail(err, LS_FORMAT, "sinfo listed no partition");
out:
    return st;
}

/* -- fitting ----------------------------------------------------------------------------------------------
 */

/* "main (4 nodes of 2 CPUs), long (2 nodes of 8 to 16 CPUs)", as far as there is room. */
static const char *list_partitions(const ls_submit_cluster *c, char *text, size_t size)
{
    size_t at = 0;

    text[0] = '\0';
    for (int i = 0; i < c->n && at < size; i++) {
        const ls_submit_partition *p = &c->partitions[i];
        int64_t lo = INT64_MAX, hi = 0;
        for (int k = 0; k < p->n_sizes; k++) {
            if (p->sizes[k].cpus < lo) lo = p->sizes[k].cpus;
            if (p->sizes[k].cpus > hi) hi = p->sizes[k].cpus;
        }
        at += (size_t)snprintf(text + at, size - at, "%s%s (%" PRId64 " %s of ", i > 0 ? ", " : "", p->name,
                               p->nodes, p->nodes == 1 ? "node" : "nodes");
        if (at < size && lo < hi) at += (size_t)snprintf(text + at, size - at, "%" PRId64 " to ", lo);
        if (at < size) at += (size_t)snprintf(text + at, size - at, "%" PRId64 " CPUs)", hi);
    }
    return text;
}

enum { LIST_MAX = 1024 };

ls_status ls_submit_partition_of(const ls_submit_partition **out, const char *name,
                                 const ls_submit_cluster *c, ls_err *err)
{
    char list[LIST_MAX];

    *out = NULL;
    for (int i = 0; i < c->n && *out == NULL; i++)
        if (name != NULL ? strcmp(c->partitions[i].name, name) == 0 : c->partitions[i].is_default)
            *out = &c->partitions[i];
    if (*out != NULL) return LS_OK;
    if (name == NULL)
        return ls_fail(err, LS_INVALID, "this cluster has no default partition; say --partition P: %s",
                       list_partitions(c, list, sizeof list));
    return ls_fail(err, LS_INVALID, "--partition %s: there is none of that name; there are: %s", name,
                   list_partitions(c, list, sizeof list));
}

int64_t ls_submit_cpus(const ls_submit_partition *p, int64_t nodes)
{
    int64_t best = 0;

    for (int i = 0; i < p->n_sizes; i++) {
        int64_t n = 0;
        for (int k = 0; k < p->n_sizes; k++)
            if (p->sizes[k].cpus >= p->sizes[i].cpus) n += p->sizes[k].nodes;
        if (n >= nodes && p->sizes[i].cpus > best) best = p->sizes[i].cpus;
    }
    return best;
}

static ls_status fit_nodes(const ls_submit_request *q, const ls_submit_partition *p,
                           const ls_submit_cluster *c, ls_err *err)
{
    char list[LIST_MAX];

    if (q->nodes > p->nodes)
        return ls_fail(err, LS_INVALID,
                       "--nodes %d: partition \"%s\" has %" PRId64
                       " %s; ask for at most so many, or for another partition; there are: %s",
                       q->nodes, p->name, p->nodes, p->nodes == 1 ? "node" : "nodes",
                       list_partitions(c, list, sizeof list));
    if (q->nodes > p->nodes_max)
        return ls_fail(err, LS_INVALID,
                       "--nodes %d: a job in partition \"%s\" may have at most %" PRId64 "; ask for fewer",
                       q->nodes, p->name, p->nodes_max);
    return LS_OK;
}

static ls_status fit_cpus(ls_submit_request *q, const ls_submit_partition *p, ls_err *err)
{
    const int64_t cpus = ls_submit_cpus(p, q->nodes);
    const int threads = q->threads > 0 ? q->threads : 1;

    if ((int64_t)q->ranks_per_node * threads > cpus)
        return ls_fail(err, LS_INVALID,
                       "%d %s x %d %s need %lld CPUs on a node, but %d %s of partition \"%s\" with more than "
                       "%" PRId64 " there are not; lower --ranks-per-node or --threads, or take more --nodes",
                       q->ranks_per_node, q->ranks_per_node == 1 ? "rank" : "ranks", threads,
                       threads == 1 ? "thread" : "threads", (long long)q->ranks_per_node * threads, q->nodes,
                       q->nodes == 1 ? "node" : "nodes", p->name, cpus);
    if (q->threads == 0) q->threads = (int)(cpus / q->ranks_per_node);
    return LS_OK;
}

ls_status ls_submit_fit(ls_submit_request *q, const ls_submit_cluster *c, ls_err *err)
{
    const ls_submit_partition *p;
    char asked[32], limit[32];
    ls_status st = LS_OK;

    LS_TRY(ls_submit_partition_of(&p, q->want.partition, c, err));
    if (!p->is_up)
        return ls_fail(err, LS_INVALID,
                       "partition \"%s\" takes no jobs now (it is not up); try another, or later", p->name);
    LS_TRY(fit_nodes(q, p, c, err));
    LS_TRY(fit_cpus(q, p, err));
    if (q->want.time_s > p->time_s)
        return ls_fail(
            err, LS_INVALID,
            "--time %s is above the limit of partition \"%s\", %s; ask for less: a job that reaches "
            "its limit writes a checkpoint and goes on in the queue",
            ls_submit_time_text(q->want.time_s, asked), p->name, ls_submit_time_text(p->time_s, limit));
out:
    return st;
}
