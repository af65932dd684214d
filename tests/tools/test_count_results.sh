#!/usr/bin/env bash
# ./check counts what ctest reports, and never takes a test that did not run for one that passed or was skipped.
set -euo pipefail
cd "$(dirname "$0")/../.."
failures=0

# expect "P F S" NAME LINE...
expect() {
    local want=$1 name=$2 got
    shift 2
    got=$(printf '%s\n' "$@" | awk -f scripts/count_results)
    if [ "$got" = "$want" ]; then
        echo "$name: $got"
    else
        echo "$name: expected $want, got $got"
        failures=$((failures + 1))
    fi
}

pass='<testcase name="a" status="run"> <system-out>text</system-out> </testcase>'
fail='<testcase name="a" status="fail"> <failure message=""/> </testcase>'
skip='<testcase name="a" status="notrun"> <skipped message="SKIP_RETURN_CODE=77"/> </testcase>'
lost='<testcase name="a" status="notrun"> <skipped message="Unable to find executable"/> </testcase>'
expect "2 1 1" "one of each"           '<testsuite>' "$pass" "$fail" "$pass" "$skip" '</testsuite>'
expect "1 1 0" "program is missing"    '<testsuite>' "$pass" "$lost" '</testsuite>'
expect "1 1 0" "file was cut off"      '<testsuite>' "$pass"
expect "0 1 0" "no test at all"        '<testsuite>' '</testsuite>'
expect "0 1 0" "empty file"            ''
expect "1 0 0" "a test prints markup"  '<testsuite>' '<testcase name="a" status="run">' \
    '<system-out>&lt;skipped message="SKIP_RETURN_CODE=77"/&gt;</system-out>' '</testcase>' '</testsuite>'
[ "$failures" -eq 0 ]
