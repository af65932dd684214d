/* transport.h: what a module must offer so that ranks can talk between machines.
 *
 * It is the whole contract between liblockstep and lockstep-mpi.so, which is loaded at run time and built
 * against whatever MPI is there.  The module uses nothing of liblockstep but this header: texts go into an
 * ls_err that the caller hands in.  All functions are called by the one thread that opened the transport.
 * Functions that fail return LS_LOST when a peer may be the reason. */
#ifndef LS_COMM_TRANSPORT_H
#define LS_COMM_TRANSPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

#define LS_TRANSPORT_VERSION 1
/* The one symbol of a module: `const ls_transport ls_transport_module`. */
#define LS_TRANSPORT_SYMBOL "ls_transport_module"

/* Messages up to so many bytes should leave when they are sent, whatever the receiver does at the time. */
#define LS_TRANSPORT_AT_ONCE (256 * 1024)

/* A transfer under way; the module knows what is in it. */
typedef struct ls_transport_request {
    uint64_t word[2];
} ls_transport_request;

/* Where a rank finds itself. */
typedef struct ls_transport_place {
    int rank, size;
    int machine;  /* the lowest rank on the same machine */
    int last_tag; /* tags are 0 to this */
} ls_transport_place;

typedef struct ls_transport {
    int version; /* LS_TRANSPORT_VERSION */
    /* Name and version of the library, one line; may be called before `open`. */
    void (*describe)(char *text, size_t bytes);
    /* Collective. */
    ls_status (*open)(ls_transport_place *out, ls_err *err);
    /* Collective when `orderly`; otherwise nobody is waited for, and the process should end soon. */
    void (*close)(bool orderly);
    /* Collective and blocking, for the beginning only: `bytes` of every rank to all. */
    ls_status (*gather)(const void *mine, size_t bytes, void *all, ls_err *err);
    ls_status (*send)(const void *data, size_t bytes, int to, int tag, ls_transport_request *out,
                      ls_err *err);
    ls_status (*receive)(void *data, size_t bytes, int from, int tag, ls_transport_request *out, ls_err *err);
    /* Whether all `n` are finished; those that are must not be touched again until then. */
    ls_status (*test)(ls_transport_request *requests, int n, bool *finished, ls_err *err);
} ls_transport;

#endif
