//! SORT.

use crate::support::{Client, bulk, bulks, error, int, ok};
use kstone_ports::keys::Value;

#[test]
fn numbers_are_sorted_as_numbers_and_texts_as_texts() {
    let mut client = Client::new();
    client.say("RPUSH l 10 9 -2.5 1e1 0");
    assert_eq!(client.say("SORT l"), bulks(&["-2.5", "0", "9", "10", "1e1"]));
    assert_eq!(client.say("SORT l DESC LIMIT 0 2"), bulks(&["1e1", "10"]));
    assert_eq!(client.say("SORT l ALPHA"), bulks(&["-2.5", "0", "10", "1e1", "9"]));
    client.say("RPUSH l x");
    let message = "ERR One or more scores can't be converted into double";
    assert_eq!(error(client.say("SORT l")), message);
    assert_eq!(client.say("SORT nothing"), Value::Array(vec![]));
    client.say("SET s 1");
    assert!(error(client.say("SORT s")).starts_with("WRONGTYPE"));
}

#[test]
fn weights_and_values_come_from_other_keys() {
    let mut client = Client::new();
    client.say("SADD s 1 2 3");
    client.say("MSET w_1 30 w_2 20 w_3 10 v_1 a v_2 b");
    client.say("HSET h_1 f 1");
    assert_eq!(client.say("SORT s BY w_*"), bulks(&["3", "2", "1"]));
    assert_eq!(client.say("SORT s BY h_*->f DESC"), bulks(&["1", "3", "2"]));
    let (a, b) = (bulk("a"), bulk("b"));
    let pairs = [bulk("1"), a, bulk("2"), b, bulk("3"), Value::Null];
    assert_eq!(client.say("SORT s GET # GET v_*"), Value::Array(pairs.to_vec()));
    let values = [bulk("1"), Value::Null, Value::Null];
    assert_eq!(client.say("SORT s GET h_*->f"), Value::Array(values.to_vec()));
    assert_eq!(client.say("SORT s GET s"), Value::Array(vec![Value::Null; 3]));
}

#[test]
fn what_is_not_to_be_sorted_keeps_its_order() {
    let mut client = Client::new();
    client.say("ZADD z 1 a 3 b 2 c");
    assert_eq!(client.say("SORT z BY nosort"), bulks(&["a", "c", "b"]));
    assert_eq!(client.say("SORT z BY nosort DESC LIMIT 0 1"), bulks(&["b"]));
    client.say("RPUSH l b a c");
    assert_eq!(client.say("SORT l BY nosort LIMIT 1 10"), bulks(&["a", "c"]));
    assert_eq!(client.say("SORT l BY nosort LIMIT 5 10"), bulks(&[]));
}

#[test]
fn what_is_stored_is_a_list_in_place_of_what_was_there() {
    let mut client = Client::new();
    client.say("SADD s 3 1 2");
    client.say("SET to 1");
    assert_eq!(client.say("SORT s DESC STORE to"), int(3));
    assert_eq!(client.say("LRANGE to 0 -1"), bulks(&["3", "2", "1"]));
    assert_eq!(client.say("SORT to STORE to"), int(3));
    assert_eq!(client.say("LRANGE to 0 -1"), bulks(&["1", "2", "3"]));
    assert_eq!(client.say("SORT nothing STORE to"), int(0));
    assert_eq!(client.say("EXISTS to"), int(0));
    assert_eq!(error(client.say("SORT_RO s STORE to")), "ERR syntax error");
    assert_eq!(client.say("SORT_RO s LIMIT 0 1"), bulks(&["1"]));
    assert_eq!(client.say("SET x y"), ok());
}

#[test]
fn who_may_not_read_every_key_may_not_sort_by_other_keys() {
    let mut client = Client::new();
    client.say("RPUSH l 2 1");
    client.say("ACL SETUSER bob on nopass +sort ~l ~v*");
    let mut bob = client.another();
    assert_eq!(bob.say("AUTH bob x"), ok());
    assert_eq!(bob.say("SORT l"), bulks(&["1", "2"]));
    assert_eq!(bob.say("SORT l BY nosort"), bulks(&["2", "1"]));
    for option in ["BY", "GET"] {
        let message = error(bob.say(&format!("SORT l {option} v*")));
        let want =
            format!("ERR {option} option of SORT denied due to insufficient ACL permissions.");
        assert_eq!(message, want);
    }
    client.say("ACL SETUSER bob %R~*");
    assert_eq!(bob.say("SORT l BY v*"), bulks(&["1", "2"]));
}
