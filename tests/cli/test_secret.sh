#!/usr/bin/env bash
# Secrets of runs: made for their owner alone, asked for wherever others could join, and what peers and files say is shown,
# not obeyed.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
cd "$work" || exit 1
unset LOCKSTEP_SECRET LOCKSTEP_SECRET_FILE MASTER_ADDR MASTER_PORT WORLD_SIZE RANK LOCAL_RANK NODE_RANK NNODES

# --- making one ------------------------------------------------------------------------------------------------------
umask 000
run 0 secret new key
[ "$(stat -c %a key)" = 600 ] || fail "key has mode $(stat -c %a key)"
grep -qxE '[0-9a-f]{64}' key || fail "no secret: $(cat key)"
run 2 secret new key
says err 'key is there already'
ln -s key link
run 2 secret new link
run 0 secret new
cp "$work/out" "$work/first"
run 0 secret new
cmp -s "$work/out" "$work/first" && fail "two secrets are equal"
grep -qxE '[0-9a-f]{64}' "$work/out" || fail "no secret: $(cat "$work/out")"
run 2 secret old
says err '`lockstep secret new [FILE]`'
umask 022

# --- half an environment ---------------------------------------------------------------------------------------------
two=(train mnist data.kind=synthetic train.steps=1 --quiet --run-dir r)
WORLD_SIZE=2 RANK=0 run 2 "${two[@]}"
says err 'WORLD_SIZE=2 and RANK=0 say that this is one of several processes, but not where they meet'
NNODES=2 NODE_RANK=1 run 2 "${two[@]}"
says err 'MASTER_ADDR'
[ ! -e r ] || fail "a refused run left its folder"

# --- no secret, and others reach the port (an address of no machine: it is never connected to) -------------------------
run 0 info --json
if grep -qE '"machines": *\{[^}]*"usable": *true' "$work/out"; then
    export MASTER_ADDR=192.0.2.1 WORLD_SIZE=2
    for i in 0 1; do
        NODE_RANK=$i run 2 "${two[@]}"
        says err 'no secret: any program that reaches 192.0.2.1 port 29500 could join this run'
        says err '`lockstep secret new FILE`'
    done
    LOCKSTEP_SECRET=short NODE_RANK=1 run 2 "${two[@]}"
    says err 'the secret in LOCKSTEP_SECRET has 5 bytes'
    LOCKSTEP_SECRET_FILE=$work/key NODE_RANK=1 run 1 "${two[@]}" --join-timeout 0.5
    says err 'does not answer'
    NODE_RANK=1 run 1 "${two[@]}" --join-timeout 0.5 --insecure
    says err 'does not answer'
    unset MASTER_ADDR WORLD_SIZE
fi

# --- control characters of files -------------------------------------------------------------------------------------
run 3 data info kind=npy path=$'x\e]0;owned\a\302\233.npy'
says err 'x\x1b]0;owned\x07\xc2\x9b.npy'
run 3 data info kind=npy path=Grüße.npy
says err 'Grüße.npy: no such file'

[ "$failures" -eq 0 ] && echo "secret: $n checks, all as expected"
exit $((failures > 0))
