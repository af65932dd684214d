/* test_cuda_regions_gpu_slow.c: regions on a GPU compute what their members do, with the same bits each time.
 * Skipped without a GPU.
 *
 *   test_cuda_regions_gpu_slow times [BATCH [NET]]     how long their kernels take, in tf32, and how many
 *                                                      clocks lie between the barriers of the first block
 *   test_cuda_regions_gpu_slow sources FOLDER BATCH    their sources, in files; needs no GPU */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/cuda/compiled.h"
#include "check.h"
#include "region_case.h"
#include "small_nets.h"

enum { CLOCKS = LSI_REGION_POINTERS - 1, TICKS = 200, REPEATS = 200 };

static lsi_cuda_device device;
static lsi_cuda_stream stream;

static void need(int code)
{
    if (code != 0) printf("%s\n", device.api->error(code));
    REQUIRE(code == 0);
}

/* -- running ----------------------------------------------------------------------------------------------
 */

typedef struct run {
    lsi_cuda_region_args args;
    int n_in, n_out;
    void *scratch;
} run;

static void *room(size_t bytes)
{
    void *p;

    need(device.api->alloc(&p, bytes + 64));
    return p;
}

/* Whether a clock is read behind this line of the first kernel: where it begins to work, behind barriers, and
 * before its end. */
static bool has_clock(const char *line)
{
    return strncmp(line, "    lsi_wait();\n", 16) == 0 || strncmp(line, "        barrier();\n", 19) == 0 ||
           strncmp(line + strcspn(line, "\n"), "\n}\n", 3) == 0;
}

/* The source with clocks of the first block. */
static void add_clocks(ls_text *out, const char *source)
{
    const char *first = strstr(source, "region(const"), *end = strstr(first, "\n}\n") + 1;
    int n = 0;

    ls_text_add(out, "%.*s", (int)(first - source), source);
    for (const char *p = first, *next; p < end; p = next) {
        next = p + strcspn(p, "\n") + 1;
        ls_text_add(out, "%.*s", (int)(next - p), p);
        if (n < TICKS && has_clock(p))
            ls_text_add(out, "if (ME == 0 && blockIdx.x == 0) ((long long *)p.at[%d])[%d] = clock64();\n",
                        CLOCKS, n++);
    }
    ls_text_add(out, "%s", end);
}

static bool prepare(run *r, const lsi_region *plan, bool clocks)
{
    static const char *const names[] = {"region", "finish"};
    const int grid = lsi_region_grid(plan);
    ls_text source = {0}, timed = {0};
    void *kernels[2] = {NULL, NULL};
    bool ok;

    *r = (run){.n_in = plan->n_in, .n_out = plan->n_out, .scratch = room(lsi_region_scratch(plan))};
    r->args = (lsi_cuda_region_args){.pointers = {.samples = (int)plan->samples, .blocks = grid},
                                     .blocks = grid,
                                     .threads = plan->threads,
                                     .shared = sizeof(float) * (size_t)(plan->common + plan->each)};
    r->args.finish_blocks = lsi_region_source(&source, plan);
    r->args.finish_threads = lsi_region_finish_threads(plan);
    if (clocks) add_clocks(&timed, source.data);
    ok = lsi_cuda_compiled(&device, "region", clocks ? timed.data : source.data, 2, names, kernels);
    ls_text_release(&source);
    ls_text_release(&timed);
    r->args.first = kernels[0];
    r->args.second = r->args.finish_blocks > 0 ? kernels[1] : NULL;
    r->args.pointers.parts = r->scratch;
    r->args.pointers.spills = (float *)r->scratch + ((size_t)grid * (size_t)plan->sums + 3) / 4 * 4;
    return ok;
}

static void bring_inputs(run *r, const region_case *c)
{
    for (int i = 0; i < r->n_in + r->n_out; i++) {
        r->args.pointers.at[i] = room(region_case_bytes(c, i));
        if (i >= r->n_in) continue;
        void *bytes = region_case_input(c, i);
        need(device.api->copy(r->args.pointers.at[i], bytes, region_case_bytes(c, i), stream));
        need(device.api->stream_sync(stream));
        free(bytes);
    }
}

static void release(run *r)
{
    for (int i = 0; i < r->n_in + r->n_out; i++) device.api->free(r->args.pointers.at[i]);
    device.api->free(r->scratch);
}

/* Every output is NaN before. */
static void launch(run *r, const region_case *c)
{
    for (int k = 0; k < r->n_out; k++) {
        const size_t bytes = region_case_bytes(c, r->n_in + k);
        void *poison = malloc(bytes + 1);
        REQUIRE(poison != NULL);
        memset(poison, 0xff, bytes);
        need(device.api->copy(r->args.pointers.at[r->n_in + k], poison, bytes, stream));
        need(device.api->stream_sync(stream));
        free(poison);
    }
    need(device.api->launch.region(stream, &r->args));
    need(device.api->stream_sync(stream));
}

