/* pieces.h: variables as wholes, whoever has their pieces.
 *
 * Where ranks keep pieces of a variable (LS_HOME_SHARDED), no rank can read or write all of it by itself, and
 * none needs the memory for it: pieces pass through in chunks.  Rank 0 leads: it looks at variables, or fills
 * them, in any order; the others serve until it is done.
 *
 *     rank 0:                                       all others:
 *     ls_pieces_visit(vars, i, ...) ...             ls_pieces_serve(vars, ...)
 *     ls_pieces_fill(vars, k, ...) ...
 *     ls_pieces_end(vars, ...)
 *
 * Where nothing is in pieces all of this is what ls_tensor_visit and ls_tensor_fill do, and the others need
 * not be there. */
#ifndef LS_EXEC_PIECES_H
#define LS_EXEC_PIECES_H

#include "exec/state.h"
#include "exec/tensor.h"

/* Whether ranks have pieces of variable i. */
bool ls_state_in_pieces(const ls_state *s, int i);
/* The variable as a whole: name and type, the shape and the bytes of all pieces; where they lie is nobody's
 * business.  Of others, the variable itself. */
ls_tensor ls_state_whole(const ls_state *s, int i);
/* This rank's piece of variable i: *first is its place in the variable, *bytes what is of the variable and
 * not beyond its end. */
void ls_state_piece(const ls_state *s, int i, size_t *first, size_t *bytes);

/* Whether ranks have pieces of any variable that `which` takes (NULL: of any). */
typedef bool (*ls_pieces_which)(ls_var_role role);
bool ls_pieces_any(const ls_state *s, ls_pieces_which which);

/* All bytes of variable i, from the first to the last; `look` may be NULL.  Where it fails, the others still
 * send what they have, and its error is returned. */
ls_status ls_pieces_visit(const ls_state *s, int i, ls_tensor_look look, void *ctx,
                          ls_err *err) LS_MUST_CHECK;
/* The same the other way; where `make` fails, pieces hold anything. */
ls_status ls_pieces_fill(const ls_state *s, int i, ls_tensor_make make, void *ctx, ls_err *err) LS_MUST_CHECK;
/* All ranks run what those that serve were given. */
ls_status ls_pieces_call(const ls_state *s, ls_err *err) LS_MUST_CHECK;
/* Rank 0 is done. */
ls_status ls_pieces_end(const ls_state *s, ls_err *err) LS_MUST_CHECK;
/* The others, until it is; `work` is for ls_pieces_call and may be NULL where that does not come. */
typedef ls_status (*ls_pieces_work)(const ls_state *s, ls_err *err);
ls_status ls_pieces_serve(const ls_state *s, ls_pieces_work work, ls_err *err) LS_MUST_CHECK;

#endif
