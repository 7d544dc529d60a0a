//! Clients that wait for lists.

use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Client, bulk, bulks, error, int, ok};
use kstone_ports::keys::Value;

/// A command that waits on a thread of its own.
struct Waiter {
    reply: Receiver<Value>,
}

impl Waiter {
    /// Begins to wait; returns when the server knows of it.
    fn new(client: &Client, line: &str) -> Waiter {
        let (mut own, line) = (client.another(), line.to_owned());
        let before = client.redis.blocked_clients();
        let (sender, reply) = channel();
        thread::spawn(move || sender.send(own.say(&line)));
        until(|| client.redis.blocked_clients() > before);
        Waiter { reply }
    }

    #[track_caller]
    fn reply(self) -> Value {
        self.reply.recv_timeout(Duration::from_secs(20)).expect("a reply")
    }

    /// Nothing came yet. Who is served is served before the command that served it returns, so
    /// that this does not depend on time.
    #[track_caller]
    fn still_waits(&self, client: &Client, waiting: usize) {
        assert_eq!(client.redis.blocked_clients(), waiting);
        assert_eq!(self.reply.try_recv(), Err(TryRecvError::Empty));
    }
}

#[track_caller]
fn until(is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < end, "it never came to be");
        thread::yield_now();
    }
}

#[test]
fn a_list_that_is_there_is_popped_at_once() {
    let mut client = Client::new();
    client.say("RPUSH l a b");
    assert_eq!(client.say("BLPOP none l 0"), bulks(&["l", "a"]));
    assert_eq!(client.say("BRPOP l 0"), bulks(&["l", "b"]));
    client.say("RPUSH l a b");
    let popped = Value::Array(vec![bulk("l"), bulks(&["a", "b"])]);
    assert_eq!(client.say("BLMPOP 0 2 none l LEFT COUNT 5"), popped);
    client.say("RPUSH l a");
    assert_eq!(client.say("BLMOVE l m LEFT RIGHT 0"), bulk("a"));
    assert_eq!(client.say("BRPOPLPUSH m l 0"), bulk("a"));
}

#[test]
fn who_waits_longest_is_served_first() {
    let mut client = Client::new();
    let first = Waiter::new(&client, "BLPOP l 0");
    let second = Waiter::new(&client, "BRPOP l 0");
    let third = Waiter::new(&client, "BLPOP other l 0");
    assert_eq!(client.say("RPUSH l a b"), int(2));
    assert_eq!(first.reply(), bulks(&["l", "a"]));
    assert_eq!(second.reply(), bulks(&["l", "b"]));
    third.still_waits(&client, 1);
    client.say("RPUSH other c");
    assert_eq!(third.reply(), bulks(&["other", "c"]));
    assert_eq!(client.say("DBSIZE"), int(0));
}

#[test]
fn the_key_that_became_ready_first_is_taken_from() {
    let mut client = Client::new();
    let waiter = Waiter::new(&client, "BLPOP a b 0");
    client.say("MULTI");
    client.say("RPUSH b 1");
    client.say("RPUSH a 2");
    client.say("EXEC");
    assert_eq!(waiter.reply(), bulks(&["b", "1"]));
    assert_eq!(client.say("LLEN a"), int(1));
}

#[test]
fn other_keys_of_another_type_do_not_matter_to_who_waits() {
    let mut client = Client::new();
    let waiter = Waiter::new(&client, "BLPOP a b 0");
    client.say("SET a text");
    waiter.still_waits(&client, 1);
    client.say("RPUSH b 1");
    assert_eq!(waiter.reply(), bulks(&["b", "1"]));
}

#[test]
fn what_a_transaction_takes_away_again_was_never_there() {
    let mut client = Client::new();
    let waiter = Waiter::new(&client, "BLPOP l 0");
    for line in ["MULTI", "RPUSH l a", "DEL l", "EXEC"] {
        client.say(line);
    }
    waiter.still_waits(&client, 1);
    for line in ["MULTI", "RPUSH l a", "DEL l", "RPUSH l b", "EXEC"] {
        client.say(line);
    }
    assert_eq!(waiter.reply(), bulks(&["l", "b"]));
}

#[test]
fn moves_that_wait_form_a_chain() {
    let mut client = Client::new();
    let last = Waiter::new(&client, "BLPOP c 0");
    let middle = Waiter::new(&client, "BLMOVE b c LEFT RIGHT 0");
    let first = Waiter::new(&client, "BRPOPLPUSH a b 0");
    assert_eq!(client.say("RPUSH a 1"), int(1));
    assert_eq!(first.reply(), bulk("1"));
    assert_eq!(middle.reply(), bulk("1"));
    assert_eq!(last.reply(), bulks(&["c", "1"]));
    assert_eq!(client.say("DBSIZE"), int(0));
}

