/* test_files.c: whole files written and read, JSON in them, arrays that grow, how many files may be open. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/grow.h"
#include "base/json.h"
#include "base/machine.h"
#include "base/replace.h"
#include "base/whole.h"
#include "check.h"

static char folder[256];

static const char *in_folder(const char *name)
{
    static char paths[8][512];
    static int next;

    next = (next + 1) % 8;
    snprintf(paths[next], sizeof paths[next], "%s/%s", folder, name);
    return paths[next];
}

static int entries(void)
{
    DIR *d = opendir(folder);
    int n = -2;

    REQUIRE(d != NULL);
    while (readdir(d) != NULL) n++;
    closedir(d);
    return n;
}

static void has_text(const char *path, const char *want)
{
    char *text = NULL;
    size_t n;
    ls_err err = {0};

    if (!CHECK_OK(ls_whole_file(&text, &n, path, 100, &err), &err)) return;
    CHECK_EQ_STR(text, want);
    CHECK_EQ_INT(n, strlen(want));
    ls_free(text);
}

/* -- writing ----------------------------------------------------------------------------------------------
 */

/* Whoever may write into the folder must not be able to let us write elsewhere. */
static void links_are_not_followed(void)
{
    const char *path = in_folder("result"), *victim = in_folder("victim");
    ls_replace_names names, other;
    ls_err err = {0};

    REQUIRE_OK(ls_replace_file(victim, "precious", 8, &err), &err);
    REQUIRE_OK(ls_replace_name(&names, path, &err), &err);
    REQUIRE_OK(ls_replace_name(&other, path, &err), &err);
    CHECK(strcmp(names.aside, other.aside) != 0); /* a process of another machine may have the same number */
    REQUIRE(symlink(victim, names.aside) == 0);
    CHECK_EQ_INT(ls_replace_named(&names, "new", 3, NULL), 0);
    has_text(victim, "precious");
    has_text(path, "new");
    CHECK_EQ_INT(entries(), 2);
    unlink(path);
    unlink(victim);
}

/* A result that is sent to a device or a pipe must not take its place. */
static void devices_stay(void)
{
    const char *pipe = in_folder("pipe");
    ls_replace_stream s;
    struct stat info;
    ls_err err = {0};

    REQUIRE(mkfifo(pipe, 0600) == 0);
    CHECK_STATUS(ls_replace_file(pipe, "x", 1, &err), LS_IO, &err);
    CHECK_CONTAINS(err.text, "is a device or a pipe");
    CHECK_STATUS(ls_replace_begin(&s, pipe, NULL), LS_IO, NULL);
    CHECK(stat(pipe, &info) == 0 && S_ISFIFO(info.st_mode));
    CHECK_STATUS(ls_replace_file("/dev/stdout", "x", 1, NULL), LS_IO, NULL);
    CHECK_EQ_INT(entries(), 1);
    unlink(pipe);
}

static void a_stream_is_all_or_nothing(void)
{
    const char *path = in_folder("stream");
    ls_replace_stream s;
    ls_err err = {0};

    REQUIRE_OK(ls_replace_begin(&s, path, &err), &err);
    fputs("first", s.f);
    CHECK(access(path, F_OK) != 0);
    CHECK_OK(ls_replace_commit(&s, &err), &err);
    ls_replace_abandon(&s); /* nothing is left to abandon */
    has_text(path, "first");

    REQUIRE_OK(ls_replace_begin(&s, path, &err), &err);
    fputs("second", s.f);
    ls_replace_abandon(&s);
    has_text(path, "first");
    CHECK_EQ_INT(entries(), 1);
    unlink(path);
}

/* A file of no disk: every write to it fails, in the end. */
static void what_cannot_be_written_is_said(void)
{
    char *big = calloc(1, 5000);
    ls_replace_stream s;
    ls_err err = {0};

    CHECK_STATUS(ls_replace_file(in_folder("no/folder"), "x", 1, &err), LS_IO, &err);
    CHECK(strstr(err.text, "no/folder") != NULL);
    err = (ls_err){0};
    CHECK_STATUS(ls_replace_begin(&s, in_folder("no/folder"), &err), LS_IO, &err);
    CHECK(s.f == NULL);
    ls_replace_abandon(&s);
    REQUIRE(big != NULL);
    memset(big, 'a', 4999);
    err = (ls_err){0};
    CHECK_STATUS(ls_replace_file(big, "x", 1, &err), LS_IO, &err);
    free(big);
    /* A write that failed before the commit. */
    err = (ls_err){0};
    REQUIRE_OK(ls_replace_begin(&s, in_folder("full"), &err), &err);
    REQUIRE(freopen("/dev/full", "w", s.f) != NULL);
    fputs("lost", s.f);
    CHECK_STATUS(ls_replace_commit(&s, &err), LS_IO, &err);
    CHECK_EQ_INT(entries(), 0);
}

/* -- reading ----------------------------------------------------------------------------------------------
 */

