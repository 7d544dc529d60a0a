//! Clients that wait for entries of streams.

use crate::support::{Client, bulk, bulks, error, int};
use kstone_redis::{Value, Waiting};

/// A client whose command waits. Who is served is served before the command that served it returns,
/// so that nobody has to wait for time to pass.
struct Waiter {
    client: Client,
    waiting: Box<Waiting>,
}

impl Waiter {
    fn new(client: &Client, line: &str) -> Waiter {
        let mut client = client.another();
        let waiting = client.begin(line);
        Waiter { client, waiting }
    }

    /// What it was served, if it was.
    fn reply(&mut self) -> Option<Value> {
        self.client.served(&mut self.waiting)
    }
}

/// What reading one stream gives.
fn read(key: &str, entries: &[(&str, &[&str])]) -> Value {
    let entries = entries.iter().map(|(id, fields)| Value::Array(vec![bulk(id), bulks(fields)]));
    let entries = Value::Array(entries.collect());
    Value::Array(vec![Value::Array(vec![bulk(key), entries])])
}

#[test]
fn a_reader_gets_what_was_added_after_it_began_to_wait() {
    let mut client = Client::new();
    client.say("XADD b 1 f old");
    let mut waiter = Waiter::new(&client, "XREAD BLOCK 0 STREAMS a b a $ $ $");
    client.say("XADD c 1 f v");
    assert_eq!(waiter.reply(), None);
    client.say("MULTI");
    client.say("XADD b 2 f new");
    client.say("XADD b 3 f newer");
    client.say("EXEC");
    let both: [(&str, &[&str]); 2] = [("2-0", &["f", "new"]), ("3-0", &["f", "newer"])];
    assert_eq!(waiter.reply(), Some(read("b", &both)));
    assert_eq!(client.redis.blocked_clients(), 0);
}

#[test]
fn many_readers_get_the_same_entry() {
    let mut client = Client::new();
    let line = "XREAD BLOCK 0 COUNT 1 STREAMS s $";
    let mut waiters = [Waiter::new(&client, line), Waiter::new(&client, line)];
    client.say("XADD s 1 f v");
    for waiter in &mut waiters {
        assert_eq!(waiter.reply(), Some(read("s", &[("1-0", &["f", "v"])])));
    }
}

#[test]
fn a_reader_waits_on_for_an_entry_that_is_behind_what_it_knows() {
    let mut client = Client::new();
    let mut waiter = Waiter::new(&client, "XREAD BLOCK 0 STREAMS s 5");
    client.say("XADD s 5 f v");
    client.say("DEL s");
    client.say("SET s text");
    client.say("DEL s");
    client.say("MULTI");
    client.say("XADD s 6 f v");
    client.say("DEL s");
    client.say("EXEC");
    assert_eq!(waiter.reply(), None);
    client.say("XADD s 7 f v");
    assert_eq!(waiter.reply(), Some(read("s", &[("7-0", &["f", "v"])])));
}

#[test]
fn each_entry_goes_to_one_consumer_of_a_group() {
    let mut client = Client::new();
    client.say("XGROUP CREATE s g $ MKSTREAM");
    let mut first = Waiter::new(&client, "XREADGROUP GROUP g a BLOCK 0 STREAMS s >");
    let mut second = Waiter::new(&client, "XREADGROUP GROUP g b BLOCK 0 STREAMS s >");
    assert_eq!(client.say("XINFO CONSUMERS s g"), Value::Array(vec![]));
    client.say("XADD s 1 f v");
    assert_eq!(first.reply(), Some(read("s", &[("1-0", &["f", "v"])])));
    assert_eq!(second.reply(), None);
    client.say("XADD s 2 f v");
    assert_eq!(second.reply(), Some(read("s", &[("2-0", &["f", "v"])])));
    assert_eq!(client.say("XACK s g 1 2"), int(2));
}

