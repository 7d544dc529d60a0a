//! Hashes, and fields that expire.

use crate::support::{Client, bulk, bulks, error, int, machine, ok};
use kstone_ports::keys::Value;

/// The parts of a list.
#[track_caller]
fn items(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) | Value::Set(items) => items,
        other => panic!("not a list: {other:?}"),
    }
}

/// The fields that HKEYS shows, in order of the alphabet.
fn names(client: &mut Client, key: &str) -> Vec<Value> {
    let mut names = items(client.call(&["HKEYS", key]));
    names.sort_by_key(|name| format!("{name:?}"));
    names
}

fn ints(numbers: &[i64]) -> Value {
    Value::Array(numbers.iter().copied().map(Value::Integer).collect())
}

#[test]
fn fields_are_set_read_and_deleted() {
    let mut client = Client::new();
    assert_eq!(client.say("HSET h a 1 b 2 a 3"), int(2));
    assert_eq!(client.say("HSET h b 5 c 4"), int(1));
    assert_eq!(client.say("HGET h a"), bulk("3"));
    assert_eq!(client.say("HGET h x"), Value::Null);
    let values = Value::Array(vec![bulk("3"), Value::Null, bulk("4")]);
    assert_eq!(client.say("HMGET h a x c"), values);
    assert_eq!(client.say("HLEN h"), int(3));
    assert_eq!(client.say("HSTRLEN h a"), int(1));
    assert_eq!(client.say("HSETNX h a 9"), int(0));
    assert_eq!(client.say("HSETNX h d 9"), int(1));
    assert_eq!(client.say("HEXISTS h d"), int(1));
    assert_eq!(client.say("HDEL h a b x c"), int(3));
    assert_eq!(client.say("HDEL h d"), int(1));
    assert_eq!(client.say("EXISTS h"), int(0));
    assert!(error(client.say("HSET h a")).contains("wrong number of arguments for 'hset'"));
    assert!(error(client.say("HMSET h a 1 b")).contains("wrong number of arguments for 'hmset'"));
}

#[test]
fn a_small_hash_is_shown_in_the_order_in_which_its_fields_came() {
    let mut client = Client::new();
    client.say("HSET h one 1 two 2 three 3 four 4 five 5");
    client.say("HSET h two 22");
    client.say("HDEL h three");
    client.say("HSET h three 33");
    assert_eq!(client.say("HKEYS h"), bulks(&["one", "two", "four", "five", "three"]));
    assert_eq!(client.say("HVALS h"), bulks(&["1", "22", "4", "5", "33"]));
    let Value::Map(pairs) = client.say("HGETALL h") else { panic!("no map") };
    assert_eq!(pairs[1], (bulk("two"), bulk("22")));
}

#[test]
fn fields_and_values_may_be_long() {
    let mut client = Client::new();
    let lens = [0, 1, 4096, 4097, 100_000, 3 << 20];
    for len in lens {
        let name = vec![b'n'; len];
        let value = vec![b'v'; len];
        assert_eq!(client.call(&[&b"HSET"[..], b"h", &name, &value]), int(1), "{len}");
        assert_eq!(client.call(&[&b"HGET"[..], b"h", &name]), bulk(&value), "{len}");
    }
    assert_eq!(client.say("HLEN h"), int(lens.len() as i64));
    let shown = items(client.say("HKEYS h"));
    let shown: Vec<usize> = shown
        .into_iter()
        .map(|name| if let Value::Bulk(name) = name { name.len() } else { usize::MAX })
        .collect();
    assert_eq!(shown, lens);
    for len in lens {
        assert_eq!(client.call(&[&b"HDEL"[..], b"h", &vec![b'n'; len]]), int(1), "{len}");
    }
    assert_eq!(client.say("EXISTS h"), int(0));
    let too_long = vec![b'v'; 17 << 20];
    assert!(error(client.call(&[&b"HSET"[..], b"h", b"a", &too_long])).contains("too long"));
    assert_eq!(client.say("EXISTS h"), int(0));
}

