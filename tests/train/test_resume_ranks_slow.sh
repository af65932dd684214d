#!/usr/bin/env bash
# The part of test_resume_ranks that takes its time: four more seeds.
exec "$LS_BUILD_DIR/tests/train/test_resume_ranks" seeds
