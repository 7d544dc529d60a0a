"""A tour of KeystoneDB's DynamoDB door with boto3, as an application would use it.

    AWS_ENDPOINT_URL=http://127.0.0.1:8000 python tour.py

Every step checks what came back. The table is deleted at the end.
"""

import time
import uuid
from decimal import Decimal

import boto3
from boto3.dynamodb.conditions import Attr, Key
from botocore.exceptions import ClientError

TABLE = f"tour-python-{uuid.uuid4().hex[:8]}"

dynamodb = boto3.resource("dynamodb")
client = dynamodb.meta.client
streams = boto3.client("dynamodbstreams")
table = dynamodb.Table(TABLE)


def expect(found, wanted):
    if found != wanted:
        raise AssertionError(f"found {found!r}, wanted {wanted!r}")


def refused(code, call, **arguments):
    """The call must fail with this error; gives the error's response."""
    try:
        call(**arguments)
    except ClientError as error:
        expect(error.response["Error"]["Code"], code)
        return error.response
    raise AssertionError(f"{code} was expected, and the call passed")


def all_pages(operation, **arguments):
    pages = client.get_paginator(operation).paginate(**arguments)
    return [item for page in pages for item in page["Items"]]


# The workflow table: executions of two engines with their albums and tasks.

STEP, DURABLE = "step-functions", "durable-functions"


def execution(number, engine, status, created_at):
    return {
        "pk": f"exec-{number:03}",
        "sk": "metadata",
        "entityType": "execution",
        "workflowType": engine,
        "executionId": f"exec-{number:03}",
        "status": status,
        "sortValue": 0,
        "endTime": None,
        "estimatedCost": Decimal("0.006"),
        "createdAt": created_at,
    }


def album(number, engine, index):
    return {
        "pk": f"exec-{number:03}",
        "sk": f"album-{index}",
        "entityType": "album",
        "workflowType": engine,
        "executionId": f"exec-{number:03}",
        "albumIndex": index,
        "sortValue": index,
        "albumName": f"Album {index}",
        "year": 1960 + index,
        "priceConfidence": Decimal("0.85"),
        "imageRegion": {"x": 0, "y": 0, "width": 200, "height": 200},
        "genres": {"rock", "jazz"},
        "cover": b"\x00\x01\xff",
    }


def task(number, engine, status, created_at):
    return {
        "pk": f"task-{number:03}",
        "sk": "metadata",
        "entityType": "task",
        "workflowType": engine,
        "executionId": f"exec-{number:03}",
        "status": status,
        "sortValue": 0,
        "albums": [{"albumIndex": 1, "year": 1973}],
        "createdAt": created_at,
    }


EXECUTIONS = [
    execution(1, STEP, "running", "2025-01-15T10:30:00Z"),
    execution(2, DURABLE, "running", "2025-01-15T10:31:00Z"),
    execution(3, STEP, "completed", "2025-01-15T11:00:00Z"),
    execution(4, STEP, "completed", "2025-01-16T11:00:00Z"),
    execution(5, STEP, "running", "2025-01-14T09:00:00Z"),
]
ALBUMS = [album(1, STEP, index) for index in range(1, 13)]
TASKS = [
    task(1, STEP, "pending", "2025-01-15T10:40:00Z"),
    task(2, DURABLE, "pending", "2025-01-15T10:35:00Z"),
    task(3, STEP, "completed", "2025-01-15T11:05:00Z"),
]


def hash_range(hashes, ranges):
    schema = [{"AttributeName": name, "KeyType": "HASH"} for name in hashes]
    return schema + [{"AttributeName": name, "KeyType": "RANGE"} for name in ranges]


INDEXES = {
    "GSI1": hash_range(["workflowType", "entityType"], ["status", "createdAt"]),
    "GSI2": hash_range(["workflowType", "executionId"], ["entityType", "sortValue"]),
    "GSI3": hash_range(["entityType"], ["status", "createdAt"]),
}


