"""What a learning platform keeps in Redis, kept in KeystoneDB, with redis-py.

    KSTONE=target/debug/kstone python practice.py

Sessions, cooldowns, score series, flags, caches, rate limits, leaderboards and review queues are
written with their TTLs and checked. Then the server is killed with SIGKILL and started again on its
folder, and all of it is checked once more: it promises `sync`, so nothing may be missing.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor

import redis


def expect(found, wanted):
    if found != wanted:
        raise AssertionError(f"found {found!r}, wanted {wanted!r}")


class Server:
    """`kstone serve` on a folder, with a free port of loopback."""

    def __init__(self, folder):
        self.process = subprocess.Popen(
            [os.environ["KSTONE"], "serve", "--data", folder, "--dynamodb", "off"]
            + ["--redis", "127.0.0.1:0", "--redis-durability", "sync"]
            + ["--dapr-http", "off", "--dapr-grpc", "off"],
            stdout=subprocess.PIPE,
            text=True,
        )
        self.url = None
        for line in self.process.stdout:
            found = re.search(r"redis://\S+", line)
            self.url = found.group() if found else self.url
            if line.startswith("ready"):
                return
        sys.exit("the server did not start")

    def client(self):
        return redis.Redis.from_url(self.url, decode_responses=True)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()


BEGUN = time.time()


def expect_ttl(client, key, seconds):
    """The key goes `seconds` after it was written, and that was after BEGUN."""
    left = client.ttl(key)
    gone_by = seconds - (time.time() - BEGUN)
    if not gone_by - 1 <= left <= seconds:
        raise AssertionError(f"{key} has {left} s left of {seconds}")


# Each kind of key: its name, its TTL, how it is written, and what must be found.

HASHES = {
    "session:s1": (3600, {
        "user_id": "u1", "level_id": "l3", "task_id": "t9", "hints_used": "2",
        "started_at": "1768400000", "last_activity": "1768400420",
    }),
    "anticheat:u1": (86400, {
        "tab_switches": "4", "rapid_submits": "1", "last_submit_time": "1768400400",
        "score_pattern": "[1,1,0,1]",
    }),
    "feature_flag_cache": (300, {
        "new_editor": "true", "old_hints": "false", "ai_explanations": "percentage:25",
    }),
    "analytics:group:g1": (900, {
        "avg_accuracy": "0.82", "total_attempts": "1204", "active_students": "31",
    }),
    "analytics:level:l3": (900, {
        "avg_time": "74.5", "completion_rate": "0.61", "difficulty_score": "3.2",
    }),
}
STRINGS = {
    "session:timer:s1": (3600, "1768400000"),
    "hints_used:s1": (3600, "2"),
    "anticheat:block:u2": (900, "blocked"),
    "feature_flag:ai_explanations": (300, "percentage:25"),
    "explanation:cache:t9": (3600, json.dumps({"text": "Übung", "generated_at": 1768400000})),
    "task:pending:s1": (300, json.dumps({"task": "t9", "seed": 7})),
}
SERIES = [str(score) for score in range(3, 103)]
REVIEWS = {f"q{number:02}": 1768400000 + 60 * number for number in range(30)}
NOW = 1768400000 + 60 * 24


def write(client):
    for key, (ttl, fields) in HASHES.items():
        with client.pipeline() as both:
            both.hset(key, mapping=fields).expire(key, ttl).execute()
    for key, (ttl, value) in STRINGS.items():
        client.set(key, value, ex=ttl)
    for score in range(1, 103):
        with client.pipeline() as add:
            add.rpush("score:series:u1", score).ltrim("score:series:u1", -100, -1)
            add.expire("score:series:u1", 86400)
            add.execute()
        # The 101st result trims the series.
        expect(client.llen("score:series:u1"), min(score, 100))
    for _ in range(7):
        client.incr("score:streak:u1")
    client.expire("score:streak:u1", 86400)
    with client.pipeline(transaction=False) as changes:
        for version in range(1, 1201):
            entry = {"template_id": "tpl", "action": "update"}
            entry |= {"version": version, "timestamp": version}
            changes.xadd("content:changes", entry, maxlen=1000, approximate=True)
        changes.execute()
    for key in ("ratelimit:submit:u1", "ratelimit:global:10.0.0.1"):
        expect([client.incr(key) for _ in range(3)], [1, 2, 3])
        expect(client.expire(key, 60, nx=True), True)
    client.zadd("leaderboard:level:l3", {"ada": 120, "bob": 95, "cy": 120.5})
    client.expire("leaderboard:level:l3", 600)
    client.zadd("srs:ada:spring", REVIEWS)


def check(client):
    for key, (ttl, fields) in HASHES.items():
        expect((client.type(key), client.hgetall(key)), ("hash", fields))
        expect_ttl(client, key, ttl)
    for key, (ttl, value) in STRINGS.items():
        expect((client.type(key), client.get(key)), ("string", value))
        expect_ttl(client, key, ttl)
    expect(client.lrange("score:series:u1", 0, -1), SERIES)
    expect(client.get("score:streak:u1"), "7")
    for key in ("score:series:u1", "score:streak:u1"):
        expect_ttl(client, key, 86400)
    expect(client.type("content:changes"), "stream")
    length = client.xlen("content:changes")
    if not 1000 <= length < 1200:
        raise AssertionError(f"the stream has {length} entries")
    [(_, last)] = client.xrevrange("content:changes", count=1)
    wanted = {"template_id": "tpl", "action": "update", "version": "1200", "timestamp": "1200"}
    expect(last, wanted)
    # On a machine so slow that the minute is over, there is nothing to check.
    if time.time() - BEGUN < 50:
        for key in ("ratelimit:submit:u1", "ratelimit:global:10.0.0.1"):
            expect(client.get(key), "3")
            expect_ttl(client, key, 60)
    board = client.zrange("leaderboard:level:l3", 0, -1, desc=True, withscores=True)
    expect([tuple(row) for row in board], [("cy", 120.5), ("ada", 120.0), ("bob", 95.0)])
    expect(client.zrevrank("leaderboard:level:l3", "ada"), 1)
    expect_ttl(client, "leaderboard:level:l3", 600)
    # Of the 25 that are due, the 20 that are due longest.
    due = client.zrangebyscore("srs:ada:spring", "-inf", NOW, start=0, num=20)
    expect(due, [f"q{number:02}" for number in range(20)])
    expect(client.zcount("srs:ada:spring", "-inf", NOW), 25)
    expect(client.ttl("srs:ada:spring"), -1)


def short_lives(client):
    """Cooldowns and locks are gone when their time is over, and not before."""
    begun = time.monotonic()
    expect(client.set("hint:cooldown:u1:t9", "locked", px=150, nx=True), True)
    while client.set("hint:cooldown:u1:t9", "locked", px=150, nx=True) is None:
        pass
    if time.monotonic() - begun < 0.149:
        raise AssertionError("the cooldown ended early")
    # As they are in production.
    client.set("hint:cooldown:u1:t9", "locked", ex=5)
    expect_ttl(client, "hint:cooldown:u1:t9", 5 + (time.time() - BEGUN))


LIMIT = 3
BUY = """
local used = tonumber(redis.call('HGET', KEYS[1], 'hints_used') or '0')
if used >= tonumber(ARGV[1]) then return -1 end
redis.call('EXPIRE', KEYS[1], ARGV[2])
return redis.call('HINCRBY', KEYS[1], 'hints_used', 1)
"""


def hints_never_exceed_the_limit(client):
    """100 purchases at once, by a script and by WATCH."""
    buy = client.register_script(BUY)
    with ThreadPoolExecutor(20) as buyers:
        got = list(buyers.map(lambda _: buy(["session:s2"], [LIMIT, 3600]), range(100)))
    expect(sorted(got), [-1] * 97 + [1, 2, 3])
    expect(client.hget("session:s2", "hints_used"), "3")

    def watched(_):
        def purchase(pipe):
            used = int(pipe.get("hints_used:s3") or 0)
            pipe.multi()
            if used < LIMIT:
                pipe.incr("hints_used:s3").expire("hints_used:s3", 3600)

        return bool(client.transaction(purchase, "hints_used:s3"))

    with ThreadPoolExecutor(20) as buyers:
        expect(sum(buyers.map(watched, range(100))), LIMIT)
    expect(client.get("hints_used:s3"), str(LIMIT))


def one_generator_for_an_explanation(client):
    def ask(number):
        return client.set("explanation:pending:t5", "generating", nx=True, ex=30)

    with ThreadPoolExecutor(20) as asking:
        expect(list(asking.map(ask, range(100))).count(True), 1)
    expect(client.get("explanation:pending:t5"), "generating")


with tempfile.TemporaryDirectory() as folder:
    server = Server(folder)
    try:
        client = server.client()
        write(client)
        check(client)
        short_lives(client)
        hints_never_exceed_the_limit(client)
        one_generator_for_an_explanation(client)
        server.kill()
        server = Server(folder)
        client = server.client()
        check(client)
        expect(client.hget("session:s2", "hints_used"), str(LIMIT))
        expect(client.get("hints_used:s3"), str(LIMIT))
    finally:
        server.kill()
print("redis-py: passed")
