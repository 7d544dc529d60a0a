//! Which edits a state accepts, and that all of them survive the disk.

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn any_meta() -> impl Strategy<Value = SstMeta> {
    let keys = (vec(any::<u8>(), 0..20), vec(any::<u8>(), 0..20));
    (any::<[u64; 14]>(), keys, any::<u8>(), any::<Option<u64>>()).prop_map(
        |(n, (smallest, largest), stripe, global_seq)| SstMeta {
            stripe,
            file_id: n[0],
            file_bytes: n[1],
            smallest,
            largest,
            min_seq: n[2],
            max_seq: n[3],
            entries: n[4],
            puts: n[5],
            deletes: n[6],
            marks: n[7],
            max_mark_seq: n[8],
            expiring: n[9],
            key_bytes: n[10],
            value_bytes: n[11],
            footer_checksum: n[12],
            global_seq,
        },
    )
}

fn any_table_edit() -> impl Strategy<Value = TableEdit> {
    (0..3u8, any::<u32>(), any::<u64>()).prop_map(|(kind, id, seq)| match kind {
        0 => TableEdit::Created { id, seq },
        1 => TableEdit::Dropped { id, seq },
        _ => TableEdit::Forgotten { id },
    })
}

/// Any edit, sensible or not.
fn any_edit() -> impl Strategy<Value = Edit> {
    let files = (vec((any::<u8>(), any_meta()), 0..4), vec(any::<(u8, u8, u64)>(), 0..4));
    let stripes = (vec(any::<(u8, u64)>(), 0..4), vec(any::<(u8, [u64; 4])>(), 0..4));
    let marks = (any::<[Option<u64>; 4]>(), any::<Option<u32>>());
    let rest =
        (vec(any_table_edit(), 0..4), vec(any::<String>(), 0..3), vec(any::<String>(), 0..3));
    (files, stripes, marks, rest).prop_map(|(files, stripes, (marks, next_table), rest)| Edit {
        add: files.0,
        remove: files.1,
        flushed: stripes.0,
        counters: stripes.1,
        next_file_id: marks[0],
        last_seq: marks[1],
        log_start: marks[2],
        clock_ms: marks[3],
        next_table,
        tables: rest.0,
        checkpoints_added: rest.1,
        checkpoints_removed: rest.2,
    })
}

/// An edit that a small database may or may not accept: few stripes, levels, ids and keys.
fn small_edit() -> impl Strategy<Value = Edit> {
    let meta = (0..3u8, 0..12u64, 0..20u8, 0..3u8, 0..30u64, proptest::option::of(0..30u64))
        .prop_map(|(stripe, file_id, start, len, max_seq, global_seq)| SstMeta {
            smallest: vec![start],
            largest: vec![start + len],
            global_seq,
            ..file(stripe, file_id, "", "", max_seq + 1)
        });
    let table = (0..3u8, 0..6u32, 0..30u64).prop_map(|(kind, id, seq)| match kind {
        0 => TableEdit::Created { id, seq },
        1 => TableEdit::Dropped { id, seq },
        _ => TableEdit::Forgotten { id },
    });
    let files = (vec((0..3u8, meta), 0..2), vec((0..3u8, 0..3u8, 0..12u64), 0..2));
    let folders = || vec("[ab]", 0..2);
    (
        files,
        vec((0..3u8, 0..30u64), 0..2),
        any::<[Option<u8>; 4]>(),
        vec(table, 0..2),
        folders(),
        folders(),
    )
        .prop_map(|(files, flushed, marks, tables, checkpoints_added, checkpoints_removed)| {
            Edit {
                add: files.0,
                remove: files.1,
                flushed,
                counters: marks[0].map(|n| (n % 3, [u64::from(n); 4])).into_iter().collect(),
                next_file_id: marks[1].map(u64::from),
                last_seq: marks[2].map(u64::from),
                log_start: marks[3].map(u64::from),
                clock_ms: marks[1].map(u64::from),
                next_table: None,
                tables,
                checkpoints_added,
                checkpoints_removed,
            }
        })
}

fn check_rules(state: &State) {
    let mut ids: Vec<_> = state.files().map(|(_, file)| file.file_id).collect();
    let files = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), files, "ids are unique");
    assert!(ids.last().is_none_or(|&id| id < state.next_file_id));
    for (n, stripe) in state.stripes.iter().enumerate() {
        assert!(stripe.levels.len() <= LEVELS);
        assert!(stripe.levels.last().is_none_or(|files| !files.is_empty()), "none for nothing");
        let newest = |file: &Arc<SstMeta>| file.global_seq.unwrap_or(file.max_seq);
        let l0 = stripe.levels.first().into_iter().flatten();
        assert!(l0.is_sorted_by(|a, b| newest(a) >= newest(b)));
        for level in stripe.levels.iter().skip(1) {
            assert!(level.is_sorted_by(|a, b| a.largest < b.smallest));
        }
        assert!(stripe.levels.iter().flatten().all(|file| usize::from(file.stripe) == n));
    }
}

