/* npy_write.h: the header of a .npy file; the elements follow it as they lie in memory. */
#ifndef LS_DATA_NPY_WRITE_H
#define LS_DATA_NPY_WRITE_H

#include "lockstep/tensor.h"

enum { LS_NPY_HEADER = 256 };

/* Writes the header of an array in C order to `buf` (LS_NPY_HEADER bytes) and returns its length, a multiple
 * of 64.  `descr` is NumPy's name of the element type: "|u1", "<f4". */
size_t ls_npy_header(char *buf, const char *descr, ls_shape shape);

#endif