def tables():
    names = ["pk", "sk", "workflowType", "entityType", "status", "createdAt", "executionId"]
    definitions = [{"AttributeName": name, "AttributeType": "S"} for name in names]
    definitions.append({"AttributeName": "sortValue", "AttributeType": "N"})
    client.create_table(
        TableName=TABLE,
        KeySchema=hash_range(["pk"], ["sk"]),
        AttributeDefinitions=definitions,
        GlobalSecondaryIndexes=[
            {"IndexName": name, "KeySchema": schema, "Projection": {"ProjectionType": "ALL"}}
            for name, schema in INDEXES.items()
        ],
        BillingMode="PAY_PER_REQUEST",
        StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
        Tags=[{"Key": "team", "Value": "records"}],
    )
    client.get_waiter("table_exists").wait(TableName=TABLE, WaiterConfig={"Delay": 1})
    described = client.describe_table(TableName=TABLE)["Table"]
    expect(described["TableStatus"], "ACTIVE")
    expect(described["KeySchema"], hash_range(["pk"], ["sk"]))
    found = {index["IndexName"]: index["KeySchema"] for index in described["GlobalSecondaryIndexes"]}
    expect(found, INDEXES)
    expect({index["IndexStatus"] for index in described["GlobalSecondaryIndexes"]}, {"ACTIVE"})
    assert TABLE in [found.name for found in dynamodb.tables.all()]
    refused("ResourceInUseException", client.create_table, TableName=TABLE,
            KeySchema=hash_range(["pk"], []), BillingMode="PAY_PER_REQUEST",
            AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}])
    refused("ResourceNotFoundException", client.describe_table, TableName="no-such-table")


def items():
    key = {"pk": "exec-001", "sk": "album-1"}
    expect(table.put_item(Item=ALBUMS[0], ReturnValues="ALL_OLD").get("Attributes"), None)
    expect(table.get_item(Key=key)["Item"], ALBUMS[0])
    some = table.get_item(
        Key=key,
        ProjectionExpression="albumName, imageRegion.#w",
        ExpressionAttributeNames={"#w": "width"},
    )
    expect(some["Item"], {"albumName": "Album 1", "imageRegion": {"width": 200}})
    changed = table.update_item(
        Key=key,
        UpdateExpression="SET #y = #y + :one, imageRegion.x = :x, tracks = if_not_exists(tracks, :none)"
        " REMOVE cover ADD plays :plays DELETE genres :jazz",
        ExpressionAttributeNames={"#y": "year"},
        ExpressionAttributeValues={
            ":one": 1, ":x": 7, ":none": [], ":plays": Decimal("1.5"), ":jazz": {"jazz"},
        },
        ReturnValues="ALL_NEW",
    )["Attributes"]
    wanted = {**ALBUMS[0], "year": 1962, "tracks": [], "plays": Decimal("1.5"), "genres": {"rock"}}
    wanted["imageRegion"] = {**wanted["imageRegion"], "x": 7}
    del wanted["cover"]
    expect(changed, wanted)
    expect(table.delete_item(Key=key, ReturnValues="ALL_OLD")["Attributes"], wanted)
    expect("Item" in table.get_item(Key=key), False)
    # 38 digits, exactly.
    long = Decimal("-12345678901234567890.123456789012345678")
    table.put_item(Item={**key, "n": long})
    expect(table.get_item(Key=key)["Item"]["n"], long)


def batches():
    with table.batch_writer() as batch:
        for item in EXECUTIONS + ALBUMS + TASKS:
            batch.put_item(Item=item)
    keys = [{"pk": item["pk"], "sk": item["sk"]} for item in ALBUMS]
    found = dynamodb.batch_get_item(RequestItems={TABLE: {"Keys": keys}})
    expect(found["UnprocessedKeys"], {})
    by_index = sorted(found["Responses"][TABLE], key=lambda item: item["albumIndex"])
    expect(by_index, ALBUMS)


