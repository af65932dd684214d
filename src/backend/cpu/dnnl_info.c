/* dnnl_info.c: which oneDNN this program runs with. */
#include "backend/cpu/dnnl_info.h"

#ifdef LS_HAVE_ONEDNN
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>

void lsi_dnnl_info(char *buf, size_t n)
{
    const dnnl_version_t *v = dnnl_version();

    snprintf(buf, n, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
}
#else
#include <stdio.h>

void lsi_dnnl_info(char *buf, size_t n)
{
    snprintf(buf, n, "without oneDNN");
}
#endif
