// A tour of KeystoneDB's Redis door with ioredis, and BullMQ, a job queue whose work is done by Lua
// scripts, as it is.
//
//     REDIS_URL=redis://127.0.0.1:6379 node redis.mjs
//
// Every step checks what came back. What was written is deleted at the end.

import { deepStrictEqual as expect, ok, rejects } from 'node:assert';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { Queue, QueueEvents, UnrecoverableError, Worker } from 'bullmq';
import { Redis } from 'ioredis';

const url = process.env.REDIS_URL;
const prefix = `tour-${randomUUID().slice(0, 8)}`;
const key = (name) => `${prefix}:${name}`;
const redis = new Redis(url);

// Strings, hashes, lists, sorted sets.
expect(await redis.set(key('session'), 'open', 'EX', 3600, 'NX'), 'OK');
expect(await redis.set(key('session'), 'again', 'EX', 3600, 'NX'), null);
ok((await redis.ttl(key('session'))) > 3500);
expect(await redis.hset(key('profile'), { name: 'Ada', level: 3 }), 2);
expect(await redis.hgetall(key('profile')), { name: 'Ada', level: '3' });
expect(await redis.hincrby(key('profile'), 'level', 2), 5);
expect(await redis.rpush(key('series'), 1, 2, 3), 3);
expect(await redis.lrange(key('series'), 0, -1), ['1', '2', '3']);
expect(await redis.zadd(key('due'), 30, 'q3', 10, 'q1', 20, 'q2'), 3);
expect(await redis.zrangebyscore(key('due'), '-inf', 25, 'LIMIT', 0, 20), ['q1', 'q2']);
expect(await redis.getBuffer(key('session')), Buffer.from('open'));
await rejects(redis.lpush(key('session'), 'x'), /WRONGTYPE/);

// A pipeline, a transaction, and one that somebody else's write undoes.
const counted = await redis.pipeline().incr(key('n')).incr(key('n')).get(key('n')).exec();
expect(counted, [[null, 1], [null, 2], [null, '2']]);
expect(await redis.multi().incr(key('n')).expire(key('n'), 60).exec(), [[null, 3], [null, 1]]);
const other = new Redis(url);
await redis.watch(key('n'));
await other.set(key('n'), 10);
expect(await redis.multi().incr(key('n')).exec(), null);

// Scripts: sent once, then called by their digest.
redis.defineCommand('take', {
  numberOfKeys: 1,
  lua: "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0",
});
expect(await redis.take(key('n'), 'wrong'), 0);
expect(await redis.take(key('n'), '10'), 1);

// A blocked client is served; subscribers get the message.
const popped = other.blpop(key('jobs'), 10);
await redis.rpush(key('jobs'), 'first');
expect(await popped, [key('jobs'), 'first']);
await other.subscribe(key('news'));
const heard = once(other, 'message');
expect(await redis.publish(key('news'), 'hello'), 1);
expect(await heard, [key('news'), 'hello']);
await other.unsubscribe();

// A stream with a group.
await redis.xgroup('CREATE', key('changes'), 'readers', '$', 'MKSTREAM');
const id = await redis.xadd(key('changes'), 'MAXLEN', '~', 1000, '*', 'action', 'update');
const read = await redis.xreadgroup(
  'GROUP', 'readers', 'ada', 'COUNT', 10, 'STREAMS', key('changes'), '>');
expect(read, [[key('changes'), [[id, ['action', 'update']]]]]);
expect(await redis.xack(key('changes'), 'readers', id), 1);

// A thousand keys, all found by a scan.
const many = Array.from({ length: 1000 }, (_, n) => key(`many:${n}`));
await redis.mset(many.flatMap((name) => [name, 'x']));
const found = new Set();
for await (const names of redis.scanStream({ match: key('many:*'), count: 100 })) {
  names.forEach((name) => found.add(name));
}
expect(found, new Set(many));
console.log('ioredis: passed');

// BullMQ: what is written in a moment by many jobs, in its own scripts.
const connection = { host: redis.options.host, port: redis.options.port };
const options = { connection, prefix };
const queue = new Queue('srs_write', options);
const events = new QueueEvents('srs_write', options);
await events.waitUntilReady();
const attempts = new Map();
const done = [];
const worker = new Worker(
  'srs_write',
  async (job) => {
    attempts.set(job.id, (attempts.get(job.id) ?? 0) + 1);
    if (job.name === 'flaky' && job.attemptsMade < 2) throw new Error('try again');
    if (job.name === 'hopeless') throw new Error('never');
    if (job.name === 'refused') throw new UnrecoverableError('not at all');
    done.push(job.name);
    return { sum: job.data.a + job.data.b };
  },
  { ...options, concurrency: 4, autorun: false },
);

// 3 retries, then it is left with the failed ones.
const retried = { attempts: 4, backoff: { type: 'fixed', delay: 20 } };
const jobs = await queue.addBulk(
  Array.from({ length: 50 }, (_, n) => ({ name: 'add', data: { a: n, b: n } })),
);
const flaky = await queue.add('flaky', { a: 1, b: 2 }, retried);
const hopeless = await queue.add('hopeless', {}, retried);
const refused = await queue.add('refused', {}, retried);
const urgent = await queue.add('urgent', { a: 0, b: 0 }, { lifo: true });
const late = await queue.add('late', { a: 4, b: 5 }, { delay: 100 });
const same = await queue.add('add', { a: 0, b: 0 }, { jobId: 'review-1' });
expect((await queue.add('add', { a: 9, b: 9 }, { jobId: 'review-1' })).id, same.id);
expect(await queue.getJobCounts('waiting', 'delayed'), { waiting: 55, delayed: 1 });

worker.run();
for (const [n, job] of jobs.entries()) {
  expect(await job.waitUntilFinished(events, 60_000), { sum: 2 * n });
}
expect(await flaky.waitUntilFinished(events, 60_000), { sum: 3 });
await rejects(hopeless.waitUntilFinished(events, 60_000), /never/);
await rejects(refused.waitUntilFinished(events, 60_000), /not at all/);
await urgent.waitUntilFinished(events, 60_000);
expect(await late.waitUntilFinished(events, 60_000), { sum: 9 });
await same.waitUntilFinished(events, 60_000);
expect(done.filter((name) => name === 'add').length, 51);
expect([flaky, hopeless, refused].map((job) => attempts.get(job.id)), [3, 4, 1]);
const counts = await queue.getJobCounts('waiting', 'active', 'delayed', 'completed', 'failed');
expect(counts, { waiting: 0, active: 0, delayed: 0, completed: 54, failed: 2 });
expect((await queue.getFailed()).map((job) => job.name).sort(), ['hopeless', 'refused']);
await worker.close();
await queue.obliterate();
await events.close();
await queue.close();
console.log('BullMQ: passed');

for await (const names of redis.scanStream({ match: key('*'), count: 1000 })) {
  if (names.length > 0) await redis.unlink(...names);
}
await Promise.all([redis.quit(), other.quit()]);
