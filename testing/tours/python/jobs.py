"""RQ, a job queue on Redis, as it is, on KeystoneDB.

    REDIS_URL=redis://127.0.0.1:6379 python jobs.py

Jobs are put into a queue, wait for each other, fail and are tried again; a worker takes them. Every
step checks what came back.
"""

import os
import uuid

from redis import Redis
from rq import Queue, Retry, SimpleWorker
from rq.job import Job, JobStatus

# RQ finds a job's function by the name of its module, which for the script itself is no name.
import jobs

connection = Redis.from_url(os.environ["REDIS_URL"])


def expect(found, wanted):
    if found != wanted:
        raise AssertionError(f"found {found!r}, wanted {wanted!r}")


def add(left, right):
    return left + right


def fail_until(key, attempts):
    tried = connection.incr(key)
    if tried < attempts:
        raise RuntimeError(f"attempt {tried}")
    return tried


def main():
    name = f"reviews-{uuid.uuid4().hex[:8]}"
    queue = Queue(name, connection=connection)
    sums = [queue.enqueue(jobs.add, number, number) for number in range(20)]
    after = queue.enqueue(jobs.add, 1, 1, depends_on=sums)
    again = queue.enqueue(jobs.fail_until, f"{name}:attempts", 3, retry=Retry(max=2))
    fails = queue.enqueue(jobs.fail_until, f"{name}:never", 100)
    expect(after.get_status(), JobStatus.DEFERRED)
    expect(len(queue), 22)

    SimpleWorker([queue], connection=connection).work(burst=True, logging_level="CRITICAL")

    def result(job):
        return Job.fetch(job.id, connection=connection).return_value()

    expect([result(job) for job in sums], [2 * number for number in range(20)])
    expect((result(after), result(again)), (2, 3))
    expect(fails.get_status(), JobStatus.FAILED)
    expect(queue.failed_job_registry.get_job_ids(), [fails.id])
    expect(queue.finished_job_registry.count, 22)
    expect(len(queue), 0)
    print("RQ: passed")


if __name__ == "__main__":
    main()
