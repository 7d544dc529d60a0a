//! Redis writes under a write policy: every write is checked, refusals have no effect, additions are
//! atomic, reported changes are complete.

mod crash;
mod families;
mod model;
mod persons;
mod policy;
mod survey;
mod time_to_live;
mod together;

use std::sync::Arc;

use kstone::Database;
use kstone::policy::SUBJECTS_TABLE;
use kstone_core::env::ManualClock;
use kstone_ports::keys::Value;

use crate::support::Client;
use policy::Rules;

/// The index of persons: person and place of each entry.
fn index_of(database: &Database) -> Vec<(String, String)> {
    let text = |item: &kstone::Item, name: &str| match item.get(name) {
        Some(kstone::Value::S(text)) => text.clone(),
        other => panic!("{name}: {other:?}"),
    };
    let entries = database.table(SUBJECTS_TABLE).scan().unwrap();
    let mut entries: Vec<_> =
        entries.iter().map(|entry| (text(entry, "pk"), text(entry, "sk"))).collect();
    entries.sort();
    entries
}

/// A client of a database that is governed, on a machine whose time stands still.
struct Governed {
    client: Client,
    database: Database,
    clock: Arc<ManualClock>,
    rules: Arc<Rules>,
}

impl Governed {
    fn new() -> Governed {
        let (client, database, clock) = Client::with_clock();
        let rules = Arc::new(Rules::default());
        database.govern(Arc::clone(&rules) as _).unwrap();
        Governed { client, database, clock, rules }
    }

    fn say(&mut self, line: &str) -> Value {
        self.client.say(line)
    }

    /// Says a command that nothing is against.
    #[track_caller]
    fn do_(&mut self, line: &str) -> Value {
        let reply = self.client.say(line);
        assert!(!matches!(reply, Value::Error(_)), "{line}: {reply:?}");
        reply
    }

    /// The index of persons: person and place of each entry.
    fn index(&self) -> Vec<(String, String)> {
        index_of(&self.database)
    }

    /// What there is, counted by looking at it: keys, bytes and members of each logical database.
    fn look(&mut self) -> Vec<(u8, policy::Totals)> {
        let mut found = Vec::new();
        for db in 0..16 {
            self.do_(&format!("SELECT {db}"));
            let Value::Array(keys) = self.do_("KEYS *") else { panic!("no keys") };
            let mut totals = policy::Totals::default();
            for key in keys {
                let Value::Bulk(key) = key else { panic!("no key") };
                let key = String::from_utf8(key).unwrap();
                let Value::Simple(kind) = self.do_(&format!("TYPE {key}")) else { panic!("kind") };
                let len = match kind.as_str() {
                    "string" => "STRLEN",
                    "list" => "LLEN",
                    "set" => "SCARD",
                    "zset" => "ZCARD",
                    "hash" => "HLEN",
                    "stream" => "XLEN",
                    other => panic!("{other}"),
                };
                let Value::Integer(len) = self.do_(&format!("{len} {key}")) else { panic!("len") };
                totals.keys += 1;
                totals.bytes += key.len() as i64;
                match kind.as_str() {
                    "string" => totals.bytes += len,
                    _ => totals.members += len,
                }
            }
            if totals != policy::Totals::default() {
                found.push((db, totals));
            }
        }
        self.do_("SELECT 0");
        found
    }
}
