#!/usr/bin/env bash
# test_runs_live.sh: `lockstep runs` and `lockstep report --watch` on a run that goes on: it is listed as running, cannot be removed, is
# followed, ends when it is asked to; a process that only has the owner's number is left alone.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"
cd "$work" || exit 1

# await COMMAND...: until it succeeds
await() {
    local limit=$((SECONDS + 100))
    until "$@" 2>/dev/null; do
        [ $SECONDS -lt $limit ] || { fail "never: $*"; return 1; }
        sleep 0.05
    done
}
train() {
    "$LOCKSTEP" train mnist data.kind=synthetic train.steps=1000000 train.report_every=20st --threads 1 --quiet --run-dir "runs/$1" >train.out 2>train.err &
    pid=$!
    await test -s "runs/$1/metrics.jsonl"
}

train one
run 0 runs --json
holds 'o["runs"][0]["state"] == "running" and o["runs"][0]["alive"]'
run 2 runs rm --yes one
says err "is running (process $pid on"
"$LOCKSTEP" runs logs one -f >followed 2>&1 &
follower=$!
"$LOCKSTEP" report runs/one --watch --out page >watched 2>&1 &
watcher=$!
"$LOCKSTEP" report runs/one --watch --out other >watched2 2>&1 &
other=$!
await grep -q 'http-equiv="refresh"' page/report.html
await grep -q watching watched2
# Ctrl-C ends the watching, not the run, and the page stays as it is.
kill -INT $other
wait $other || fail "a watch that was ended has failed: $(cat watched2)"
n=$((n + 2))
grep -q 'http-equiv="refresh"' other/report.html && fail "the page goes on loading itself"
kill -0 $pid || fail "the run ended with the watch"
# A stopped process answers nobody: why, and what helps, is said at once, and the request holds.
kill -STOP $pid
"$LOCKSTEP" runs stop one >"$work/out" 2>"$work/err" &
stopper=$!
await grep -q "process $pid does not answer because it is stopped" "$work/err"
says err "kill -CONT $pid"
kill -CONT $pid
n=$((n + 1))
wait $stopper || fail "runs stop: $(cat "$work/err")"
says out "asked process $pid to write a checkpoint and end"
says out "runs/one: paused"
n=$((n + 4))
wait $pid
[ $? -eq 75 ] || fail "the run did not end as one that is stopped: $(cat train.err)"
wait $follower || fail "logs -f did not end with the run"
grep -q "weights" followed || fail "logs -f missed the end: $(tail -3 followed)"
wait $watcher || fail "the watch did not end with the run: $(cat watched)"
grep -q 'http-equiv="refresh"' page/report.html && fail "the page of a run that ended loads itself"
grep -q 'its state is &quot;paused&quot;' page/report.html || fail "the page does not have the run's end"
run 0 runs stop one
says out "was over before: paused"

# One that dies without a word is killed at once, in lists and reports.
train two
kill -STOP $pid
run 1 runs stop two --timeout 0.2
says err "process $pid is stopped (state T); kill -CONT $pid"
n=$((n + 1))
grep -q "asked once more" "$work/err" && fail "to ask again helps no stopped process: $(cat "$work/err")"
kill -9 $pid
wait $pid 2>/dev/null
run 0 runs list --where run=two
says out "killed, no sign of life since 20"
run 0 report runs/two --out dead
says out "runs/two (killed)"
run 0 runs rm --yes two

# The number of the owner is another's now: it is not touched.  Another machine's run: what to do there.
if $have_json; then
    cp -r runs/one runs/three
    sleep 300 &
    innocent=$!
    boot=$(cat /proc/sys/kernel/random/boot_id)
    owner() {
        printf '{"pid": %s, "host": "n2", "boot": "%s", "start": "2026-11-02T00:00:00.000Z", "epoch": 9, "begun": true, "name": "m", "command": "x", "version": "0.1.0"}\n' \
            "$innocent" "$1" >runs/three/owner.json
    }
    owner "$boot"
    python3 -c '
import fcntl, struct, time
f = open("runs/three/owner.json", "r+")
fcntl.fcntl(f, 37, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, 0, 0, 0))  # F_OFD_SETLK
open("locked", "w").close()
time.sleep(300)' &
    holder=$!
    await test -e locked
    run 1 runs stop three
    says err "process $innocent is not the one that owns the run"
    n=$((n + 1))
    kill -0 $innocent || fail "a process that owns nothing was ended"
    run 2 runs rm --yes three
    owner 00000000-0000-0000-0000-000000000000
    run 2 runs stop three
    says err "runs on n2 (process $innocent); there: lockstep runs stop $work/runs/three"
    kill $innocent $holder
    wait $innocent $holder 2>/dev/null
fi

# A browser, or none.
printf '#!/bin/sh\necho "$1" >"%s/shown.part" && mv "%s/shown.part" "%s/shown"\n' "$work" "$work" "$work" >browse
chmod +x browse
BROWSER=/nowhere/at/all:$work/browse run 0 report runs/one --out page --open
await test -e shown
n=$((n + 1))
[ "$(cat shown)" = "$work/page/report.html" ] || fail "the browser got $(cat shown)"
BROWSER=/nowhere/at/all run 1 report runs/one --out page --open
says err "no browser: /nowhere/at/all cannot be started"
says err "open $work/page/report.html yourself"
# One that fails at once shows nothing, whatever it is called.
BROWSER=/bin/false run 1 report runs/one --out page --open
says err "no browser: /bin/false cannot be started (it ended at once, with exit code 1)"
says err "open $work/page/report.html yourself"
rm shown
BROWSER=/bin/false:$work/browse run 0 report runs/one --out page --open
await test -e shown

echo "$n checks, $failures failed"
[ "$failures" -eq 0 ]
