"""A tour of KeystoneDB's Dapr door with Dapr's SDK for Python, as it is, and no sidecar.

    DAPR_HTTP_PORT=3500 DAPR_GRPC_PORT=50001 AWS_ENDPOINT_URL=http://127.0.0.1:8000 python state.py

Every step checks what came back; the same state is then read as items with boto3. What was written
is deleted at the end. TOUR_SIDECAR says that a real sidecar is between, with the store plugged in.
"""

import json
import os
import uuid
import warnings
from concurrent.futures import ThreadPoolExecutor

import boto3
import grpc
from dapr.clients import DaprClient
from dapr.clients.grpc._request import TransactionalStateOperation, TransactionOperationType
from dapr.clients.grpc._state import Concurrency, Consistency, StateItem, StateOptions

STORE = "statestore"
FIRST = StateOptions(concurrency=Concurrency.first_write, consistency=Consistency.strong)
SIDECAR = "TOUR_SIDECAR" in os.environ
student = f"tour-{uuid.uuid4().hex[:8]}"


def key(name):
    return f"student:{student}:{name}"


def expect(found, wanted):
    if found != wanted:
        raise AssertionError(f"found {found!r}, wanted {wanted!r}")


def refused(code, call):
    try:
        call()
    except grpc.RpcError as error:
        expect(error.code(), code)
    else:
        raise AssertionError(f"it was not refused with {code}")


def upsert(name, value):
    kind = TransactionOperationType.upsert
    return TransactionalStateOperation(operation_type=kind, key=key(name), data=json.dumps(value))


def delete(name):
    kind = TransactionOperationType.delete
    return TransactionalStateOperation(operation_type=kind, key=key(name), data="")


warnings.filterwarnings("ignore", message="The State Store Query API")
with DaprClient() as client:
    # Save, get, bulk.
    full, days = "history:full", ["history:full:2026-01-14", "history:full:2026-01-15"]
    client.save_state(STORE, key(full), json.dumps({"days": 2}))
    expect(client.get_state(STORE, key(full)).json(), {"days": 2})
    client.save_bulk_state(STORE, [StateItem(key(day), json.dumps({"n": 1})) for day in days])
    found = client.get_bulk_state(STORE, [key(day) for day in [*days, "history:components"]]).items
    expect([item.data for item in found], [b'{"n": 1}', b'{"n": 1}', b""])

    # Of 20 updates of the same state one wins.
    etag = client.get_state(STORE, key(full)).etag

    def update(n):
        try:
            client.save_state(STORE, key(full), json.dumps({"days": n}), etag=etag, options=FIRST)
        except grpc.RpcError as error:
            expect(error.code(), grpc.StatusCode.ABORTED)
            return None
        return n

    with ThreadPoolExecutor(20) as threads:
        winners = [n for n in threads.map(update, range(20)) if n is not None]
    expect(len(winners), 1)
    expect(client.get_state(STORE, key(full)).json(), {"days": winners[0]})
    refused(
        grpc.StatusCode.ABORTED,
        lambda: client.save_state(STORE, key(full), "{}", options=FIRST),
    )

    # Transactions are all or nothing; a catalogue refuses what a key cannot hold.
    client.execute_state_transaction(STORE, [upsert("path:adaptive", []), delete(days[1])])
    expect(client.get_state(STORE, key("path:adaptive")).data, b"[]")
    expect(client.get_state(STORE, key(days[1])).data, b"")
    wrong = [upsert(days[1], {}), upsert("path:adaptive", {"not": "a list"})]
    # A sidecar has one code for all that fails in a transaction.
    code = grpc.StatusCode.INTERNAL if SIDECAR else grpc.StatusCode.INVALID_ARGUMENT
    refused(code, lambda: client.execute_state_transaction(STORE, wrong))
    expect(client.get_state(STORE, key(days[1])).data, b"")

    # The same state as items: one partition, in order; a declared time to live is there.
    table = boto3.resource("dynamodb").Table("state")
    items = table.query(
        KeyConditionExpression=boto3.dynamodb.conditions.Key("pk").eq(f"student:{student}")
    )["Items"]
    expect([item["sk"] for item in items], [full, days[0], "path:adaptive"])
    expect(["ttl" in item for item in items], [False, False, True])

    query = json.dumps({"filter": {"EQ": {"days": winners[0]}}})
    expect(key(full) in [it.key for it in client.query_state(STORE, query).results], True)
    expect([it.name for it in client.get_metadata().registered_components], [STORE])

    client.delete_state(STORE, key(full), etag=client.get_state(STORE, key(full)).etag)
    for name in [days[0], "path:adaptive"]:
        client.delete_state(STORE, key(name))
    expect(client.get_state(STORE, key(full)).data, b"")
print(f"python: Dapr's SDK works {'through' if SIDECAR else 'without'} a sidecar")
