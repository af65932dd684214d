/* test_ranks.c: training on several ranks (processes that share memory) is the same training as on one: the
 * losses agree to rounding, all ranks end with the same weights, uneven parts and short last batches
 * included, and an evaluation counts every sample once.  Ranks that were started differently do not begin. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "comm/comm.h"
#include "train/train.h"

enum { MAX_SETTINGS = 24, STEPS = 12 };

static char folder[] = "/tmp/lockstep-ranks-XXXXXX";

typedef struct job {
    const char *name, *model;
    int ranks;
    const char *odd; /* a setting that only the last rank has, or NULL */
    const char *settings[MAX_SETTINGS];
} job;

/* What one rank does; returns its exit code: 10 + status when the training fails. */
static int rank_main(const job *j, ls_comm *comm, int rank)
{
    const char *settings[MAX_SETTINGS + 8] = {"data.kind=synthetic", "data.train_range=0:150",
                                              "data.test_range=150:191", "train.report_every=1st",
                                              "train.validate_every=none"};
    char run[256], ranks[32], steps[32];
    ls_train_options o = {.device = "cpu", .threads = 1, .comm = comm, .run_dir = run, .quiet = true};
    ls_experiment x = {0};
    json_t *summary = NULL;
    bool stopped;
    int n = 5;
    ls_err err = {0};
    ls_status st;

    snprintf(run, sizeof run, "%s/%s", folder, j->name);
    snprintf(ranks, sizeof ranks, "ranks=%d", j->ranks);
    snprintf(steps, sizeof steps, "train.steps=%d", STEPS);
    settings[n++] = ranks;
    settings[n++] = steps;
    for (int i = 0; j->settings[i] != NULL; i++) settings[n++] = j->settings[i];
    if (j->odd != NULL && rank == j->ranks - 1) settings[n++] = j->odd;
    st = ls_experiment_load(&x, j->model, settings, n, &err);
    if (st == LS_OK) st = ls_train(&x, &o, &summary, &stopped, &err);
    json_decref(summary);
    ls_experiment_release(&x);
    if (st == LS_OK) return 0;
    if (j->odd != NULL) {
        char path[512];
        FILE *f;
        snprintf(path, sizeof path, "%s/%s.%d", folder, j->name, rank);
        f = fopen(path, "w");
        if (f == NULL) return 9;
        fprintf(f, "%s\n", err.text);
        fclose(f);
    } else {
        fprintf(stderr, "  rank %d: %s\n", rank, err.text);
    }
    return 10 - (int)st;
}

/* Runs the job on forked ranks; codes[rank] receives what each returned. */
static void run(const job *j, int codes[])
{
    ls_comm_heap *heap = NULL;
    pid_t pids[16];
    ls_err err = {0};

    REQUIRE_OK(ls_comm_heap_create(&heap, j->ranks, &err), &err);
    fflush(stdout);
    for (int r = 0; r < j->ranks; r++) {
        pids[r] = fork();
        if (pids[r] == 0) {
            ls_comm *comm = NULL;
            int code = 99;
            if (ls_comm_open_local(&comm, ls_comm_heap_fd(heap), r, j->ranks, &err) == LS_OK)
                code = rank_main(j, comm, r);
            ls_comm_close(comm);
            _exit(code);
        }
    }
    for (int r = 0; r < j->ranks; r++) {
        int status = 0;
        waitpid(pids[r], &status, 0);
        codes[r] = WIFEXITED(status) ? WEXITSTATUS(status) : 100;
    }
    ls_comm_heap_destroy(heap);
}

