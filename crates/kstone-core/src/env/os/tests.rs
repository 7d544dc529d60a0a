//! Tests of the machine's file system, each in a temporary folder.

use super::*;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// A folder of its own for each test, removed at the end.
struct TempDir(PathBuf);

impl TempDir {
    fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let unique = COUNT.fetch_add(1, Ordering::Relaxed);
        let dir = std::env::temp_dir().join(format!("kstone-os-{}-{unique}", std::process::id()));
        fs::create_dir(&dir).unwrap();
        TempDir(dir)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TempDir {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn create(path: &Path, content: &[u8]) -> Arc<dyn VfsFile> {
    let file = OsVfs.open(path, OpenMode::CreateNew).unwrap();
    file.write_at(content, 0).unwrap();
    file
}

fn content(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap()
}

#[test]
fn what_is_written_at_an_offset_is_read_back_there() {
    let dir = TempDir::new();
    let file = create(&dir.path("a"), b"0123456789");
    file.write_at(b"xy", 4).unwrap();
    file.write_at(b"end", 12).unwrap();
    let mut buf = [1; 15];
    file.read_exact_at(&mut buf, 0).unwrap();
    assert_eq!(&buf, b"0123xy6789\0\0end");
    assert_eq!(file.read_at(&mut buf, 15).unwrap(), 0);
    assert_eq!(file.len().unwrap(), 15);
    file.sync_data().unwrap();
    let error = file.read_exact_at(&mut buf, 1).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
}

#[test]
fn what_is_stored_is_what_is_read_whatever_is_written_beside_it() {
    let dir = TempDir::new();
    let path = dir.path("log");
    let file = create(&path, b"");
    file.allocate(3 << 20).unwrap();
    let mut expected = vec![0; 3 << 20];
    // From the front to the back, twice, as a segment that is used again; stores and writes take
    // turns, some are longer than what is made writable at once, some than what is stored.
    for round in 0..2u8 {
        let mut at = 64;
        for n in 0u32.. {
            let len = match n % 50 {
                7 => 40_000,
                31 => 20_000,
                _ => 100 + n as usize % 90,
            };
            let Some(place) = expected.get_mut(at..at + len) else { break };
            place.fill(1 + round + (n % 200) as u8);
            match n % 11 {
                0 => file.write_at(place, at as u64).unwrap(),
                _ => file.store_at(place, at as u64).unwrap(),
            }
            match n % 1000 {
                499 => file.expect_sync(),
                501 => file.expect_stores(),
                999 => file.sync_data().unwrap(),
                _ => {}
            }
            at += len;
        }
        assert!(content(&path) == expected, "round {round}");
    }
    // Beyond what was there at first, and behind a cut.
    file.store_at(b"end", 3 << 20).unwrap();
    assert!(content(&path).ends_with(b"end"));
    file.set_len(10).unwrap();
    file.store_at(b"xyz", 8).unwrap();
    assert_eq!(content(&path), [&[0; 8][..], b"xyz"].concat());
}

/// As the log's thread does beside a writer: nothing that is stored meanwhile may be lost.
#[test]
fn stores_go_on_while_somebody_else_expects_a_sync() {
    let dir = TempDir::new();
    let path = dir.path("log");
    let file = create(&path, b"");
    let len = 6 << 20;
    file.allocate(len as u64).unwrap();
    let expected: Vec<u8> = (0..len).map(|at| (at / 100 % 251) as u8).collect();
    let (is_done, stored_end) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let other = OsVfs.open(&path, OpenMode::ReadWrite).unwrap();
            while !is_done.load(Ordering::Acquire) {
                file.expect_sync();
                other.sync_before(stored_end.load(Ordering::Acquire)).unwrap();
                file.expect_stores();
            }
        });
        for (n, bytes) in expected.chunks(100).enumerate() {
            file.store_at(bytes, n as u64 * 100).unwrap();
            stored_end.store(n as u64 * 100 + 100, Ordering::Release);
        }
        is_done.store(true, Ordering::Release);
    });
    assert!(content(&path) == expected);
}