#[test]
fn numbers_are_counted_up_and_errors_change_nothing() {
    let mut client = Client::new();
    assert_eq!(client.say("HINCRBY h n 5"), int(5));
    assert_eq!(client.say("HINCRBY h n -7"), int(-2));
    assert_eq!(client.say("HINCRBYFLOAT h f 10.5"), bulk("10.5"));
    assert_eq!(client.say("HINCRBYFLOAT h f -0.5"), bulk("10"));
    client.say("HSET h text abc max 9223372036854775807");
    assert_eq!(error(client.say("HINCRBY h text 1")), "ERR hash value is not an integer");
    assert_eq!(error(client.say("HINCRBYFLOAT h text 1")), "ERR hash value is not a float");
    assert_eq!(error(client.say("HINCRBY h max 1")), "ERR increment or decrement would overflow");
    assert_eq!(error(client.say("HINCRBYFLOAT h f inf")), "ERR value is NaN or Infinity");
    assert_eq!(client.say("HMGET h text max f"), bulks(&["abc", "9223372036854775807", "10"]));
}

#[test]
fn random_fields_are_different_unless_the_count_is_negative() {
    let mut client = Client::new();
    for n in 0..300 {
        client.say(&format!("HSET h f{n} v{n}"));
    }
    for wanted in [5, 150, 299, 300, 1000] {
        let drawn = items(client.say(&format!("HRANDFIELD h {wanted} WITHVALUES")));
        assert_eq!(drawn.len(), 2 * wanted.min(300));
        let mut fields = std::collections::HashSet::new();
        for pair in drawn.chunks(2) {
            let [Value::Bulk(name), Value::Bulk(value)] = pair else { panic!("{pair:?}") };
            assert_eq!(name[1..], value[1..]);
            assert!(fields.insert(name.clone()));
        }
    }
    assert_eq!(items(client.say("HRANDFIELD h -1000")).len(), 1000);
    assert!(matches!(client.say("HRANDFIELD h"), Value::Bulk(_)));
    assert_eq!(client.say("HRANDFIELD none"), Value::Null);
    assert_eq!(client.say("HRANDFIELD none 3"), bulks(&[]));
    assert!(error(client.say("HRANDFIELD h -9223372036854775807")).contains("out of range"));
}

#[test]
fn a_field_whose_time_is_over_is_gone_from_everything_at_once() {
    let (mut client, _database, clock) = Client::with_clock();
    client.say("HSET h a 1 b 2 c 3");
    assert_eq!(client.say("HPEXPIRE h 100 FIELDS 2 a x"), ints(&[1, -2]));
    assert_eq!(client.say("HPTTL h FIELDS 3 a b x"), ints(&[100, -1, -2]));
    assert_eq!(client.say("HTTL h FIELDS 1 a"), ints(&[1]));
    assert_eq!(client.say("HPEXPIRETIME h FIELDS 1 a"), ints(&[1_700_000_000_100]));
    assert_eq!(client.say("HEXPIRETIME h FIELDS 1 a"), ints(&[1_700_000_001]));
    clock.advance(99);
    assert_eq!(client.say("HGET h a"), bulk("1"));
    clock.advance(1);
    assert_eq!(client.say("HGET h a"), Value::Null);
    assert_eq!(client.say("HLEN h"), int(2));
    assert_eq!(names(&mut client, "h"), [bulk("b"), bulk("c")]);
    let scanned = items(client.say("HSCAN h 0"));
    assert_eq!(scanned[1], bulks(&["b", "2", "c", "3"]));
    assert_eq!(items(client.say("HRANDFIELD h 5")).len(), 2);
    assert_eq!(client.say("HPTTL h FIELDS 1 a"), ints(&[-2]));
}

#[test]
fn a_hash_whose_last_field_expires_is_gone_even_for_who_does_not_ask_for_fields() {
    let (mut client, _database, clock) = Client::with_clock();
    client.say("HSET h a 1 b 2");
    client.say("HPEXPIRE h 100 FIELDS 1 a");
    client.say("HPEXPIRE h 200 FIELDS 1 b");
    clock.advance(200);
    assert_eq!(items(client.say("SCAN 0 COUNT 1000"))[1], bulks(&[]));
    assert_eq!(client.say("EXISTS h"), int(0));
    assert_eq!(client.say("TYPE h"), Value::Simple("none".into()));
    assert_eq!(client.say("HSETNX h a 5"), int(1));
    assert_eq!(client.say("HPTTL h FIELDS 1 a"), ints(&[-1]));
}

#[test]
fn fields_that_nobody_asks_for_are_removed_in_the_background() {
    let (mut client, database, clock) = Client::with_clock();
    client.say("HSET h a 1 b 2 c 3");
    client.say("HPEXPIRE h 100 FIELDS 1 a");
    client.say("HPEXPIRE h 300 FIELDS 2 b c");
    client.say("COPY h copy");
    client.say("HSET saved a 1");
    client.say("HPEXPIRE saved 100 FIELDS 1 a");
    client.say("HPERSIST saved FIELDS 1 a");
    clock.advance(150);
    database.run_background().unwrap();
    assert_eq!(client.say("DBSIZE"), int(3));
    clock.advance(150);
    database.run_background().unwrap();
    // Counting keys looks at none of them.
    assert_eq!(client.say("DBSIZE"), int(1));
    assert_eq!(client.say("HGET saved a"), bulk("1"));
}

