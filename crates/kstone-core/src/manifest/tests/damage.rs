//! Files that do not hold what was written to them.

use super::*;

const ADVICE: &str = "run `kstone verify`";

/// Opens the sample's files with the manifest's bytes replaced.
fn open_bytes(bytes: &[u8]) -> Result<(State, Opened)> {
    let (disk, ..) = sample();
    disk.put(&live_path(1), bytes);
    let vfs: Arc<dyn Vfs> = disk;
    Manifest::open(&vfs, dir()).map(|opened| {
        let (_, state, opened) = opened.unwrap();
        (state, opened)
    })
}

#[track_caller]
fn check_corrupt<T: std::fmt::Debug>(result: Result<T>, at: u64, says: &str) {
    match result {
        Err(error @ Error::Corruption { .. }) => {
            let Error::Corruption { offset, .. } = &error else { unreachable!() };
            assert_eq!(*offset, at, "{error}");
            assert!(error.to_string().contains(says), "{error}");
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_tail_torn_at_any_byte_is_ignored_and_reported() {
    let (disk, states, ends) = sample();
    let mut bytes = disk.read(&live_path(1));
    bytes.truncate(ends[3]);
    let last = ends[2];
    for cut in last..bytes.len() {
        let mut zeros = bytes[..cut].to_vec();
        zeros.resize(bytes.len() + 4096, 0);
        let mut garbage = bytes[..cut].to_vec();
        garbage.extend((0..4096u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8));
        for (file, torn) in [(&bytes[..cut], cut > last), (&zeros, cut > last), (&garbage, true)] {
            let (state, opened) = open_bytes(file).unwrap();
            assert_eq!(state, states[2], "cut at {cut}");
            assert_eq!(opened.torn, torn, "cut at {cut}");
        }
    }
}

#[test]
fn a_flipped_bit_in_a_middle_record_is_damage_at_that_record() {
    let (disk, _, ends) = sample();
    let bytes = disk.read(&live_path(1));
    for record in [ends[0]..ends[1], ends[1]..ends[2]] {
        for at in record.clone() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                flipped[at] ^= 1 << bit;
                check_corrupt(open_bytes(&flipped), record.start as u64, ADVICE);
            }
        }
    }
}

#[test]
fn a_flipped_bit_in_header_or_snapshot_is_never_a_torn_tail() {
    let (disk, _, ends) = sample();
    let bytes = disk.read(&live_path(1));
    // Without the later records, too: nothing behind the snapshot proves that it was synced.
    for len in [ends[0], bytes.len()] {
        for at in 0..ends[0] {
            let mut flipped = bytes[..len].to_vec();
            flipped[at] ^= 1 << (at % 8);
            match open_bytes(&flipped) {
                Err(Error::ForeignFile { .. }) => assert!(at < 8),
                result => check_corrupt(result, if at < 44 { 0 } else { 44 }, ADVICE),
            }
        }
    }
    for cut in 0..ends[0] {
        let at = if cut < 44 { cut } else { 44 };
        check_corrupt(open_bytes(&bytes[..cut]), at as u64, ADVICE);
    }
}

#[test]
fn a_record_is_valid_only_in_its_place_and_file() {
    let (disk, states, ends) = sample();
    let bytes = disk.read(&live_path(1));
    // The first edit once more, behind the last.
    let mut repeated = bytes.clone();
    repeated.extend_from_slice(&bytes[ends[0]..ends[1]]);
    let (state, opened) = open_bytes(&repeated).unwrap();
    assert_eq!((state, opened.torn), (states[3].clone(), true));
    // A record that another manifest of the same database had at this place.
    let (_, other_seed) = frame::header(&DB_ID, 2);
    let mut foreign = bytes.clone();
    frame::push_record(&mut foreign, other_seed, 4, &[]).unwrap();
    assert!(open_bytes(&foreign).unwrap().1.torn);
}

#[test]
fn an_edit_that_does_not_fit_the_state_is_damage() {
    let (disk, _, ends) = sample();
    let mut bytes = disk.read(&live_path(1));
    bytes.truncate(ends[3]);
    let (_, seed) = frame::header(&DB_ID, 1);
    let edit = Edit { remove: vec![(7, 0, 77)], ..Edit::default() };
    frame::push_record(&mut bytes, seed, 4, &record::encode_record(&edit)).unwrap();
    check_corrupt(open_bytes(&bytes), ends[3] as u64, "file 77 is not in level 0 of stripe 7");
}

#[test]
fn an_unknown_field_is_refused_and_the_advice_is_a_newer_version() {
    let (disk, _, ends) = sample();
    let mut bytes = disk.read(&live_path(1));
    bytes.truncate(ends[3]);
    let (_, seed) = frame::header(&DB_ID, 1);
    frame::push_record(&mut bytes, seed, 4, &[6, 1, 70, 15, 2, 0, 0]).unwrap();
    let at = ends[3] + frame::RECORD_HEADER_BYTES + 3;
    check_corrupt(open_bytes(&bytes), at as u64, "newer kstone");
    assert_eq!(decode_record(&[0, 0]), Err(RecordError::UnknownField { tag: 0, at: 0 }));
}

#[test]
fn another_version_another_program_and_a_renamed_manifest_are_told_apart() {
    let (disk, ..) = sample();
    let bytes = disk.read(&live_path(1));
    let mut newer = bytes.clone();
    newer[8..12].copy_from_slice(&2u32.to_le_bytes());
    let checksum = xxhash_rust::xxh3::xxh3_64(&newer[..36]);
    newer[36..44].copy_from_slice(&checksum.to_le_bytes());
    assert!(matches!(open_bytes(&newer), Err(Error::Version { found: 2, supported: 1, .. })));

    let mut foreign = bytes;
    foreign[..8].copy_from_slice(b"SQLite f");
    assert!(matches!(open_bytes(&foreign), Err(Error::ForeignFile { .. })));

    let (mut renamed, seed) = frame::header(&DB_ID, 9);
    frame::push_record(&mut renamed, seed, 0, &[]).unwrap();
    match open_bytes(&renamed) {
        Err(Error::ForeignFile { what, .. }) => assert!(what.contains("MANIFEST-000009")),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_huge_claimed_length_takes_no_memory() {
    let (disk, states, _) = sample();
    let mut bytes = disk.read(&live_path(1));
    bytes.extend_from_slice(&u32::MAX.to_le_bytes());
    bytes.extend_from_slice(&4u32.to_le_bytes());
    bytes.extend_from_slice(&[0; 8]);
    let (state, opened) = open_bytes(&bytes).unwrap();
    assert_eq!((state, opened.torn), (states[3].clone(), true));

    let huge = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01];
    let field: Vec<u8> = [&[1][..], &huge, &[0; 40]].concat();
    assert_eq!(decode_record(&field), Err(RecordError::Cut { at: 0 }));
    // A file whose smallest key claims the same length.
    let body: Vec<u8> = [&[0; 14][..], &[0; 8], &huge].concat();
    let field: Vec<u8> = [&[1, body.len() as u8][..], &body].concat();
    assert_eq!(decode_record(&field), Err(RecordError::Malformed { tag: 1, at: 0 }));
}

#[test]
fn a_field_that_is_repeated_cut_or_too_long_is_refused() {
    for (payload, at) in [
        (&[6, 1, 1, 6, 1, 1][..], 3),         // last_seq twice
        (&[3, 3, 1, 1, 1], 0),                // a byte too many
        (&[3, 1, 1], 0),                      // no sequence number
        (&[9, 5, 255, 255, 255, 255, 31], 0), // a table id of 33 bits
        (&[13, 1, 0xff], 0),                  // not UTF-8
    ] {
        let error = decode_record(payload).unwrap_err();
        assert!(matches!(error, RecordError::Malformed { .. }) && error.at() == at, "{payload:?}");
    }
    assert_eq!(decode_record(&[6, 1, 1, 6]), Err(RecordError::Cut { at: 3 }));
}

#[test]
fn a_missing_current_is_damage_when_anything_of_a_database_is_there() {
    let (sample_disk, ..) = sample();
    let manifest = sample_disk.read(&live_path(1));
    for (name, bytes) in [
        ("MANIFEST-000001", &manifest[..]),
        ("MANIFEST-000002", b""),
        ("003-8.sst", b""),
        ("wal-000001.log", b""),
    ] {
        let disk = Arc::new(TestVfs::default());
        disk.put(&dir().join(name), bytes);
        let vfs: Arc<dyn Vfs> = disk;
        check_corrupt(Manifest::open(&vfs, dir()), 0, name);
        check_corrupt(Manifest::create(&vfs, dir(), DB_ID), 0, name);
    }
}

#[test]
fn a_damaged_current_or_one_that_names_nothing_is_damage() {
    let (disk, ..) = sample();
    let current = dir().join("CURRENT");
    let text = disk.read(&current);
    assert!(text.starts_with(b"MANIFEST-000001 "));
    let vfs: Arc<dyn Vfs> = disk.clone();
    for at in 0..text.len() {
        for bit in 0..8 {
            let mut flipped = text.clone();
            flipped[at] ^= 1 << bit;
            disk.put(&current, &flipped);
            check_corrupt(Manifest::open(&vfs, dir()), 0, "CURRENT");
        }
    }
    for len in [0, text.len() - 1] {
        disk.put(&current, &text[..len]);
        check_corrupt(Manifest::open(&vfs, dir()), 0, "CURRENT");
    }
    disk.put(&current, &[b'x'; 5000]);
    check_corrupt(Manifest::open(&vfs, dir()), 0, "5000 bytes");
    disk.put(&current, &text);
    vfs.remove(&live_path(1)).unwrap();
    check_corrupt(Manifest::open(&vfs, dir()), 0, "MANIFEST-000001, which is missing");
}