#[cfg(target_os = "linux")]
#[test]
fn what_was_made_ready_for_stores_is_used_unless_a_sync_came_between() {
    const KIB: usize = 1024;
    let dir = TempDir::new();
    let path = dir.path("log");
    create(&path, b"").allocate(2560 << 10).unwrap();
    let file = OpenOptions::new().read(true).write(true).open(&path).unwrap();
    // Where files cannot be mapped safely, all of it is written.
    let Some(mut mapped) = Mapped::of(&file) else { return };
    assert!(mapped.next_pages().is_none(), "nobody has stored yet");
    assert!(mapped.store(&[1; 100], 64));
    let ready = mapped.next_pages().and_then(UpcomingPages::make_writable).unwrap();
    // The writer went on meanwhile, into what was made ready.
    assert!(mapped.store(&[2; 20 * KIB], 164));
    mapped.add(&ready);
    assert_eq!(mapped.writable_end(), mapped::READY_BYTES);
    let again = mapped.next_pages().and_then(UpcomingPages::make_writable).unwrap();
    mapped.synced();
    mapped.add(&again);
    assert_eq!(mapped.writable_end(), mapped::READY_BYTES, "given up with the rest");
    assert!(mapped.next_pages().is_none(), "nobody has stored since");
    assert!(mapped.store(&[3; 100], 164 + 20 * KIB as u64));
    mapped.passed(264 + 20 * KIB as u64, 300 * KIB);
    assert!(mapped.next_pages().is_none(), "the last ones were written");
    assert!(mapped.store(&[4; 100], 2000 << 10));
    let last = mapped.next_pages().and_then(UpcomingPages::make_writable).unwrap();
    mapped.add(&last);
    assert_eq!(mapped.writable_end(), 2560 * KIB, "no more than there is");
    let expected = [vec![0; 64], vec![1; 100], vec![2; 20 * KIB], vec![3; 100]].concat();
    assert!(content(&path).starts_with(&expected));
}

#[test]
fn a_sync_of_what_lies_before_something_may_be_of_nothing_or_of_all() {
    let dir = TempDir::new();
    let file = create(&dir.path("log"), &[7; 100_000]);
    for end in [0, 1, 16 << 10, 99_999, 100_000, 200_000] {
        file.sync_before(end).unwrap();
    }
    let reader = OsVfs.open(&dir.path("log"), OpenMode::Read).unwrap();
    reader.sync_before(50_000).unwrap();
    assert_eq!(content(&dir.path("log")), [7; 100_000]);
}

#[test]
fn a_reader_cannot_store() {
    let dir = TempDir::new();
    create(&dir.path("a"), b"0123");
    let reader = OsVfs.open(&dir.path("a"), OpenMode::Read).unwrap();
    reader.store_at(b"x", 0).unwrap_err();
    assert_eq!(content(&dir.path("a")), b"0123");
}

#[test]
fn create_new_refuses_a_name_that_exists_and_reading_refuses_one_that_does_not() {
    let dir = TempDir::new();
    create(&dir.path("a"), b"");
    let again = OsVfs.open(&dir.path("a"), OpenMode::CreateNew).unwrap_err();
    assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    for mode in [OpenMode::Read, OpenMode::ReadWrite] {
        let absent = OsVfs.open(&dir.path("b"), mode).unwrap_err();
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
    }
    let reader = OsVfs.open(&dir.path("a"), OpenMode::Read).unwrap();
    reader.write_at(b"x", 0).unwrap_err();
}

#[test]
fn list_gives_the_names_of_files_and_not_of_folders() {
    let dir = TempDir::new();
    create(&dir.path("a"), b"");
    create(&dir.path("b"), b"");
    OsVfs.create_dir_all(&dir.path("deep/er")).unwrap();
    OsVfs.create_dir_all(&dir.path("deep/er")).unwrap();
    create(&dir.path("deep/er/c"), b"");
    let mut names = OsVfs.list(&dir.0).unwrap();
    names.sort();
    assert_eq!(names, ["a", "b"]);
    assert_eq!(OsVfs.list(&dir.path("deep/er")).unwrap(), ["c"]);
    assert_eq!(OsVfs.list(&dir.path("no")).unwrap_err().kind(), io::ErrorKind::NotFound);
}

#[test]
fn rename_replaces_and_remove_leaves_open_handles_usable() {
    let dir = TempDir::new();
    let old = create(&dir.path("current"), b"old");
    create(&dir.path("next"), b"new");
    OsVfs.rename(&dir.path("next"), &dir.path("current")).unwrap();
    OsVfs.sync_dir(&dir.0).unwrap();
    assert!(!OsVfs.exists(&dir.path("next")).unwrap());
    assert_eq!(content(&dir.path("current")), b"new");
    OsVfs.remove(&dir.path("current")).unwrap();
    assert!(!OsVfs.exists(&dir.path("current")).unwrap());
    let mut buf = [0; 3];
    old.read_exact_at(&mut buf, 0).unwrap();
    assert_eq!(&buf, b"old");
}

