/* test_cuda_compiled.c: images of compiled kernels that are kept on disk (no GPU: the module is one of this
 * test's).  One that is damaged must never reach the driver, which a part of an image ends with a signal. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "backend/cuda/compiled.h"
#include "base/replace.h"
#include "base/whole.h"
#include "check.h"

static const char IMAGE[] = "\x7f"
                            "ELF, and what a kernel consists of";
static int compiled, loaded, refused, tried;
static bool broken; /* nothing can be compiled */

static int compiler(void)
{
    return 13000;
}

static int compile(const char *source, void **image, size_t *bytes, char *log, size_t log_size)
{
    const bool trial = strstr(source, " empty(") != NULL;

    (void)log;
    (void)log_size;
    tried += trial;
    if (broken) return 1;
    *image = malloc(sizeof IMAGE);
    if (*image == NULL) return 1;
    memcpy(*image, IMAGE, sizeof IMAGE);
    *bytes = sizeof IMAGE;
    compiled += !trial;
    return 0;
}

static int load(void **kernel, const void *image, size_t bytes, const char *entry)
{
    if (bytes != sizeof IMAGE || memcmp(image, IMAGE, bytes) != 0) {
        refused++;
        return 1;
    }
    loaded += strcmp(entry, "empty") != 0;
    *kernel = &loaded;
    return 0;
}

static const char *error(int code)
{
    (void)code;
    return "refused";
}

static const lsi_cuda_api api = {
    .compiler = compiler, .compile = compile, .load = load, .release = free, .error = error};

/* What a new process does for a kernel: 1 where it compiles, 0 where it loads what was kept, 9 where the
 * driver saw anything else than a whole image.  (Within a process kernels stay loaded.) */
static int in_new_process(void)
{
    const pid_t child = fork();
    int status = 0;

    REQUIRE(child >= 0);
    if (child == 0) {
        lsi_cuda_device device = {.api = &api};
        void *kernel = NULL;
        const bool ok =
            lsi_cuda_compiled(&device, "test", "a source", 1, (const char *const[]){"run"}, &kernel);
        _exit(!ok || refused > 0 || loaded != 1 ? 9 : compiled);
    }
    REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void kept_file(char *path, size_t size, const char *folder)
{
    char command[300];
    FILE *f;

    snprintf(command, sizeof command, "ls %s/cuda/test-*", folder);
    f = popen(command, "r");
    REQUIRE(f != NULL && fgets(path, (int)size, f) != NULL);
    path[strcspn(path, "\n")] = '\0';
    pclose(f);
}

static void an_image_is_compiled_once_and_again_when_damaged(void)
{
    char folder[200], path[400], *file = NULL;
    size_t n = 0;

    check_new_folder(folder, sizeof folder);
    setenv("LOCKSTEP_CACHE", folder, 1);
    CHECK_EQ_INT(in_new_process(), 1);
    CHECK_EQ_INT(in_new_process(), 0);
    kept_file(path, sizeof path, folder);
    REQUIRE_OK(ls_whole_plain(&file, &n, path, 1000, NULL), NULL);
    for (size_t length = 0; length < n; length++) {
        CHECK_OK(ls_replace_file(path, file, length, NULL), NULL);
        CHECK_EQ_INT(in_new_process(), 1);
        CHECK_EQ_INT(in_new_process(), 0);
    }
    for (size_t at = 0; at < n; at++) {
        file[at] ^= 0x10;
        CHECK_OK(ls_replace_file(path, file, n, NULL), NULL);
        CHECK_EQ_INT(in_new_process(), 1);
        file[at] ^= 0x10;
    }
    CHECK_EQ_INT(in_new_process(), 0);
    ls_free(file);
}

/* Plans with regions have no other kernels for what is in them: a library that is there and cannot compile is
 * found out before, once per device. */
static void a_compiler_that_fails_is_none(void)
{
    lsi_cuda_device works = {.api = &api}, fails = {.api = &api};

    tried = 0;
    CHECK(lsi_cuda_regions(&works.base) != NULL);
    CHECK(lsi_cuda_regions(&works.base) != NULL && lsi_cuda_can_compile(&works));
    CHECK_EQ_INT(tried, 1);
    broken = true;
    CHECK(lsi_cuda_regions(&fails.base) == NULL);
    CHECK(lsi_cuda_regions(&fails.base) == NULL && !lsi_cuda_can_compile(&fails));
    CHECK_EQ_INT(tried, 2);
    CHECK(lsi_cuda_regions(&works.base) != NULL); /* it is asked no more */
    broken = false;
}

int main(void)
{
    CHECK_RUN(an_image_is_compiled_once_and_again_when_damaged);
    CHECK_RUN(a_compiler_that_fails_is_none);
    return CHECK_DONE();
}
