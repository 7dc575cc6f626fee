"""Small `go`, `node`, `npm` and `bun` that answer as the real ones do: exit codes and formats.

They read the workspace: a test passes unless its body says `fail`, a file compiles unless it says
`undefined`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

GO = r"""#!/bin/sh
verb=$1
bad=$(grep -l undefined *.go 2>/dev/null | head -1)
if [ -n "$bad" ]; then
  echo "# example.com/app" >&2
  echo "./$bad:3:2: undefined: undefined" >&2
  [ "$verb" = test ] && echo "FAIL	example.com/app [build failed]"
  exit 1
fi
[ "$verb" = build ] && exit 0
if ! ls *_test.go >/dev/null 2>&1; then
  echo "?   	example.com/app	[no test files]"
  exit 0
fi
code=0
for name in $(sed -n 's/^func \(Test[A-Za-z0-9_]*\).*/\1/p' *_test.go); do
  echo "=== RUN   $name"
  if grep -q "^func $name.*Fatal" *_test.go; then
    echo "--- FAIL: $name (0.00s)"
    code=1
  else
    echo "--- PASS: $name (0.00s)"
  fi
done
if [ $code = 0 ]; then
  echo PASS
  echo "ok  	example.com/app	0.002s"
else
  echo FAIL
  echo "FAIL	example.com/app	0.002s"
  echo FAIL
fi
exit $code
"""

NODE = r"""#!/bin/sh
[ "$1" = --test ] || exit 9
good=$(cat *.test.js 2>/dev/null | grep -c 'test(.*pass')
bad=$(cat *.test.js 2>/dev/null | grep -c 'test(.*fail')
echo "TAP version 13"
echo "1..$((good + bad))"
echo "# tests $((good + bad))"
echo "# suites 0"
echo "# pass $good"
echo "# fail $bad"
echo "# cancelled 0"
echo "# duration_ms 41.5"
[ "$bad" = 0 ]
"""

NPM = r"""#!/bin/sh
[ "$1" = run ] || exit 1
script=$(sed -n "s/.*\"$2\": *\"\([^\"]*\)\".*/\1/p" package.json | head -1)
if [ -z "$script" ]; then
  echo "npm error Missing script: \"$2\"" >&2
  exit 1
fi
echo
echo "> app@1.0.0 $2"
echo "> $script"
echo
exec sh -c "$script"
"""

BUN = r"""#!/bin/sh
if [ "$1" = run ]; then
  script=$(sed -n "s/.*\"$2\": *\"\([^\"]*\)\".*/\1/p" package.json | head -1)
  [ -n "$script" ] || { echo "error: Script not found \"$2\"" >&2; exit 1; }
  echo "\$ $script"
  exec sh -c "$script"
fi
echo "bun test v1.1.34"
if ! ls *.test.js >/dev/null 2>&1; then
  echo "error: 0 test files matching **{.test,.spec,_test_,_spec_}.{js,ts,jsx,tsx} in --cwd" >&2
  exit 1
fi
good=$(cat *.test.js | grep -c 'test(.*pass')
bad=$(cat *.test.js | grep -c 'test(.*fail')
echo
echo " $good pass"
echo " $bad fail"
echo "Ran $((good + bad)) tests across 1 files. [9.00ms]"
[ "$bad" = 0 ]
"""

PROGRAMS: Mapping[str, str] = {"go": GO, "node": NODE, "npm": NPM, "bun": BUN}


def install(folder: Path, *names: str) -> None:
    """Put some of the programs into a directory of a PATH, where any user may run them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(PROGRAMS[name])
        (folder / name).chmod(0o755)
