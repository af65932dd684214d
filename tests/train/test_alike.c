/* test_alike.c: ranks that have opened other data are told so before the first step, with both sides. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "ranks_test.h"

static char folder[] = "/tmp/lockstep-alike-XXXXXX";

static void shell(const char *command)
{
    if (!CHECK(system(command) == 0)) printf("  %s\n", command);
}

/* Ranks 0 and 1 read `first`, rank 2 the data at `other`; what each said must contain all of `parts`. */
static void train(const char *name, const char *kind, const char *other, ls_status want,
                  const char *const parts[])
{
    char odd[256], setting[256], path[256];
    int codes[RANKS_MAX];
    const ranks_job j = {.folder = folder,
                         .name = name,
                         .model = "mnist",
                         .ranks = 3,
                         .odd = odd,
                         .settings = {kind, setting, "batch.per_rank=4", "train.steps=2"}};

    snprintf(setting, sizeof setting, "data.path=%s/first", folder);
    snprintf(odd, sizeof odd, "data.path=%s/%s", folder, other);
    ranks_run(&j, codes);
    for (int r = 0; r < 3; r++) {
        char text[2048] = "";
        FILE *f;
        CHECK_EQ_INT(codes[r], want == LS_OK ? 0 : 10 - (int)want);
        snprintf(path, sizeof path, "%s/%s.%d", folder, name, r);
        f = want == LS_OK ? NULL : fopen(path, "r");
        if (f != NULL && fgets(text, sizeof text, f) == NULL) text[0] = '\0';
        if (f != NULL) fclose(f);
        for (int i = 0; parts[i] != NULL; i++)
            if (!CHECK(strstr(text, parts[i]) != NULL)) printf("  %s: rank %d said: %s\n", name, r, text);
    }
}

static void copies_are_the_same(void)
{
    train("run-copy", "data.kind=idx", "copy", LS_OK, (const char *const[]){NULL});
}

static void another_number_of_samples(void)
{
    train("run-fewer", "data.kind=idx", "fewer", LS_DISAGREE,
          (const char *const[]){"the training data differ", "rank 0 on",
                                "has 100 samples of image f32 (1, 28, 28), label i32", "rank 2 on",
                                "has 90 samples", NULL});
}

static void other_content_of_the_same_size(void)
{
    train("run-content", "data.kind=idx", "content", LS_DISAGREE,
          (const char *const[]){"the training data differ", "100 samples", "hash", NULL});
}

static void another_test_set(void)
{
    train("run-test", "data.kind=idx", "test", LS_DISAGREE,
          (const char *const[]){"the test data differ", NULL});
}

int main(void)
{
    char command[512];
    const char *program = getenv("LOCKSTEP");
    int rc;

    if (program == NULL || mkdtemp(folder) == NULL) return 77;
    snprintf(command, sizeof command,
             "cd %s && exec >/dev/null && '%s' data make kind=idx path=first train=100 test=20 seed=1 && "
             "'%s' data make kind=idx path=fewer train=90 test=20 seed=1 && "
             "'%s' data make kind=idx path=content train=100 test=20 seed=2 && cp -r first copy && cp -r "
             "first test && "
             "cp content/t10k* test",
             folder, program, program, program);
    shell(command);
    CHECK_RUN(copies_are_the_same);
    CHECK_RUN(another_number_of_samples);
    CHECK_RUN(other_content_of_the_same_size);
    CHECK_RUN(another_test_set);
    rc = CHECK_DONE();
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (system(command) != 0) rc = 1;
    return rc;
}
