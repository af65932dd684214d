/* module.c: finds and loads modules. */
#include "base/module.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/program.h"

ls_status ls_module_load(void **out, const char *path, ls_err *err)
{
    *out = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return *out != NULL ? LS_OK : ls_fail(err, LS_UNSUPPORTED, "cannot be loaded: %s", dlerror());
}

void *ls_module_symbol(void *module, const char *symbol)
{
    return dlsym(module, symbol);
}

ls_status ls_module_open(void **out, const char *name, const char *symbol, ls_err *err)
{
    const char *given = getenv("LOCKSTEP_MODULES");
    char beside[PATH_MAX], path[PATH_MAX + 64] = "";
    const char *folders[] = {given != NULL ? given : "", beside, LS_MODULES_INSTALLED};
    void *module;
    ls_status st;

    *out = NULL;
    (void)ls_program_beside(beside, sizeof beside, "");
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++) {
        if (folders[i][0] == '\0') continue;
        snprintf(path, sizeof path, "%.4000s/lockstep-%s.so", folders[i], name);
        if (access(path, R_OK) == 0) break;
    }
    if (access(path, R_OK) != 0)
        return ls_fail(err, LS_UNSUPPORTED, "module %s is not in this build (no lockstep-%s.so in %s or %s)",
                       name, name, beside, LS_MODULES_INSTALLED);
    st = ls_module_load(&module, path, err);
    if (st != LS_OK) return ls_fail_in(err, st, "module %s", name);
    *out = ls_module_symbol(module, symbol);
    if (*out == NULL)
        return ls_fail(err, LS_UNSUPPORTED, "%s is no module %s of this version: it lacks %s", path, name,
                       symbol);
    return LS_OK;
}
