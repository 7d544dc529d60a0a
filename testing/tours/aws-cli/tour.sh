#!/usr/bin/env bash
# A tour of KeystoneDB's DynamoDB door with the AWS command line.
#
#     AWS_ENDPOINT_URL=http://127.0.0.1:8000 ./tour.sh
#
# Every step checks what came back. The table is deleted at the end.
set -euo pipefail

table="tour-cli-$$-$RANDOM"
export AWS_PAGER=""

db() { aws dynamodb --output text "$@"; }

# The command's output must be this. Text output separates by tabs and lines: both count as spaces.
expect() {
    local wanted=$1 found
    shift
    found=$("$@" | tr -s '\t\n' ' ' | sed 's/ $//')
    if [ "$found" != "$wanted" ]; then
        printf 'aws-cli: %s\n  found  %s\n  wanted %s\n' "$*" "$found" "$wanted" >&2
        exit 1
    fi
}

# The command must fail, with this error in its message.
refused() {
    local code=$1 message
    shift
    if message=$("$@" 2>&1); then
        printf 'aws-cli: %s\n  passed, and should fail with %s\n' "$*" "$code" >&2
        exit 1
    fi
    case $message in
    *"($code)"*) ;;
    *)
        printf 'aws-cli: %s\n  wanted %s: %s\n' "$*" "$code" "$message" >&2
        exit 1
        ;;
    esac
}

passed() { echo "aws-cli: $1 ok"; }

db create-table --table-name "$table" --billing-mode PAY_PER_REQUEST \
    --key-schema AttributeName=pk,KeyType=HASH AttributeName=sk,KeyType=RANGE \
    --attribute-definitions AttributeName=pk,AttributeType=S AttributeName=sk,AttributeType=S \
    AttributeName=workflowType,AttributeType=S AttributeName=entityType,AttributeType=S \
    AttributeName=status,AttributeType=S AttributeName=createdAt,AttributeType=S \
    --global-secondary-indexes '[{
        "IndexName": "GSI1",
        "KeySchema": [
            {"AttributeName": "workflowType", "KeyType": "HASH"},
            {"AttributeName": "entityType", "KeyType": "HASH"},
            {"AttributeName": "status", "KeyType": "RANGE"},
            {"AttributeName": "createdAt", "KeyType": "RANGE"}
        ],
        "Projection": {"ProjectionType": "ALL"}
    }]' \
    --stream-specification StreamEnabled=true,StreamViewType=KEYS_ONLY >/dev/null
db wait table-exists --table-name "$table"
expect "ACTIVE workflowType entityType status createdAt" db describe-table --table-name "$table" \
    --query 'Table.[TableStatus, GlobalSecondaryIndexes[0].KeySchema[].AttributeName][]'
passed tables

execution() { # number, engine, status, created
    db put-item --table-name "$table" --item "{
        \"pk\": {\"S\": \"exec-$1\"}, \"sk\": {\"S\": \"metadata\"},
        \"entityType\": {\"S\": \"execution\"}, \"workflowType\": {\"S\": \"$2\"},
        \"status\": {\"S\": \"$3\"}, \"createdAt\": {\"S\": \"$4\"}, \"endTime\": {\"NULL\": true}
    }"
}
execution 001 step-functions running 2025-01-15T10:30:00Z
execution 002 durable-functions running 2025-01-15T10:31:00Z
execution 003 step-functions completed 2025-01-15T11:00:00Z
execution 004 step-functions running 2025-01-14T09:00:00Z
key() { printf '{"pk": {"S": "%s"}, "sk": {"S": "metadata"}}' "$1"; }
expect "running True" db get-item --table-name "$table" --key "$(key exec-001)" \
    --query 'Item.[status.S, endTime.NULL]'
passed items

expect "exec-004 exec-001" db query --table-name "$table" --index-name GSI1 \
    --key-condition-expression 'workflowType = :w AND entityType = :e AND #s = :s' \
    --expression-attribute-names '{"#s": "status"}' \
    --expression-attribute-values \
    '{":w": {"S": "step-functions"}, ":e": {"S": "execution"}, ":s": {"S": "running"}}' \
    --query 'Items[].pk.S'
refused ValidationException db query --table-name "$table" --index-name GSI1 \
    --key-condition-expression 'workflowType = :w' \
    --expression-attribute-values '{":w": {"S": "step-functions"}}'
passed queries

