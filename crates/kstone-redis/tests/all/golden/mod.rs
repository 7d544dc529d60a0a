//! The records of version 1, kept as they were written: today's commands must read them, and must
//! still write them byte for byte.
//!
//! The files of the engine and the records of the embedded database have golden files of their own.
//! Here it is what Redis's keys are on the engine. `v1.txt` has the records, each with what its bytes
//! mean; the chapter of docs/format.md is about the same ones. They are compared as records and not
//! as a log: in which order a commit writes them is no part of the format.
//!
//! While version 1 has not been released, a change of the bytes is a change of `v1.txt`; afterwards
//! it is a new version, with a file of its own beside this one.

mod annexes;
mod newer;
mod records;
mod script;

use kstone_core::env::Env;
use kstone_core::{Durability, Engine, Options, WriteBatch};

use crate::support::{Client, machine};
use records::Record;

const VERSION_1: &str = include_str!("v1.txt");
const FORMAT: &str = include_str!("../../../../../docs/format.md");

/// A machine that has these records and nothing else.
fn machine_with(records: &[Record]) -> Env {
    let (env, _) = machine();
    let engine = Engine::open_with(env.clone(), "db", Options::default()).unwrap();
    let last = records.iter().map(|record| record.table.0).max().unwrap();
    while engine.tables().last().is_none_or(|table| table.0 < last) {
        engine.create_table().unwrap();
    }
    write(&engine, records);
    env
}

fn write(engine: &Engine, records: &[Record]) {
    let mut batch = WriteBatch::new();
    for Record { table, key, expires_at_ms, value } in records {
        match expires_at_ms {
            Some(at_ms) => batch.put_expiring(*table, key, value, *at_ms).unwrap(),
            None => batch.put(*table, key, value).unwrap(),
        }
    }
    engine.write(&batch, Durability::Sync).unwrap().wait().unwrap();
}

/// The records that the script leaves when everything was closed.
fn written_by_commands() -> Vec<Record> {
    let (env, _) = machine();
    let (mut client, database) = Client::on(&env);
    script::run(&mut client);
    drop((client, database));
    records::all(&Engine::open_with(env, "db", Options::default()).unwrap())
}

/// The first records that are not among the second.
fn missing(records: &[Record], from: &[Record]) -> String {
    let missing = records.iter().filter(|record| !from.contains(record));
    missing.map(|record| format!("{record}\n")).collect()
}

#[test]
fn commands_still_write_the_records_of_version_1() {
    let (golden, written) = (records::parse(VERSION_1), written_by_commands());
    assert_eq!(missing(&written, &golden), "", "written, and not in v1.txt");
    assert_eq!(missing(&golden, &written), "", "in v1.txt, and not written");
}

#[test]
fn records_of_version_1_that_no_command_wrote_are_read_by_commands() {
    let (mut client, _database) = Client::on(&machine_with(&records::parse(VERSION_1)));
    script::ask(&mut client);
    script::go_on(&mut client);
}

#[test]
fn the_questions_are_the_right_ones_for_what_commands_wrote() {
    let (env, _) = machine();
    let (mut client, _database) = Client::on(&env);
    script::run(&mut client);
    script::ask(&mut client);
    script::go_on(&mut client);
}

/// The dumps in the documentation are of the golden records: the page cannot drift unnoticed.
#[test]
fn the_documentation_shows_records_of_version_1() {
    let golden = records::parse(VERSION_1);
    let chapter = FORMAT.split("\n## ").find(|chapter| chapter.starts_with("Redis's keys\n"));
    let shown = records::in_dumps(chapter.unwrap());
    assert_eq!(missing(&shown, &golden), "", "in docs/format.md, and not in v1.txt");
    let kinds = shown.iter().filter(|record| record.table == records::KEYS);
    let kinds = kinds.filter(|record| record.key.sk.is_none()).map(|record| record.value[0]);
    let kinds: std::collections::BTreeSet<u8> = kinds.collect();
    assert!(kinds.into_iter().eq(1..=7), "a head of every type is shown");
}
