/* mpi.c: lockstep-mpi.so, the transport between machines on MPI.
 *
 * Plain MPI 3, so that Open MPI, MPICH and their kin compile it alike.  All state is the process's: MPI can
 * be initialised once in a process, so there is one transport.  Errors are returned, never fatal: the run
 * then ends with the rank's name and the operation instead of a line of MPI's. */
#include <limits.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "comm/transport.h"

_Static_assert(sizeof(MPI_Request) <= sizeof(ls_transport_request), "an MPI_Request does not fit");

/* MPI's own state is global; this is ours beside it: the communicator that keeps our tags apart. */
static MPI_Comm world = MPI_COMM_NULL;

/* ls_fail is in the program, which does not export it. */
static ls_status fail(ls_err *err, ls_status st, const char *fmt, ...) LS_PRINTF(3, 4);
static ls_status fail(ls_err *err, ls_status st, const char *fmt, ...)
{
    if (err != NULL && err->status == LS_OK) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(err->text, sizeof err->text, fmt, ap);
        va_end(ap);
        err->status = st;
    }
    return st;
}

static ls_status check(int code, const char *call, ls_err *err)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int n = 0;

    if (code == MPI_SUCCESS) return LS_OK;
    MPI_Error_string(code, text, &n);
    return fail(err, LS_LOST, "%s: %s", call, text);
}

static void describe(char *text, size_t bytes)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING] = "";
    int n = 0;

    MPI_Get_library_version(version, &n);
    version[strcspn(version, ",\n")] = '\0';
    for (char *p = version; *p != '\0'; p++)
        if (*p == '\t') *p = ' ';
    snprintf(text, bytes, "%s", version);
}

/* Settings of Open MPI that a user has not made.  They must be in the environment before MPI_Init. */
static void prepare(void)
{
    const char *size = getenv("OMPI_COMM_WORLD_SIZE"), *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
    char at_once[24];

    /* Ranks may outnumber cores; our own waits yield, MPI's must, too. */
    setenv("OMPI_MCA_mpi_yield_when_idle", "1", 0);
    /* Longer messages wait until the receiver looks, and ranks that compute look seldom.  The header goes
     * with the first bytes. */
    snprintf(at_once, sizeof at_once, "%d", LS_TRANSPORT_AT_ONCE + 4096);
    setenv("OMPI_MCA_btl_tcp_eager_limit", at_once, 0);
    setenv("OMPI_MCA_btl_tcp_max_send_size", at_once, 0);
    /* On one machine gradients do not travel through MPI at all, and the search for fast networks is only
     * delay: MPI_Init takes 0.6 of the time without it.  Switching off more (btl, osc, mtl) gained nothing.
     */
    if (size != NULL && here != NULL && strcmp(size, here) == 0) setenv("OMPI_MCA_pml", "ob1", 0);
}

static ls_status find_place(ls_transport_place *out, ls_err *err)
{
    ls_status st = LS_OK;
    MPI_Comm machine = MPI_COMM_NULL;
    int *last_tag, there = 0;

    LS_TRY(check(MPI_Comm_rank(world, &out->rank), "MPI_Comm_rank", err));
    LS_TRY(check(MPI_Comm_size(world, &out->size), "MPI_Comm_size", err));
    LS_TRY(check(MPI_Comm_split_type(world, MPI_COMM_TYPE_SHARED, out->rank, MPI_INFO_NULL, &machine),
                 "MPI_Comm_split_type", err));
    out->machine = out->rank;
    LS_TRY(check(MPI_Bcast(&out->machine, 1, MPI_INT, 0, machine), "MPI_Bcast", err));
    LS_TRY(check(MPI_Comm_get_attr(world, MPI_TAG_UB, &last_tag, &there), "MPI_Comm_get_attr", err));
    out->last_tag = there ? *last_tag : 32767; /* what the standard promises at least */
out:
    if (machine != MPI_COMM_NULL) MPI_Comm_free(&machine);
    return st;
}

static ls_status transport_open(ls_transport_place *out, ls_err *err)
{
    ls_status st = LS_OK;
    int level = 0, was = 0;

    LS_TRY(check(MPI_Initialized(&was), "MPI_Initialized", err));
    if (was) return fail(err, LS_UNSUPPORTED, "MPI can be started once in a process");
    prepare();
    LS_TRY(check(MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level), "MPI_Init_thread", err));
    LS_TRY(check(MPI_Comm_dup(MPI_COMM_WORLD, &world), "MPI_Comm_dup", err));
    LS_TRY(check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", err));
    LS_TRY(check(MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN), "MPI_Comm_set_errhandler", err));
    LS_TRY(find_place(out, err));
out:
    return st;
}

static void transport_close(bool orderly)
{
    int was = 0, over = 0;

    MPI_Initialized(&was);
    MPI_Finalized(&over);
    /* MPI_Finalize waits for peers, also for those that are gone: without them the process just ends. */
    if (!was || over || !orderly) return;
    if (world != MPI_COMM_NULL) MPI_Comm_free(&world);
    MPI_Finalize();
}

static ls_status gather(const void *mine, size_t bytes, void *all, ls_err *err)
{
    return check(MPI_Allgather(mine, (int)bytes, MPI_BYTE, all, (int)bytes, MPI_BYTE, world), "MPI_Allgather",
                 err);
}

static void put(ls_transport_request *out, MPI_Request r)
{
    memcpy(out, &r, sizeof r);
}

static ls_status transport_send(const void *data, size_t bytes, int to, int tag, ls_transport_request *out,
                                ls_err *err)
{
    MPI_Request r = MPI_REQUEST_NULL;

    if (bytes > INT_MAX) return fail(err, LS_INVALID, "a message of %zu bytes", bytes);
    ls_status st = check(MPI_Isend(data, (int)bytes, MPI_BYTE, to, tag, world, &r), "MPI_Isend", err);
    put(out, r);
    return st;
}

static ls_status transport_receive(void *data, size_t bytes, int from, int tag, ls_transport_request *out,
                                   ls_err *err)
{
    MPI_Request r = MPI_REQUEST_NULL;

    if (bytes > INT_MAX) return fail(err, LS_INVALID, "a message of %zu bytes", bytes);
    ls_status st = check(MPI_Irecv(data, (int)bytes, MPI_BYTE, from, tag, world, &r), "MPI_Irecv", err);
    put(out, r);
    return st;
}

static ls_status test(ls_transport_request *requests, int n, bool *finished, ls_err *err)
{
    ls_status st = LS_OK;

    *finished = true;
    for (int i = 0; i < n && st == LS_OK; i++) {
        MPI_Request r;
        int done = 0;
        memcpy(&r, &requests[i], sizeof r);
        st = check(MPI_Test(&r, &done, MPI_STATUS_IGNORE), "MPI_Test", err);
        put(&requests[i], r); /* MPI_REQUEST_NULL once it is done; testing that again is allowed */
        if (!done) *finished = false;
    }
    return st;
}

__attribute__((visibility("default"))) const ls_transport ls_transport_module = {
    .version = LS_TRANSPORT_VERSION,
    .describe = describe,
    .open = transport_open,
    .close = transport_close,
    .gather = gather,
    .send = transport_send,
    .receive = transport_receive,
    .test = test,
};
