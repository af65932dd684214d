/* module.c: finds and loads liblockstep_mpi.so, once it is asked for.
 *
 * Looked for in this order: the file that LOCKSTEP_MPI_MODULE names, the folder of the program, the folder
 * where libraries are installed.  A module that was loaded stays: MPI does not survive being unloaded. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "comm/comm_internal.h"

#define MODULE "liblockstep_mpi.so"

/* The folder of the running program, without a slash at its end; "" when nobody knows. */
static void program_folder(char *text, size_t bytes)
{
    ssize_t n = readlink("/proc/self/exe", text, bytes - 1);
    char *slash;

    text[n > 0 ? n : 0] = '\0';
    slash = strrchr(text, '/');
    if (slash != NULL) *slash = '\0';
}

static ls_status load_file(const char *path, const ls_link **out, ls_err *err)
{
    /* Parts that MPI loads for itself look for its symbols among the global ones. */
    void *module = dlopen(path, RTLD_NOW | RTLD_GLOBAL);

    if (module == NULL) return ls_fail(err, LS_UNSUPPORTED, "%s", dlerror());
    *out = dlsym(module, LS_LINK_SYMBOL);
    if (*out == NULL || (*out)->version != LS_LINK_VERSION) {
        *out = NULL;
        dlclose(module);
        return ls_fail(err, LS_UNSUPPORTED, "%s belongs to another version of Lockstep", path);
    }
    return LS_OK;
}

ls_status lsi_link_load(const ls_link **out, ls_err *err)
{
    const char *named = getenv("LOCKSTEP_MPI_MODULE");
    char folder[3072], path[4096];

    *out = NULL;
    if (named != NULL && *named != '\0') return load_file(named, out, err);
    program_folder(folder, sizeof folder);
    snprintf(path, sizeof path, "%s/" MODULE, folder);
    if (access(path, R_OK) != 0) snprintf(path, sizeof path, "%s/" MODULE, LS_MODULES_INSTALLED);
    if (access(path, R_OK) != 0)
        return ls_fail(err, LS_UNSUPPORTED,
                       MODULE
                       " is neither in %s nor in %s: install an MPI (Debian: libopenmpi-dev openmpi-bin) and "
                       "build Lockstep again",
                       folder, LS_MODULES_INSTALLED);
    return load_file(path, out, err);
}

ls_status ls_comm_mpi_probe(char *about, size_t bytes, ls_err *err)
{
    const ls_link *link;
    ls_status st = lsi_link_load(&link, err);

    if (st == LS_OK) link->describe(about, bytes);
    return st;
}
