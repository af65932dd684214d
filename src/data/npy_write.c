/* npy_write.c: version 1.0 of NumPy's format: 10 bytes and the text of a Python dictionary, padded. */
#include "data/npy_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

size_t ls_npy_header(char *buf, const char *descr, ls_shape shape)
{
    size_t n = 10, end;

    n += (size_t)snprintf(buf + n, LS_NPY_HEADER - n, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                          descr);
    for (int i = 0; i < shape.rank; i++)
        n += (size_t)snprintf(buf + n, LS_NPY_HEADER - n, "%" PRId64 "%s", shape.dim[i],
                              shape.rank == 1      ? ","
                              : i + 1 < shape.rank ? ", "
                                                   : "");
    n += (size_t)snprintf(buf + n, LS_NPY_HEADER - n, "), }");
    end = (n + 1 + 63) / 64 * 64;
    LS_BUG_IF(end > LS_NPY_HEADER);
    memset(buf + n, ' ', end - n);
    buf[end - 1] = '\n';
    memcpy(buf, "\x93NUMPY\x01\x00", 8);
    buf[8] = (char)((end - 10) & 0xff);
    buf[9] = (char)((end - 10) >> 8);
    return end;
}