def queries():
    def query(condition, **arguments):
        return table.query(KeyConditionExpression=condition, **arguments)["Items"]

    with_albums = query(Key("pk").eq("exec-001"))
    expect(len(with_albums), 13)
    prefix = Key("pk").eq("exec-001") & Key("sk").begins_with("album-1")
    expect([item["sk"] for item in query(prefix)], ["album-1", "album-10", "album-11", "album-12"])

    def by_index(index, condition, names=None, forward=True, **values):
        arguments = {"ExpressionAttributeNames": names} if names else {}
        return table.query(
            IndexName=index,
            KeyConditionExpression=condition,
            ExpressionAttributeValues={f":{name}": value for name, value in values.items()},
            ScanIndexForward=forward,
            **arguments,
        )["Items"]

    status = {"#status": "status"}
    running = by_index("GSI1", "workflowType = :w AND entityType = :e AND #status = :s", status,
                       w=STEP, e="execution", s="running")
    expect(running, [EXECUTIONS[4], EXECUTIONS[0]])
    every = by_index("GSI1", "workflowType = :w AND entityType = :e", w=STEP, e="execution")
    expect(every, [EXECUTIONS[2], EXECUTIONS[3], EXECUTIONS[4], EXECUTIONS[0]])
    dated = by_index(
        "GSI1",
        "workflowType = :w AND entityType = :e AND #status = :s AND createdAt BETWEEN :a AND :b",
        status, w=STEP, e="execution", s="completed", a="2025-01-15", b="2025-01-16")
    expect(dated, [EXECUTIONS[2]])
    albums = by_index("GSI2", "workflowType = :w AND executionId = :x AND entityType = :e",
                      w=STEP, x="exec-001", e="album")
    expect(albums, ALBUMS)
    tenth = by_index(
        "GSI2",
        "workflowType = :w AND executionId = :x AND entityType = :e AND sortValue >= :n",
        forward=False, w=STEP, x="exec-001", e="album", n=11)
    expect(tenth, [ALBUMS[11], ALBUMS[10]])
    pending = by_index("GSI3", "entityType = :e AND #status = :s", status, e="task", s="pending")
    expect(pending, [TASKS[1], TASKS[0]])
    refused("ValidationException", by_index, index="GSI1", condition="workflowType = :w", w=STEP)
    old = table.query(
        KeyConditionExpression=Key("pk").eq("exec-001") & Key("sk").begins_with("album-"),
        FilterExpression=Attr("year").lt(1963) & Attr("genres").contains("jazz"),
    )
    expect([item["sk"] for item in old["Items"]], ["album-1", "album-2"])
    expect((old["Count"], old["ScannedCount"]), (2, 12))


def pagination():
    condition = Key("pk").eq("exec-001") & Key("sk").begins_with("album-")
    first = table.query(KeyConditionExpression=condition, Limit=5)
    expect(first["LastEvaluatedKey"], {"pk": "exec-001", "sk": "album-2"})
    rest = table.query(KeyConditionExpression=condition, ExclusiveStartKey=first["LastEvaluatedKey"])
    expect(len(first["Items"]) + len(rest["Items"]), 12)
    total = len(EXECUTIONS + ALBUMS + TASKS)
    expect(len(all_pages("scan", TableName=TABLE, PaginationConfig={"PageSize": 3})), total)
    segments = [
        all_pages("scan", TableName=TABLE, Segment=segment, TotalSegments=4)
        for segment in range(4)
    ]
    keys = {(item["pk"], item["sk"]) for segment in segments for item in segment}
    expect((len(keys), sum(map(len, segments))), (total, total))
    expect(table.scan(Select="COUNT")["Count"], total)


