/* chain.c: from the source of a chain to its kernel, through a table of the process and a folder of images.
 *
 * An image's name is a hash of its source, the compiler's version and the device's architecture, so a file
 * never needs to be looked into, and what is damaged only has to be noticed when it is loaded. */
#include "backend/cuda/chain.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#include "backend/cuda/chain_source.h"
#include "base/folders.h"
#include "base/grow.h"
#include "base/log.h"
#include "base/replace.h"
#include "base/whole.h"

enum { MAX_IMAGE = 4 << 20 }; /* bytes; they have a few thousand */

typedef struct entry {
    uint64_t hash;
    void *kernel;
} entry;

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

/* The file of an image, or an empty name where no folder can be had. */
static void image_path(uint64_t hash, char *path, size_t n)
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
        snprintf(path, n, "%s/chain-%016llx.cubin", folder, (unsigned long long)hash);
}

static void warn_once(const char *what, const char *why)
{
    if (!warned) ls_log(LS_LOG_WARN, "cuda: %s, element-wise chains are interpreted: %s", what, why);
    warned = true;
}

/* Loads an image of the cache; false also when it is damaged. */
static bool load_kept(lsi_cuda_device *dev, const char *path, void **kernel)
{
    char *image = NULL;
    size_t n = 0;
    bool ok = path[0] != '\0' && ls_whole_plain(&image, &n, path, MAX_IMAGE, NULL) == LS_OK &&
              dev->api->load(kernel, image, n, "chain") == 0;

    ls_free(image);
    return ok;
}

static void *compile(lsi_cuda_device *dev, const char *source, const char *path)
{
    char log[2000] = "";
    void *image = NULL, *kernel = NULL;
    size_t n = 0;
    int code = dev->api->compile(source, &image, &n, log, sizeof log);

    if (code == 0) code = dev->api->load(&kernel, image, n, "chain");
    if (code != 0) {
        warn_once("a kernel cannot be compiled", log[0] != '\0' ? log : dev->api->error(code));
        kernel = NULL;
    } else if (path[0] != '\0' && ls_replace_file(path, image, n, NULL) != LS_OK) {
        ls_log(LS_LOG_INFO, "cuda: %s cannot be written; its kernel is compiled again next time", path);
    }
    dev->api->release(image);
    return kernel;
}

/* With the lock held. */
static void *find_or_make(lsi_cuda_device *dev, const char *source, uint64_t hash)
{
    char path[4100];
    void *kernel = NULL;

    for (size_t i = 0; i < n_entries; i++)
        if (entries[i].hash == hash) return entries[i].kernel;
    image_path(hash, path, sizeof path);
    if (!load_kept(dev, path, &kernel)) kernel = compile(dev, source, path);
    if (kernel != NULL && LS_GROW(LS_MEM_PLAN, entries, n_entries + 1, cap_entries))
        entries[n_entries++] = (entry){hash, kernel};
    return kernel;
}

void *lsi_cuda_chain_kernel(lsi_cuda_device *dev, const lsi_cuda_chain_args *a)
{
    ls_text source = {0};
    void *kernel = NULL;
    const int compiler = wanted() ? dev->api->compiler() : 0;

    if (compiler == 0 && wanted()) warn_once("there is no run-time compiler", "libnvrtc.so was not found");
    if (compiler == 0) return NULL;
    ls_text_add(&source, "/* %d sm_%d%d */\n", compiler, dev->about.major, dev->about.minor);
    lsi_cuda_chain_source(&source, a);
    if (!source.failed) {
        pthread_mutex_lock(&lock);
        kernel = find_or_make(dev, source.data, XXH3_64bits(source.data, source.length));
        pthread_mutex_unlock(&lock);
    }
    ls_text_release(&source);
    return kernel;
}
