//! Tests of the manifest: helpers and the normal cases here; damage, crashes and edit validation in
//! submodules.

mod crash;
mod damage;
mod edits;

use super::current::manifest_name;
use super::record::{RecordError, decode_record};
use super::testing::TestVfs;
use super::*;
use crate::sst::{FileId, SstMeta};

const DB_ID: [u8; 16] = *b"sixteen id bytes";

fn dir() -> &'static Path {
    Path::new("/db")
}

fn live_path(number: u64) -> PathBuf {
    dir().join(manifest_name(number))
}

fn file(stripe: u8, file_id: FileId, smallest: &str, largest: &str, max_seq: u64) -> SstMeta {
    SstMeta {
        stripe,
        file_id,
        file_bytes: 4096,
        smallest: smallest.into(),
        largest: largest.into(),
        min_seq: 1,
        max_seq,
        entries: 10,
        puts: 7,
        deletes: 2,
        marks: 1,
        max_mark_seq: 1,
        expiring: 3,
        key_bytes: 200,
        value_bytes: 3000,
        footer_checksum: 0xfeed_f00d_dead_beef,
        global_seq: None,
    }
}

fn added(level: u8, meta: SstMeta) -> Edit {
    Edit { add: vec![(level, meta)], ..Edit::default() }
}

/// Three edits, each of another kind and length.
fn edits() -> [Edit; 3] {
    [
        Edit {
            flushed: vec![(3, 40), (255, 41)],
            log_start: Some(512),
            clock_ms: Some(1_700_000_000_000),
            ..added(0, file(3, 8, "a", "m", 40))
        },
        Edit {
            remove: vec![(3, 0, 8)],
            counters: vec![(3, [1, 0, u64::MAX, 4])],
            ..added(1, file(3, 9, "a", "m", 40))
        },
        Edit {
            tables: vec![
                TableEdit::Created { id: 1, seq: 50 },
                TableEdit::Created { id: 5, seq: 51 },
                TableEdit::Dropped { id: 1, seq: 52 },
                TableEdit::Dropped { id: 5, seq: 53 },
                TableEdit::Forgotten { id: 5 },
            ],
            checkpoints_added: vec!["/backup/monday".to_owned(), "/backup/müller".to_owned()],
            last_seq: Some(60),
            next_file_id: Some(100),
            ..Edit::default()
        },
    ]
}

/// A database with [`edits`]: the disk, the state after each record, and where each record ends.
fn sample() -> (Arc<TestVfs>, Vec<State>, Vec<usize>) {
    let disk = Arc::new(TestVfs::default());
    let vfs: Arc<dyn Vfs> = disk.clone();
    let (mut manifest, mut state) = Manifest::create(&vfs, dir(), DB_ID).unwrap();
    let (mut states, mut ends) = (vec![state.clone()], vec![manifest.bytes() as usize]);
    for edit in edits() {
        state.apply(&edit).unwrap();
        manifest.append(&edit).unwrap();
        states.push(state.clone());
        ends.push(manifest.bytes() as usize);
    }
    (disk, states, ends)
}

fn open(vfs: &Arc<dyn Vfs>) -> (Manifest, State, Opened) {
    Manifest::open(vfs, dir()).unwrap().unwrap()
}

