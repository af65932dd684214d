# many_hosts_lib.sh: several machines on one, for measurements: network namespaces of one rank of one thread each, behind links of one
# switch.  Sourced by predict_blind.sh and predict_best.sh, which set `hosts` (how many) and `out` (a folder), and say what these mean:
#   SHARE: percent of a core that each has (cgroups of version 1 or 2), for machines with fewer cores than hosts: together they must leave
#          room for what the kernel does for the wire.  Steps should take long against the 20 ms in which shares are dealt.
#   LOCKSTEP (build/lockstep); SWITCH: a compiled wire_switch (else it is compiled)
# A link without delay is the kernel's (a bridge, tbf); one with it is bench/wire_switch.c in the bridge's place, which wants cores of its own
# beside those of the machines.  Needs root, ip, tc and python3.
here=$(cd "$(dirname "$0")/.." && pwd)
lockstep=$(readlink -f "${LOCKSTEP:-$here/build/lockstep}")
export LOCKSTEP_EXPERIMENTS=${LOCKSTEP_EXPERIMENTS:-$here/experiments} LOCKSTEP_SECRET="between machines $$"
cores=$(nproc) work=$(mktemp -d) share=${SHARE:-} groups=/sys/fs/cgroup
net=10.$((100 + $$ % 100)).$(($$ / 100 % 250)) port=$((20000 + $$ % 20000)) name=pb$$ switch=${SWITCH:-}
[ -d $groups/cpu ] && groups=$groups/cpu
clean() {
    [ -z "${switch_pid:-}" ] || kill "$switch_pid" 2>/dev/null || true
    for ((i = 0; i < hosts; i++)); do ip netns del "$name-$i" 2>/dev/null || true; done
    ip netns del "$name-s" 2>/dev/null || true
    for ((i = 0; i < hosts; i++)); do [ ! -d "$groups/$name-$i" ] || rmdir "$groups/$name-$i" 2>/dev/null || true; done
    rm -rf "$work"
}
trap clean EXIT

# shape NAMESPACE DEVICE MBIT: what leaves by it
shape() { tc -n "$1" qdisc add dev "$2" root tbf rate "$3mbit" burst 70kb latency 100ms; }

# link MBIT:US: HOSTS machines behind such links
link() {
    local i at first=() rate=${1%:*} delay=${1#*:}
    clean
    mkdir -p "$work"
    switch_pid=
    for ((i = 0; i < hosts; i++)); do ip netns add "$name-$i"; done
    if [ "$delay" -gt 0 ]; then
        [ -n "$switch" ] || { switch=$out/wire_switch && "${CC:-cc}" -O2 -D_GNU_SOURCE -pthread -o "$switch" "$here/bench/wire_switch.c"; }
        : >"$work/switch"
        # Where it shares cores with machines, it goes first, as a switch does that is none of them.
        [ "$hosts" -lt "$cores" ] || ! chrt -f 10 true 2>/dev/null || first=(chrt -f 10)
        # shellcheck disable=SC2046,SC2068 # names without spaces
        ${first[@]} taskset -c "$((hosts < cores ? hosts : 0))-$((cores - 1))" "$switch" $([ "$hosts" -lt "$cores" ] || echo -s) "$rate" "$delay" $(for ((i = 0; i < hosts; i++)); do echo "$name-$i"; done) >"$work/switch" &
        switch_pid=$!
        until grep -q ready "$work/switch"; do kill -0 $switch_pid; done
    else
        ip netns add "$name-s"
        ip -n "$name-s" link add br0 type bridge
        ip -n "$name-s" link set br0 up
        for ((i = 0; i < hosts; i++)); do
            ip -n "$name-$i" link add eth0 type veth peer name "p$i" netns "$name-s"
            ip -n "$name-s" link set "p$i" master br0 up
            shape "$name-$i" eth0 "$rate"
            shape "$name-s" "p$i" "$rate"
        done
    fi
    for ((i = 0; i < hosts && delay > 0; i++)); do shape "$name-$i" eth0 "$rate"; done
    for ((i = 0; i < hosts; i++)); do
        ip -n "$name-$i" addr add "$net.$((i + 1))/24" dev eth0
        ip -n "$name-$i" link set lo up
        ip -n "$name-$i" link set eth0 up
    done
}

# core HOST COMMAND...: on its core, or its share of one
core() {
    local i=$1 group=$groups/$name-$1 period=20000
    shift
    if [ -n "$share" ] && mkdir -p "$group"; then
        if [ -f "$group/cpu.max" ]; then echo "$((share * period / 100)) $period" >"$group/cpu.max"
        else echo $period >"$group/cpu.cfs_period_us" && echo $((share * period / 100)) >"$group/cpu.cfs_quota_us"; fi
        set -- sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
    fi
    taskset -c "$((i % cores))" "$@"
}

# on HOST COMMAND...: as that machine
on() {
    local i=$1
    shift
    core "$i" ip netns exec "$name-$i" env MASTER_ADDR="$net.1" MASTER_PORT=$port NODE_RANK="$i" "$@"
}

# together N EXPORT ARGUMENT...: `bench` with these on N machines; machine 0's export goes to EXPORT ("": none), what it says to $work/said
together() {
    local n=$1 export=$2 i
    shift 2
    for ((i = 1; i < n; i++)); do on "$i" "$lockstep" bench "$@" --nodes "$n" >/dev/null 2>"$work/err.$i" & pids[i]=$!; done
    on 0 "$lockstep" bench "$@" --nodes "$n" ${export:+--export "$export"} --json >"$work/said" 2>"$work/err.0" || { cat "$work"/err.* >&2; exit 1; }
    for ((i = 1; i < n; i++)); do wait "${pids[$i]}" || true; done
    port=$((port + 1))
}

# apart N EXPORT ARGUMENT...: N of them at the same time, each by itself on its core; the export of the first.  The others only take steps,
# until it is done: what `bench` measures when its steps are over (what the memory gives) would be in the first one's times.
apart() {
    local n=$1 export=$2 i
    shift 2
    for ((i = 1; i < n; i++)); do core "$i" sh -c 'echo $$ >"$0" && exec "$@"' "$work/pid.$i" "$lockstep" bench "$@" --seconds 3600 >/dev/null 2>&1 & pids[i]=$!; done
    core 0 "$lockstep" bench "$@" --export "$export" >"$work/said" 2>"$work/err.0" || { cat "$work/err.0" >&2; exit 1; }
    for ((i = 1; i < n; i++)); do until [ -s "$work/pid.$i" ]; do kill -0 "${pids[$i]}" || break; done; kill "$(cat "$work/pid.$i")"; rm "$work/pid.$i"; done
    for ((i = 1; i < n; i++)); do wait "${pids[$i]}" || true; done
}