#[test]
fn a_hard_link_outlives_the_first_name() {
    let dir = TempDir::new();
    create(&dir.path("a"), b"linked");
    OsVfs.hard_link(&dir.path("a"), &dir.path("b")).unwrap();
    let again = OsVfs.hard_link(&dir.path("a"), &dir.path("b")).unwrap_err();
    assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    OsVfs.remove(&dir.path("a")).unwrap();
    assert_eq!(content(&dir.path("b")), b"linked");
}

#[test]
fn the_copy_that_stands_for_a_link_never_replaces_a_file() {
    let dir = TempDir::new();
    create(&dir.path("a"), b"content");
    copy_durably(&dir.path("a"), &dir.path("b")).unwrap();
    assert_eq!(content(&dir.path("b")), b"content");
    create(&dir.path("c"), b"mine");
    let taken = copy_durably(&dir.path("a"), &dir.path("c")).unwrap_err();
    assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
    assert_eq!(content(&dir.path("c")), b"mine");
}

#[test]
fn allocate_keeps_what_is_written_and_adds_zeros() {
    let dir = TempDir::new();
    let file = create(&dir.path("log"), b"head");
    let len = ZEROS_LEN + 5000;
    file.allocate(len).unwrap();
    assert_eq!(file.len().unwrap(), len);
    let bytes = content(&dir.path("log"));
    assert!(bytes.starts_with(b"head"));
    assert!(bytes.iter().skip(4).all(|&b| b == 0));
    file.allocate(10).unwrap();
    assert_eq!(file.len().unwrap(), len, "allocating less never cuts");
}

#[cfg(unix)]
#[test]
fn allocated_blocks_are_really_there() {
    use std::os::unix::fs::MetadataExt;
    let dir = TempDir::new();
    let file = create(&dir.path("log"), b"");
    file.allocate(1 << 20).unwrap();
    file.sync_data().unwrap();
    assert!(fs::metadata(dir.path("log")).unwrap().blocks() * 512 >= 1 << 20);
}

#[cfg(target_os = "linux")]
#[test]
fn an_allocation_that_cannot_be_had_leaves_the_file_as_it_was() {
    let dir = TempDir::new();
    let file = create(&dir.path("log"), b"head");
    // Beyond what any file system takes: fails at the reservation, before any zeros.
    file.allocate(i64::MAX as u64).unwrap_err();
    assert_eq!(content(&dir.path("log")), b"head");
}

#[test]
fn many_files_are_synced_together() {
    let dir = TempDir::new();
    for count in [0, 1, SYNC_ONE_BY_ONE_MAX, SYNC_ONE_BY_ONE_MAX + 3] {
        let files: Vec<_> =
            (0..count).map(|n| create(&dir.path(&format!("{count}-{n}")), b"x")).collect();
        OsVfs.sync_files(&files).unwrap();
    }
}

#[test]
fn a_lock_excludes_everybody_else_until_it_is_dropped() {
    let dir = TempDir::new();
    let held = OsVfs.lock(&dir.path("LOCK")).unwrap();
    let refused = OsVfs.lock(&dir.path("LOCK")).unwrap_err();
    assert_eq!(refused.kind(), io::ErrorKind::WouldBlock);
    drop(held);
    OsVfs.lock(&dir.path("LOCK")).unwrap();
}

#[cfg(target_os = "linux")]
#[test]
fn kernels_whose_syncfs_hides_errors_are_told_apart() {
    for (release, reports) in [
        ("6.1.0-13-amd64", true),
        ("5.8.0", true),
        ("5.10.16.3-microsoft-standard", true),
        ("10.0", true),
        ("5.7.19", false),
        ("4.19.0", false),
        ("", false),
        ("linux", false),
    ] {
        assert_eq!(whole::is_at_least_5_8(release), reports, "{release}");
    }
}

#[cfg(unix)]
#[test]
fn new_folders_and_files_are_their_owners_alone_and_old_folders_keep_their_mode() {
    use std::os::unix::fs::PermissionsExt as _;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let dir = TempDir::new();
    fs::set_permissions(&dir.0, fs::Permissions::from_mode(0o755)).unwrap();
    let inner = dir.path("outer/inner");
    OsVfs.create_dir_all(&inner).unwrap();
    OsVfs.create_dir_all(&dir.0).unwrap();
    assert_eq!(mode(&dir.0), 0o755);
    assert_eq!((mode(&dir.path("outer")), mode(&inner)), (0o700, 0o700));
    let (file, copy, lock) = (inner.join("file"), inner.join("copy"), inner.join("LOCK"));
    create(&file, b"data");
    copy_durably(&file, &copy).unwrap();
    let _lock = OsVfs.lock(&lock).unwrap();
    assert_eq!([&file, &copy, &lock].map(|path| mode(path)), [0o600; 3]);
}
