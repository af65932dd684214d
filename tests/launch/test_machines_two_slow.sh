#!/usr/bin/env bash
# Two machines joined by hand: they train as one, they end together, and what is wrong is said on both.
set -uo pipefail
. "$(dirname "$0")/machines_lib.sh"
make_machines 2

# loss_of I: as `eval --json` printed it on machine I
loss_of() {
    sed -n 's/.*"loss":\([^,}]*\).*/\1/p' "$work/out.$1"
}

# --- the same bits as on one machine --------------------------------------------------------------
for i in 1 0; do start $i -n 2 --nodes 2 train.steps=8; done
wait
code 0 0
code 1 0
says 0 "machines      0 of 2 here, machine 0 at $net.1 port $port, by eth0 ($net.1)"
says 1 "ranks         2 to 3 of 4 here"
"$LOCKSTEP" train mnist data.kind=synthetic -n 4 train.steps=8 --run-dir "$work/one" >"$work/out.one" 2>&1
n=$((n + 1))
weights=$(grep '^weights' "$work/out.one")
[ -n "$weights" ] && [ "$(grep '^weights' "$work/out.0")" = "$weights" ] ||
    fail "4 ranks on two machines: $(grep '^weights' "$work/out.0"), on one: $weights"
# They test what they trained: to the number that one rank finds, by as many ranks as trained and by fewer.
"$LOCKSTEP" eval "$work/one" --json >"$work/out.one" 2>&1
for ranks in "" "-n 1"; do
    for i in 1 0; do
        # shellcheck disable=SC2086 # two words or none
        on $i env MASTER_ADDR="$net.1" MASTER_PORT=$port NODE_RANK=$i "$LOCKSTEP" eval "$work/run.0" --nodes 2 $ranks --json &
    done
    wait
    code 0 0
    code 1 0
    n=$((n + 1))
    [ -n "$(loss_of one)" ] && awk -v a="$(loss_of 0)" -v b="$(loss_of one)" 'BEGIN { exit !(a > 0 && (a - b) ^ 2 < 1e-12 * b * b) }' ||
        fail "eval on two machines${ranks:+ with $ranks}: loss $(loss_of 0), on one rank: $(loss_of one)"
done
n=$((n + 1))
[ -z "$(ls "$TMPDIR")" ] || fail "left behind: $(ls "$TMPDIR")"

# --- a rank is killed: all end, and both machines name it -----------------------------------------
rm -rf "$work"/run.*
for i in 1 0; do start $i -n 2 --nodes 2 train.epochs=100000 train.report_every=1st --quiet; done
wait_for_steps
victim=$(processes 1 | tail -1)
begun=$(date +%s.%N)
kill -9 "$victim"
wait
for i in 0 1; do
    code $i 4
    says $i "pid $victim) was killed by signal 9 (Killed)"
    says $i "of step "
done
echo "{\"fault\": \"kill of a rank on machine 1\", \"t_stop_s\": $(awk -v a="$begun" -v b="$(cat "$work/end.0")" 'BEGIN { printf "%.3f", b - a }')}"
nobody_left

# --- a machine sends what does not fit: who finds it ends the run, and both machines say what it was ---------
# The length of one message is another than the one that is awaited, when updates of the step before are under way.
rm -rf "$work"/run.*
if cc -x c -shared -fPIC -o "$work/short.so" - 2>"$work/cc.log" <<'EOF'; then
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>
ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
    static int messages;
    uint32_t head[3]; /* tag, length, weight */
    struct iovec pieces[64];
    struct msghdr copy = *m;

    if (m->msg_iovlen < 2 || m->msg_iovlen > 64 || m->msg_iov[0].iov_len != sizeof head || ++messages != 60)
        return syscall(SYS_sendmsg, fd, m, flags);
    memcpy(pieces, m->msg_iov, m->msg_iovlen * sizeof *pieces);
    memcpy(head, pieces[0].iov_base, sizeof head);
    head[1] -= 4;
    pieces[0].iov_base = head;
    copy.msg_iov = pieces;
    return syscall(SYS_sendmsg, fd, &copy, flags);
}
EOF
    for i in 1 0; do
        preload=
        [ $i = 0 ] || preload=$work/short.so
        LD_PRELOAD=$preload ASAN_OPTIONS="$ASAN_OPTIONS:verify_asan_link_order=0" start $i -n 1 --nodes 2 train.epochs=100000 --quiet
    done
    wait
    for i in 0 1; do
        code $i 4
        says $i "rank 0 (host "
        says $i "failed with exit code 4 in or after"
        says $i ": rank 1 sent "
    done
    nobody_left
fi

# --- a request to stop on one machine: one checkpoint, both end with 75 ----------------------------
rm -rf "$work"/run.*
# However many epochs are over before the request comes, none of them leaves one.
for i in 1 0; do start $i -n 2 --nodes 2 train.epochs=100000 train.report_every=1st train.checkpoint_every=none --quiet; done
wait_for_steps
kill -TERM "$(processes 1 | head -1)"
wait
code 0 75
code 1 75
n=$((n + 1))
[ "$(ls "$work"/run.0/checkpoints | grep -c '^step')" = 1 ] || fail "not one checkpoint: $(ls "$work"/run.0/checkpoints)"
nobody_left

