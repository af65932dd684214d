/* test_cuda_regions_slow.c: the generated kernels of regions compute what their members do.
 *
 * Their sources are compiled by the host's C++ compiler and run thread by thread (region_on_host.h), in two
 * orders, and compared with the reference kernels; where NVRTC is there, they are compiled for a GPU as well.
 * No GPU is needed.  Skipped without a C++ compiler. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/rng.h"
#include "check.h"
#include "nvrtc.h"
#include "small_nets.h"

static char folder[200];
static bool compiles; /* NVRTC is there, and these sources are to be compiled for a GPU, too */

/* -- inputs and what is expected --------------------------------------------------------------------------
 */

typedef struct operands {
    ls_ref_tensor in[96], out[96];
} operands;

static double made_up(const ls_graph *g, int32_t id, uint64_t i, int which)
{
    const ls_rng_key key = {7, 3, (uint32_t)which, 0};
    const uint32_t word = ls_rng_word(&key, 1, (uint32_t)id, i);
    const ls_vinfo *v = g->values[id];

    if (v->dtype == LS_I32) return v->name != NULL && strcmp(v->name, "label") == 0 ? word % 4 : word % 100;
    if (v->dtype == LS_U8) return word % 4;
    if (ls_shape_count(v->shape) == 1) return 1;
    return (double)(ls_rng_uniform(word) - 0.5f) * (v->var >= 0 ? 0.4 : 2);
}

static ls_ref_tensor tensor(const ls_graph *g, int32_t id, int which)
{
    const int64_t count = ls_shape_count(g->values[id]->shape);
    ls_ref_tensor t = {calloc((size_t)count + 1, sizeof(double)), g->values[id]->shape, count};

    if (t.d == NULL) abort();
    for (int64_t i = 0; i < count; i++) t.d[i] = (double)(float)made_up(g, id, (uint64_t)i, which);
    return t;
}

static size_t bytes_of(const ls_graph *g, int32_t id)
{
    return ls_dtype_size(g->values[id]->dtype) * (size_t)ls_shape_count(g->values[id]->shape);
}

static void write_tensor(FILE *f, ls_dtype type, const ls_ref_tensor *t)
{
    for (int64_t i = 0; i < t->count; i++) {
        const float x = (float)t->d[i];
        const int32_t k = (int32_t)t->d[i];
        const uint8_t b = (uint8_t)t->d[i];
        if (type == LS_F32) fwrite(&x, sizeof x, 1, f);
        if (type == LS_I32) fwrite(&k, sizeof k, 1, f);
        if (type == LS_U8) fwrite(&b, sizeof b, 1, f);
    }
}

static void write_case(const lsi_region *r, const ls_region_attr *a, int finish_blocks, const operands *o)
{
    const int grid = lsi_region_grid(r);
    const int32_t head[] = {grid,
                            r->threads,
                            finish_blocks,
                            grid * r->sums,
                            (int32_t)(r->samples * r->spilled),
                            (int32_t)r->samples,
                            a->n_in + a->n_out};
    char path[300];
    FILE *f;

    snprintf(path, sizeof path, "%s/case", folder);
    f = fopen(path, "wb");
    REQUIRE(f != NULL);
    fwrite(head, sizeof head, 1, f);
    for (int i = 0; i < a->n_in + a->n_out; i++) {
        const int32_t about[] = {(int32_t)bytes_of(r->g, i < a->n_in ? a->in[i] : a->out[i - a->n_in]),
                                 i < a->n_in};
        fwrite(about, sizeof about, 1, f);
    }
    for (int i = 0; i < a->n_in; i++) write_tensor(f, r->g->values[a->in[i]]->dtype, &o->in[i]);
    REQUIRE(fclose(f) == 0);
}

/* -- running ----------------------------------------------------------------------------------------------
 */

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

/* The largest difference of an output from what is expected, as a share of the output's largest element. */
static double difference(FILE *f, ls_dtype type, const ls_ref_tensor *want)
{
    double most = 0, worst = 0;

    for (int64_t i = 0; i < want->count; i++) {
        float x = NAN;
        uint8_t b = 0;
        double got;
        if ((type == LS_U8 ? fread(&b, 1, 1, f) : fread(&x, sizeof x, 1, f)) != 1) return INFINITY;
        got = type == LS_U8 ? (double)b : (double)x;
        if (fabs(want->d[i]) > most) most = fabs(want->d[i]);
        if (!(fabs(got - want->d[i]) <= worst)) worst = fabs(got - want->d[i]);
        if (isnan(got)) return INFINITY;
    }
    return most > 0 ? worst / most : worst;
}

static void check_run_of(const char *net, const ls_graph *g, const ls_region_attr *a, const operands *o,
                         const char *turned, double tolerance)
{
    char command[600], path[300];
    FILE *f;

    snprintf(command, sizeof command, "%s/region %s/case %s", folder, folder, turned);
    REQUIRE(system(command) == 0);
    snprintf(path, sizeof path, "%s/case.out", folder);
    f = fopen(path, "rb");
    REQUIRE(f != NULL);
    for (int k = 0; k < a->n_out; k++) {
        const ls_vinfo *v = g->values[a->out[k]];
        const double d = difference(f, v->dtype, &o->out[k]);
        if (!CHECK(d <= tolerance))
            printf("%s%s: output %d (%s) differs by %g\n", net, turned, k, g->nodes[v->node]->op->name, d);
    }
    fclose(f);
}

static void check_region(const char *net, const ls_graph *g, const ls_node *n, const lsi_region_machine *m)
{
    const ls_region_attr *a = n->attr;
    static lsi_region r;
    static operands o;
    ls_text source = {0};
    int finish_blocks;

    REQUIRE(lsi_region_plan(&r, m, g, a->samples, a->n, a->members, a->n_in, a->in, a->n_out, a->out));
    finish_blocks = lsi_region_source(&source, &r);
    REQUIRE(!source.failed);
    if (compiles) nvrtc_check(source.data);
    compile_for_host(source.data);
    for (int i = 0; i < a->n_in; i++) o.in[i] = tensor(g, a->in[i], 0);
    for (int k = 0; k < a->n_out; k++) o.out[k] = tensor(g, a->out[k], 1);
    ls_op_region.ref(&(ls_ref_call){a->n_in, a->n_out, o.in, o.out, a});
    write_case(&r, a, finish_blocks, &o);
    check_run_of(net, g, a, &o, "", m->rounded ? 3e-2 : 2e-5);
    if (!m->rounded) check_run_of(net, g, a, &o, " turned", 2e-5);
    for (int i = 0; i < a->n_in; i++) free(o.in[i].d);
    for (int k = 0; k < a->n_out; k++) free(o.out[k].d);
    ls_text_release(&source);
}

/* A machine with few processors has blocks that go on with further samples. */
static void check_nets(ls_mode mode, int64_t batch, const lsi_region_machine *m)
{
    for (const small_net *net = small_nets; net->name != NULL; net++) {
        ls_graph *g = small_net_graph(net, mode, batch, m);
        for (int32_t i = 0; i < g->n_nodes; i++)
            if (!g->nodes[i]->dead && g->nodes[i]->op == &ls_op_region)
                check_region(net->name, g, g->nodes[i], m);
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
        if (!g->nodes[i]->dead && g->nodes[i]->op == &ls_op_region)
            check_region("rounded", g, g->nodes[i], &m);
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
    compiles = false; /* the same templates with other constants: seconds each, and nothing new */
    CHECK_RUN(blocks_go_on_with_further_samples);
    CHECK_RUN(evaluations_too);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) return 1;
    return CHECK_DONE();
}
