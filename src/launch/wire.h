/* wire.h: what launchers on different machines say to one another, as bytes.
 *
 * Numbers are big-endian, texts have their length first.  Readers believe nothing: whatever is too short, too
 * long or left over is LS_FORMAT. */
#ifndef LS_LAUNCH_WIRE_H
#define LS_LAUNCH_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lockstep/status.h"

typedef enum lsi_message_kind {
    LSI_MSG_JOIN = 1, /* machine to machine 0: who I am */
    LSI_MSG_WELCOME,  /* machine 0: all are here */
    LSI_MSG_REFUSE,   /* machine 0: it will not start, because of `text`; exit code `code` */
    LSI_MSG_BEAT,     /* both: still here; `number` changes while ranks get on */
    LSI_MSG_FENCE,    /* to 0: what MPI's ranks here have to say; from 0: what all had */
    LSI_MSG_FAILED,   /* both: `text`, by `rank`, with exit code `code` */
    LSI_MSG_STOP,     /* both: signal `number`, meant as `code` (LSI_STOP_*) */
    LSI_MSG_DONE,     /* to 0: my ranks ended with `code`; from 0: all did */
    LSI_MSG_KINDS
} lsi_message_kind;

#define LSI_WIRE_TEXT_MAX 1024
#define LSI_WIRE_BODY_MAX (256u << 20)

/* One message; which fields count depends on the kind. */
typedef struct lsi_message {
    lsi_message_kind kind;
    uint32_t node, nodes, ranks; /* JOIN */
    uint32_t rank, code, number;
    char version[64], host[64];   /* JOIN */
    char name[64];                /* WELCOME */
    char text[LSI_WIRE_TEXT_MAX]; /* REFUSE, FAILED */
    const uint8_t *data;          /* FENCE; WELCOME: the names of all machines, separated by commas */
    size_t n_data;
} lsi_message;

/* Bytes of a message's body without `data`, into `buf`; returns how many. */
#define LSI_WIRE_FIXED_MAX 2048
size_t lsi_wire_write(const lsi_message *m, uint8_t buf[LSI_WIRE_FIXED_MAX]);
/* Fills *m from a body; `data` then points into it. */
ls_status lsi_wire_read(lsi_message *m, uint32_t kind, const uint8_t *body, size_t n,
                        ls_err *err) LS_MUST_CHECK;

void lsi_wire_put_u32(uint8_t *at, uint32_t x);
uint32_t lsi_wire_get_u32(const uint8_t *at);
void lsi_wire_put_u64(uint8_t *at, uint64_t x);
uint64_t lsi_wire_get_u64(const uint8_t *at);

#endif