/* The losses of all steps and the final test result of a run; returns how many steps there were. */
static int read_run(const char *name, double losses[STEPS], json_t **summary)
{
    char path[512], line[4096];
    FILE *f;
    int n = 0;

    snprintf(path, sizeof path, "%s/%s/metrics.jsonl", folder, name);
    f = fopen(path, "r");
    while (f != NULL && fgets(line, sizeof line, f) != NULL) {
        json_t *o = json_loads(line, 0, NULL);
        const json_t *loss = json_object_get(o, "train/loss_step");
        if (loss != NULL && n < STEPS) losses[n++] = json_real_value(loss);
        json_decref(o);
    }
    if (f != NULL) fclose(f);
    snprintf(path, sizeof path, "%s/%s/summary.json", folder, name);
    *summary = json_load_file(path, 0, NULL);
    return n;
}

static void compare(const char *model, const char *const extra[], double tolerance)
{
    static const int counts[] = {1, 2, 3, 4, 8};
    double first[STEPS], losses[STEPS];

    for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
        char name[64];
        job j = {.name = name, .model = model, .ranks = counts[k], .settings = {"batch.global=48"}};
        int codes[16], n = 1;
        json_t *summary;
        snprintf(name, sizeof name, "%s-%s-%d", model, extra[0] != NULL ? "x" : "plain", counts[k]);
        for (int i = 0; extra[i] != NULL; i++) j.settings[n++] = extra[i];
        run(&j, codes);
        for (int r = 0; r < j.ranks; r++) CHECK_EQ_INT(codes[r], 0);
        CHECK_EQ_INT(read_run(name, k == 0 ? first : losses, &summary), STEPS);
        CHECK_EQ_INT(json_integer_value(json_object_get(summary, "ranks")), counts[k]);
        CHECK_EQ_INT(json_integer_value(json_object_get(json_object_get(summary, "metrics"), "test_samples")),
                     41);
        json_decref(summary);
        for (int i = 0; k > 0 && i < STEPS; i++)
            if (!CHECK(fabs(losses[i] - first[i]) <= tolerance * fabs(first[i])))
                printf("  %s, step %d: %.9g, on one rank %.9g\n", name, i, losses[i], first[i]);
    }
}

/* 150 samples in batches of 48: the last of an epoch has 6, fewer than eight ranks. */
static void net_p_on_1_2_3_4_8_ranks(void)
{
    compare("mnist", (const char *const[]){NULL}, 2e-5);
}

static void with_small_buckets_and_no_overlap(void)
{
    compare("mnist", (const char *const[]){"parallel.bucket_mb=0.02", "parallel.overlap=false", NULL}, 2e-5);
}

static void with_gradients_added_up(void)
{
    compare("mnist", (const char *const[]){"parallel.accumulate=2", NULL}, 2e-5);
}

static void another_setting_on_one_rank_is_noticed(void)
{
    const job j = {.name = "odd",
                   .model = "mnist",
                   .ranks = 3,
                   .odd = "optimizer.lr=0.5",
                   .settings = {"batch.global=48"}};
    int codes[16];

    run(&j, codes);
    for (int r = 0; r < j.ranks; r++) {
        char path[512], text[1024] = "";
        FILE *f;
        CHECK_EQ_INT(codes[r], 10 - (int)LS_DISAGREE);
        snprintf(path, sizeof path, "%s/odd.%d", folder, r);
        f = fopen(path, "r");
        if (f != NULL && fgets(text, sizeof text, f) == NULL) text[0] = '\0';
        if (f != NULL) fclose(f);
        if (!CHECK(strstr(text, "rank 2") != NULL && strstr(text, "optimizer.lr=0.5 (rank 0: 0.01)") != NULL))
            printf("  rank %d said: %s\n", r, text);
    }
}

int main(void)
{
    char command[128];
    int rc;

    if (mkdtemp(folder) == NULL) return 1;
    CHECK_RUN(net_p_on_1_2_3_4_8_ranks);
    CHECK_RUN(with_small_buckets_and_no_overlap);
    CHECK_RUN(with_gradients_added_up);
    CHECK_RUN(another_setting_on_one_rank_is_noticed);
    rc = CHECK_DONE();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) rc = 1;
    return rc;
}