#[test]
fn more_fields_than_fit_one_commit_may_expire_together() {
    let (mut client, _database, clock) = Client::with_clock();
    for chunk in 0..25 {
        let mut words =
            vec!["HSETEX".to_owned(), "h".to_owned(), "PX".to_owned(), "100".to_owned()];
        words.extend(["FIELDS".to_owned(), "100".to_owned()]);
        for n in 0..100 {
            words.extend([format!("f{}", chunk * 100 + n), "v".to_owned()]);
        }
        assert_eq!(client.call(&words), int(1));
    }
    client.say("HSET h stays 1");
    assert_eq!(client.say("HLEN h"), int(2501));
    clock.advance(100);
    assert_eq!(client.say("HLEN h"), int(1));
    assert_eq!(client.say("HKEYS h"), bulks(&["stays"]));
}

#[test]
fn an_expiry_is_set_only_if_its_condition_is_met() {
    let (mut client, _database, _clock) = Client::with_clock();
    // Per condition: for a field that does not expire, that expires earlier, that expires later.
    for (condition, expected) in
        [("NX", [1, 0, 0]), ("XX", [0, 1, 1]), ("GT", [0, 1, 0]), ("LT", [1, 0, 1])]
    {
        client.say("DEL h");
        client.say("HSET h never 1 earlier 1 later 1");
        client.say("HEXPIRE h 50 FIELDS 1 earlier");
        client.say("HEXPIRE h 150 FIELDS 1 later");
        let done = client.say(&format!("HEXPIRE h 100 {condition} FIELDS 3 never earlier later"));
        assert_eq!(done, ints(&expected), "{condition}");
        let left = [[-1, 50, 150], [100, 100, 100]];
        let left: Vec<i64> =
            expected.iter().enumerate().map(|(n, set)| left[*set as usize][n]).collect();
        assert_eq!(client.say("HTTL h FIELDS 3 never earlier later"), ints(&left), "{condition}");
    }
}

#[test]
fn a_time_that_is_over_deletes_the_field() {
    let (mut client, _database, _clock) = Client::with_clock();
    client.say("HSET h a 1 b 2");
    assert_eq!(client.say("HEXPIRE h 0 FIELDS 1 a"), ints(&[2]));
    assert_eq!(client.say("HLEN h"), int(1));
    assert_eq!(client.say("HPEXPIREAT h 1 FIELDS 1 b"), ints(&[2]));
    assert_eq!(client.say("EXISTS h"), int(0));
    assert_eq!(client.say("HEXPIRE h 10 FIELDS 2 a b"), ints(&[-2, -2]));
}

#[test]
fn setting_a_field_again_keeps_it_for_good_and_counting_it_up_does_not() {
    let (mut client, _database, clock) = Client::with_clock();
    client.say("HSET h a 1 b 1 c 1 d 1");
    client.say("HPEXPIRE h 100 FIELDS 4 a b c d");
    client.say("HSET h a 2");
    client.say("HINCRBY h b 1");
    assert_eq!(client.say("HPERSIST h FIELDS 3 c a x"), ints(&[1, -1, -2]));
    assert_eq!(client.say("HPTTL h FIELDS 4 a b c d"), ints(&[-1, 100, -1, 100]));
    clock.advance(100);
    assert_eq!(names(&mut client, "h"), [bulk("a"), bulk("c")]);
}

