/* pieces.h: stretches of memory on their way to and from what ranks exchange (module/pieces.cu). */
#ifndef LS_BACKEND_CUDA_LAUNCH_PIECES_H
#define LS_BACKEND_CUDA_LAUNCH_PIECES_H

#include "backend/links.h"

enum { LSI_CUDA_PIECES = 64 };

typedef struct lsi_cuda_pieces_args {
    ls_link_piece of[LSI_CUDA_PIECES];
    int n;
} lsi_cuda_pieces_args;

#endif
