/* info.c: `lockstep info`: what this build is and what it can use on this machine.  Measures nothing: it
 * answers at once. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>
#include <zlib.h>
#ifdef LS_HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#endif

#include "backend/backend.h"
#include "base/parallel.h"
#include "base/program.h"
#include "base/text.h"
#include "cli.h"
#include "comm/comm.h"
#include "ops/ops.h"

static const char *compiler(void)
{
#if defined(__clang__)
    return "clang " __clang_version__;
#else
    return "gcc " __VERSION__;
#endif
}

/* -- processor --------------------------------------------------------------------------------------------
 */

static void processor_name(char *buf, size_t size)
{
    char line[256];
    FILE *f = fopen("/proc/cpuinfo", "r");

    snprintf(buf, size, "unknown");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        char *colon = strchr(line, ':');
        if (strncmp(line, "model name", 10) != 0 || colon == NULL) continue;
        colon[strcspn(colon, "\n")] = '\0';
        snprintf(buf, size, "%s", colon + 2);
        break;
    }
    if (f != NULL) fclose(f);
}

/* __builtin_cpu_supports takes literals only, hence the macro. */
#define FEATURES(X)                                                                                          \
    X("sse4.2")                                                                                              \
    X("avx") X("avx2") X("fma") X("avx512f") X("avx512bw") X("avx512vl") X("avx512vnni") X("avx512bf16")

static json_t *processor_features(void)
{
    json_t *list = json_array();

#define ADD(name)                                                                                            \
    if (__builtin_cpu_supports(name)) json_array_append_new(list, json_string(name));
    FEATURES(ADD)
#undef ADD
    return list;
}

static json_t *describe_processor(void)
{
    char name[256];

    processor_name(name, sizeof name);
    return json_pack("{s:s, s:i, s:i, s:s, s:o}", "name", name, "cores", ls_parallel_cores(), "threads",
                     ls_parallel_default_threads(1), "threading", ls_parallel_name(), "features",
                     processor_features());
}

/* -- backends and libraries -------------------------------------------------------------------------------
 */

/* Ops with kernels of the backend's own; `n_all` receives the number of all ops. */
static json_t *optimised_ops(const ls_backend *b, int *n_all)
{
    const ls_op *const *ops = ls_ops_all(n_all);
    json_t *list = json_array();

    for (int i = 0; i < *n_all; i++)
        if (b->optimised != NULL && b->optimised(ops[i]))
            json_array_append_new(list, json_string(ops[i]->name));
    return list;
}

static json_t *describe_backend(const ls_backend *b)
{
    ls_err why = {0};
    ls_device *dev = NULL;
    char text[512] = "";
    int n_ops;
    json_t *ops = optimised_ops(b, &n_ops);
    /* Opened, too: that a driver is installed does not mean that there is a device. */
    bool usable = b->probe(&why) == LS_OK && b->open(&dev, ls_parallel_default_threads(1), &why) == LS_OK;

    if (usable && b->describe != NULL) b->describe(dev, text, sizeof text);
    ls_device_close(dev);
    return json_pack("{s:s, s:b, s:s, s:s, s:i, s:o}", "name", b->name, "usable", usable, "reason", why.text,
                     "about", text, "ops", n_ops, "optimised_ops", ops);
}

/* How ranks can be joined here. */
static json_t *describe_communicators(void)
{
    json_t *list = json_array();
    ls_err why = {0};
    ls_comm_heap *heap;
    char about[128] = "";
    /* Tried, for what it takes is found out no other way: /dev/shm may be too small, or not there. */
    bool usable = ls_comm_heap_create(&heap, 2, &why) == LS_OK;

    ls_comm_heap_destroy(heap);
    json_array_append_new(list, json_pack("{s:s, s:b, s:s, s:s}", "name", "local", "usable", usable, "reason",
                                          why.text, "about", "ranks of this machine share memory"));
    why = (ls_err){0};
    usable = ls_comm_mpi_probe(about, sizeof about, &why) == LS_OK;
    json_array_append_new(list, json_pack("{s:s, s:b, s:s, s:s}", "name", "mpi", "usable", usable, "reason",
                                          why.text, "about", about));
    return list;
}

/* Whether machines can be joined without mpirun. */
static json_t *describe_machines(void)
{
    ls_err why = {0};
    char about[128] = "";
    const bool usable = ls_launch_machines_probe(about, sizeof about, &why) == LS_OK;

    return json_pack("{s:b, s:s, s:s}", "usable", usable, "reason", why.text, "about", about);
}

static json_t *describe_libraries(void)
{
    json_t *o = json_object();
    char text[64];
    unsigned x = XXH_versionNumber();

    json_object_set_new(o, "jansson", json_string(jansson_version_str()));
    snprintf(text, sizeof text, "%u.%u.%u", x / 10000, x / 100 % 100, x % 100);
    json_object_set_new(o, "xxHash", json_string(text));
    json_object_set_new(o, "zlib", json_string(zlibVersion()));
#ifdef LS_HAVE_ONEDNN
    const dnnl_version_t *v = dnnl_version();
    snprintf(text, sizeof text, "%d.%d.%d", v->major, v->minor, v->patch);
    json_object_set_new(o, "oneDNN", json_string(text));
#else
    json_object_set_new(o, "oneDNN", json_string("not in this build"));
#endif
    return o;
}

