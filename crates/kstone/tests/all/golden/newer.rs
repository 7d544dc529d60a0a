//! Records of a version that this build does not know are refused by name, never misread.

use kstone::stream::ShardPosition;
use kstone::{Database, Durability, Error, Key};
use kstone_core::{Engine, Options, TableId, WriteBatch};

use crate::golden::script::{self, KEYS_STREAM, MUSIC, SYSTEM};
use crate::golden::{DIR, golden, look, machine_with, open};

/// Opens the golden database after something was done to one record.
fn with_changed(
    table: u32,
    key: impl Fn(&Engine) -> Key,
    change: impl Fn(&mut Vec<u8>),
) -> Result<Database, Error> {
    let env = machine_with(&golden());
    let engine = Engine::open_with(env.clone(), DIR, Options::default()).unwrap();
    let (table, key) = (TableId(table), key(&engine));
    let record = engine.get(table, &key).unwrap().unwrap();
    let mut value = record.value.to_vec();
    change(&mut value);
    let mut batch = WriteBatch::new();
    match record.expires_at_ms {
        Some(at_ms) => batch.put_expiring(table, &key, &value, at_ms).unwrap(),
        None => batch.put(table, &key, &value).unwrap(),
    }
    engine.write(&batch, Durability::Sync).unwrap().wait().unwrap();
    drop(engine);
    open(&env)
}

fn version_2(value: &mut [u8]) {
    assert_eq!(value[0], 1);
    value[0] = 2;
}

fn message(what: &str) -> String {
    format!(
        "the stored {what} has format version 2, this build knows 1; \
         open the database with a newer kstone"
    )
}

#[test]
fn a_catalogue_of_an_unknown_version_keeps_the_database_closed() {
    let opened = with_changed(SYSTEM, |_| Key::new("form"), |value| version_2(value));
    assert_eq!(opened.unwrap_err().to_string(), message("catalogue"));
    // More than a version: somebody else's table.
    let opened = with_changed(SYSTEM, |_| Key::new("form"), |value| value.push(0));
    assert!(opened.unwrap_err().to_string().contains("something else than a catalogue"));
}

#[test]
fn a_token_of_an_unknown_version_is_not_taken_for_another_transaction() {
    let db = with_changed(SYSTEM, |_| Key::new("token#late"), |value| version_2(value)).unwrap();
    let before = look(&db);
    let late = script::transaction();
    let late = kstone::ops::TransactWrite { token: Some("late".to_owned()), ..late };
    let refused = db.transact_write(&late).wait().unwrap_err();
    assert_eq!(refused.to_string(), message("token of a transaction"));
    assert_eq!(look(&db), before, "nothing was written");
}

#[test]
fn a_stream_record_of_an_unknown_version_is_refused_when_it_is_read() {
    let first = |engine: &Engine| {
        let mut records =
            engine.snapshot().scan(TableId(KEYS_STREAM), kstone_core::ScanCursor::start());
        records.next().unwrap().unwrap().key
    };
    let db = with_changed(KEYS_STREAM, first, |value| version_2(value)).unwrap();
    let stream = db.list_streams(None, None, 10).0.pop().unwrap();
    let mut refused = Vec::new();
    for shard in db.describe_stream(&stream, None, 10).unwrap().shards {
        let from = db.shard_iterator(&stream, &shard.id, ShardPosition::TrimHorizon).unwrap();
        refused.extend(db.stream_records(&from, 100).wait().err().map(|error| error.to_string()));
    }
    assert_eq!(refused, [message("stream record")]);
}

#[test]
fn an_item_of_an_unknown_version_is_refused_when_it_is_read() {
    let first = |engine: &Engine| {
        let mut records = engine.snapshot().scan(TableId(MUSIC), kstone_core::ScanCursor::start());
        records.next().unwrap().unwrap().key
    };
    let db = with_changed(MUSIC, first, |value| version_2(value)).unwrap();
    let scan = kstone::ops::Scan { table: "music".to_owned(), ..Default::default() };
    let refused = db.scan_items(&scan).wait();
    assert!(matches!(refused, Err(Error::Corrupt(_))), "{refused:?}");
}
