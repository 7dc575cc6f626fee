#!/bin/sh
# Make .venv with what a requirements file pins; do nothing when it is already so.
# Usage: config/make_venv.sh REQUIREMENTS_FILE
set -eu

requirements="$1"
venv=.venv

fail() {
    echo "countersign: $1" >&2
    exit 1
}

is_usable() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for name in ${PYTHON:-} python3.11 python3.12 python3.13 python3.14 python3; do
        if command -v "$name" >/dev/null 2>&1 && is_usable "$name"; then
            echo "$name"
            return
        fi
    done
    fail "no Python 3.11 or newer on the PATH (PYTHON=/path/to/python names one)"
}

fingerprint() {
    "$venv/bin/python" - "$@" <<'PYTHON'
import hashlib, pathlib, sys
digest = hashlib.sha256(sys.version.encode())
for name in sys.argv[1:]:
    digest.update(pathlib.Path(name).read_bytes())
print(digest.hexdigest())
PYTHON
}

if ! is_usable "$venv/bin/python"; then
    python=$(find_python)
    "$python" -c 'import ensurepip, venv' >/dev/null 2>&1 ||
        fail "$python has no venv module; on Debian or Ubuntu: apt-get install python3-venv"
    echo "Making $venv with $("$python" --version 2>&1)"
    rm -rf "$venv"
    "$python" -m venv "$venv" || fail "$python could not make $venv"
fi

# The development file takes in the product's, so a change of either counts.
case "$requirements" in
requirements.txt) wanted=$(fingerprint requirements.txt) ;;
*) wanted=$(fingerprint requirements.txt "$requirements") ;;
esac
stamp="$venv/$requirements.stamp"
if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    echo "Installing $requirements"
    "$venv/bin/python" -m pip install --quiet --quiet --disable-pip-version-check \
        --requirement "$requirements" || fail "pip could not install $requirements"
    echo "$wanted" >"$stamp"
fi