#[test]
fn all_who_wait_in_a_group_are_told_that_it_is_gone() {
    let mut client = Client::new();
    for (line, expected) in [
        ("XGROUP DESTROY s g", "NOGROUP the consumer group this client was blocked on no longer"),
        ("DEL s", "UNBLOCKED the stream key no longer exists"),
        ("SET s x", "UNBLOCKED the stream key no longer exists"),
        ("FLUSHALL", "UNBLOCKED the stream key no longer exists"),
        ("RENAME s t", "UNBLOCKED the stream key no longer exists"),
        ("RENAME other s", "NOGROUP the consumer group this client was blocked on no longer"),
    ] {
        client.say("FLUSHALL");
        client.say("XADD other 1 f v");
        client.say("XGROUP CREATE s g $ MKSTREAM");
        let waiting = "XREADGROUP GROUP g a BLOCK 0 STREAMS s >";
        let mut waiters = [Waiter::new(&client, waiting), Waiter::new(&client, waiting)];
        client.say(line);
        for waiter in &mut waiters {
            let reply = waiter.reply().unwrap_or_else(|| panic!("{line}: still waits"));
            let message = error(reply);
            assert!(message.starts_with(expected), "{line}: {message}");
        }
    }
}

#[test]
fn who_waits_in_a_group_is_told_behind_one_who_takes_what_came_instead_of_the_stream() {
    let mut client = Client::new();
    for (first, instead) in [
        ("BLPOP s 0", "RPUSH s x"),
        ("BRPOPLPUSH s other 0", "RPUSH s x"),
        ("BZPOPMIN s 0", "ZADD s 1 x"),
    ] {
        // What replaces the stream comes in the same transaction, or from another database.
        for is_swapped in [false, true] {
            client.say("FLUSHALL");
            let mut taking = Waiter::new(&client, first);
            let mut waiting_on = Waiter::new(&client, first);
            client.say("XGROUP CREATE s g $ MKSTREAM");
            let line = "XREADGROUP GROUP g a BLOCK 0 STREAMS s >";
            let mut groups = [Waiter::new(&client, line), Waiter::new(&client, line)];
            let all: &[&str] = match is_swapped {
                true => &["SELECT 1", instead, "SELECT 0", "SWAPDB 0 1"],
                false => &["MULTI", "DEL s", instead, "EXEC"],
            };
            all.iter().for_each(|line| drop(client.say(line)));
            assert!(taking.reply().is_some(), "{first}");
            assert_eq!(waiting_on.reply(), None, "{first}");
            for waiter in &mut groups {
                let reply = waiter.reply().unwrap_or_else(|| panic!("{first}: still waits"));
                assert_eq!(error(reply), "UNBLOCKED the stream key no longer exists", "{first}");
            }
            assert_eq!(client.redis.blocked_clients(), 1);
        }
    }
}

#[test]
fn who_waits_in_a_group_of_a_stream_of_any_size_is_told_that_it_has_another_name() {
    let mut client = Client::new();
    let large = vec![b'x'; 1 << 20];
    for _ in 0..17 {
        client.call(&[&b"XADD"[..], b"made", b"*", b"f", &large]);
    }
    // A copy is written in pieces, which go with the name.
    assert_eq!(client.say("COPY made s"), int(1));
    client.say("XGROUP CREATE s g $");
    let mut waiter = Waiter::new(&client, "XREADGROUP GROUP g a BLOCK 0 STREAMS s >");
    client.say("RENAME s t");
    let reply = waiter.reply().expect("it was told");
    assert_eq!(error(reply), "UNBLOCKED the stream key no longer exists");
    assert_eq!(client.say("XLEN t"), int(17));
}

#[test]
fn who_waits_in_a_group_is_told_that_the_stream_has_expired() {
    let (mut client, database, clock) = Client::with_clock();
    client.say("XGROUP CREATE s g $ MKSTREAM");
    client.say("PEXPIRE s 100");
    let mut waiter = Waiter::new(&client, "XREADGROUP GROUP g a BLOCK 0 STREAMS s >");
    clock.advance(100);
    assert_eq!(waiter.reply(), None);
    database.run_background().unwrap();
    let reply = waiter.reply().expect("it was told");
    assert_eq!(error(reply), "UNBLOCKED the stream key no longer exists");
}

#[test]
fn who_asks_again_for_what_it_has_does_not_wait() {
    let mut client = Client::new();
    client.say("XGROUP CREATE s g $ MKSTREAM");
    let nothing = client.say("XREADGROUP GROUP g a BLOCK 0 STREAMS s 0");
    assert_eq!(nothing, read("s", &[]));
    client.say("MULTI");
    client.say("XREAD BLOCK 0 STREAMS s $");
    assert_eq!(client.say("EXEC"), Value::Array(vec![Value::NullArray]));
}
