#!/usr/bin/env bash
# Four machines, and one that is cut off: the others end when its heartbeat is missing, and it does too.
set -uo pipefail
. "$(dirname "$0")/machines_lib.sh"
make_machines 4
export LOCKSTEP_HEARTBEAT=3

# since BEGUN I: seconds from then to the end of machine I
since() {
    awk -v a="$1" -v b="$(cat "$work/end.$2")" 'BEGIN { printf "%.3f", b - a }'
}

for k in 1 2 3 4 5; do
    rm -rf "$work"/run.*
    for i in 3 2 1 0; do start $i -n 2 --nodes 4 train.steps=5 --quiet; done
    wait
    for i in 0 1 2 3; do code $i 0; done
    nobody_left
done

# --- the cable of machine 2 is pulled ---------------------------------------------------------------
rm -rf "$work"/run.*
for i in 3 2 1 0; do start $i -n 2 --nodes 4 train.epochs=100000 train.report_every=1st --quiet; done
wait_for_steps
begun=$(date +%s.%N)
ip -n "${prefix}sw" link set p2 down
wait
for i in 0 1 3; do
    code $i 4
    says $i "machine 2 with ranks 4 to 5 is lost: no sign of life from $net.3"
done
code 2 4
says 2 "machine 0 with ranks 0 to 1 is lost: no sign of life from $net.1"
echo "{\"fault\": \"machine 2 of 4 cut off, limit 3 s\", \"t_stop_s\": $(since "$begun" 0)}"
nobody_left
ip -n "${prefix}sw" link set p2 up

# --- the launcher of machine 1 is killed, and that of machine 0 --------------------------------------
for victim in 1 0; do
    rm -rf "$work"/run.*
    for i in 3 2 1 0; do start $i -n 2 --nodes 4 train.epochs=100000 train.report_every=1st --quiet; done
    wait_for_steps
    begun=$(date +%s.%N)
    kill -9 "$(processes $victim | head -1)"
    wait
    for i in 0 1 2 3; do
        [ $i = $victim ] && continue
        code $i 4
        says $i "machine $victim with ranks $((victim * 2)) to $((victim * 2 + 1)) is lost"
    done
    echo "{\"fault\": \"kill of the launcher of machine $victim\", \"t_stop_s\": $(since "$begun" 3)}"
    nobody_left
done

# --- one machine never comes: those that came say who is missing -------------------------------------
for i in 2 1 0; do start $i -n 2 --nodes 4 --join-timeout 3; done
wait
for i in 0 1 2; do
    code $i 1
    says $i "for machine 3 of 4, machine 1 ("
done
finish