static void *output(const run *r, const region_case *c, int k)
{
    const size_t bytes = region_case_bytes(c, r->n_in + k);
    void *got = malloc(bytes + 1);

    REQUIRE(got != NULL);
    need(device.api->copy(got, r->args.pointers.at[r->n_in + k], bytes, stream));
    need(device.api->stream_sync(stream));
    return got;
}

/* -- checks -----------------------------------------------------------------------------------------------
 */

static void check_region(const char *net, const ls_graph *g, const ls_node *n, const lsi_region_machine *m,
                         double tolerance)
{
    const ls_region_attr *a = n->attr;
    static lsi_region plan;
    static region_case c;
    run r;

    REQUIRE(lsi_region_plan(&plan, m, g, a->samples, a->n, a->members, a->n_in, a->in, a->n_out, a->out));
    region_case_make(&c, g, a, true);
    REQUIRE(prepare(&r, &plan, false));
    bring_inputs(&r, &c);
    launch(&r, &c);
    for (int k = 0; k < a->n_out; k++) {
        void *once = output(&r, &c, k), *twice;
        const double d = region_case_difference(&c, k, once);
        if (!CHECK(d <= tolerance))
            printf("%s, %d samples: output %d (%s) differs by %g\n", net, (int)a->samples, k,
                   g->nodes[g->values[a->out[k]]->node]->op->name, d);
        need(device.api->launch.region(stream, &r.args));
        twice = output(&r, &c, k);
        CHECK(memcmp(once, twice, region_case_bytes(&c, a->n_in + k)) == 0);
        free(once);
        free(twice);
    }
    release(&r);
    region_case_release(&c);
}

static void check_net(const small_net *net, ls_mode mode, int64_t batch, const lsi_region_machine *m,
                      double tolerance)
{
    ls_graph *g = small_net_graph(net, mode, batch, m);

    for (int32_t i = 0; i < g->n_nodes; i++)
        if (small_net_is_region(g->nodes[i])) check_region(net->name, g, g->nodes[i], m, tolerance);
    ls_graph_destroy(g);
}

static lsi_region_machine machine(bool rounded)
{
    return (lsi_region_machine){
        .processors = device.about.processors, .shared = device.about.shared, .rounded = rounded};
}

static void products_in_three_parts_are_exact(void)
{
    const lsi_region_machine m = machine(false);

    for (const small_net *net = small_nets; net->name != NULL; net++) {
        check_net(net, LS_TRAIN, 3, &m, 2e-5);
        check_net(net, LS_EVAL, 5, &m, 2e-5);
    }
}

static void blocks_go_on_with_further_samples(void)
{
    lsi_region_machine m = machine(false);

    m.processors = 2;
    for (const small_net *net = small_nets; net->name != NULL; net++) check_net(net, LS_TRAIN, 29, &m, 2e-5);
}

/* No pool's choice is close in this one. */
static void rounded_products_are_near(void)
{
    lsi_region_machine m = machine(true);

    check_net(&small_nets[1], LS_TRAIN, 2, &m, 3e-2);
    m.processors = 1;
    check_net(&small_nets[1], LS_TRAIN, 2, &m, 3e-2);
}

/* -- times ------------------------------------------------------------------------------------------------
 */

static double time_of(const run *r)
{
    const lsi_cuda_api *api = device.api;
    lsi_cuda_event from, to;
    float ms = 0;

    need(api->event_create(&from, true));
    need(api->event_create(&to, true));
    for (int i = 0; i < 10; i++) need(api->launch.region(stream, &r->args));
    need(api->event_record(from, stream));
    for (int i = 0; i < REPEATS; i++) need(api->launch.region(stream, &r->args));
    need(api->event_record(to, stream));
    need(api->stream_sync(stream));
    need(api->event_elapsed(from, to, &ms));
    api->event_destroy(from);
    api->event_destroy(to);
    return (double)ms * 1000 / REPEATS;
}

/* What stands between barriers, and how long it took in the second of two launches. */
static void print_clocks(const lsi_region *plan, const region_case *c)
{
    long long ticks[TICKS] = {0};
    ls_text source = {0};
    int n = 0;
    run r;

    (void)lsi_region_source(&source, plan);
    if (!prepare(&r, plan, true)) return;
    bring_inputs(&r, c);
    r.args.pointers.at[CLOCKS] = room(sizeof ticks);
    for (int i = 0; i < 2; i++) need(device.api->launch.region(stream, &r.args));
    need(device.api->stream_sync(stream));
    need(device.api->copy(ticks, r.args.pointers.at[CLOCKS], sizeof ticks, stream));
    need(device.api->stream_sync(stream));
    for (const char *line = strstr(source.data, "region(const"); *line != '}' && n < TICKS;
         line += strcspn(line, "\n") + 1) {
        if (n > 0 && strncmp(line, "        barrier()", 17) != 0)
            printf("        %.*s\n", (int)(strcspn(line, "\n") < 68 ? strcspn(line, "\n") : 68), line);
        if (has_clock(line) && n++ > 0) printf("    %7lld clocks\n", ticks[n - 1] - ticks[n - 2]);
    }
    device.api->free(r.args.pointers.at[CLOCKS]);
    release(&r);
    ls_text_release(&source);
}