def conditions():
    def complete(now):
        return table.update_item(
            Key={"pk": "task-001", "sk": "metadata"},
            UpdateExpression="SET #status = :completed, completedAt = :now",
            ConditionExpression="#status = :pending",
            ExpressionAttributeNames={"#status": "status"},
            ExpressionAttributeValues={":completed": "completed", ":pending": "pending", ":now": now},
            ReturnValues="UPDATED_NEW",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
        )

    changed = complete("2025-01-15T10:50:00Z")["Attributes"]
    expect(changed, {"status": "completed", "completedAt": "2025-01-15T10:50:00Z"})
    response = refused("ConditionalCheckFailedException", complete, now="2025-01-15T10:51:00Z")
    expect(response["Item"]["completedAt"], {"S": "2025-01-15T10:50:00Z"})
    refused("ConditionalCheckFailedException", table.put_item, Item=TASKS[0],
            ConditionExpression=Attr("pk").not_exists())
    refused("ConditionalCheckFailedException", table.delete_item,
            Key={"pk": "task-001", "sk": "metadata"},
            ConditionExpression=Attr("status").eq("pending"))


def transactions():
    new = execution(6, STEP, "running", "2025-01-17T00:00:00Z")
    put = {"Put": {"TableName": TABLE, "Item": new, "ConditionExpression": "attribute_not_exists(pk)"}}
    count = {"Update": {
        "TableName": TABLE,
        "Key": {"pk": "counters", "sk": "executions"},
        "UpdateExpression": "ADD running :one",
        "ExpressionAttributeValues": {":one": 1},
    }}
    token = uuid.uuid4().hex
    for _ in range(2):  # The second time is the same transaction again, and does nothing.
        client.transact_write_items(TransactItems=[put, count], ClientRequestToken=token)
    counters = {"TableName": TABLE, "Key": {"pk": "counters", "sk": "executions"}}
    both = client.transact_get_items(TransactItems=[
        {"Get": {"TableName": TABLE, "Key": {"pk": "exec-006", "sk": "metadata"}}},
        {"Get": counters},
    ])["Responses"]
    expect(both[0]["Item"], new)
    expect(both[1]["Item"]["running"], 1)
    response = refused("TransactionCanceledException", client.transact_write_items,
                       TransactItems=[count, put])
    codes = [reason["Code"] for reason in response["CancellationReasons"]]
    expect(codes, ["None", "ConditionalCheckFailed"])
    expect(client.get_item(**counters)["Item"]["running"], 1)


def partiql():
    def run(statement, *parameters):
        return client.execute_statement(Statement=statement, Parameters=list(parameters)) \
            if parameters else client.execute_statement(Statement=statement)

    run(f"INSERT INTO \"{TABLE}\" VALUE {{'pk': 'partiql', 'sk': 'a', 'n': 1}}")
    refused("DuplicateItemException", client.execute_statement,
            Statement=f"INSERT INTO \"{TABLE}\" VALUE {{'pk': 'partiql', 'sk': 'a'}}")
    run(f"UPDATE \"{TABLE}\" SET n = n + 41 WHERE pk = 'partiql' AND sk = ?", "a")
    found = run(f"SELECT n FROM \"{TABLE}\" WHERE pk = ? AND sk = ?", "partiql", "a")["Items"]
    expect(found, [{"n": 42}])
    albums = run(f"SELECT albumIndex FROM \"{TABLE}\" WHERE pk = ? AND begins_with(sk, 'album-1')"
                 " AND albumIndex > 10", "exec-001")
    expect([item["albumIndex"] for item in albums["Items"]], [11, 12])
    # As at Amazon, PartiQL does not know indexes whose keys have several attributes.
    refused("ValidationException", client.execute_statement,
            Statement=f"SELECT * FROM \"{TABLE}\".\"GSI3\" WHERE entityType = 'task'")
    client.execute_transaction(TransactStatements=[
        {"Statement": f"DELETE FROM \"{TABLE}\" WHERE pk = 'partiql' AND sk = 'a'"},
        {"Statement": f"INSERT INTO \"{TABLE}\" VALUE {{'pk': 'partiql', 'sk': 'b'}}"},
    ])
    batch = client.batch_execute_statement(Statements=[
        {"Statement": f"SELECT * FROM \"{TABLE}\" WHERE pk = 'partiql' AND sk = 'a'"},
        {"Statement": f"SELECT * FROM \"{TABLE}\" WHERE pk = 'partiql' AND sk = 'b'"},
    ])["Responses"]
    expect([answer.get("Item") for answer in batch], [None, {"pk": "partiql", "sk": "b"}])


