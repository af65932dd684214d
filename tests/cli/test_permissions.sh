#!/usr/bin/env bash
# test_permissions.sh: where one may not write, commands refuse before they do anything, with the path and what to do.
set -uo pipefail
. "$(dirname "$0")/cli_lib.sh"
enter_work
unset LOCKSTEP_CACHE_DIR
as=() # root may write everywhere: the tests then are somebody else's
if [ "$(id -u)" -eq 0 ]; then
    as=(setpriv --reuid=65534 --clear-groups env "HOME=$work")
    chmod 755 .
    "${as[@]}" "$LOCKSTEP" info >/dev/null 2>&1 || { echo "skipped: the program cannot be run as another user"; exit 77; }
fi

# refuses TEXT ARGUMENT...: exit code 2, and the text
refuses() {
    local text=$1 got
    shift
    n=$((n + 1))
    "${as[@]}" "$LOCKSTEP" "$@" >"$work/out" 2>"$work/err"
    got=$?
    [ "$got" -eq 2 ] || fail "lockstep $*: exit code $got, not 2: $(cat "$work/err")"
    says err "$text"
}

run 0 train linear train.steps=2 --run-dir run --quiet
mkdir closed
chmod 555 closed
refuses 'the run directory closed/x cannot be made: Permission denied; --run-dir names another' train linear --run-dir closed/x
refuses 'closed/owner.json: Permission denied; --run-dir names another' train linear --run-dir closed
refuses 'closed/rep: the folder cannot be made: Permission denied' report run --out closed/rep
says err 'name one where you may write with --out'
refuses 'closed/report.html: Permission denied' report run --out closed
refuses 'closed/f: cannot be written: Permission denied; name a file where you may write' secret new closed/f
# Places that take no files from anybody.
run 2 infer run --out /proc/x.csv
says err '/proc/x.csv: No such file or directory; name a file where you may write'
run 2 ckpt export run none/x.safetensors
says err 'none/x.safetensors: No such file or directory; name a file where you may write'
(cd closed && refuses 'the folder cannot be made: Permission denied; name one where you may write' scale linear --ranks 1 --mode weak && exit "$failures") || fail "scale"
n=$((n + 1))
[ -z "$(ls -A closed)" ] || fail "left in a closed folder: $(ls -A closed)"

# A run that cannot be removed as a whole stays as a whole, and so do those that were named with it.
mkdir -p run/logs/old
touch run/logs/old/file
cp -r run other
[ ${#as[@]} -eq 0 ] || chown -R 65534 run other .
[ ${#as[@]} -eq 0 ] || chown 0 run/logs/old
chmod 555 run/logs/old
(cd run && find . | sort) >before
refuses 'run/logs/old/file cannot be removed: Permission denied; nothing was removed' runs rm ./other ./run --yes
n=$((n + 1))
(cd run && find . | sort) | diff before - || fail "a part of the run was removed"
[ -e other/summary.json ] || fail "of two runs one was removed"
chmod 755 run/logs/old
run 0 runs rm ./other ./run --yes
n=$((n + 1))
[ ! -e run ] && [ ! -e other ] || fail "runs are still there"

[ "$failures" -eq 0 ] && echo "permissions: $n checks, all as expected"
exit $((failures > 0))
