# machines_lib.sh: several machines on one: network namespaces, joined by a bridge in one more.  Sourced by
# tests/launch/test_machines*.sh; skips the test where this cannot be done.
: "${LOCKSTEP:?the program to test}"
skip() {
    echo "skipped: $*"
    exit 77
}
[ "$(id -u)" = 0 ] || skip "network namespaces need root"
command -v ip >/dev/null || skip "no ip command (Debian: iproute2)"
for module in mpi pmix; do
    [ -e "$LS_BUILD_DIR/lockstep-$module.so" ] || skip "module $module is not in this build"
done
grep -q '^LS_SANITIZE:.*=.*thread' "$LS_BUILD_DIR/CMakeCache.txt" && skip "ThreadSanitizer cannot see into MPI"
export ASAN_OPTIONS=${ASAN_OPTIONS:-}:detect_leaks=0 # MPI and PMIx keep what they allocate until the end

export LOCKSTEP_TUNE=off LOCKSTEP_SECRET="secret of test $$"
unset MASTER_ADDR MASTER_PORT WORLD_SIZE RANK LOCAL_RANK NODE_RANK NNODES GROUP_RANK GROUP_WORLD_SIZE
work=$(mktemp -d)
export TMPDIR=$work/tmp # where launchers have their folders
mkdir "$TMPDIR"
prefix=ls$$x
net=10.$((200 + $$ % 50)).$(($$ / 50 % 250))
port=$((20000 + $$ % 20000))
n=0 failures=0

fail() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

clean() {
    local i
    for i in 0 1 2 3 sw; do ip netns del "$prefix$i" 2>/dev/null; done
    rm -rf "$work"
}
trap clean EXIT

# make_machines N: machines 0 to N-1, of which machine I has the address $net.(I+1)
make_machines() {
    local i
    ip netns add "${prefix}sw" 2>/dev/null && ip -n "${prefix}sw" link add br0 type bridge 2>/dev/null ||
        skip "network namespaces are not allowed here"
    ip -n "${prefix}sw" link set br0 up
    for i in $(seq 0 $(($1 - 1))); do
        ip netns add "$prefix$i"
        ip -n "$prefix$i" link set lo up
        ip -n "${prefix}sw" link add "p$i" type veth peer name eth0 netns "$prefix$i" || skip "no virtual network devices here"
        ip -n "${prefix}sw" link set "p$i" master br0 up
        ip -n "$prefix$i" addr add "$net.$((i + 1))/24" dev eth0
        ip -n "$prefix$i" link set eth0 up
    done
}

# on I COMMAND...: on machine I; output in $work/out.I, exit code in $work/code.I, seconds since the epoch in $work/end.I
on() {
    local i=$1
    shift
    ip netns exec "$prefix$i" timeout -s KILL 60 "$@" >"$work/out.$i" 2>&1
    echo $? >"$work/code.$i"
    date +%s.%N >"$work/end.$i"
}

# start I ARGUMENT...: the program on machine I in the background, with machine 0 as master
start() {
    local i=$1 where=()
    shift
    # A run begins in a directory of its own, and goes on in the one that is named.
    case "$*" in *--resume*) ;; *) rm -rf "$work/run.$i" && where=(--run-dir "$work/run.$i") ;; esac
    on "$i" env MASTER_ADDR="$net.1" MASTER_PORT=$port NODE_RANK="$i" "$LOCKSTEP" train mnist data.kind=synthetic \
        "${where[@]}" "$@" &
}

# code I CODE, says I TEXT: of the last command on machine I
code() {
    n=$((n + 1))
    [ "$(cat "$work/code.$1")" = "$2" ] || fail "machine $1: exit code $(cat "$work/code.$1"), not $2: $(tail -5 "$work/out.$1")"
}
says() {
    n=$((n + 1))
    grep -qF -- "$2" "$work/out.$1" || fail "machine $1 does not say \"$2\": $(head -c 800 "$work/out.$1")"
}

# processes I: those of the program on machine I, the launcher first
processes() {
    local p
    for p in $(ip netns pids "$prefix$1" 2>/dev/null | sort -n); do
        [ "$(readlink "/proc/$p/exe")" = "$(readlink -f "$LOCKSTEP")" ] && echo "$p"
    done
}

# Nothing of the program is left on any machine.
nobody_left() {
    local i left
    for i in 0 1 2 3; do
        left=$(processes "$i")
        n=$((n + 1))
        [ -z "$left" ] || fail "machine $i: still there: $left"
    done
}

# wait_for_steps: until machine 0 has reported a step
wait_for_steps() {
    local k
    for k in $(seq 300); do
        [ -s "$work/run.0/metrics.jsonl" ] && return
        sleep 0.1
    done
    fail "no step in 30 s: $(tail -3 "$work/out.0")"
}

finish() {
    echo "$n checks, $failures failed"
    [ "$failures" -eq 0 ]
}
