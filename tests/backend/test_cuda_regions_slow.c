/* test_cuda_regions_slow.c: the generated kernels of regions compute what their members do.
 *
 * Their sources are compiled by the host's C++ compiler and run thread by thread (region_on_host.h), in two
 * orders, and compared with the reference kernels; where NVRTC is there, they are compiled for a GPU as well.
 * No GPU is needed.  Skipped without a C++ compiler. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "check.h"
#include "nvrtc.h"
#include "region_case.h"
#include "small_nets.h"

static char folder[200];
static bool compiles; /* NVRTC is there, and these sources are to be compiled for a GPU, too */

/* -- running ----------------------------------------------------------------------------------------------
 */

static void write_case(const lsi_region *r, const region_case *c, int finish_blocks)
{
    const int grid = lsi_region_grid(r), n = c->a->n_in + c->a->n_out;
    const int32_t head[] = {grid,
                            r->threads,
                            finish_blocks,
                            grid * r->sums,
                            (int32_t)(r->samples * r->spilled),
                            (int32_t)r->samples,
                            n};
    char path[300];
    FILE *f;

    snprintf(path, sizeof path, "%s/case", folder);
    f = fopen(path, "wb");
    REQUIRE(f != NULL);
    fwrite(head, sizeof head, 1, f);
    for (int i = 0; i < n; i++) {
        const int32_t about[] = {(int32_t)region_case_bytes(c, i), i < c->a->n_in};
        fwrite(about, sizeof about, 1, f);
    }
    for (int i = 0; i < c->a->n_in; i++) {
        void *bytes = region_case_input(c, i);
        fwrite(bytes, 1, region_case_bytes(c, i), f);
        free(bytes);
    }
    REQUIRE(fclose(f) == 0);
}

static void compile_for_host(const char *source)
{
    char command[1000], path[300];
    FILE *f;

    snprintf(path, sizeof path, "%s/region.cpp", folder);
    f = fopen(path, "w");
    REQUIRE(f != NULL);
    fprintf(f, "#include \"region_on_host.h\"\n%s\nLSI_MAIN\n", source);
    REQUIRE(fclose(f) == 0);
    snprintf(command, sizeof command, "c++ -std=c++17 -O0 -w -Itests/backend -o %s/region %s/region.cpp",
             folder, folder);
    REQUIRE(system(command) == 0);
}

static void check_run_of(const char *net, const region_case *c, const char *turned, double tolerance)
{
    const ls_region_attr *a = c->a;
    char command[600], path[300];
    FILE *f;

    snprintf(command, sizeof command, "%s/region %s/case %s", folder, folder, turned);
    REQUIRE(system(command) == 0);
    snprintf(path, sizeof path, "%s/case.out", folder);
    f = fopen(path, "rb");
    REQUIRE(f != NULL);
    for (int k = 0; k < a->n_out; k++) {
        const size_t bytes = region_case_bytes(c, a->n_in + k);
        void *got = malloc(bytes + 1);
        double d;
        REQUIRE(got != NULL && fread(got, 1, bytes, f) == bytes);
        d = region_case_difference(c, k, got);
        if (!CHECK(d <= tolerance))
            printf("%s%s: output %d (%s) differs by %g\n", net, turned, k,
                   c->g->nodes[c->g->values[a->out[k]]->node]->op->name, d);
        free(got);
    }
    fclose(f);
}

static void check_region(const char *net, const ls_graph *g, const ls_node *n, const lsi_region_machine *m)
{
    const ls_region_attr *a = n->attr;
    static lsi_region r;
    static region_case c;
    ls_text source = {0};
    int finish_blocks;

    REQUIRE(lsi_region_plan(&r, m, g, a->samples, a->n, a->members, a->n_in, a->in, a->n_out, a->out));
    finish_blocks = lsi_region_source(&source, &r);
    REQUIRE(!source.failed);
    if (compiles) nvrtc_check(source.data);
    compile_for_host(source.data);
    region_case_make(&c, g, a, true);
    write_case(&r, &c, finish_blocks);
    check_run_of(net, &c, "", m->rounded ? 3e-2 : 2e-5);
    if (!m->rounded) check_run_of(net, &c, " turned", 2e-5);
    region_case_release(&c);
    ls_text_release(&source);
}

/* A machine with few processors has blocks that go on with further samples. */
static void check_nets(ls_mode mode, int64_t batch, const lsi_region_machine *m)
{
    for (const small_net *net = small_nets; net->name != NULL; net++) {
        ls_graph *g = small_net_graph(net, mode, batch, m);
        for (int32_t i = 0; i < g->n_nodes; i++)
            if (small_net_is_region(g->nodes[i])) check_region(net->name, g, g->nodes[i], m);
        ls_graph_destroy(g);
    }
}

static void regions_compute_what_their_members_do(void)
{
    const lsi_region_machine m = small_net_machine(false);

    check_nets(LS_TRAIN, 2, &m);
}

static void blocks_go_on_with_further_samples(void)
{
    lsi_region_machine m = small_net_machine(false);

    m.processors = 1;
    check_nets(LS_TRAIN, 5, &m);
}

static void evaluations_too(void)
{
    const lsi_region_machine m = small_net_machine(false);

    check_nets(LS_EVAL, 3, &m);
}

static void rounded_products_are_near(void)
{
    const lsi_region_machine m = small_net_machine(true);
    ls_graph *g = small_net_graph(&small_nets[1], LS_TRAIN, 2, &m); /* no pool's choice is close there */

    for (int32_t i = 0; i < g->n_nodes; i++)
        if (small_net_is_region(g->nodes[i])) check_region("rounded", g, g->nodes[i], &m);
    ls_graph_destroy(g);
}

/* With so many samples that a block of the second kernel has 1024 threads, which share memory that the kernel
 * declares: 48 KiB at most, however many sums it makes. */
static void a_deep_network_compiles(void)
{
    const lsi_region_machine m = small_net_machine(false);
    ls_graph *g = small_net_graph(&small_net_deep, LS_TRAIN, 200, &m);
    int regions = 0;

    for (int32_t i = 0; i < g->n_nodes; i++) {
        const ls_region_attr *a = g->nodes[i]->attr;
        ls_text source = {0};
        static lsi_region r;
        if (!small_net_is_region(g->nodes[i])) continue;
        REQUIRE(lsi_region_plan(&r, &m, g, a->samples, a->n, a->members, a->n_in, a->in, a->n_out, a->out));
        (void)lsi_region_source(&source, &r);
        REQUIRE(!source.failed);
        if (compiles) nvrtc_check(source.data);
        ls_text_release(&source);
        regions++;
    }
    CHECK(regions > 0);
    ls_graph_destroy(g);
}

int main(void)
{
    char command[300];

    if (system("c++ --version > /dev/null 2>&1") != 0) {
        printf("skipped: there is no C++ compiler\n");
        return 77;
    }
    snprintf(folder, sizeof folder, "%s/region.XXXXXX", getenv("TMPDIR") != NULL ? getenv("TMPDIR") : "/tmp");
    if (mkdtemp(folder) == NULL) return 1;
    compiles = nvrtc_find();
    if (!compiles) printf("NVRTC was not found: the sources are not compiled for a GPU\n");
    CHECK_RUN(regions_compute_what_their_members_do);
    CHECK_RUN(rounded_products_are_near);
    CHECK_RUN(a_deep_network_compiles);
    compiles = false; /* the same templates with other constants: seconds each, and nothing new */
    CHECK_RUN(blocks_go_on_with_further_samples);
    CHECK_RUN(evaluations_too);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) return 1;
    return CHECK_DONE();
}