#[test]
fn fields_are_read_and_written_together_with_their_expiry() {
    let (mut client, _database, clock) = Client::with_clock();
    assert_eq!(client.say("HSETEX h PX 100 FIELDS 2 a 1 b 2"), int(1));
    assert_eq!(client.say("HSETEX h FXX KEEPTTL FIELDS 1 a 3"), int(1));
    assert_eq!(client.say("HSETEX h FNX FIELDS 2 a 4 c 4"), int(0));
    assert_eq!(client.say("HSETEX h FXX FIELDS 2 a 4 c 4"), int(0));
    assert_eq!(client.say("HPTTL h FIELDS 2 a b"), ints(&[100, 100]));
    assert_eq!(client.say("HGETEX h PERSIST FIELDS 1 a"), bulks(&["3"]));
    let both = Value::Array(vec![bulk("2"), Value::Null]);
    assert_eq!(client.say("HGETEX h PX 500 FIELDS 2 b x"), both);
    assert_eq!(client.say("HPTTL h FIELDS 2 a b"), ints(&[-1, 500]));
    assert_eq!(client.say("HGETEX h FIELDS 1 b"), bulks(&["2"]));
    assert_eq!(client.say("HGETDEL h FIELDS 2 a x"), Value::Array(vec![bulk("3"), Value::Null]));
    clock.advance(500);
    assert_eq!(client.say("EXISTS h"), int(0));
    assert_eq!(client.say("HGETEX h FIELDS 1 b"), Value::Array(vec![Value::Null]));
    assert_eq!(client.say("HSETEX h EXAT 1 FIELDS 1 a 1"), int(1));
    assert_eq!(client.say("EXISTS h"), int(0));
}

#[test]
fn what_is_said_wrongly_about_fields_is_told() {
    let mut client = Client::new();
    client.say("HSET h a 1");
    client.say("SET s 1");
    for (line, message) in [
        ("HEXPIRE h 10 FIELD 1 a", "ERR Mandatory argument FIELDS is missing"),
        ("HEXPIRE h 10 FIELDS 0 a", "ERR Parameter `numFields` should be greater than 0"),
        ("HEXPIRE h 10 FIELDS 2 a", "ERR The `numfields` parameter must match"),
        ("HEXPIRE h -1 FIELDS 1 a", "ERR invalid expire time, must be >= 0"),
        ("HEXPIRE h x FIELDS 1 a", "ERR value is not an integer"),
        ("HEXPIRE h 99999999999999 FIELDS 1 a", "ERR invalid expire time in 'hexpire' command"),
        ("HEXPIRE s 10 FIELDS 1 a", "WRONGTYPE"),
        ("HTTL h FIELDS 0 a", "ERR Number of fields must be a positive integer"),
        ("HTTL s FIELDS 1 a", "WRONGTYPE"),
        ("HSETEX h EX 1 PX 1 FIELDS 1 a 1", "ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL"),
        ("HSETEX h FNX FXX FIELDS 1 a 1", "ERR Only one of FXX or FNX"),
        ("HSETEX h EX 1 FIELDS 2 a 1", "ERR wrong number of arguments"),
        ("HGETEX h EX 1 EX 1 FIELDS 1 a", "ERR Only one of EX, PX, EXAT, PXAT or PERSIST"),
        ("HGETEX h WHAT FIELDS 1 a", "ERR unknown argument: WHAT"),
    ] {
        let said = error(client.say(line));
        assert!(said.starts_with(message), "{line}: {said}");
    }
    assert_eq!(client.say("HTTL h FIELDS 1 a"), ints(&[-1]));
}

#[test]
fn fields_expire_for_a_transaction_as_for_anybody() {
    let (mut client, _database, clock) = Client::with_clock();
    client.say("HSET h a 1 b 2");
    client.say("HPEXPIRE h 100 FIELDS 1 a");
    clock.advance(100);
    assert_eq!(client.say("MULTI"), ok());
    for line in ["HLEN h", "HEXPIRE h 0 FIELDS 1 b", "EXISTS h", "HSET h c 3", "HKEYS h"] {
        client.say(line);
    }
    let expected = [int(1), ints(&[2]), int(0), int(1), bulks(&["c"])];
    assert_eq!(client.say("EXEC"), Value::Array(expected.to_vec()));
    assert_eq!(client.say("HKEYS h"), bulks(&["c"]));
}

#[test]
fn fields_and_their_expiry_are_there_after_a_restart() {
    let (env, clock) = machine();
    {
        let (mut client, _database) = Client::on(&env);
        client.say("HSET h b 1 a 2 c 3");
        client.say("HPEXPIRE h 100 FIELDS 1 a");
        client.say("HSETEX forgotten PX 100 FIELDS 1 a 1");
    }
    let (mut client, database) = Client::on(&env);
    assert_eq!(client.say("HKEYS h"), bulks(&["b", "a", "c"]));
    assert_eq!(client.say("HPTTL h FIELDS 1 a"), ints(&[100]));
    assert_eq!(client.say("DBSIZE"), int(2));
    clock.advance(100);
    database.run_background().unwrap();
    assert_eq!(client.say("DBSIZE"), int(1));
    assert_eq!(client.say("HKEYS h"), bulks(&["b", "c"]));
}
