#!/usr/bin/env bash
# test_ranks_killed.sh at 20 moments instead of 4.
LS_MOMENTS=20 exec bash "$(dirname "$(readlink -f "$0")")/test_ranks_killed.sh"
