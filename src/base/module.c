/* module.c: finds and loads modules. */
#include "base/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The folder of the running program. */
static void program_folder(char *buf, size_t size)
{
    ssize_t n = readlink("/proc/self/exe", buf, size - 1);
    char *slash;

    buf[n > 0 ? n : 0] = '\0';
    slash = strrchr(buf, '/');
    if (slash != NULL) *slash = '\0';
}

ls_status ls_module_open(void **out, const char *name, const char *symbol, ls_err *err)
{
    const char *given = getenv("LOCKSTEP_MODULES");
    char beside[PATH_MAX], path[PATH_MAX + 64] = "";
    const char *folders[] = {given != NULL ? given : "", beside, LS_MODULES_INSTALLED};
    void *handle;

    *out = NULL;
    program_folder(beside, sizeof beside);
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        if (folders[i][0] == '\0') continue;
        snprintf(path, sizeof path, "%.4000s/lockstep-%s.so", folders[i], name);
        if (access(path, R_OK) == 0) break;
    }
    if (access(path, R_OK) != 0)
        return ls_fail(err, LS_UNSUPPORTED, "module %s is not in this build (no lockstep-%s.so in %s or %s)",
                       name, name, beside, LS_MODULES_INSTALLED);
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return ls_fail(err, LS_UNSUPPORTED, "module %s cannot be loaded: %s", name, dlerror());
    *out = dlsym(handle, symbol);
    if (*out == NULL)
        return ls_fail(err, LS_UNSUPPORTED, "%s is no module %s of this version: %s", path, name, dlerror());
    return LS_OK;
}
