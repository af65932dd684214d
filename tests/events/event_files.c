/* event_files.c: folders and files for the tests of src/events. */
#include "event_files.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

void make_folder(char out[FOLDER_MAX])
{
    check_new_folder(out, FOLDER_MAX);
}

void remove_folder(const char *folder)
{
    DIR *d = opendir(folder);
    REQUIRE(d != NULL);
    for (struct dirent *e = readdir(d); e; e = readdir(d)) {
        if (e->d_name[0] != '.') unlinkat(dirfd(d), e->d_name, 0);
    }
    closedir(d);
    CHECK_EQ_INT(rmdir(folder), 0);
}

char *read_bytes(const char *path, size_t *n)
{
    struct stat info;
    FILE *f = fopen(path, "rb");
    REQUIRE(f != NULL && fstat(fileno(f), &info) == 0);
    char *data = malloc((size_t)info.st_size + 1);
    REQUIRE(data != NULL);
    size_t got = fread(data, 1, (size_t)info.st_size, f);
    REQUIRE(got == (size_t)info.st_size);
    data[got] = '\0';
    fclose(f);
    if (n) *n = got;
    return data;
}

void write_bytes(const char *path, const void *data, size_t n)
{
    FILE *f = fopen(path, "wb");
    REQUIRE(f != NULL);
    REQUIRE(fwrite(data, 1, n, f) == n);
    REQUIRE(fclose(f) == 0);
}
