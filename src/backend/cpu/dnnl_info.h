/* dnnl_info.h: which oneDNN this program runs with. */
#ifndef LS_BACKEND_CPU_DNNL_INFO_H
#define LS_BACKEND_CPU_DNNL_INFO_H

#include <stddef.h>

/* "oneDNN 2.6.3" (of the loaded library) or "without oneDNN". */
void lsi_dnnl_info(char *buf, size_t n);

#endif