proptest! {
    #[test]
    fn any_edit_decodes_to_what_was_encoded(edit in any_edit()) {
        prop_assert_eq!(decode_record(&record::encode_record(&edit)), Ok(edit));
    }

    #[test]
    fn decoding_any_bytes_does_not_panic(bytes in vec(any::<u8>(), 0..200)) {
        let _ = decode_record(&bytes);
    }

    #[test]
    fn reading_a_file_of_any_records_does_not_panic(
        tail in vec(prop_oneof![Just(0u8), Just(1), Just(2), any::<u8>()], 0..300),
    ) {
        let (mut bytes, seed) = frame::header(&DB_ID, 1);
        frame::push_record(&mut bytes, seed, 0, &[]).unwrap();
        bytes.extend(tail);
        let _ = frame::replay(Path::new("m"), &bytes, 1);
    }

    #[test]
    fn a_state_keeps_its_rules_and_survives_reopening_and_rewriting(
        steps in vec((small_edit(), 0..10u8), 1..60),
    ) {
        let vfs: Arc<dyn Vfs> = Arc::new(TestVfs::default());
        let (mut manifest, mut state) = Manifest::create(&vfs, dir(), DB_ID).unwrap();
        for (edit, then) in steps {
            let before = state.clone();
            match state.apply(&edit) {
                Ok(()) => manifest.append(&edit).unwrap(),
                Err(_) => prop_assert_eq!(&state, &before, "a refused edit changes nothing"),
            }
            check_rules(&state);
            match then {
                0 => manifest.rewrite(&state).unwrap(),
                1 => {
                    let (reopened, read, opened) = open(&vfs);
                    prop_assert_eq!(&read, &state);
                    prop_assert!(!opened.torn);
                    manifest = reopened;
                }
                _ => {}
            }
        }
        prop_assert_eq!(open(&vfs).1, state);
    }
}

#[track_caller]
fn check_refused(state: &mut State, edit: Edit, says: &str) {
    let before = state.clone();
    let reason = state.apply(&edit).unwrap_err();
    assert!(reason.contains(says), "{reason}");
    assert_eq!(*state, before);
}

#[test]
fn an_edit_that_breaks_a_rule_is_refused_and_changes_nothing() {
    let mut state = State::new(DB_ID);
    for edit in edits() {
        state.apply(&edit).unwrap();
    }
    let tables = |edit| Edit { tables: vec![edit], ..Edit::default() };
    let removed = |file| Edit { remove: vec![file], clock_ms: Some(u64::MAX), ..Edit::default() };
    check_refused(&mut state, removed((3, 1, 8)), "file 8 is not in level 1");
    check_refused(&mut state, removed((3, 2, 9)), "file 9 is not in level 2");
    check_refused(&mut state, removed((4, 1, 9)), "file 9 is not in level 1 of stripe 4");
    check_refused(&mut state, removed((3, 7, 9)), "no level 7");
    check_refused(&mut state, added(1, file(3, 10, "m", "z", 50)), "9 and 10 overlap in level 1");
    check_refused(&mut state, added(1, file(3, 10, "0", "a", 50)), "10 and 9 overlap in level 1");
    check_refused(&mut state, added(0, file(4, 9, "a", "b", 50)), "file 9 is there twice");
    check_refused(&mut state, added(7, file(3, 10, "a", "b", 50)), "no level 7");
    check_refused(&mut state, added(0, file(3, 10, "b", "a", 50)), "ends in front of its start");
    check_refused(&mut state, added(0, file(3, 10, "a", "b", 0)), "from 1 to 0");
    check_refused(&mut state, added(0, file(3, u64::MAX, "a", "b", 50)), "used up");
    check_refused(&mut state, added(0, file(3, 10, "a", "b", u64::MAX)), "no sequence number");
    let last_seq = Edit { last_seq: Some(u64::MAX - 1), ..Edit::default() };
    check_refused(&mut state, last_seq, "no sequence number");
    let log_start = Edit { log_start: Some(u64::MAX - 7), ..Edit::default() };
    check_refused(&mut state, log_start, "no log position");
    let flushed = Edit { flushed: vec![(3, 39)], ..added(0, file(3, 10, "a", "b", 50)) };
    check_refused(&mut state, flushed, "flushed to 40, now it says 39");
    check_refused(&mut state, tables(TableEdit::Created { id: 5, seq: 60 }), "used before");
    check_refused(&mut state, tables(TableEdit::Created { id: u32::MAX, seq: 60 }), "reserved");
    check_refused(&mut state, tables(TableEdit::Dropped { id: 1, seq: 60 }), "dropped already");
    check_refused(&mut state, tables(TableEdit::Dropped { id: 9, seq: 60 }), "no table 9");
    check_refused(&mut state, tables(TableEdit::Forgotten { id: 0 }), "was not dropped");
    check_refused(&mut state, tables(TableEdit::Forgotten { id: 5 }), "no table 5");
}

#[test]
fn level_0_is_ordered_newest_first_and_an_ingested_file_counts_by_its_own_number() {
    let mut state = State::new(DB_ID);
    for meta in [
        file(0, 1, "a", "z", 10),
        file(0, 2, "a", "z", 30),
        SstMeta { global_seq: Some(20), ..file(0, 3, "a", "z", 99) },
        file(0, 4, "a", "z", 20),
    ] {
        state.apply(&added(0, meta)).unwrap();
    }
    let ids: Vec<_> = state.stripes[0].levels[0].iter().map(|file| file.file_id).collect();
    assert_eq!(ids, [2, 4, 3, 1]);
    assert_eq!((state.last_seq, state.next_file_id), (30, 5));
}

#[test]
fn high_water_marks_never_go_back() {
    let marks = |n| Edit {
        next_file_id: Some(n),
        last_seq: Some(n),
        log_start: Some(n),
        clock_ms: Some(n),
        next_table: Some(n as u32),
        ..Edit::default()
    };
    let mut state = State::new(DB_ID);
    state.apply(&marks(70)).unwrap();
    let before = state.clone();
    state.apply(&marks(69)).unwrap();
    assert_eq!(state, before);
    assert_eq!((state.next_file_id, state.last_seq, state.log_start), (70, 70, 70));
    assert_eq!((state.clock_ms, state.next_table), (70, 70));
}