# --- the one rank of a machine is stopped: a request ends both machines, and so does the limit -----
# The request is obeyed within two seconds.  The clock is a run of one machine under the same load whose rank is stopped before, and
# which ends by its limit, of two seconds.
# clock: starts it; tick: stops its rank
clock() {
    rm -rf "$work/run.clock"
    (
        "$LOCKSTEP" train mnist data.kind=synthetic -n 2 --threads 1 --quiet train.epochs=100000 train.report_every=1st batch.per_rank=8 \
            parallel.stall_s=1 parallel.stall_limit=2 --run-dir "$work/run.clock" >"$work/out.clock" 2>&1 &
        echo $! >"$work/pid.clock"
        wait $!
        echo $? >"$work/code.clock"
        date +%s.%N >"$work/end.clock"
    ) &
    until [ -s "$work/run.clock/metrics.jsonl" ]; do sleep 0.1; done
}
tick() {
    kill -STOP "$(pgrep -P "$(cat "$work/pid.clock")" | tail -1)"
}

for how in asked limit; do
    rm -rf "$work"/run.*
    [ $how = limit ] || clock
    for i in 1 0; do start $i -n 1 --nodes 2 train.epochs=100000 train.report_every=1st --quiet parallel.stall_s=1 parallel.stall_limit=5; done
    wait_for_steps
    kill -STOP "$(processes 1 | tail -1)"
    launcher=$(processes 0 | head -1)
    [ $how = limit ] || { tick && kill -TERM "$launcher"; }
    wait
    for i in 0 1; do
        if [ $how = limit ]; then code $i 4; else code $i 143; fi
        [ $how = limit ] && continue
        n=$((n + 1))
        awk -v a="$(cat "$work/end.$i")" -v b="$(cat "$work/end.clock")" 'BEGIN { print a - b; exit !(a < b) }' ||
            fail "machine $i ended later than after two seconds"
    done
    [ $how = limit ] || code clock 4
    nobody_left
done

# --- machines that were told different things -------------------------------------------------------
start 1 -n 1 --nodes 2
start 0 -n 2 --nodes 2
wait
for i in 0 1; do
    code $i 2
    says $i "was started for 2 machines with 1 ranks each, machine 0 for 2 with 2"
done
start 0 -n 2 --nodes 2 --join-timeout 3
LOCKSTEP_SECRET="another secret of this test" start 1 -n 2 --nodes 2 --join-timeout 3
wait
code 0 1
says 0 "does not know the secret of this run"
says 0 "waited 3 s at $net.1 port $port for machine 1 of 2, none has joined"
code 1 1
says 1 "it has another secret"

# --- no secret: refused on both sides, unless that is asked for ------------------------------------
LOCKSTEP_SECRET='' start 0 -n 1 --nodes 2 --join-timeout 3
LOCKSTEP_SECRET='' start 1 -n 1 --nodes 2 --join-timeout 3
wait
for i in 0 1; do
    code $i 2
    says $i "no secret: any program that reaches $net.1 port $port could join this run"
done
LOCKSTEP_SECRET='' start 0 -n 1 --nodes 2 --insecure train.steps=2 --quiet
LOCKSTEP_SECRET='' start 1 -n 1 --nodes 2 --insecure train.steps=2 --quiet
wait
for i in 0 1; do code $i 0; done
says 0 "--insecure: any program that reaches $net.1 port $port can join this run"
rm -rf "$work"/run.*

# --- nobody there, the wrong address, a taken port --------------------------------------------------
start 1 -n 2 --nodes 2 --join-timeout 1
wait
code 1 1
says 1 "machine 0 does not answer at $net.1"
says 1 "port $port: Connection refused"
says 1 "from $net.2 (eth0)"
on 0 env MASTER_ADDR="$net.77" MASTER_PORT=$port NODE_RANK=0 WORLD_SIZE=2 "$LOCKSTEP" train mnist
code 0 2
says 0 "$net.77"
says 0 "it has $net.1 (eth0)"
on 0 env MASTER_ADDR="$net.1" NODE_RANK=0 WORLD_SIZE=3 "$LOCKSTEP" train mnist -n 2 --nodes 2
code 0 2
says 0 "WORLD_SIZE=3"
start 0 -n 2 --nodes 2 --join-timeout 3
for k in $(seq 50); do # until it listens
    ip netns exec "${prefix}0" bash -c ": </dev/tcp/$net.1/$port" 2>/dev/null && break
    sleep 0.1
done
ip netns exec "${prefix}0" env MASTER_ADDR="$net.1" MASTER_PORT=$port NODE_RANK=0 "$LOCKSTEP" train mnist --nodes 2 >"$work/second" 2>&1
n=$((n + 1))
grep -q "port $port of $net.1 is taken" "$work/second" || fail "a taken port: $(cat "$work/second")"
# Strangers at the port do no harm.
for words in "GET / HTTP/1.1" "LOCKSTP1 who goes there" ""; do
    ip netns exec "${prefix}1" bash -c "exec 3<>/dev/tcp/$net.1/$port; printf '%s\r\n\r\n' '$words' >&3" 2>/dev/null
done
wait
code 0 1
says 0 "does not speak as Lockstep does; it is ignored, as are others like it"
nobody_left
finish
