//! Keys whose parts are in an annex.

use kstone_core::{Engine, Key, Options, TableId};
use kstone_ports::keys::Value;

use crate::golden::records::{self, CATALOG, KEYS, Record};
use crate::golden::script::text;
use crate::golden::{VERSION_1, machine_with};
use crate::support::{Client, machine};

const ANNEXES: TableId = TableId(4);

#[test]
fn a_key_that_outgrew_one_commit_has_its_parts_in_an_annex() {
    let (env, _) = machine();
    let (mut client, database) = Client::on(&env);
    client.say("SET small 1");
    let long = vec![b'x'; 9 << 20];
    assert_eq!(client.call(&[b"RPUSH", &b"big"[..], &long, &long]), Value::Integer(2));
    client.say("RPUSH big a b");
    client.say("LTRIM big 2 -1");
    drop((client, database));
    let found = records::all(&Engine::open_with(env, "db", Options::default()).unwrap());
    let head = found.iter().find(|record| record.key == Key::new("big")).unwrap();
    assert_eq!(head.table, KEYS);
    let Some((&[0x82], rest)) = head.value.split_first_chunk() else { panic!("{head}") };
    let (number, body) = rest.split_at(8);
    assert_eq!(body, records::bytes("0200000000000080 0200000000000000").unwrap());
    let part = |place: u8, value: &[u8]| Record {
        table: ANNEXES,
        key: Key::with_sk(number.to_vec(), vec![1, 0x80, 0, 0, 0, 0, 0, 0, place]),
        expires_at_ms: None,
        value: value.to_vec(),
    };
    let parts = found.iter().filter(|record| record.table == ANNEXES);
    assert!(parts.eq(&[part(2, b"a"), part(3, b"b")]), "and nothing else");
    let layout = found.iter().find(|record| record.key == Key::new("layout")).unwrap();
    assert_eq!(layout.value[1 + 16 + 64..][..4], ANNEXES.0.to_le_bytes());
    assert!(!found.iter().any(|record| record.key.pk == "annexes"), "the note is gone");
}

#[test]
fn an_annex_that_no_command_wrote_is_read_and_one_that_was_being_filled_is_dropped() {
    let mut golden = records::parse(VERSION_1);
    let layout = golden.iter_mut().find(|record| record.key == Key::new("layout")).unwrap();
    layout.value[1 + 16 + 64] = 5;
    golden.extend(records::parse(
        "1 \"side-tables\" / 00000005 =
3 \"annexed\" = 82 0000000000000011 0000000000000080 0200000000000000
5 0000000000000011 / 01 8000000000000000 = \"one\"
5 0000000000000011 / 01 8000000000000001 = \"two\"
2 \"annexes\" / 00 0000000000000012 =
5 0000000000000012 / 01 8000000000000000 = \"half\"",
    ));
    let (mut client, database) = Client::on(&machine_with(&golden));
    assert_eq!(text(&client.say("LRANGE annexed 0 -1")), "[one two]");
    assert_eq!(text(&client.say("RPUSH annexed three")), "3");
    let left = records::all(database.engine());
    let annexed: Vec<&Record> = left.iter().filter(|record| record.table == TableId(5)).collect();
    assert_eq!(annexed.len(), 3, "{annexed:?}");
    assert!(annexed.iter().all(|record| record.key.pk.ends_with(&[0x11])));
    assert!(!left.iter().any(|record| record.table == CATALOG && record.key.pk == "annexes"));
    client.say("DEL annexed");
    assert!(!records::all(database.engine()).iter().any(|record| record.table == TableId(5)));
}