/* What a compiler must be told to build a plug-in for this program: where the headers are. */
static void compiler_flags(ls_text *out)
{
    char beside[PATH_MAX], folder[PATH_MAX], header[PATH_MAX + 32];
    const bool found =
        ls_program_beside(beside, sizeof beside, LS_HEADERS_INSTALLED) && realpath(beside, folder) != NULL;

    snprintf(header, sizeof header, "%s/lockstep/trial.h", found ? folder : "");
    if (access(header, R_OK) != 0)
        snprintf(folder, sizeof folder, "%s", LS_HEADERS_SOURCE); /* not installed: where it was built */
    ls_text_add(out, "-I");
    /* The words go to a shell. */
    for (const char *at = folder; *at != '\0'; at++)
        ls_text_add(out, "%s%c", strchr(" \t'\"\\$`&|;<>()*?#~", *at) != NULL ? "\\" : "", *at);
}

/* -- output -----------------------------------------------------------------------------------------------
 */

static const char *text_of(const json_t *o, const char *key)
{
    return json_string_value(json_object_get(o, key));
}

static void print_list(const char *label, const json_t *list)
{
    int column = printf("%s", label);

    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *word = json_string_value(json_array_get(list, i));
        if (column + (int)strlen(word) > 100) column = printf("\n%*s", (int)strlen(label), "") - 1;
        column += printf(" %s", word);
    }
    printf("\n");
}

static void print_backend(const json_t *b)
{
    if (json_is_false(json_object_get(b, "usable"))) {
        printf("backend %-4s  not usable: %s\n", text_of(b, "name"), text_of(b, "reason"));
        return;
    }
    printf("backend %-4s  %s; optimised kernels for %zu of %d ops\n", text_of(b, "name"), text_of(b, "about"),
           json_array_size(json_object_get(b, "optimised_ops")),
           (int)json_integer_value(json_object_get(b, "ops")));
    if (json_array_size(json_object_get(b, "optimised_ops")) > 0)
        print_list("             ", json_object_get(b, "optimised_ops"));
}

static void print_communicator(const json_t *c)
{
    bool usable = json_is_true(json_object_get(c, "usable"));

    printf("ranks   %-5s %s%s\n", text_of(c, "name"),
           usable ? "" : "not usable: ", text_of(c, usable ? "about" : "reason"));
}

static void print_machines(const json_t *m)
{
    if (json_is_true(json_object_get(m, "usable")))
        printf("machines      can be joined by hand: %s\n", text_of(m, "about"));
    else
        printf("machines      cannot be joined by hand: %s\n", text_of(m, "reason"));
}

static void print_text(const json_t *o)
{
    const json_t *cpu = json_object_get(o, "processor"), *libs = json_object_get(o, "libraries");
    size_t i;
    json_t *b;
    const char *name;

    printf("lockstep      %s, built with %s\n", text_of(o, "version"), text_of(o, "compiler"));
    printf("processor     %s, %d cores at hand\n", text_of(cpu, "name"),
           (int)json_integer_value(json_object_get(cpu, "cores")));
    print_list("             ", json_object_get(cpu, "features"));
    json_array_foreach(json_object_get(o, "backends"), i, b) print_backend(b);
    json_array_foreach(json_object_get(o, "communicators"), i, b) print_communicator(b);
    print_machines(json_object_get(o, "machines"));
    printf("libraries    ");
    json_object_foreach((json_t *)libs, name, b) printf(" %s %s", name, json_string_value(b));
    printf("\n");
    print_list("experiments  ", json_object_get(o, "experiments"));
    printf("plug-ins      trial API %d; compiled with %s\n", LS_TRIAL_API, text_of(o, "cflags"));
    printf("models\n");
    for (int k = 0; ls_trials[k] != NULL; k++)
        printf("  %-20s %s\n", ls_trials[k]->name, ls_trials[k]->about);
}

/* What can be trained by name. */
static json_t *list_experiments(void)
{
    const char *const *names;
    json_t *list = json_array();
    ls_arena *arena = NULL;
    int n = 0;

    if (ls_arena_create(&arena, LS_MEM_CLI, NULL) == LS_OK &&
        ls_experiment_names(arena, &names, &n, NULL) == LS_OK)
        for (int i = 0; i < n; i++) json_array_append_new(list, json_string(names[i]));
    ls_arena_destroy(arena);
    return list;
}

int cli_info(const cli_args *args)
{
    json_t *backends, *models, *o;
    ls_text cflags = {0};

    compiler_flags(&cflags);
    if (args->cflags) {
        printf("%s\n", cflags.data);
        ls_text_release(&cflags);
        return CLI_DONE;
    }
    backends = json_array();
    models = json_array();
    for (int i = 0; ls_backends[i] != NULL; i++)
        json_array_append_new(backends, describe_backend(ls_backends[i]));
    for (int i = 0; ls_trials[i] != NULL; i++) json_array_append_new(models, json_string(ls_trials[i]->name));
    o = json_pack("{s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:i, s:s, s:o}", "event", "info", "version",
                  LS_VERSION, "compiler", compiler(), "processor", describe_processor(), "backends", backends,
                  "communicators", describe_communicators(), "machines", describe_machines(), "libraries",
                  describe_libraries(), "experiments", list_experiments(), "trial_api", LS_TRIAL_API,
                  "cflags", cflags.data, "models", models);
    ls_text_release(&cflags);
    if (args->json) {
        cli_print_json_take(o);
    } else {
        print_text(o);
        json_decref(o);
    }
    return CLI_DONE;
}
