#!/usr/bin/env bash
# Drives every call of the REST API by its own description: hundreds of requests, good and bad. None may
# be answered with a 500, and every answer must be of the form that is described.
set -euo pipefail
# It keeps notes of its own where it is run.
cd "$(mktemp -d)"
send() {
    curl --silent --show-error --fail --output /dev/null -X "$1" "$CONSOLE_URL/api/v1$2" \
        -H 'Content-Type: application/json' -d "$3"
}
# The learner, the school and the class that the description has as examples.
send PUT /schools/north/classes/7a '{"name": "7a"}'
send PUT /schools/north/classes/7a/members/s-1 '{}'
send POST /events '{"event_id": "tour-1", "student_id": "s-1", "occurred_at": "2026-01-14T10:30:00Z",
    "type": "answer", "skill_id": "fractions", "item_id": "q-1", "correct": true}'
echo "schemathesis: every call of $CONSOLE_URL/api/v1"
schemathesis run "$CONSOLE_URL/api/v1/openapi.json" \
    --url "$CONSOLE_URL/api/v1" \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
    --max-examples "${EXAMPLES:-10}" --phases examples,coverage,fuzzing --seed 1 \
    --generation-deterministic --request-timeout 20 --no-color --continue-on-failure
