/* foreign.c: files of weights that other programs write, told by their name and their first bytes. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ckpt/ckpt.h"

typedef struct family {
    const char *name, *endings, *start; /* start: bytes; "" when they say nothing */
    size_t n_start;
} family;

/* With the file's name, and that without its ending. */
#define PYTORCH                                                                                              \
    "; two lines of Python (with the package safetensors) make a file of it that is read:\n"                 \
    "  import torch, safetensors.torch as st; w = torch.load(\"%s\", map_location=\"cpu\")\n"                \
    "  st.save_file({k: v.contiguous() for k, v in w.get(\"state_dict\", w).items()}, \"%s.safetensors\")"
#define OTHERS                                                                                               \
    "; write its tensors with the package safetensors, by PyTorch's names (safetensors.numpy.save_file), "   \
    "and "                                                                                                   \
    "give that file"

static const family families[] = {
    {"PyTorch", ".pt .pth .bin .ckpt .tar .pkl", "PK\x03\x04", 4},
    {"PyTorch", "", "\x80\x02", 2}, /* before version 1.6 */
    {"Keras", ".keras .h5 .hdf5", "\x89HDF", 4},
    {"NumPy", ".npz .npy", "\x93NUMPY", 6},
    {"ONNX", ".onnx", "", 0},
    {"llama.cpp", ".gguf", "GGUF", 4},
};

/* Whether `file` ends in one of the words of `endings`. */
static bool ends_in_one(const char *file, const char *endings)
{
    const char *dot = strrchr(file, '.');
    const size_t n = dot != NULL ? strlen(dot) : 0;

    for (const char *at = endings; n > 1 && *at != '\0'; at += strcspn(at, " "), at += *at == ' ')
        if (strcspn(at, " ") == n && strncasecmp(at, dot, n) == 0) return true;
    return false;
}

/* The first bytes of a plain file; false where there is none. */
static bool read_start(const char *file, char start[8])
{
    const int fd = open(file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    struct stat about;
    bool got;

    if (fd < 0) return false;
    got = fstat(fd, &about) == 0 && S_ISREG(about.st_mode) && read(fd, start, 8) == 8;
    close(fd);
    return got;
}

ls_status ls_ckpt_refuse_foreign(const char *file, ls_err *err)
{
    char start[8] = "", plain[512], remedy[1024];
    const char *dot = strrchr(file, '.');
    struct stat about;

    if (stat(file, &about) == 0 && S_ISDIR(about.st_mode)) return LS_OK;
    const bool has_start = read_start(file, start);
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++) {
        const family *f = &families[i];
        const bool starts = has_start && f->n_start > 0 && memcmp(start, f->start, f->n_start) == 0;
        if (!starts && !ends_in_one(file, f->endings)) continue;
        snprintf(plain, sizeof plain, "%.*s", dot != NULL ? (int)(dot - file) : (int)strlen(file), file);
        if (strcmp(f->name, "PyTorch") == 0)
            snprintf(remedy, sizeof remedy, PYTORCH, file, plain);
        else
            snprintf(remedy, sizeof remedy, "%s", OTHERS);
        return ls_fail(err, LS_INVALID, "%s is a file of %s, which only that program can read%s", file,
                       f->name, remedy);
    }
    return LS_OK;
}
