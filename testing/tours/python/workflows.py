"""The workflow table with boto3: every entity with every field, and every way to find them.

    AWS_ENDPOINT_URL=http://127.0.0.1:8000 python workflows.py

The table is deleted at the end.
"""

import uuid
from decimal import Decimal

import boto3
from boto3.dynamodb.conditions import Key

TABLE = f"workflows-python-{uuid.uuid4().hex[:8]}"
STEP, DURABLE = "step-functions", "durable-functions"

dynamodb = boto3.resource("dynamodb")
table = dynamodb.Table(TABLE)


def expect(found, wanted):
    if found != wanted:
        raise AssertionError(f"found {found!r}, wanted {wanted!r}")


# Keys and entities. What has no value is null; the indexes need `status` and `sortValue`.


def execution_key(execution_id):
    return {"pk": execution_id, "sk": "metadata"}


def album_key(execution_id, index):
    return {"pk": execution_id, "sk": f"album-{index}"}


def task_key(task_id):
    return {"pk": task_id, "sk": "metadata"}


def metrics_key(date, engine):
    return {"pk": date, "sk": f"metrics-{engine}"}


def execution(execution_id, engine, status, created_at, **fields):
    entity = {
        **execution_key(execution_id),
        "entityType": "execution",
        "workflowType": engine,
        "executionId": execution_id,
        "imageS3Key": "uploads/albums-2025-01-15.jpg",
        "status": status,
        "sortValue": 0,
        "comparisonId": None,
        "startTime": created_at,
        "endTime": None,
        "durationMs": None,
        "estimatedCost": None,
        "createdAt": created_at,
        "updatedAt": created_at,
    }
    if engine == DURABLE:
        entity["currentStep"] = "image-processing"
    return {**entity, **fields}


def album(execution_id, engine, index):
    return {
        **album_key(execution_id, index),
        "entityType": "album",
        "workflowType": engine,
        "executionId": execution_id,
        "albumIndex": index,
        "sortValue": index,
        "albumName": "The Dark Side of the Moon",
        "artist": "Pink Floyd",
        "year": 1973,
        "yearValidated": True,
        "yearOriginal": None if index == 2 else 1973,
        "priceEstimate": Decimal("45.5"),
        "priceConfidence": Decimal("0.85"),
        "priceSource": "discogs-api",
        "imageRegion": {"x": 0, "y": 0, "width": 200, "height": 200},
        "createdAt": "2025-01-15T10:30:00Z",
        "updatedAt": "2025-01-15T10:35:00Z",
    }


def task(task_id, execution_id, engine, status, created_at):
    found = [
        {"albumIndex": 1, "albumName": "The Dark Side of the Moon", "artist": "Pink Floyd", "year": 1973},
        {"albumIndex": 2, "albumName": "Abbey Road", "artist": "The Beatles", "year": 1969},
    ]
    return {
        **task_key(task_id),
        "entityType": "task",
        "workflowType": engine,
        "taskId": task_id,
        "executionId": execution_id,
        "status": status,
        "sortValue": 0,
        "imageS3Key": "uploads/albums-2025-01-15.jpg",
        "albums": found,
        "validatedData": found if status == "completed" else None,
        "taskTokenHash": "0" * 64,
        "expiresAt": "2025-01-15T11:30:00Z",
        "ttl": None,
        "createdAt": created_at,
        "completedAt": created_at if status == "completed" else None,
    }


def metrics(date, engine):
    return {
        **metrics_key(date, engine),
        "entityType": "metrics",
        "workflowType": engine,
        "date": date,
        "period": "daily",
        "status": "daily",
        "sortValue": 0,
        "executionCount": 25,
        "successCount": 23,
        "failureCount": 2,
        "totalDurationMs": 1125000,
        "totalCost": Decimal("0.15"),
        "createdAt": f"{date}T23:59:59Z",
    }


RUNNING = execution("exec-123", STEP, "running", "2025-01-15T10:30:00Z")
OLDER = execution(str(uuid.uuid4()), STEP, "running", "2025-01-14T10:30:00Z")
DURABLY = execution("exec-456", DURABLE, "running", "2025-01-15T10:30:00Z")
DONE = execution(
    "exec-789", STEP, "completed", "2025-01-15T12:00:00Z", comparisonId="image-001",
    endTime="2025-01-15T12:00:45Z", durationMs=45000, estimatedCost=Decimal("0.006"),
)
LATER = execution("exec-790", STEP, "completed", "2025-01-20T12:00:00Z")
ALBUMS = [album("exec-123", STEP, index) for index in range(1, 13)]
OTHERS = [album("exec-456", DURABLE, index) for index in (1, 2)]
PENDING = task("task-abc123", "exec-123", STEP, "pending", "2025-01-15T10:30:00Z")
DURABLY_PENDING = task("task-def456", "exec-456", DURABLE, "pending", "2025-01-15T10:00:00Z")
ANSWERED = task("task-789", "exec-789", STEP, "completed", "2025-01-15T12:10:00Z")
DAYS = [metrics(date, engine)
        for date in ("2025-01-14", "2025-01-15", "2025-01-16") for engine in (STEP, DURABLE)]
EVERYTHING = [RUNNING, OLDER, DURABLY, DONE, LATER, *ALBUMS, *OTHERS, PENDING, DURABLY_PENDING,
              ANSWERED, *DAYS]


