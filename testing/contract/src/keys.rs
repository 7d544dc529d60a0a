//! The contract of the port to keys.
//!
//! [`check`] runs every case on one store. The keys of a case begin with a prefix that no other has,
//! so that stores may be shared; nothing else in the store is touched.

mod calls;
mod replies;
mod together;
mod walks;

use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use kstone_ports::keys::{Keys, Value};
use kstone_ports::{Error, Result};

/// One case, as a future that panics if the store breaks the contract.
type Case = (&'static str, fn(Shelf) -> Pin<Box<dyn Future<Output = ()> + Send>>);

macro_rules! cases {
    ($($module:ident::$name:ident),* $(,)?) => {
        [$((stringify!($name), |shelf| Box::pin($module::$name(shelf)))),*]
    };
}

/// All of the contract.
const CASES: [Case; 20] = cases![
    replies::strings_and_numbers,
    replies::lists_hashes_and_sets,
    replies::sorted_sets_with_scores,
    replies::streams_and_places,
    replies::maps_within_replies,
    replies::scripts,
    replies::nothing_has_two_forms,
    replies::an_error_of_a_command_is_an_error,
    calls::what_the_port_does_not_accept_is_refused,
    calls::databases_are_apart,
    calls::a_value_may_be_a_mebibyte,
    calls::a_key_is_gone_when_its_time_is_over,
    calls::only_who_can_purge_does,
    together::each_of_a_pipeline_is_answered_in_order,
    together::a_pipeline_keeps_the_order_on_a_key,
    together::a_transaction_is_of_one_slot,
    together::nobody_sees_half_a_transaction,
    together::of_two_who_watch_one_commits,
    together::increments_of_many_add_up,
    walks::a_walk_shows_what_is_there,
];

/// Checks that a store keeps the contract. `prefix` begins the names of all keys that are used.
///
/// # Panics
/// If it does not: the message names the case.
pub async fn check(keys: Arc<dyn Keys>, prefix: &str) {
    let begun = CASES.map(|(name, case)| {
        let shelf = Shelf { keys: Arc::clone(&keys), prefix: format!("{prefix}:{name}:") };
        (name, tokio::spawn(case(shelf)))
    });
    let mut broken = Vec::new();
    for (name, case) in begun {
        if case.await.is_err() {
            broken.push(name);
        }
    }
    assert!(broken.is_empty(), "{} breaks the contract: {broken:?}", keys.name());
}

/// The keys of one case.
#[derive(Debug, Clone)]
pub(crate) struct Shelf {
    keys: Arc<dyn Keys>,
    prefix: String,
}

impl Shelf {
    /// A key that shares its slot with all others that this gives.
    fn key(&self, name: &str) -> String {
        format!("{{{}}}{name}", self.prefix)
    }

    /// A key that has a slot of its own.
    fn apart(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// The words of a command: `$name` is [`Shelf::key`], `@name` is [`Shelf::apart`].
    fn words(&self, line: &str) -> Vec<Bytes> {
        let word = |word: &str| match (word.strip_prefix('$'), word.strip_prefix('@')) {
            (Some(name), _) => self.key(name),
            (_, Some(name)) => self.apart(name),
            _ => word.to_owned(),
        };
        line.split(' ').map(|it| Bytes::from(word(it))).collect()
    }

    /// The words of several commands.
    fn lines<const N: usize>(&self, lines: [&str; N]) -> Vec<Vec<Bytes>> {
        lines.iter().map(|line| self.words(line)).collect()
    }

    /// What a command answers.
    async fn say(&self, line: &str) -> Result<Value> {
        self.keys.command(&self.words(line)).await
    }

    /// Checks what commands answer, one after the other.
    async fn expect(&self, all: impl IntoIterator<Item = (&str, Value)>) {
        for (line, expected) in all {
            assert_eq!(self.say(line).await, Ok(expected), "{line}");
        }
    }

    /// Checks that a command is refused by the port.
    async fn expect_refused(&self, line: &str) {
        let answer = self.say(line).await;
        assert!(matches!(answer, Err(Error::Refused(_))), "{line}: {answer:?}");
    }
}

/// The status of what was done.
fn ok() -> Value {
    Value::Simple("OK".to_owned())
}

fn int(number: i64) -> Value {
    Value::Integer(number)
}

fn bulk(text: &str) -> Value {
    Value::bulk(text)
}

/// A list of byte strings.
fn list<const N: usize>(texts: [&str; N]) -> Value {
    Value::Array(texts.map(bulk).to_vec())
}

fn number(number: f64) -> Value {
    Value::Double(number)
}

/// Each of these once.
fn set<const N: usize>(texts: [&str; N]) -> Value {
    Value::Set(texts.map(bulk).to_vec())
}

/// Byte strings by byte strings.
fn map<const N: usize>(pairs: [(&str, &str); N]) -> Value {
    Value::Map(pairs.map(|(key, value)| (bulk(key), bulk(value))).to_vec())
}
