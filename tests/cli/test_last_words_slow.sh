#!/usr/bin/env bash
# A failure that all ranks find alike: rank 0 tells it, on its disk, too, however slow that is, and no rank that is quicker has the
# run ended over its words.
set -uo pipefail
. "$(dirname "$(readlink -f "$0")")/cli_lib.sh"
enter_work
command -v cc >/dev/null || { echo "skipped: no cc" && exit 77; }
small=(mnist batch.per_rank=8 data.kind=synthetic data.train_range=0:100 data.test_range=100:120 train.steps=20 optimizer.lr=1e6 train.checkpoint_every=none --quiet)

# A disk that takes longer than the launcher would wait once a rank has left (launch/watch.c).
cat >slow.c <<'C'
#include <time.h>
int fsync(int fd)
{
    (void)fd;
    nanosleep(&(struct timespec){0, 600000000}, NULL);
    return 0;
}
C
cc -shared -fPIC -o slow.so slow.c || exit 1

# diverges NAME WAY...: ends with code 1, and the summary says of what, and which weights it left
diverges() {
    local name=$1
    shift
    run 1 train "${small[@]}" --run-dir "$name" "$@"
    says err 'the training has diverged'
    n=$((n + 3))
    [ "$(grep -c 'the training has diverged' "$work/err")" -eq 1 ] || fail "$name: not said once: $(cat "$work/err")"
    grep -q '"state": "failed"' "$name/summary.json" || fail "$name: $(grep '"state"' "$name/summary.json")"
    grep -q '"error": "step 3: loss is not a number' "$name/summary.json" || fail "$name: no reason in summary.json"
}

diverges alone -n 1
for way in '-n 2' '-n 2 parallel.carry=always' '-n 3 parallel.strategy=fsdp'; do
    diverges quick $way
    [ -z "$(hash quick)" ] && [[ $way != *fsdp* ]] && fail "$way: no hash"
    LD_PRELOAD=$work/slow.so ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0 diverges slow $way
    n=$((n + 1))
    [ "$(hash slow)" = "$(hash quick)" ] || fail "$way: a slow disk leaves $(hash slow), a quick one $(hash quick)"
    rm -rf quick slow
done

[ "$failures" -eq 0 ] && echo "last words: $n checks, all as expected"
exit $((failures > 0))