static void sizes(void)
{
    static const size_t sizes[] = {0, 1, 15, 16, 17, 65534, 65535, 65536, 65537, 200000};
    const char *path = in_folder("sizes");
    char *bytes = calloc(1, 200000), *text;
    size_t n;
    ls_err err = {0};

    REQUIRE(bytes != NULL);
    for (size_t i = 0; i < 200000; i++) bytes[i] = (char)('a' + i % 23);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        REQUIRE_OK(ls_replace_file(path, bytes, sizes[i], &err), &err);
        REQUIRE_OK(ls_whole_file(&text, &n, path, sizes[i], &err), &err);
        CHECK_EQ_INT(n, sizes[i]);
        CHECK(memcmp(text, bytes, n) == 0 && text[n] == '\0');
        ls_free(text);
        if (sizes[i] > 0) CHECK_STATUS(ls_whole_plain(&text, &n, path, sizes[i] - 1, NULL), LS_DATA, NULL);
        CHECK(sizes[i] == 0 || text == NULL);
    }
    free(bytes);
    unlink(path);
}

/* Without a writer, opening a pipe would wait for ever. */
static void plain_means_plain(void)
{
    const char *path = in_folder("pipe");
    char *text;
    size_t n;
    ls_err err = {0};

    REQUIRE(mkfifo(path, 0600) == 0);
    CHECK_STATUS(ls_whole_plain(&text, &n, path, 10, &err), LS_DATA, &err);
    CHECK(strstr(err.text, "plain") != NULL);
    CHECK_STATUS(ls_whole_plain(&text, &n, folder, 10, NULL), LS_DATA, NULL);
    CHECK_STATUS(ls_whole_file(&text, &n, folder, 10, NULL), LS_DATA, NULL);
    CHECK_STATUS(ls_whole_plain(&text, &n, in_folder("none"), 10, NULL), LS_DATA, NULL);
    unlink(path);
}

static void json(void)
{
    const char *path = in_folder("value.json");
    json_t *value = json_pack("{s:i, s:f}", "n", 3, "x", 0.1), *back = NULL;
    ls_err err = {0};

    REQUIRE_OK(ls_json_write(path, value, &err), &err);
    REQUIRE_OK(ls_json_read(&back, path, 1000, &err), &err);
    CHECK(json_equal(value, back));
    json_decref(back);
    json_decref(value);
    REQUIRE_OK(ls_replace_file(path, "{\n\"n\": }\n", 9, &err), &err);
    CHECK_STATUS(ls_json_read(&back, path, 1000, &err), LS_DATA, &err);
    CHECK(back == NULL && strstr(err.text, "value.json:2: ") != NULL);
    unlink(path);
}

/* -- arrays -----------------------------------------------------------------------------------------------
 */

static void growing(void)
{
    int *numbers = NULL;
    size_t capacity = 0, moved = 0;

    for (int i = 0; i < 1000; i++) {
        const size_t before = capacity;
        REQUIRE(LS_GROW(LS_MEM_TEST, numbers, i + 1, capacity));
        if (capacity != before) moved += before;
        CHECK(numbers[capacity - 1] == 0);
        numbers[i] = i;
    }
    CHECK(moved < 2000);
    for (int i = 0; i < 1000; i++) CHECK_EQ_INT(numbers[i], i);
    /* Nothing is lost when there is no memory, nor when there cannot be. */
    const size_t had = capacity;
    ls_mem_fail_at(1);
    CHECK(!LS_GROW(LS_MEM_TEST, numbers, capacity + 1, capacity));
    ls_mem_fail_at(0);
    CHECK(!LS_GROW(LS_MEM_TEST, numbers, (size_t)-1 / 2, capacity));
    CHECK_EQ_INT(capacity, had);
    CHECK_EQ_INT(numbers[999], 999);
    ls_free(numbers);
}

static rlim_t files_allowed(void)
{
    struct rlimit r = {0};

    REQUIRE(getrlimit(RLIMIT_NOFILE, &r) == 0);
    return r.rlim_cur;
}

/* Only upwards, and no further than the hard limit. */
static void many_files_may_be_open(void)
{
    struct rlimit r = {0};

    REQUIRE(getrlimit(RLIMIT_NOFILE, &r) == 0);
    r.rlim_cur = 64;
    r.rlim_max = 200;
    REQUIRE(setrlimit(RLIMIT_NOFILE, &r) == 0);
    ls_machine_allow_descriptors(32);
    CHECK_EQ_INT(files_allowed(), 64);
    ls_machine_allow_descriptors(100);
    CHECK_EQ_INT(files_allowed(), 100);
    ls_machine_allow_descriptors(1000000);
    CHECK_EQ_INT(files_allowed(), 200);
}

int main(void)
{
    check_new_folder(folder, sizeof folder);
    CHECK_RUN(links_are_not_followed);
    CHECK_RUN(devices_stay);
    CHECK_RUN(a_stream_is_all_or_nothing);
    CHECK_RUN(what_cannot_be_written_is_said);
    CHECK_RUN(sizes);
    CHECK_RUN(plain_means_plain);
    CHECK_RUN(json);
    CHECK_RUN(growing);
    CHECK_RUN(many_files_may_be_open);
    CHECK_EQ_INT(rmdir(folder), 0);
    return CHECK_DONE();
}
