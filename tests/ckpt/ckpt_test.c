/* ckpt_test.c: see ckpt_test.h. */
#include "ckpt_test.h"

#include <dirent.h>
#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "graph/graph.h"

ls_state *ckpt_test_vars(uint64_t seed, bool extra)
{
    ls_graph *g = NULL;
    ls_state *s = NULL;
    ls_err err = {0};
    ls_init normal = {LS_INIT_NORMAL, 1};
    int index[8];

    REQUIRE_OK(ls_graph_create(&g, &err), &err);
    REQUIRE_OK(ls_state_create(&s, NULL, &err), &err);
    ls_graph_var(g, "fc.weight", LS_VAR_PARAM, LS_F32, LS_SHAPE(3, 5), normal);
    ls_graph_var(g, "fc.bias", LS_VAR_PARAM, LS_BF16, LS_SHAPE(3), normal);
    ls_graph_var(g, "bn.running_mean", LS_VAR_BUFFER, LS_F32, LS_SHAPE(7), normal);
    ls_graph_var(g, "empty", LS_VAR_PARAM, LS_F32, LS_SHAPE(0, 4), normal);
    ls_graph_var(g, "fc.weight.adam.t", LS_VAR_OPTIMIZER, LS_I32, LS_SHAPE(1), (ls_init){LS_INIT_CONST, 7});
    if (extra) ls_graph_var(g, "z.extra", LS_VAR_PARAM, LS_F32, LS_SHAPE(2), normal);
    REQUIRE_OK(lsi_state_bind(s, g, index, &err), &err);
    ls_graph_destroy(g);
    init_state(s, seed);
    return s;
}

bool ckpt_test_equal(const ls_state *a, const ls_state *b)
{
    if (ls_state_count(a) != ls_state_count(b)) return false;
    for (int i = 0; i < ls_state_count(a); i++) {
        const ls_tensor *x = ls_state_at(a, i), *y = ls_state_find(b, x->name);
        if (y == NULL || !tensor_equal(x, y)) return false;
    }
    return true;
}

uint64_t ckpt_test_hash(const ls_state *vars)
{
    uint64_t hash;
    ls_err err = {0};

    REQUIRE_OK(ls_weights_xxh3(vars, &hash, &err), &err);
    return hash;
}

static char test_folder[256];

const char *ckpt_test_folder(void)
{
    if (test_folder[0] == '\0') check_new_folder(test_folder, sizeof test_folder);
    return test_folder;
}

static int remove_one(const char *path, const struct stat *s, int kind, struct FTW *f)
{
    (void)s, (void)kind, (void)f;
    return remove(path);
}

void ckpt_test_cleanup(void)
{
    if (test_folder[0] != '\0') nftw(test_folder, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    test_folder[0] = '\0';
}

const char *ckpt_test_path(const char *name)
{
    static char paths[8][512];
    static int next;

    next = (next + 1) % 8;
    snprintf(paths[next], sizeof paths[next], "%s/%s", ckpt_test_folder(), name);
    return paths[next];
}

char *ckpt_test_get(const char *path, size_t *bytes)
{
    FILE *f = fopen(path, "rb");
    char *data;

    REQUIRE(f != NULL);
    fseek(f, 0, SEEK_END);
    *bytes = (size_t)ftell(f);
    rewind(f);
    data = ls_alloc(LS_MEM_TEST, *bytes + 1);
    REQUIRE(data != NULL && fread(data, 1, *bytes, f) == *bytes);
    fclose(f);
    return data;
}

void ckpt_test_put(const char *path, const void *data, size_t bytes)
{
    FILE *f = fopen(path, "wb");

    REQUIRE(f != NULL);
    REQUIRE(fwrite(data, 1, bytes, f) == bytes);
    REQUIRE(fclose(f) == 0);
}

int ckpt_test_entries(const char *path)
{
    DIR *d = opendir(path);
    int n = -2;

    REQUIRE(d != NULL);
    while (readdir(d) != NULL) n++;
    closedir(d);
    return n;
}

bool ckpt_test_there(const char *folder, const char *name)
{
    char path[512];
    struct stat s;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return lstat(path, &s) == 0;
}

bool ckpt_test_link_is(const char *folder, const char *name, const char *want)
{
    char path[512], got[256] = "";

    snprintf(path, sizeof path, "%s/%s", folder, name);
    if (readlink(path, got, sizeof got - 1) < 0) snprintf(got, sizeof got, "(%s)", strerror(errno));
    return CHECK_EQ_STR(got, want);
}

bool ckpt_test_whole(const char *folder, const char *name)
{
    char path[512];
    ls_err err = {0};
    int bad;

    snprintf(path, sizeof path, "%s/%s", folder, name);
    return CHECK_OK(ls_ckpt_verify(path, &bad, NULL, NULL, &err), &err);
}
