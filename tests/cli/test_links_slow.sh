#!/usr/bin/env bash
# Collectives that devices run among themselves (backend/links.h): here ranks on `far` with a library of the tests' own
# (tools/fake_nccl.c), which adds up as ranks do.  Every strategy ends with the bits that ranks have whose
# exchanges pass through the host; ranks that share a device, an old library or LOCKSTEP_NCCL=off leave them there; a library
# that fails and a rank that is killed, also while groups are joined, end the run, with the first cause.
. "$(dirname "$0")/cli_lib.sh"
enter_work
needs_python
export LD_LIBRARY_PATH=$LS_BUILD_DIR/tests/fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LOCKSTEP_FAR_SEED=${LOCKSTEP_FAR_SEED:-$((RANDOM * 32768 + RANDOM + 1))}
echo "LOCKSTEP_FAR_SEED=$LOCKSTEP_FAR_SEED"
small=(data.kind=synthetic data.train_range=0:30 data.test_range=30:36 batch.per_rank=2 train.report_every=1st --device far --quiet)

# said RUN: what its ranks say of their collectives
said() {
    sed -n 's/.*what ranks exchange goes \(.*\)/\1/p' "$1"/logs/rank-*.log | sort -u
}

# alike ARGUMENT...: devices among themselves end where ranks end that exchange through the host
alike() {
    rm -rf host links
    run 0 train "$@" "${small[@]}" --run-dir host
    LOCKSTEP_FAR_LINKS=1 run 0 train "$@" "${small[@]}" --run-dir links
    n=$((n + 2))
    [ -n "$(hash host)" ] && [ "$(hash host)" = "$(hash links)" ] || fail "$*: $(hash links), through the host $(hash host)"
    said links | grep -q '^by NCCL 2.28.3: ' || fail "$*: devices did nothing: $(said links)"
    said host | grep -q '^through the host: LOCKSTEP_FAR_LINKS' || fail "$*: $(said host)"
}

alike linear -n 3 train.steps=5
alike mnist -n 2 train.epochs=2 optimizer.name=lamb parallel.clip_norm=0.5 # the last batches are of one sample, or of none
alike mnist -n 2 train.steps=3 parallel.accumulate=2 parallel.strategy=zero1
alike vit-tiny model.depth=2 -n 2 train.steps=2 parallel.strategy=fsdp precision=bf16 train.validate_every=1st
alike vit-tiny model.depth=1 -n 4 train.steps=2 parallel.strategy=hybrid parallel.shard_group=2 batch.per_rank=1
alike cosmogan model.size=16 model.width=2 -n 2 train.steps=2 parallel.sync_batchnorm=true

# Sums that follow the tree over shards stay the host's.
LOCKSTEP_FAR_LINKS=1 run 0 train linear -n 2 train.steps=3 reproducible=true parallel.shards=4 "${small[@]}" --run-dir tree
run 0 train linear -n 1 train.steps=3 reproducible=true parallel.shards=4 "${small[@]}" batch.per_rank=4 --run-dir tree1
[ "$(hash tree)" = "$(hash tree1)" ] || fail "reproducible: other bits on 2 ranks"

# Who does not use it says why, in the log.
three=(linear -n 2 train.steps=3)
LOCKSTEP_FAR_LINKS=1 LOCKSTEP_FAR_SHARED=1 run 0 train "${three[@]}" "${small[@]}" --run-dir shared
said shared | grep -q 'through the host: ranks share a device' || fail "shared: $(said shared)"
LOCKSTEP_FAR_LINKS=1 LOCKSTEP_NCCL=off run 0 train "${three[@]}" "${small[@]}" --run-dir off
said off | grep -q 'through the host: LOCKSTEP_NCCL=off' || fail "off: $(said off)"
LOCKSTEP_FAR_LINKS=1 FAKE_NCCL_VERSION=20905 run 0 train "${three[@]}" "${small[@]}" --run-dir old
said old | grep -q 'is of version 2.9, and 2.10 or later of 2 is needed' || fail "old: $(said old)"

# The library fails on one rank: both end, and what it said comes first.
n=$((n + 2))
LOCKSTEP_FAR_LINKS=1 FAKE_NCCL_FAILS=3 timeout 60 "$LOCKSTEP" train linear -n 2 train.steps=1000000 "${small[@]}" --run-dir fails >out 2>err
code=$?
[ $code -ne 0 ] && [ $code -ne 124 ] || fail "a library that fails: exit code $code"
grep -q 'NCCL: while it was under way: unhandled system error' err || fail "a library that fails: $(cat err)"

# A rank dies while the others join their group: the library waits for it, and they do not.
n=$((n + 2))
LOCKSTEP_FAR_LINKS=1 FAKE_NCCL_DIES=1 timeout 60 "$LOCKSTEP" train linear -n 2 train.steps=3 "${small[@]}" --run-dir dies >out 2>err
code=$?
[ $code -eq 4 ] || fail "a rank that dies as it joins: exit code $code, not 4: $(cat err)"
grep -q 'rank 1 ' err || fail "a rank that dies as it joins is not named: $(cat err)"

# A rank is killed while devices wait for each other.
LOCKSTEP_FAR_LINKS=1 "$LOCKSTEP" train linear -n 2 train.steps=100000000 "${small[@]}" --run-dir killed >out 2>err &
pids=($!)
reached killed 3 "${pids[0]}"
read -ra ranks <"/proc/${pids[0]}/task/${pids[0]}/children"
kill -KILL "${ranks[1]}"
n=$((n + 1))
wait "${pids[0]}"
code=$?
pids=()
[ $code -eq 4 ] || fail "a killed rank: exit code $code, not 4: $(cat err)"
grep -q 'rank 1 ' err || fail "a killed rank is not named: $(cat err)"

[ "$failures" -eq 0 ] && echo "links: $n checks, all as expected"
exit $((failures > 0))