/* With so many threads a block; 0: as they are chosen. */
static void time_region(const char *net, const ls_graph *g, const ls_node *n, int threads)
{
    const ls_region_attr *a = n->attr;
    lsi_region_machine m = machine(true);
    static lsi_region plan;
    static region_case c;
    double both, first;
    run r;

    m.threads = threads;
    if (!lsi_region_plan(&plan, &m, g, a->samples, a->n, a->members, a->n_in, a->in, a->n_out, a->out))
        return;
    region_case_make(&c, g, a, false);
    if (prepare(&r, &plan, false)) {
        bring_inputs(&r, &c);
        both = time_of(&r);
        r.args.second = NULL;
        first = time_of(&r);
        printf("%s, %d samples, %d members%s: %d threads, %d blocks, %d KB: first kernel %.2f us, both %.2f "
               "us\n",
               net, (int)a->samples, a->n, threads == 0 ? ", as chosen" : "", plan.threads,
               lsi_region_grid(&plan), (int)(r.args.shared / 1024), first, both);
        release(&r);
        if (threads == 0) print_clocks(&plan, &c);
    }
    region_case_release(&c);
}

static void time_variants(const char *net, const ls_graph *g, const ls_node *n)
{
    static const int threads[] = {0, 128, 256, 384, 512, 640, 768};

    for (size_t i = 0; i < sizeof threads / sizeof threads[0]; i++) time_region(net, g, n, threads[i]);
}

static void print_times(int64_t batch, const char *name)
{
    const lsi_region_machine m = machine(true);

    for (const small_net *net = small_nets; net->name != NULL; net++) {
        ls_graph *g;
        if (name != NULL && strcmp(net->name, name) != 0) continue;
        g = small_net_graph(net, LS_TRAIN, batch, &m);
        for (int32_t i = 0; i < g->n_nodes; i++)
            if (small_net_is_region(g->nodes[i])) time_variants(net->name, g, g->nodes[i]);
        ls_graph_destroy(g);
    }
}

/* -- sources ----------------------------------------------------------------------------------------------
 */

static int write_source(const char *folder, const char *net, const ls_graph *g, const ls_node *n, int number)
{
    const ls_region_attr *a = n->attr;
    const lsi_region_machine m = small_net_machine(true);
    static lsi_region plan;
    ls_text source = {0};
    char path[1000];
    FILE *f;

    REQUIRE(lsi_region_plan(&plan, &m, g, a->samples, a->n, a->members, a->n_in, a->in, a->n_out, a->out));
    (void)lsi_region_source(&source, &plan);
    snprintf(path, sizeof path, "%s/%s_%d_%d.cu", folder, net, (int)a->samples, number);
    f = fopen(path, "w");
    REQUIRE(f != NULL && fputs(source.data, f) >= 0 && fclose(f) == 0);
    printf("%s: %d members, %d threads, %d blocks a processor, %d bytes of shared memory\n", path, a->n,
           plan.threads, plan.blocks, (int)sizeof(float) * (plan.common + plan.each));
    ls_text_release(&source);
    return number + 1;
}

static void write_sources(const char *folder, int64_t batch)
{
    const lsi_region_machine m = small_net_machine(true);

    for (const small_net *net = small_nets; net->name != NULL; net++) {
        ls_graph *g = small_net_graph(net, LS_TRAIN, batch, &m);
        int number = 0;
        for (int32_t i = 0; i < g->n_nodes; i++)
            if (small_net_is_region(g->nodes[i]))
                number = write_source(folder, net->name, g, g->nodes[i], number);
        ls_graph_destroy(g);
    }
}

int main(int argc, char **argv)
{
    ls_err err = {0};
    int count = 0;

    if (argc == 4 && strcmp(argv[1], "sources") == 0) {
        write_sources(argv[2], atoi(argv[3]));
        return CHECK_DONE();
    }
    if (lsi_cuda_load(&device.api, &err) != LS_OK || device.api->count(&count) != 0 || count == 0 ||
        device.api->use(0, &device.about) != 0 || !lsi_cuda_can_compile(&device)) {
        printf("skipped: %s\n", err.text[0] != '\0' ? err.text : "no GPU, or no NVRTC");
        return 77;
    }
    need(device.api->stream_create(&stream));
    if (argc > 1 && strcmp(argv[1], "times") == 0) {
        print_times(argc > 2 ? atoi(argv[2]) : 64, argc > 3 ? argv[3] : NULL);
        return CHECK_DONE();
    }
    CHECK_RUN(products_in_three_parts_are_exact);
    CHECK_RUN(blocks_go_on_with_further_samples);
    CHECK_RUN(rounded_products_are_near);
    return CHECK_DONE();
}
