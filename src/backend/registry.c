/* registry.c: the only list of backends. */
#include <string.h>

#include "backend/backend.h"
#include "backend/cpu/cpu.h"
#include "backend/ref/ref.h"
#include "base/parallel.h"
#include "base/text.h"

const ls_backend *const ls_backends[] = {&ls_backend_cpu, &ls_backend_ref, NULL};

ls_status ls_device_open(ls_device **out, const char *name, int threads, ls_err *err)
{
    ls_text names = {0};
    ls_status st;

    *out = NULL;
    for (int i = 0; ls_backends[i] != NULL; i++) {
        const ls_backend *b = ls_backends[i];
        ls_text_add(&names, "%s%s", i ? ", " : "", b->name);
        if (strcmp(b->name, name) != 0) continue;
        ls_text_release(&names);
        st = b->probe(err);
        if (st != LS_OK) return ls_fail_in(err, st, "device \"%s\"", name);
        return b->open(out, threads > 0 ? threads : ls_parallel_default_threads(1), err);
    }
    st = ls_fail(err, LS_INVALID, "no device \"%s\" in this build; there are: %s", name,
                 names.data != NULL ? names.data : "");
    ls_text_release(&names);
    return st;
}

void ls_device_close(ls_device *dev)
{
    if (dev != NULL) dev->backend->close(dev);
}
