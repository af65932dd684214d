/* compiled.c: from a source to its kernels, through a table of the process and a folder of images.
 *
 * An image's name is a hash of its source, the compiler's version and the device's architecture, so nobody
 * has to ask what a file is the image of.  Whether it is whole has to be asked: the driver is ended by a
 * signal when it loads a part of one.  A file therefore begins with a hash of the bytes behind it. */
#include "backend/cuda/compiled.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "backend/cuda/texts.h"
#include "base/folders.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/replace.h"
#include "base/text.h"
#include "base/whole.h"

enum { MAX_IMAGE = 16 << 20 }; /* bytes; they have a few thousand, those of regions a hundred times more */

typedef struct entry {
    uint64_t hash;
    void *kernels[LSI_COMPILED_KERNELS];
} entry;

/* What is asked for. */
typedef struct wish {
    lsi_cuda_device *dev;
    const char *kind, *source;
    uint64_t hash;
    int n;
    const char *const *names;
} wish;

/* Kernels stay loaded until the process ends: plans come and go with the same ones. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static entry *entries;
static size_t n_entries, cap_entries;
static bool warned;

static bool wanted(void)
{
    const char *word = getenv("LOCKSTEP_CUDA_COMPILE");

    return word == NULL || strcmp(word, "off") != 0;
}

static void warn_once(const char *what, const char *why)
{
    if (!warned) ls_log(LS_LOG_WARN, "cuda: %s, slower kernels are used: %s", what, why);
    warned = true;
}

/* That a library was found does not say that it can make something for this device: a part of it may be
 * missing, or it may be of another version.  Plans are made for kernels that come of it, so it is tried. */
static bool try_compiler(lsi_cuda_device *dev)
{
    char log[1000] = "";
    ls_text source = {0};
    void *image = NULL, *kernel = NULL;
    size_t n = 0;
    int code;

    if (dev->api->compiler() == 0) {
        warn_once("there is no run-time compiler", "libnvrtc.so was not found");
        return false;
    }
    ls_text_add(&source, "%sextern \"C\" __global__ void empty()\n{\n    lsi_wait();\n}\n",
                lsi_cuda_text_wait);
    if (source.failed) {
        ls_text_release(&source);
        return false;
    }
    code = dev->api->compile(source.data, &image, &n, log, sizeof log);
    if (code == 0) code = dev->api->load(&kernel, image, n, "empty");
    if (code != 0) warn_once("the run-time compiler fails", log[0] != '\0' ? log : dev->api->error(code));
    dev->api->release(image);
    ls_text_release(&source);
    return code == 0;
}

bool lsi_cuda_can_compile(lsi_cuda_device *dev)
{
    bool can;

    if (!wanted()) return false;
    pthread_mutex_lock(&lock);
    if (dev->compiles == LSI_CUDA_UNTRIED)
        dev->compiles = try_compiler(dev) ? LSI_CUDA_COMPILES : LSI_CUDA_COMPILES_NOT;
    can = dev->compiles == LSI_CUDA_COMPILES;
    pthread_mutex_unlock(&lock);
    return can;
}

/* The file of an image, or an empty name where no folder can be had. */
static void image_path(const wish *w, char *path, size_t n)
{
    const char *own = getenv("LOCKSTEP_CACHE"), *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    char folder[4000];

    path[0] = '\0';
    if (own != NULL && own[0] != '\0')
        snprintf(folder, sizeof folder, "%s/cuda", own);
    else if (xdg != NULL && xdg[0] != '\0')
        snprintf(folder, sizeof folder, "%s/lockstep/cuda", xdg);
    else if (home != NULL && home[0] != '\0')
        snprintf(folder, sizeof folder, "%s/.cache/lockstep/cuda", home);
    else
        return;
    if (ls_folders_make(folder, NULL) == LS_OK)
        snprintf(path, n, "%s/%s-%016llx.image", folder, w->kind, (unsigned long long)w->hash);
}

