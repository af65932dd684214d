/* simgrid_run NETWORK PLACEMENT ALGORITHM RANKS BYTES: an all-reduce in SimGrid, beside what we say of it.
 *
 * SimGrid gets the same links and ways, as a platform file, and one actor for each rank, which does what a
 * rank of an MPI library does: it sends and receives, waits for both, and goes on, whatever the others do. So
 * nothing of ours is used but the ways.  One rank a machine.  PLACEMENT is "contiguous" or the seed of a
 * random one.  Prints seconds: SimGrid's, in closed form, with shared links. */
#include <simgrid/actor.h>
#include <simgrid/comm.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/mailbox.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "predict/collective.h"

enum { MOST_RANKS = 1024 };

static ls_network net;
static int32_t place[MOST_RANKS];
static int ranks;
static double bytes;
static const char *algorithm;

static void die(const char *what)
{
    fprintf(stderr, "simgrid_run: %s\n", what);
    exit(2);
}

/* -- the platform -----------------------------------------------------------------------------------------
 */

static int nodes_of_network(void)
{
    return ls_network_size(&net) > 0 ? ls_network_size(&net) : ranks;
}

static int by_number(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return x < y ? -1 : x > y;
}

static void write_links(FILE *f)
{
    const size_t most = (size_t)ranks * (size_t)ranks * 8;
    int64_t *all = ls_alloc(LS_MEM_TEST, most * sizeof *all), links[LS_ROUTE_MAX];
    size_t n = 0;
    double latency;

    if (all == NULL) die("no memory");
    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < ranks; b++) {
            const int n_links =
                ls_network_route(&net, nodes_of_network(), place[a], place[b], links, &latency);
            for (int k = 0; k < n_links && n < most; k++) all[n++] = links[k];
        }
    qsort(all, n, sizeof *all, by_number);
    for (size_t i = 0; i < n; i++)
        if (i == 0 || all[i] != all[i - 1])
            fprintf(f, "<link id=\"l%lld\" bandwidth=\"%.17gBps\" latency=\"0s\"/>\n", (long long)all[i],
                    ls_network_link_rate(&net, nodes_of_network(), all[i]));
    ls_free(all);
}

static void write_platform(const char *path)
{
    FILE *f = fopen(path, "w");
    int64_t links[LS_ROUTE_MAX];
    double latency;

    if (f == NULL) die("no platform file");
    fprintf(f, "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
               "<platform version=\"4.1\">\n<zone id=\"all\" routing=\"Full\">\n");
    for (int a = 0; a < ranks; a++) fprintf(f, "<host id=\"h%d\" speed=\"1Gf\"/>\n", a);
    write_links(f);
    for (int a = 0; a < ranks; a++)
        for (int b = 0; b < ranks; b++) {
            const int n_links =
                ls_network_route(&net, nodes_of_network(), place[a], place[b], links, &latency);
            if (a == b) continue;
            fprintf(f, "<route src=\"h%d\" dst=\"h%d\" symmetrical=\"NO\">", a, b);
            for (int k = 0; k < n_links; k++) fprintf(f, "<link_ctn id=\"l%lld\"/>", (long long)links[k]);
            fprintf(f, "</route>\n");
        }
    fprintf(f, "</zone>\n</platform>\n");
    if (fclose(f) != 0) die("the platform file could not be written");
}

/* -- ranks ------------------------------------------------------------------------------------------------
 */

static sg_mailbox_t box(int from, int to)
{
    char name[32];

    snprintf(name, sizeof name, "%d-%d", from, to);
    return sg_mailbox_by_name(name);
}

/* Latencies are slept here: in links they would weigh on SimGrid's shares. */
static void exchange(int me, int to, int from, double n)
{
    int64_t links[LS_ROUTE_MAX];
    sg_comm_t receive = NULL, send = NULL;
    double latency;
    void *got;

    if (from >= 0) receive = sg_mailbox_get_async(box(from, me), &got);
    if (to >= 0) {
        ls_network_route(&net, nodes_of_network(), place[me], place[to], links, &latency);
        sg_actor_sleep_for(latency);
        send = sg_mailbox_put_async(box(me, to), &ranks, (long)n);
    }
    if (send != NULL) sg_comm_wait(send);
    if (receive != NULL) sg_comm_wait(receive);
}

static void ring(int me)
{
    for (int i = 0; i < 2 * (ranks - 1); i++)
        exchange(me, (me + 1) % ranks, (me + ranks - 1) % ranks, bytes / ranks);
}

/* Powers of two. */
static void doubling(int me)
{
    for (int d = 1; d < ranks; d *= 2) exchange(me, me ^ d, me ^ d, bytes);
}

