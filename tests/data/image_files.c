/* image_files.c: makes the folders of image_files.h. */
#include "image_files.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { MAX_FOLDERS = 16 };

static struct {
    char path[MAX_FOLDERS][512];
    int n;
} made;

const char *image_folder(const ls_data_make_options *o)
{
    const char *build = getenv("LS_BUILD_DIR");
    ls_data_make_options with_path = *o;
    ls_err err = {0};
    char *path = made.path[made.n];

    REQUIRE(made.n < MAX_FOLDERS);
    snprintf(path, sizeof made.path[0], "%s/images-XXXXXX", build ? build : "/tmp");
    REQUIRE(mkdtemp(path) != NULL);
    made.n++;
    with_path.path = path;
    if (o->kind) REQUIRE_OK(ls_data_make(&with_path, &err), &err);
    return path;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *at)
{
    (void)info;
    (void)type;
    (void)at;
    return remove(path);
}

void image_clean(void)
{
    for (int i = 0; i < made.n; i++) CHECK(nftw(made.path[i], remove_one, 16, FTW_DEPTH | FTW_PHYS) == 0);
    made.n = 0;
}

unsigned char *image_load(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    unsigned char *bytes;

    REQUIRE(f != NULL && fseek(f, 0, SEEK_END) == 0);
    *size = (size_t)ftell(f);
    rewind(f);
    bytes = malloc(*size + 1);
    REQUIRE(bytes != NULL && fread(bytes, 1, *size, f) == *size);
    fclose(f);
    return bytes;
}

void image_store(const char *path, const void *bytes, size_t size)
{
    FILE *f = fopen(path, "wb");

    REQUIRE(f != NULL && fwrite(bytes, 1, size, f) == size && fclose(f) == 0);
}
