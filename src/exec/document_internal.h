/* document_internal.h: a document while it is being made. */
#ifndef LS_EXEC_DOCUMENT_INTERNAL_H
#define LS_EXEC_DOCUMENT_INTERNAL_H

#include "exec/document.h"
#include "exec/plan_internal.h"

enum { LSI_DOC_ATTRIBUTES = 4096 }; /* most bytes of a node's attributes as text */

typedef struct lsi_doc_maker {
    ls_document *d;
    const ls_plan *p;
    int32_t *node_at, *value_at; /* of the graph's: place in the document, or -1 */
    bool failed;                 /* no memory */
} lsi_doc_maker;

/* From the document's arena; NULL, and the maker has failed, when there is no memory. */
void *lsi_doc_array(lsi_doc_maker *m, size_t n, size_t item_bytes);
/* document_memory.c: what lies where and when, and what ranks do together. */
void lsi_doc_add_buffers(lsi_doc_maker *m);
void lsi_doc_add_collectives(lsi_doc_maker *m);

#endif