complete() {
    db update-item --table-name "$table" --key "$(key exec-001)" \
        --update-expression 'SET #s = :done ADD runs :one' --condition-expression '#s = :running' \
        --expression-attribute-names '{"#s": "status"}' --expression-attribute-values \
        '{":done": {"S": "completed"}, ":running": {"S": "running"}, ":one": {"N": "1"}}' \
        --return-values ALL_NEW --query 'Attributes.[status.S, runs.N]'
}
expect "completed 1" complete
refused ConditionalCheckFailedException complete
passed conditions

put() { printf '{"Put": {"TableName": "%s", "Item": %s, "ConditionExpression": "attribute_not_exists(pk)"}}' "$table" "$(key "$1")"; }
refused TransactionCanceledException db transact-write-items \
    --transact-items "[$(put exec-005), $(put exec-001)]"
expect "None" db get-item --table-name "$table" --key "$(key exec-005)" --query 'Item'
db transact-write-items --transact-items "[$(put exec-005), $(put exec-006)]"
expect "exec-005 exec-006" db transact-get-items --transact-items \
    "[{\"Get\": {\"TableName\": \"$table\", \"Key\": $(key exec-005)}},
      {\"Get\": {\"TableName\": \"$table\", \"Key\": $(key exec-006)}}]" \
    --query 'Responses[].Item.pk.S'
passed transactions

writes=""
for index in 1 2 3 4 5 6 7 8 9 10 11 12; do
    writes+="{\"PutRequest\": {\"Item\": {\"pk\": {\"S\": \"exec-001\"}, \"sk\": {\"S\": \"album-$index\"},
        \"albumIndex\": {\"N\": \"$index\"}}}},"
done
db batch-write-item --request-items "{\"$table\": [${writes%,}]}" >/dev/null
expect "7" db batch-get-item --query "Responses.\"$table\"[].albumIndex.N" --request-items \
    "{\"$table\": {\"Keys\": [{\"pk\": {\"S\": \"exec-001\"}, \"sk\": {\"S\": \"album-7\"}}]}}"
passed batches

# The command line follows the pages by itself. As text it would count each page.
whole() { aws dynamodb --output json "$@"; }
expect "12" whole query --table-name "$table" --page-size 5 --query 'length(Items)' \
    --key-condition-expression 'pk = :pk AND begins_with(sk, :sk)' \
    --expression-attribute-values '{":pk": {"S": "exec-001"}, ":sk": {"S": "album-"}}'
expect "18" whole scan --table-name "$table" --page-size 4 --query 'length(Items)'
passed pagination

expect "exec-001 album-12" db execute-statement --statement \
    "SELECT pk, sk FROM \"$table\" WHERE pk = 'exec-001' AND begins_with(sk, 'album-') AND albumIndex > 11" \
    --query 'Items[0].[pk.S, sk.S]'
passed partiql

db update-time-to-live --table-name "$table" \
    --time-to-live-specification Enabled=true,AttributeName=ttl >/dev/null
expect "ttl" db describe-time-to-live --table-name "$table" \
    --query 'TimeToLiveDescription.AttributeName'
db put-item --table-name "$table" \
    --item "{\"pk\": {\"S\": \"ttl\"}, \"sk\": {\"S\": \"over\"}, \"ttl\": {\"N\": \"$(($(date +%s) - 60))\"}}"
expect "None" db get-item --table-name "$table" \
    --key '{"pk": {"S": "ttl"}, "sk": {"S": "over"}}' --query 'Item'
passed time-to-live

arn=$(db describe-table --table-name "$table" --query Table.TableArn)
db tag-resource --resource-arn "$arn" --tags Key=team,Value=records Key=stage,Value=tour
db untag-resource --resource-arn "$arn" --tag-keys stage
expect "team records" db list-tags-of-resource --resource-arn "$arn" --query 'Tags[0].[Key, Value]'
expect "1" db list-tags-of-resource --resource-arn "$arn" --query 'length(Tags)'
passed tags

stream=$(db describe-table --table-name "$table" --query Table.LatestStreamArn)
streams() { aws dynamodbstreams --output text "$@"; }
events=""
for shard in $(streams describe-stream --stream-arn "$stream" \
    --query 'StreamDescription.Shards[].ShardId'); do
    iterator=$(streams get-shard-iterator --stream-arn "$stream" --shard-id "$shard" \
        --shard-iterator-type TRIM_HORIZON --query ShardIterator)
    events+=" $(streams get-records --shard-iterator "$iterator" \
        --query "Records[?dynamodb.Keys.sk.S=='metadata' && dynamodb.Keys.pk.S=='exec-001'].eventName" |
        tr '\t' ' ')"
done
expect "INSERT MODIFY" echo $events
passed streams

db delete-table --table-name "$table" >/dev/null
db wait table-not-exists --table-name "$table"
refused ResourceNotFoundException db scan --table-name "$table"
passed deletion