static int load(const wish *w, const void *image, size_t bytes, void **kernels)
{
    int code = 0;

    for (int i = 0; i < w->n && code == 0; i++)
        code = w->dev->api->load(&kernels[i], image, bytes, w->names[i]);
    return code;
}

/* How a kept file begins. */
typedef struct heading {
    char magic[8];
    uint64_t hash; /* of all that follows */
} heading;

static const char MAGIC[8] = "LSIMAGE1";

/* Loads an image of the cache; false also when it is damaged. */
static bool load_kept(const wish *w, const char *path, void **kernels)
{
    char *file = NULL;
    size_t n = 0;
    heading h;
    bool ok = path[0] != '\0' && ls_whole_plain(&file, &n, path, MAX_IMAGE, NULL) == LS_OK && n > sizeof h;

    if (ok) {
        memcpy(&h, file, sizeof h);
        ok = memcmp(h.magic, MAGIC, sizeof MAGIC) == 0 &&
             h.hash == XXH3_64bits(file + sizeof h, n - sizeof h) &&
             load(w, file + sizeof h, n - sizeof h, kernels) == 0;
    }
    ls_free(file);
    return ok;
}

static void keep(const char *path, const void *image, size_t n)
{
    heading h = {.hash = XXH3_64bits(image, n)};
    char *file = ls_alloc(LS_MEM_PLAN, sizeof h + n);
    bool kept = false;

    memcpy(h.magic, MAGIC, sizeof MAGIC);
    if (file != NULL) {
        memcpy(file, &h, sizeof h);
        memcpy(file + sizeof h, image, n);
        kept = ls_replace_file(path, file, sizeof h + n, NULL) == LS_OK;
    }
    if (!kept)
        ls_log(LS_LOG_INFO, "cuda: %s cannot be written; its kernel is compiled again next time", path);
    ls_free(file);
}

static bool compile(const wish *w, const char *path, void **kernels)
{
    char log[2000] = "";
    void *image = NULL;
    size_t n = 0;
    int code = w->dev->api->compile(w->source, &image, &n, log, sizeof log);

    if (code == 0) code = load(w, image, n, kernels);
    if (code != 0)
        warn_once("a kernel cannot be compiled", log[0] != '\0' ? log : w->dev->api->error(code));
    else if (path[0] != '\0')
        keep(path, image, n);
    w->dev->api->release(image);
    return code == 0;
}

/* With the lock held. */
static bool find_or_make(const wish *w, void **kernels)
{
    char path[4100];

    for (size_t i = 0; i < n_entries; i++)
        if (entries[i].hash == w->hash) {
            memcpy(kernels, entries[i].kernels, sizeof *kernels * (size_t)w->n);
            return true;
        }
    image_path(w, path, sizeof path);
    if (!load_kept(w, path, kernels) && !compile(w, path, kernels)) return false;
    if (LS_GROW(LS_MEM_PLAN, entries, n_entries + 1, cap_entries)) {
        entries[n_entries] = (entry){.hash = w->hash};
        memcpy(entries[n_entries++].kernels, kernels, sizeof *kernels * (size_t)w->n);
    }
    return true;
}

bool lsi_cuda_compiled(lsi_cuda_device *dev, const char *kind, const char *source, int n,
                       const char *const *names, void **kernels)
{
    ls_text text = {0};
    bool ok;

    LS_BUG_IF(n > LSI_COMPILED_KERNELS);
    if (!lsi_cuda_can_compile(dev)) return false;
    ls_text_add(&text, "/* %d sm_%d%d */\n%s", dev->api->compiler(), dev->about.major, dev->about.minor,
                source);
    ok = !text.failed;
    if (ok) {
        const wish w = {dev, kind, text.data, XXH3_64bits(text.data, text.length), n, names};
        pthread_mutex_lock(&lock);
        ok = find_or_make(&w, kernels);
        pthread_mutex_unlock(&lock);
    }
    ls_text_release(&text);
    return ok;
}
