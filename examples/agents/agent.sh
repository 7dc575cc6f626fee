#!/bin/sh
# A small agent in curl: claims one step, works on it, hands in a file and a hand-off.
#
#   COUNTERSIGN_TOKEN=… ./agent.sh [URL]
#
# It uses the blackboard calls one by one, as an agent with a shell would. Needs curl and sed.
set -eu

url="${1:-${COUNTERSIGN_URL:-http://127.0.0.1:8000}}"
: "${COUNTERSIGN_TOKEN:?set COUNTERSIGN_TOKEN to the token of an agent with the scope execute}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT

call() { # call METHOD PATH [CURL OPTIONS…]
    method="$1" path="$2"
    shift 2
    # The token stands in a file, not on the command line, where other users could read it.
    printf 'header = "Authorization: Bearer %s"\n' "$COUNTERSIGN_TOKEN" |
        curl --config - --silent --show-error --fail-with-body --max-time 60 \
            --request "$method" "$@" "$url$path"
}
send() { # send PATH JSON
    call POST "$1" --header 'Content-Type: application/json' --data "$2"
}
field() { # field NAME: the first text member of that name, from standard input
    sed -n 's/.*[{,]"'"$1"'":"\([^"\\]*\)".*/\1/p' | head -n 1
}

claimed="$(send /api/assignments/claim '{"seats": ["executor"], "wait": 30}')"
if [ -z "$claimed" ]; then
    echo "nothing to do"
    exit 0
fi
project="$(printf '%s' "$claimed" | sed 's/,"title".*//' | field project_slug)"
task="$(printf '%s' "$claimed" | sed 's/,"title".*//' | field task)"
here="/api/projects/$project/tasks/$task"

send "$here/status" '{"status": "working"}' >"$work/answer"

# The work: an inventory of everything that is known about the task, taken from the server.
call GET "$here?expand=all" >"$work/task.json"
{
    echo "# Inventory of task $task"
    echo
    echo "- bytes known: $(wc -c <"$work/task.json" | tr -d ' ')"
    echo "- members: $(grep -o '"[a-z_]*":' "$work/task.json" | sort -u | wc -l | tr -d ' ')"
    echo "- sha-256: $(sha256sum "$work/task.json" | cut -d ' ' -f 1)"
} >"$work/inventory.md"

call POST "$here/outputs" --form "file=@$work/inventory.md" --form title=Inventory \
    --form type=document --form "summary=What the server knows about the task" >"$work/answer"
send "$here/comments" '{"comment_type": "handoff", "body":
    "Decisions: none. Problems: none. Advice: the inventory is the output."}' >"$work/answer"
send "$here/status" '{"status": "review"}' >"$work/answer"
echo "$(field key <"$work/answer"): $(field status <"$work/answer")"