static void rabenseifner(int me)
{
    double n = bytes;

    for (int d = 1; d < ranks; d *= 2) {
        n /= 2;
        exchange(me, me ^ d, me ^ d, n);
    }
    for (int d = ranks / 2; d >= 1; d /= 2) {
        exchange(me, me ^ d, me ^ d, n);
        n *= 2;
    }
}

/* All send their part to its owner; who has all of a part sends the sum to all. */
static void ours(int me)
{
    static sg_comm_t pool[MOST_RANKS][4 * MOST_RANKS];
    sg_comm_t *all = pool[me];
    static void *got[MOST_RANKS];
    const long n = (long)(bytes / ranks);
    int count = 0, parts = 0;

    sg_actor_sleep_for(net.node.latency_s);
    for (int d = 1; d < ranks; d++) all[parts++] = sg_mailbox_get_async(box((me + d) % ranks, me), &got[me]);
    for (int d = 1; d < ranks; d++)
        sg_comm_detach(sg_mailbox_put_init(box(me, (me + d) % ranks), &ranks, n), NULL);
    for (int i = 0; i < parts; i++) sg_comm_wait(all[i]);
    for (int d = 1; d < ranks; d++) all[count++] = sg_mailbox_get_async(box((me + d) % ranks, me), &got[me]);
    for (int d = 1; d < ranks; d++)
        sg_comm_detach(sg_mailbox_put_init(box(me, (me + d) % ranks), &ranks, n), NULL);
    for (int i = 0; i < count; i++) sg_comm_wait(all[i]);
}

static void rank(int argc, char **argv)
{
    const int me = atoi(argv[argc - 1]);

    if (strcmp(algorithm, "ring") == 0) ring(me);
    if (strcmp(algorithm, "doubling") == 0) doubling(me);
    if (strcmp(algorithm, "rabenseifner") == 0) rabenseifner(me);
    if (strcmp(algorithm, "ours") == 0) ours(me);
}

static double simulate(void)
{
    char path[] = "/tmp/simgrid_run_XXXXXX", *args[] = {(char *)"simgrid_run",
                                                        (char *)"--log=root.thres:error",
                                                        (char *)"--cfg=network/model:CM02",
                                                        (char *)"--cfg=network/TCP-gamma:0",
                                                        (char *)"--cfg=network/latency-factor:1",
                                                        (char *)"--cfg=network/bandwidth-factor:1",
                                                        (char *)"--cfg=network/weight-S:0",
                                                        (char *)"--cfg=network/crosstraffic:0",
                                                        (char *)"--cfg=contexts/stack-size:64",
                                                        NULL};
    int argc = 9;
    const int fd = mkstemp(path);

    if (fd < 0) die("no temporary file");
    close(fd);
    simgrid_init(&argc, args);
    write_platform(path);
    simgrid_load_platform(path);
    unlink(path);
    for (int r = 0; r < ranks; r++) {
        char host[16], number[16], *of_rank[] = {(char *)"rank", number, NULL};
        snprintf(host, sizeof host, "h%d", r);
        snprintf(number, sizeof number, "%d", r);
        sg_actor_create(host, sg_host_by_name(host), rank, 2, of_rank);
    }
    simgrid_run();
    return simgrid_get_clock();
}

int main(int argc, char **argv)
{
    ls_job_placement p = {.ranks_per_node = 1, .node = place};
    ls_transfer t = {.kind = LS_TRANSFER_ALL_REDUCE};
    ls_transfer_cost shared;
    ls_err err = {0};

    if (argc != 6) die("usage: simgrid_run NETWORK contiguous|SEED ALGORITHM RANKS BYTES");
    algorithm = argv[3];
    ranks = atoi(argv[4]);
    bytes = atof(argv[5]);
    t.bytes = bytes;
    p.kind = strcmp(argv[2], "contiguous") == 0 ? LS_PLACE_CONTIGUOUS : LS_PLACE_RANDOM;
    p.seed = (uint64_t)atoi(argv[2]);
    p.nodes = p.ranks = ranks;
    if (ranks < 2 || ranks > MOST_RANKS || (ranks & (ranks - 1)) != 0)
        die("ranks: a power of two up to 1024");
    if (!ls_algorithm_from(algorithm, &t.algorithm)) die("unknown algorithm");
    if (ls_network_open(&net, argv[1], &err) != LS_OK || ls_job_placement_fill(&p, &net, &err) != LS_OK)
        die(err.text);
    if (ls_transfer_shared(&net, &t, &p, &shared, &err) != LS_OK) die(err.text);
    printf("%.9g %.9g %.9g\n", simulate(), ls_transfer_closed(&net, &t, ranks, 1).seconds, shared.seconds);
    ls_network_release(&net);
    return 0;
}
