#!/usr/bin/env bash
# Every test that needs an NVIDIA GPU, in one call; with COMPARE=1 also the benchmarks next to hand-written CUDA.
#
#   tests/gpu/run.sh [FOLDER]        PYTHON=... names the interpreter
#
# Reports go to FOLDER where one is given. The exit status is that of the tests.
set -u
cd "$(dirname "$0")/../.." || exit 1
python=${PYTHON:-python}
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}"
folder=${1:-}
report=()
if [ -n "$folder" ]; then
    mkdir -p "$folder" && report=(--junitxml "$folder/gpu.xml")
fi

"$python" - <<'PYTHON' || exit 1
from numba_offload import available_targets
from numba_offload.targets.registry import target_state, why_unavailable

print("targets:", *available_targets())
why = why_unavailable("cuda")
if why is not None:
    raise SystemExit(f"no test can run on a GPU here: {why}")
target = target_state("cuda").target
print("architecture:", target.arch, "limits:", target.limits)
PYTHON

status=0
"$python" -m pytest -m cuda -q "${report[@]}" tests || status=1
"$python" -m pytest -q tests/targets || status=1
if [ "${COMPARE:-0}" = 1 ]; then
    "$python" -m benchmarks.rajaperf --target cuda --check || status=1
    "$python" -m benchmarks.compare --target cuda --size 16000000 || status=1
fi
exit $status
