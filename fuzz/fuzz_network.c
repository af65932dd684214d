/* fuzz_network.c: arbitrary bytes as a network's file. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "predict/collective.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The way between two machines uses links that there are, each once, and has a latency. */
static void check_way(const ls_network *n, int32_t nodes, int32_t a, int32_t b)
{
    const int64_t all = ls_network_links(n, nodes);
    int64_t links[LS_ROUTE_MAX];
    double latency;
    const int n_links = ls_network_route(n, nodes, a, b, links, &latency);

    if (n_links > LS_ROUTE_MAX || !(latency >= 0) || (a == b) != (n_links == 0)) abort();
    for (int i = 0; i < n_links; i++)
        if (links[i] < 0 || links[i] >= all || !(ls_network_link_rate(n, nodes, links[i]) > 0)) abort();
}

/* Collectives take a time that is a number, on wide and on narrow wires; with links shared never less than
 * without latency. */
static void check_transfers(const ls_network *n, int32_t nodes)
{
    const int32_t machines = nodes < 8 ? nodes : 8;
    const ls_job_placement p = {.nodes = machines, .ranks_per_node = 2, .ranks = 2 * machines};

    for (int a = 0; a < 2 * LS_ALGORITHM_N; a++) {
        const ls_transfer t = {LS_TRANSFER_ALL_REDUCE, (ls_algorithm)(a / 2), 1e6, a % 2 == 0 ? 1 : 0.5};
        const ls_transfer_cost closed = ls_transfer_closed(n, &t, p.ranks, 2);
        ls_transfer_cost shared;
        ls_err err = {0};
        if (!(closed.seconds >= 0) || isinf(closed.seconds)) abort();
        if (ls_transfer_shared(n, &t, &p, &shared, &err) != LS_OK) abort();
        if (!(shared.seconds >= 0) || isinf(shared.seconds)) abort();
    }
    (void)ls_network_blocks(n, &p);
}

/* What is accepted is written and read again as the same. */
static void check_written(const ls_network *n)
{
    ls_text text = {0}, again = {0};
    ls_network back;
    ls_err err = {0};

    ls_network_write(n, &text);
    if (text.failed || ls_network_parse(&back, text.data, text.length, "again", &err) != LS_OK) abort();
    ls_network_write(&back, &again);
    if (again.failed || strcmp(text.data, again.data) != 0) abort();
    ls_network_release(&back);
    ls_text_release(&text);
    ls_text_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ls_network n;
    ls_err err = {0};

    if (ls_network_parse(&n, (const char *)data, size, "fuzz", &err) == LS_OK) {
        const int32_t nodes = ls_network_size(&n) > 0 ? ls_network_size(&n) : 16;
        check_way(&n, nodes, 0, nodes - 1);
        check_way(&n, nodes, nodes / 2, 0);
        check_way(&n, nodes, nodes / 3, nodes / 2);
        check_transfers(&n, nodes);
        check_written(&n);
    } else if (err.text[0] == '\0' || err.status != LS_INVALID) {
        abort(); /* a refusal says why */
    }
    ls_network_release(&n);
    return 0;
}