def time_to_live():
    client.update_time_to_live(
        TableName=TABLE,
        TimeToLiveSpecification={"AttributeName": "ttl", "Enabled": True},
    )
    described = client.describe_time_to_live(TableName=TABLE)["TimeToLiveDescription"]
    expect(described["AttributeName"], "ttl")
    assert described["TimeToLiveStatus"] in ("ENABLING", "ENABLED"), described
    now = int(time.time())
    table.put_item(Item={"pk": "ttl", "sk": "over", "ttl": now - 60})
    table.put_item(Item={"pk": "ttl", "sk": "not-yet", "ttl": now + 3600})
    # Amazon may be days late; KeystoneDB never returns an item whose time is over.
    left = table.query(KeyConditionExpression=Key("pk").eq("ttl"))["Items"]
    expect([item["sk"] for item in left], ["not-yet"])


def tags():
    arn = client.describe_table(TableName=TABLE)["Table"]["TableArn"]
    client.tag_resource(ResourceArn=arn, Tags=[{"Key": "stage", "Value": "tour"}])
    client.untag_resource(ResourceArn=arn, TagKeys=["team"])
    expect(client.list_tags_of_resource(ResourceArn=arn)["Tags"], [{"Key": "stage", "Value": "tour"}])


def change_stream():
    arn = client.describe_table(TableName=TABLE)["Table"]["LatestStreamArn"]
    expect([found["StreamArn"] for found in streams.list_streams(TableName=TABLE)["Streams"]], [arn])
    described = streams.describe_stream(StreamArn=arn)["StreamDescription"]
    expect(described["StreamViewType"], "NEW_AND_OLD_IMAGES")
    records = []
    for shard in described["Shards"]:
        iterator = streams.get_shard_iterator(
            StreamArn=arn, ShardId=shard["ShardId"], ShardIteratorType="TRIM_HORIZON",
        )["ShardIterator"]
        while iterator:
            page = streams.get_records(ShardIterator=iterator)
            records += page["Records"]
            if not page["Records"]:
                break
            iterator = page.get("NextShardIterator")
    of_task = [
        record for record in records if record["dynamodb"]["Keys"]["pk"] == {"S": "task-001"}
    ]
    expect([record["eventName"] for record in of_task], ["INSERT", "MODIFY"])
    before, after = of_task[1]["dynamodb"]["OldImage"], of_task[1]["dynamodb"]["NewImage"]
    expect((before["status"], after["status"]), ({"S": "pending"}, {"S": "completed"}))
    numbers = [int(record["dynamodb"]["SequenceNumber"]) for record in of_task]
    expect(numbers, sorted(numbers))
    removed = [record for record in records if record["eventName"] == "REMOVE"]
    assert {"S": "album-1"} in [record["dynamodb"]["Keys"]["sk"] for record in removed]


def deletion():
    table.delete()
    client.get_waiter("table_not_exists").wait(TableName=TABLE, WaiterConfig={"Delay": 1})
    refused("ResourceNotFoundException", table.scan)


STOPS = [tables, items, batches, queries, pagination, conditions, transactions, partiql,
         time_to_live, tags, change_stream, deletion]

for stop in STOPS:
    stop()
    print(f"boto3: {stop.__name__} ok", flush=True)
