#!/usr/bin/env bash
# Drives every call of the REST API by its own description: hundreds of requests, good and bad. None may
# be answered with a 500, and every answer must be of the form that is described.
set -euo pipefail
echo "schemathesis: every call of $CONSOLE_URL/api/v1"
schemathesis run "$CONSOLE_URL/api/v1/openapi.json" \
    --url "$CONSOLE_URL/api/v1" \
    --checks not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance \
    --max-examples "${EXAMPLES:-10}" --phases examples,coverage,fuzzing --seed 1 \
    --generation-deterministic --request-timeout 20 --no-color --continue-on-failure
