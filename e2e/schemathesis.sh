#!/usr/bin/env bash
# Runs schemathesis against a quernd with its own database, to find server errors and responses that are not in the
# contract. $SCHEMATHESIS is the program. `make stack` must have started the servers.
set -euo pipefail
cd "$(dirname "$0")/.."

set -a
. "${QUERN_STACK_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/quern/stack}/env"
set +a

work=$(mktemp -d)
database=schemathesis_$$
quernd=

sql() { psql -qX -v ON_ERROR_STOP=1 "$QUERN_TEST_DATABASE_URL" -c "$1"; }

cleanup() {
  local status=$?
  if [[ -n $quernd ]]; then kill "$quernd" && wait "$quernd" || status=1; fi
  sql "DROP DATABASE IF EXISTS $database WITH (FORCE)"
  if ((status != 0)); then grep -F '"level":"ERROR"' "$work/log" >&2 || true; fi
  rm -rf "$work"
  exit "$status"
}
trap cleanup EXIT

# field NAME prints a field of the JSON object on standard input.
field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }

sql "CREATE DATABASE $database"
CGO_ENABLED=0 go build -trimpath -tags scripted -o "$work/quernd" ./cmd/quernd
go build -trimpath -o "$work/" ./cmd/quern-engine
QUERN_DATABASE_URL=$(python3 -c 'import sys, urllib.parse as u; print(u.urlparse(sys.argv[1])._replace(path=sys.argv[2]).geturl())' \
  "$QUERN_TEST_DATABASE_URL" "/$database")
export QUERN_DATABASE_URL QUERN_LISTEN_ADDR=127.0.0.1:0 QUERN_ADMIN_ADDR=127.0.0.1:0 QUERN_DRAIN_DELAY=0s
# A scripted agent answers questions without a model.
export QUERN_TEST_SCRIPTED=true
export QUERN_S3_BUCKET=$QUERN_TEST_S3_BUCKET QUERN_S3_PREFIX=$database-$(date +%s)
"$work/quernd" migrate
touch "$work/log"
"$work/quernd" serve 2>>"$work/log" &
quernd=$!

url=
for _ in {1..300}; do
  url=$(sed -n 's/.*"what":"api","address":"\([^"]*\)".*/http:\/\/\1\/api\/v1/p' "$work/log")
  if [[ -n $url ]] && curl -fs --noproxy '*' -o "$work/openapi.json" "$url/openapi.json"; then break; fi
  kill -0 "$quernd"
  sleep 0.1
done

# An access token may expire during the run, so use an API token with all rights.
access=$(curl -fsS --noproxy '*' "$QUERN_OIDC_ISSUER/protocol/openid-connect/token" -d grant_type=password \
  -d client_id=quern-console -d username=ada -d password=ada-pw | field access_token)
token=$(curl -fsS --noproxy '*' "$url/user/tokens" -H "Authorization: Bearer $access" -d '{"name": "schemathesis", "role": "owner"}' \
  -H 'Content-Type: application/json' | field token)

# post PATH BODY [HEADER]... sends a request as the owner of the token, and prints the response.
post() {
  local path=$1 body=$2 headers=()
  for header in "Authorization: Bearer $token" 'Content-Type: application/json' "${@:3}"; do headers+=(-H "$header"); done
  curl -fsS --noproxy '*' "$url$path" -d "$body" "${headers[@]}"
}

# Create a run with rows, because requests with generated ids would only return 404.
post /ingest/new/shop/orders '{}' >/dev/null
post /ingest/shop/orders '{"data": [{"region": "north", "amount": 3}, {"region": "south", "amount": 4}]}' >/dev/null
asked=$(post /query/ask '{"username": "self", "namespace": "shop", "query": "{\"steps\": [{\"instruction\": \"read\", \"queries\": [\"FROM orders\"]}]}"}' \
  'Accept: application/json')
RUN_ID=$(field runId <<<"$asked")
CONVERSATION_ID=$(field conversationId <<<"$asked")
export RUN_ID CONVERSATION_ID

cp e2e/schemathesis_hooks.py "$work/hooks.py"
links=$PWD/e2e/schemathesis_links.py
export SCHEMATHESIS_HOOKS=hooks

cd "$work"

# look PHASES EXAMPLES... runs schemathesis. These checks are left out:
# - positive_data_acceptance: not every value that fits a schema is accepted. A cursor, for example, must come from an earlier page.
# - negative_data_rejection, for callAgent and callTool only: JSON-RPC reports errors with the status 200.
look() {
  "$SCHEMATHESIS" run openapi.json --url "$url" -H "Authorization: Bearer $token" --workers 1 --seed 42 --phases "$1" --max-examples "$2" "${@:3}"
}
look examples,coverage,fuzzing 20 --exclude-operation-id callAgent --exclude-operation-id callTool --exclude-checks positive_data_acceptance
look examples,coverage,fuzzing 20 --include-operation-id callAgent --include-operation-id callTool --exclude-checks positive_data_acceptance,negative_data_rejection

# The stateful phase calls operations with what earlier ones returned, for example a dataset that was just deleted.
python3 "$links" openapi.json
printf '[phases.stateful]\ninference.algorithms = []\n' >schemathesis.toml
look stateful 40 --include-path-regex '^/(user|file-upload|query)/' --exclude-checks positive_data_acceptance
look stateful 40 --include-path-regex '^/(data|ingest|schema|permissions)/' --exclude-checks positive_data_acceptance

# The results would mean nothing if the token had become invalid during the run.
curl -fsS --noproxy '*' -o /dev/null "$url/user/me" -H "Authorization: Bearer $token"

# They would also mean nothing if these operations had never succeeded.
for operation in ask getRun streamRunEvents listStepRows exportStep submitFeedback getFeedback getConversation; do
  grep -qE "\"operation\":\"$operation\",\"status\":20[0-4]," "$work/log" || { echo "$operation was never answered" >&2; exit 1; }
done