#[test]
fn a_target_of_another_type_is_an_error_and_the_element_stays() {
    let mut client = Client::new();
    let waiter = Waiter::new(&client, "BLMOVE a b LEFT RIGHT 0");
    client.say("SET b text");
    client.say("RPUSH a 1");
    assert!(error(waiter.reply()).starts_with("WRONGTYPE"));
    assert_eq!(client.say("LRANGE a 0 -1"), bulks(&["1"]));
}

#[test]
fn a_key_that_is_no_list_lets_the_client_wait_on() {
    let mut client = Client::new();
    let waiter = Waiter::new(&client, "BLPOP l 0");
    client.say("SET l text");
    waiter.still_waits(&client, 1);
    client.say("DEL l");
    client.say("RPUSH l a");
    assert_eq!(waiter.reply(), bulks(&["l", "a"]));
}

#[test]
fn time_runs_out_and_nothing_is_taken_after_that() {
    let mut client = Client::new();
    for line in ["BLPOP l 0.01", "BLMPOP 0.01 1 l LEFT", "BLMOVE l m LEFT LEFT 0.01"] {
        assert_eq!(client.say(line), Value::NullArray, "{line}");
        assert_eq!(client.redis.blocked_clients(), 0);
    }
    client.say("RPUSH l a");
    assert_eq!(client.say("LLEN l"), int(1));
    assert_eq!(error(client.say("BLPOP l -1")), "ERR timeout is negative");
    let not_a_float = "ERR timeout is not a float or out of range";
    assert_eq!(error(client.say("BLPOP l never")), not_a_float);
}

#[test]
fn nobody_waits_inside_a_transaction() {
    let mut client = Client::new();
    for line in ["MULTI", "BLPOP l 0", "BLMPOP 0 1 l LEFT", "BLMOVE l m LEFT LEFT 0"] {
        client.say(line);
    }
    let nothing = vec![Value::NullArray, Value::NullArray, Value::Null];
    assert_eq!(client.say("EXEC"), Value::Array(nothing));
}

#[test]
fn a_list_that_comes_from_elsewhere_wakes_who_waits_for_it() {
    let mut client = Client::new();
    let waiter = Waiter::new(&client, "BLPOP l 0");
    client.say("RPUSH other a");
    client.say("RENAME other l");
    assert_eq!(waiter.reply(), bulks(&["l", "a"]));

    let waiter = Waiter::new(&client, "BLPOP l 0");
    client.say("SELECT 9");
    client.say("RPUSH l b");
    waiter.still_waits(&client, 1);
    client.say("SWAPDB 0 9");
    assert_eq!(waiter.reply(), bulks(&["l", "b"]));

    client.say("SELECT 0");
    let waiter = Waiter::new(&client, "BLPOP l 0");
    client.say("SELECT 5");
    client.say("RPUSH l c");
    assert_eq!(client.say("MOVE l 0"), int(1));
    assert_eq!(waiter.reply(), bulks(&["l", "c"]));
    assert_eq!(client.say("FLUSHALL"), ok());
}

#[test]
fn who_goes_away_while_waiting_takes_nothing() {
    let mut client = Client::new();
    let mut gone = client.another();
    let waiting = gone.begin("BLPOP l 0");
    assert_eq!(client.redis.blocked_clients(), 1);
    drop(waiting);
    assert_eq!(client.redis.blocked_clients(), 0);
    assert_eq!(client.say("RPUSH l a"), int(1));
    assert_eq!(client.say("LLEN l"), int(1));
}

#[test]
fn every_element_goes_to_exactly_one_of_many_who_wait() {
    const WORKERS: usize = 4;
    const JOBS: usize = 400;
    let mut client = Client::new();
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| {
            let mut own = client.another();
            thread::spawn(move || {
                let mut taken = Vec::new();
                loop {
                    match own.say("BLPOP jobs end 0") {
                        Value::Array(mut pair) if pair[0] == bulk("jobs") => {
                            taken.push(pair.remove(1));
                        }
                        _ => return taken,
                    }
                }
            })
        })
        .collect();
    for job in 0..JOBS {
        client.say(&format!("RPUSH jobs {job}"));
    }
    until(|| client.redis.blocked_clients() == WORKERS);
    for _ in 0..WORKERS {
        client.say("RPUSH end now");
    }
    let mut taken = Vec::new();
    for worker in workers {
        taken.extend(worker.join().unwrap());
    }
    let mut numbers: Vec<usize> = taken
        .iter()
        .map(|job| match job {
            Value::Bulk(text) => std::str::from_utf8(text).unwrap().parse().unwrap(),
            other => panic!("not a job: {other:?}"),
        })
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (0..JOBS).collect::<Vec<_>>());
}
