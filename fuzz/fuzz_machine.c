/* fuzz_machine.c: arbitrary bytes as the file of a machine (`lockstep predict`). */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "predict/machine.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is accepted is read again as the same machine, and gives every node a time. */
static void use(const ls_machine *m)
{
    json_t *json = ls_machine_json(m), *second;
    char *text = json != NULL ? json_dumps(json, 0) : NULL;
    const ls_document d = {.batch = 24};
    ls_doc_node n = {.op = "conv2d", .attributes = "", .layer = "", .flops = 1e9, .bytes = 1e6};
    ls_machine again;
    ls_err err = {0};

    if (text == NULL || ls_machine_parse(&again, text, strlen(text), "again", &err) != LS_OK) abort();
    second = ls_machine_json(&again);
    if (!json_equal(json, second)) abort();
    for (int32_t i = -1; i < m->n_nodes; i++) {
        ls_node_cost c;
        if (i >= 0) {
            n = (ls_doc_node){.op = m->nodes[i].op,
                              .attributes = m->nodes[i].attributes,
                              .layer = m->nodes[i].layer,
                              .backward = m->nodes[i].backward,
                              .flops = m->nodes[i].point[0].flops,
                              .bytes = m->nodes[i].point[0].bytes};
        }
        c = ls_machine_node_cost(m, &d, &n);
        if (!(c.seconds >= 0) || !(c.error >= 0) || c.launch_s > c.seconds || c.source >= LS_COST_N) abort();
    }
    for (int32_t ranks = 1; ranks < 300; ranks += 7) {
        for (double batch = 1; batch < 100; batch *= 5)
            if (!(ls_machine_crowded(m, ranks, batch) > 0)) abort();
        for (int32_t i = 0; i < ranks; i++)
            if (!(ls_machine_uneven(m, i, ranks) > 0)) abort();
        if (!(ls_machine_uneven_error(m, ranks) >= 0)) abort();
    }
    if (!(ls_machine_together_error(m) > 0)) abort();
    ls_machine_release(&again);
    json_decref(json);
    json_decref(second);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    ls_machine m;
    ls_err err = {0};

    if (ls_machine_parse(&m, (const char *)data, size, "input", &err) == LS_OK)
        use(&m);
    else if (err.text[0] == '\0')
        abort(); /* a refusal says why */
    ls_machine_release(&m);
    return 0;
}
