/* replay.c: runs a fuzz target once over kept inputs, with any compiler: replay_NAME FILE|FOLDER...
 *
 * A target that crashes or aborts ends the program; the last name printed is the input that did it. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* False when the file cannot be read. */
static int feed(const char *path)
{
    FILE *f = fopen(path, "rb");
    size_t n = 0, room = 1 << 20;
    uint8_t *bytes = malloc(room), *exact;

    if (f == NULL || bytes == NULL) return 0;
    n = fread(bytes, 1, room, f);
    fclose(f);
    /* Exactly as large as the input, so that a sanitizer sees a step beyond its end. */
    exact = realloc(bytes, n ? n : 1);
    if (exact == NULL) return 0;
    printf("%s (%zu bytes)\n", path, n);
    fflush(stdout);
    LLVMFuzzerTestOneInput(exact, n);
    free(exact);
    return 1;
}

static int feed_folder(const char *path)
{
    struct dirent **list = NULL;
    int n = scandir(path, &list, NULL, alphasort), fed = 0;

    for (int i = 0; i < n; i++) {
        char name[4096];
        snprintf(name, sizeof name, "%s/%s", path, list[i]->d_name);
        if (list[i]->d_name[0] != '.') fed += feed(name);
        free(list[i]);
    }
    free(list);
    return fed;
}

int main(int argc, char **argv)
{
    int all = 0;

    for (int i = 1; i < argc; i++) {
        struct stat info;
        int fed = 0;
        if (stat(argv[i], &info) == 0) fed = S_ISDIR(info.st_mode) ? feed_folder(argv[i]) : feed(argv[i]);
        if (fed == 0) fprintf(stderr, "%s: nothing to read there\n", argv[i]);
        if (fed == 0) return 1;
        all += fed;
    }
    printf("%d inputs, no crash\n", all);
    return all > 0 ? 0 : 1;
}