#[test]
fn what_was_appended_is_there_after_reopening() {
    let (disk, states, ends) = sample();
    let vfs: Arc<dyn Vfs> = disk;
    let (manifest, state, opened) = open(&vfs);
    assert_eq!(&state, states.last().unwrap());
    assert_eq!(opened, Opened { torn: false, number: 1 });
    assert_eq!(manifest.bytes() as usize, *ends.last().unwrap());
    assert_eq!(state.next_table, 6);
    assert_eq!(state.tables.keys().copied().collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn the_bytes_of_a_file_and_a_record_are_those_of_format_version_1() {
    let meta = SstMeta { global_seq: Some(300), ..file(3, 8, "a", "mm", 40) };
    let edit = Edit { flushed: vec![(3, 40)], log_start: Some(512), ..added(1, meta) };
    let expected: &[u8] = &[
        1, 33, 1, 3, 8, 0x80, 0x20, 1, 40, 10, 7, 2, 1, 1, 3, 0xc8, 1, 0xb8, 0x17, // numbers
        0xef, 0xbe, 0xad, 0xde, 0x0d, 0xf0, 0xed, 0xfe, 1, b'a', 2, b'm', b'm', // sum, bounds
        1, 0xac, 2, 3, 2, 3, 40, 7, 2, 0x80, 4,
    ];
    assert_eq!(record::encode_record(&edit), expected);
    let (header, _) = frame::header(&DB_ID, 1);
    assert_eq!(&header[..36], b"KSTNMANI\x01\0\0\0sixteen id bytes\x01\0\0\0\0\0\0\0");
}

#[test]
fn an_empty_folder_holds_no_database() {
    let vfs: Arc<dyn Vfs> = Arc::new(TestVfs::default());
    assert!(Manifest::open(&vfs, dir()).unwrap().is_none());
}

#[test]
fn a_database_is_not_created_over_another() {
    let (disk, ..) = sample();
    let vfs: Arc<dyn Vfs> = disk;
    assert!(matches!(Manifest::create(&vfs, dir(), DB_ID), Err(Error::Invalid { .. })));
    let state = State::new(DB_ID);
    assert!(matches!(write_snapshot(&*vfs, dir(), &state), Err(Error::Invalid { .. })));
}

#[test]
fn a_rewrite_goes_on_in_a_new_file_with_the_same_state() {
    let (disk, states, _) = sample();
    let vfs: Arc<dyn Vfs> = disk.clone();
    let (mut manifest, mut state, _) = open(&vfs);
    disk.take_log();
    manifest.rewrite(&state).unwrap();
    assert_eq!(
        disk.take_log(),
        [
            "create MANIFEST-000002",
            "write MANIFEST-000002",
            "sync MANIFEST-000002",
            "sync folder",
            "create CURRENT.tmp",
            "write CURRENT.tmp",
            "sync CURRENT.tmp",
            "rename CURRENT.tmp CURRENT",
            "sync folder",
            "remove MANIFEST-000001",
        ]
    );
    assert_eq!(manifest.path(), live_path(2));
    assert_eq!(open(&vfs).1, states[3]);

    let edit = added(1, file(3, 200, "n", "z", 70));
    state.apply(&edit).unwrap();
    manifest.append(&edit).unwrap();
    assert_eq!(disk.take_log()[2..], ["write MANIFEST-000002", "sync MANIFEST-000002"]);
    let (manifest, reopened, opened) = open(&vfs);
    assert_eq!(reopened, state);
    assert_eq!((opened.number, manifest.number()), (2, 2));
}

#[test]
fn a_manifest_is_rewritten_when_it_is_large_and_mostly_edits() {
    let vfs: Arc<dyn Vfs> = Arc::new(TestVfs::default());
    let (mut manifest, mut state) = Manifest::create(&vfs, dir(), DB_ID).unwrap();
    let big = Edit { checkpoints_added: vec!["x".repeat(300_000)], ..Edit::default() };
    state.apply(&big).unwrap();
    for bytes in [0, 300_000, 600_000, 900_000] {
        assert!(manifest.bytes() >= bytes);
        assert!(!manifest.needs_rewrite());
        manifest.append(&big).unwrap();
    }
    assert!(manifest.needs_rewrite());
    manifest.rewrite(&state).unwrap();
    for _ in 0..3 {
        assert!(!manifest.needs_rewrite());
        manifest.append(&big).unwrap();
    }
    assert!(!manifest.needs_rewrite(), "just under four times the snapshot");
    manifest.append(&big).unwrap();
    assert!(manifest.needs_rewrite());
}

#[test]
fn leftovers_are_every_manifest_but_the_live_one_and_the_unfinished_current() {
    let (disk, ..) = sample();
    for name in ["MANIFEST-000002", "MANIFEST-000000", "CURRENT.tmp"] {
        disk.put(&dir().join(name), b"");
    }
    for name in ["MANIFEST-2", "MANIFEST-000003.bak", "MANIFEST-+00004", "003-8.sst", "LOCK"] {
        disk.put(&dir().join(name), b"");
    }
    let found = leftovers(&*disk, dir(), 1).unwrap();
    assert_eq!(found, ["CURRENT.tmp", "MANIFEST-000000", "MANIFEST-000002"]);
}

#[test]
fn a_checkpoints_manifest_opens_as_the_state_it_was_given() {
    let (disk, states, _) = sample();
    let checkpoint = Path::new("/backup");
    disk.put(&checkpoint.join("003-9.sst"), b"linked");
    write_snapshot(&*disk, checkpoint, &states[3]).unwrap();
    for vfs in disk.crashes() {
        let (_, state, opened) = Manifest::open(&vfs, checkpoint).unwrap().unwrap();
        assert_eq!((state, opened.torn), (states[3].clone(), false));
    }
}