def create():
    def schema(hashes, ranges):
        elements = [{"AttributeName": name, "KeyType": "HASH"} for name in hashes]
        return elements + [{"AttributeName": name, "KeyType": "RANGE"} for name in ranges]

    def index(name, hashes, ranges):
        return {"IndexName": name, "KeySchema": schema(hashes, ranges),
                "Projection": {"ProjectionType": "ALL"}}

    texts = ["pk", "sk", "workflowType", "entityType", "status", "createdAt", "executionId"]
    dynamodb.create_table(
        TableName=TABLE,
        KeySchema=schema(["pk"], ["sk"]),
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in texts]
        + [{"AttributeName": "sortValue", "AttributeType": "N"}],
        GlobalSecondaryIndexes=[
            index("GSI1", ["workflowType", "entityType"], ["status", "createdAt"]),
            index("GSI2", ["workflowType", "executionId"], ["entityType", "sortValue"]),
            index("GSI3", ["entityType"], ["status", "createdAt"]),
        ],
        BillingMode="PAY_PER_REQUEST",
    ).wait_until_exists()


def query(index, wanted, status=None, created=None, **equal):
    """Equality on each of `equal`, in order; then `status`; then a range of `created`."""
    conditions = [f"{name} = :{name}" for name in equal]
    values = {f":{name}": value for name, value in equal.items()}
    arguments = {}
    if status:
        conditions.append("#status = :status")
        values[":status"] = status
        arguments["ExpressionAttributeNames"] = {"#status": "status"}
    if created:
        conditions.append("createdAt BETWEEN :from AND :to")
        values[":from"], values[":to"] = created
    arguments.update(
        IndexName=index,
        KeyConditionExpression=" AND ".join(conditions),
        ExpressionAttributeValues=values,
    )
    expect(table.query(**arguments)["Items"], wanted)
    expect(table.query(**arguments, ScanIndexForward=False)["Items"], wanted[::-1])
    # And one item at a time.
    found, start = [], {}
    while True:
        page = table.query(**arguments, Limit=1, **start)
        found += page["Items"]
        if "LastEvaluatedKey" not in page:
            break
        start = {"ExclusiveStartKey": page["LastEvaluatedKey"]}
    expect(found, wanted)


def prefixed(pk, prefix):
    condition = Key("pk").eq(pk) & Key("sk").begins_with(prefix)
    return table.query(KeyConditionExpression=condition)["Items"]


def get(key):
    return table.get_item(Key=key).get("Item")


def entities():
    for entity in EVERYTHING:
        table.put_item(Item=entity)
    for entity in EVERYTHING:
        expect(get({"pk": entity["pk"], "sk": entity["sk"]}), entity)


def executions():
    of_step = {"workflowType": STEP, "entityType": "execution"}
    expect(get(execution_key("exec-123")), RUNNING)
    query("GSI1", [DONE, LATER, OLDER, RUNNING], **of_step)
    query("GSI1", [OLDER, RUNNING], **of_step, status="running")
    query("GSI1", [DURABLY], workflowType=DURABLE, entityType="execution", status="running")
    day = ("2025-01-15T00:00:00Z", "2025-01-15T23:59:59Z")
    query("GSI1", [DONE], **of_step, status="completed", created=day)
    query("GSI2", [*ALBUMS, RUNNING, PENDING], workflowType=STEP, executionId="exec-123")
    partition = table.query(KeyConditionExpression=Key("pk").eq("exec-123"))["Items"]
    expect([item for item in partition if item["sk"] == "metadata"], [RUNNING])
    albums = [item for item in partition if item["sk"].startswith("album-")]
    expect(sorted(albums, key=lambda item: item["albumIndex"]), ALBUMS)


def albums():
    of_album = {"workflowType": STEP, "executionId": "exec-123", "entityType": "album"}
    expect(get(album_key("exec-123", 10)), ALBUMS[9])
    expect(prefixed("exec-123", "album-"), sorted(ALBUMS, key=lambda item: item["sk"]))
    query("GSI2", ALBUMS, **of_album)
    query("GSI2", [ALBUMS[9]], **of_album, sortValue=10)
    query("GSI2", OTHERS, workflowType=DURABLE, executionId="exec-456", entityType="album")


def tasks():
    of_step = {"workflowType": STEP, "entityType": "task"}
    expect(get(task_key("task-abc123")), PENDING)
    query("GSI3", [DURABLY_PENDING, PENDING], entityType="task", status="pending")
    query("GSI1", [PENDING], **of_step, status="pending")
    query("GSI1", [ANSWERED], **of_step, status="completed")
    morning = ("2025-01-15T10:00:00Z", "2025-01-15T11:00:00Z")
    query("GSI1", [PENDING], **of_step, status="pending", created=morning)
    query("GSI1", [], **of_step, status="completed", created=morning)
    query("GSI2", [PENDING], workflowType=STEP, executionId="exec-123", entityType="task")


def days():
    of_step = {"workflowType": STEP, "entityType": "metrics"}
    expect(get(metrics_key("2025-01-15", DURABLE)), DAYS[3])
    expect(prefixed("2025-01-15", "metrics-"), [DAYS[3], DAYS[2]])
    query("GSI1", DAYS[0::2], **of_step)
    query("GSI1", DAYS[2::2], **of_step, status="daily",
          created=("2025-01-15T00:00:00Z", "2025-01-16T23:59:59Z"))


def deletion():
    table.delete()
    table.wait_until_not_exists()


for step in [create, entities, executions, albums, tasks, days, deletion]:
    step()
    print(f"boto3, workflows: {step.__name__} ok", flush=True)
