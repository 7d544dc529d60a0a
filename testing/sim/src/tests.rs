//! Tests that the simulated disk loses exactly what a real one may lose.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use kstone_core::env::{OpenMode, Vfs, VfsFile};

use crate::{CrashPolicy, Fault, FaultPlan, SimDisk, Trigger};
use CrashPolicy::{KeepAll, LoseAll, Random};

const SEEDS: u64 = 300;

fn path(name: &str) -> &Path {
    Path::new(name)
}

fn create(disk: &SimDisk, name: &str) -> Arc<dyn VfsFile> {
    disk.open(path(name), OpenMode::CreateNew).unwrap()
}

/// A disk with the durable file `db/a`.
fn disk_with(content: &[u8]) -> (SimDisk, Arc<dyn VfsFile>) {
    let disk = SimDisk::new(7);
    disk.write_file(path("db/a"), content);
    let file = disk.open(path("db/a"), OpenMode::ReadWrite).unwrap();
    (disk, file)
}

/// What `db/a` can be after a power loss.
fn outcomes(disk: &SimDisk) -> BTreeSet<Vec<u8>> {
    (0..SEEDS).map(|seed| disk.crash(Random(seed)).read_file(path("db/a")).unwrap()).collect()
}

/// The sets of names there can be after a power loss, with the content of each.
fn name_outcomes(disk: &SimDisk) -> BTreeSet<Vec<(String, String)>> {
    let look = |disk: SimDisk| {
        let with_content = |p: &std::path::PathBuf| {
            let content = String::from_utf8(disk.read_file(p).unwrap()).unwrap();
            (p.file_name().unwrap().to_str().unwrap().to_owned(), content)
        };
        disk.paths().iter().map(with_content).collect()
    };
    (0..SEEDS).map(|seed| look(disk.crash(Random(seed)))).collect()
}

fn names(of: &[(&str, &str)]) -> Vec<(String, String)> {
    of.iter().map(|&(name, content)| (name.to_owned(), content.to_owned())).collect()
}

fn is_no_space<T: std::fmt::Debug>(result: io::Result<T>) -> bool {
    result.unwrap_err().kind() == io::ErrorKind::StorageFull
}

fn is_eio<T: std::fmt::Debug>(result: io::Result<T>) -> bool {
    result.unwrap_err().raw_os_error() == Some(5)
}

fn is_power_loss<T: std::fmt::Debug>(result: io::Result<T>) -> bool {
    result.unwrap_err().to_string() == "simulated power loss"
}

#[test]
fn a_synced_write_survives_every_crash() {
    let (disk, file) = disk_with(b"");
    let data: Vec<u8> = (0..5000u32).map(|n| n as u8).collect();
    file.write_at(&data, 0).unwrap();
    file.write_at(b"again", 700).unwrap();
    file.sync_data().unwrap();
    let now = disk.read_file(path("db/a")).unwrap();
    assert_eq!(outcomes(&disk), BTreeSet::from([now.clone()]));
    assert_eq!(disk.crash(LoseAll).read_file(path("db/a")).unwrap(), now);
}

#[test]
fn an_unsynced_write_may_be_kept_lost_or_torn() {
    let (disk, file) = disk_with(&[1; 512]);
    file.write_at(&[2; 512], 0).unwrap();
    let outcomes = outcomes(&disk);
    assert!(outcomes.contains([1; 512].as_slice()), "lost");
    assert!(outcomes.contains([2; 512].as_slice()), "kept");
    let torn = outcomes.iter().filter(|found| found.contains(&1) && found.contains(&2));
    assert!(torn.clone().count() > 10, "torn at many places");
    for found in torn {
        assert!(found.is_sorted_by(|a, b| a >= b), "new bytes, then old bytes");
        assert_eq!(found.len(), 512);
    }
}

#[test]
fn sectors_are_lost_independently_of_each_other() {
    let (disk, file) = disk_with(&[1; 1024]);
    file.write_at(&[2; 1024], 0).unwrap();
    let whole: BTreeSet<(u8, u8)> = outcomes(&disk)
        .iter()
        .filter(|found| found[..512].iter().all(|b| *b == found[0]))
        .filter(|found| found[512..].iter().all(|b| *b == found[512]))
        .map(|found| (found[0], found[512]))
        .collect();
    assert_eq!(whole, BTreeSet::from([(1, 1), (1, 2), (2, 1), (2, 2)]));
}

#[test]
fn a_sector_written_twice_may_be_found_in_either_version() {
    let (disk, file) = disk_with(&[1; 512]);
    file.write_at(&[2; 512], 0).unwrap();
    file.write_at(&[3; 512], 0).unwrap();
    let outcomes = outcomes(&disk);
    for version in 1..=3u8 {
        assert!(outcomes.contains([version; 512].as_slice()), "version {version}");
    }
    assert!(outcomes.iter().any(|found| found[0] == 3 && found[511] == 1));
}

#[test]
fn an_append_may_leave_any_length_it_passed_through_and_zeros_for_lost_data() {
    let (disk, file) = disk_with(b"");
    file.write_at(&[1; 600], 0).unwrap();
    file.write_at(&[2; 600], 600).unwrap();
    let outcomes = outcomes(&disk);
    let lengths: BTreeSet<usize> = outcomes.iter().map(Vec::len).collect();
    assert_eq!(lengths, BTreeSet::from([0, 600, 1200]));
    assert!(outcomes.contains([0; 1200].as_slice()), "the length without the data");
}

#[test]
fn cutting_a_file_may_be_undone_until_it_is_synced() {
    let (disk, file) = disk_with(&[1; 2000]);
    file.set_len(100).unwrap();
    let lengths: BTreeSet<usize> = outcomes(&disk).iter().map(Vec::len).collect();
    assert_eq!(lengths, BTreeSet::from([100, 2000]));
    assert_eq!(disk.crash(LoseAll).read_file(path("db/a")).unwrap(), [1; 2000]);
    file.sync_data().unwrap();
    assert_eq!(outcomes(&disk), BTreeSet::from([vec![1; 100]]));
    file.set_len(300).unwrap();
    file.sync_data().unwrap();
    let found = disk.crash(LoseAll).read_file(path("db/a")).unwrap();
    assert_eq!(found, [vec![1; 100], vec![0; 200]].concat(), "what was cut does not come back");
}

#[test]
fn a_killed_process_loses_nothing_and_a_power_loss_after_it_still_may() {
    let (disk, file) = disk_with(b"old");
    file.write_at(b"new", 0).unwrap();
    create(&disk, "db/b").write_at(b"b", 0).unwrap();
    let killed = disk.crash(KeepAll);
    assert_eq!(killed.read_file(path("db/a")).unwrap(), b"new");
    assert_eq!(killed.read_file(path("db/b")).unwrap(), b"b");
    let lost = killed.crash(LoseAll);
    assert_eq!(lost.read_file(path("db/a")).unwrap(), b"old");
    assert_eq!(lost.paths(), [path("db/a")]);
    let again = killed.open(path("db/a"), OpenMode::Read).unwrap();
    again.sync_data().unwrap();
    assert_eq!(killed.crash(LoseAll).read_file(path("db/a")).unwrap(), b"new");
}

#[test]
fn the_crashed_disk_is_a_disk_of_its_own() {
    let (disk, file) = disk_with(b"old");
    let _lock = disk.lock(path("db/LOCK")).unwrap();
    disk.stop();
    let found = disk.crash(KeepAll);
    assert!(!found.is_stopped());
    found.lock(path("db/LOCK")).unwrap();
    let writer = found.open(path("db/a"), OpenMode::ReadWrite).unwrap();
    writer.write_at(b"new", 0).unwrap();
    assert_eq!(disk.read_file(path("db/a")).unwrap(), b"old");
    assert!(is_power_loss(file.len()));
    assert_eq!((found.ops(), found.syncs()), (1, 0));
}

#[test]
fn a_synced_file_vanishes_unless_its_folder_is_synced() {
    let disk = SimDisk::new(1);
    let file = create(&disk, "db/new");
    file.write_at(b"data", 0).unwrap();
    file.sync_data().unwrap();
    let both = BTreeSet::from([names(&[]), names(&[("new", "data")])]);
    assert_eq!(name_outcomes(&disk), both);
    assert!(disk.crash(LoseAll).paths().is_empty());
    assert!(disk.durable_names().is_empty());
    disk.sync_dir(path("elsewhere")).unwrap_err();
    disk.sync_dir(path("db")).unwrap();
    assert_eq!(name_outcomes(&disk), BTreeSet::from([names(&[("new", "data")])]));
    assert_eq!(disk.durable_names(), [path("db/new")]);
}

#[test]
fn a_synced_folder_keeps_the_name_of_a_file_but_not_its_data() {
    let disk = SimDisk::new(1);
    create(&disk, "db/new").write_at(b"data", 0).unwrap();
    disk.sync_dir(path("db")).unwrap();
    assert_eq!(disk.crash(LoseAll).read_file(path("db/new")).unwrap(), b"");
}

#[test]
fn syncing_one_folder_says_nothing_about_another() {
    let disk = SimDisk::new(1);
    create(&disk, "db/a");
    create(&disk, "db/backup/b");
    disk.sync_dir(path("db")).unwrap();
    assert_eq!(disk.crash(LoseAll).paths(), [path("db/a")]);
}

#[test]
fn an_unsynced_rename_happened_or_did_not() {
    let disk = SimDisk::new(1);
    disk.write_file(path("db/CURRENT"), b"old");
    disk.write_file(path("db/tmp"), b"new");
    disk.rename(path("db/tmp"), path("db/CURRENT")).unwrap();
    let before = names(&[("CURRENT", "old"), ("tmp", "new")]);
    let after = names(&[("CURRENT", "new")]);
    assert_eq!(name_outcomes(&disk), BTreeSet::from([before, after.clone()]));
    disk.sync_dir(path("db")).unwrap();
    assert_eq!(name_outcomes(&disk), BTreeSet::from([after]));
}

#[test]
fn a_file_created_and_renamed_without_a_sync_is_found_under_at_most_one_name() {
    let disk = SimDisk::new(1);
    create(&disk, "db/tmp");
    disk.rename(path("db/tmp"), path("db/done")).unwrap();
    let expected = [names(&[]), names(&[("done", "")]), names(&[("tmp", "")])];
    assert_eq!(name_outcomes(&disk), BTreeSet::from(expected));
}

#[test]
fn an_unsynced_remove_may_be_undone_with_all_of_its_content() {
    let (disk, file) = disk_with(b"content");
    drop(file);
    disk.remove(path("db/a")).unwrap();
    assert!(disk.paths().is_empty());
    let expected = [names(&[]), names(&[("a", "content")])];
    assert_eq!(name_outcomes(&disk), BTreeSet::from(expected));
    disk.sync_dir(path("db")).unwrap();
    assert_eq!(name_outcomes(&disk), BTreeSet::from([names(&[])]));
}

#[test]
fn a_name_used_again_stands_for_the_old_file_the_new_file_or_nothing() {
    let (disk, file) = disk_with(b"old");
    drop(file);
    disk.remove(path("db/a")).unwrap();
    let file = create(&disk, "db/a");
    file.write_at(b"new", 0).unwrap();
    file.sync_data().unwrap();
    let expected = [names(&[]), names(&[("a", "old")]), names(&[("a", "new")])];
    assert_eq!(name_outcomes(&disk), BTreeSet::from(expected));
}

#[test]
fn hard_links_are_one_file_with_names_that_survive_on_their_own() {
    let (disk, file) = disk_with(b"one");
    disk.hard_link(path("db/a"), path("backup/a")).unwrap();
    file.write_at(b"two", 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(disk.read_file(path("backup/a")).unwrap(), b"two");
    assert_eq!(disk.crash(LoseAll).paths(), [path("db/a")], "the link was not synced");
    disk.sync_dir(path("backup")).unwrap();
    disk.remove(path("db/a")).unwrap();
    disk.sync_dir(path("db")).unwrap();
    let found = disk.crash(LoseAll);
    assert_eq!(found.paths(), [path("backup/a")]);
    assert_eq!(found.read_file(path("backup/a")).unwrap(), b"two");
    file.write_at(b"six", 0).unwrap();
    disk.hard_link(path("backup/a"), path("backup/b")).unwrap();
    disk.sync_dir(path("backup")).unwrap();
    for seed in 0..SEEDS {
        let found = disk.crash(Random(seed));
        let [a, b] = ["backup/a", "backup/b"].map(|name| found.read_file(path(name)).unwrap());
        assert_eq!(a, b, "one file, whatever became of it");
    }
}

#[test]
fn a_removed_file_stays_usable_and_keeps_its_space_while_it_is_open() {
    let (disk, file) = disk_with(&[1; 1024]);
    let reader = disk.open(path("db/a"), OpenMode::Read).unwrap();
    disk.remove(path("db/a")).unwrap();
    disk.sync_dir(path("db")).unwrap();
    file.write_at(b"x", 0).unwrap();
    let mut byte = [0];
    reader.read_exact_at(&mut byte, 0).unwrap();
    assert_eq!(&byte, b"x");
    drop(file);
    assert_eq!(disk.used_bytes(), 1024);
    drop(reader);
    assert_eq!(disk.used_bytes(), 0);
    assert!(disk.state().inodes.is_empty(), "nothing can bring it back");
}

/// A small workload with four syncs and eleven changes.
fn workload(disk: &SimDisk) -> io::Result<()> {
    disk.create_dir_all(path("db"))?; // op 0
    let a = disk.open(path("db/a"), OpenMode::CreateNew)?; // 1
    a.allocate(4096)?; // 2
    a.write_at(&[1; 2000], 0)?; // 3
    a.sync_data()?; // 4, sync 0
    disk.sync_dir(path("db"))?; // 5, sync 1
    let b = disk.open(path("db/b"), OpenMode::CreateNew)?; // 6
    b.write_at(&[2; 700], 0)?; // 7
    disk.sync_files(&[a, b])?; // 8, sync 2
    disk.rename(path("db/b"), path("db/c"))?; // 9
    disk.sync_dir(path("db")) // 10, sync 3
}

#[test]
fn the_same_seeds_give_the_same_disk() {
    let run = |seed: u64, n: u64| {
        let disk = SimDisk::new(seed);
        disk.arm(Trigger::AtOp(n));
        workload(&disk).unwrap_err();
        let found = disk.crash(Random(seed));
        let content: Vec<_> =
            found.paths().into_iter().map(|p| (found.read_file(&p).unwrap(), p)).collect();
        (content, found.state().dice.seed())
    };
    let mut different = BTreeSet::new();
    for n in 0..11 {
        for seed in 0..20 {
            assert_eq!(run(seed, n), run(seed, n));
            different.insert(run(seed, n).0);
        }
    }
    assert!(different.len() > 15, "and other seeds another: {}", different.len());
}

#[test]
fn operations_and_syncs_are_counted() {
    let disk = SimDisk::new(1);
    workload(&disk).unwrap();
    assert_eq!((disk.ops(), disk.syncs(), disk.reads()), (11, 4, 0));
    disk.create_dir_all(path("db")).unwrap();
    disk.open(path("db/none"), OpenMode::Read).unwrap_err();
    disk.open(path("db/a"), OpenMode::Read).unwrap().read_at(&mut [0], 0).unwrap();
    assert_eq!((disk.ops(), disk.syncs(), disk.reads()), (11, 4, 1));
}

#[test]
fn before_a_sync_nothing_of_it_is_durable_and_after_it_all_of_it_is() {
    for (trigger, durable, names) in [
        (Trigger::BeforeSync(0), 0, 0),
        (Trigger::AfterSync(0), 0, 0), // the data is, the name is not
        (Trigger::BeforeSync(1), 0, 0),
        (Trigger::AfterSync(1), 4096, 1),
        (Trigger::BeforeSync(3), 4096, 1),
        (Trigger::AfterSync(3), 4096 + 700, 2),
    ] {
        let disk = SimDisk::new(1);
        disk.arm(trigger);
        assert!(is_power_loss(workload(&disk)), "{trigger:?}");
        assert!(disk.is_stopped());
        let found = disk.crash(LoseAll);
        let bytes: usize = found.paths().iter().map(|p| found.read_file(p).unwrap().len()).sum();
        assert_eq!((bytes, found.paths().len()), (durable, names), "{trigger:?}");
    }
}

#[test]
fn a_trigger_counts_from_the_moment_it_is_set() {
    let disk = SimDisk::new(1);
    workload(&disk).unwrap();
    disk.arm(Trigger::BeforeSync(1));
    disk.sync_dir(path("db")).unwrap();
    assert!(is_power_loss(disk.sync_dir(path("db"))));
}

#[test]
fn once_stopped_every_operation_fails_and_nothing_changes() {
    let (disk, file) = disk_with(b"content");
    disk.arm(Trigger::AtOp(0));
    assert!(is_power_loss(disk.remove(path("db/a"))));
    let none: &[Arc<dyn VfsFile>] = &[];
    assert!(is_power_loss(file.read_at(&mut [0], 0)));
    assert!(is_power_loss(file.write_at(b"x", 0)));
    assert!(is_power_loss(file.sync_data()));
    assert!(is_power_loss(file.allocate(1)));
    assert!(is_power_loss(file.set_len(1)));
    assert!(is_power_loss(file.len()));
    assert!(is_power_loss(disk.create_dir_all(path("new"))));
    assert!(is_power_loss(disk.list(path("db"))));
    assert!(is_power_loss(disk.open(path("db/a"), OpenMode::Read)));
    assert!(is_power_loss(disk.exists(path("db/a"))));
    assert!(is_power_loss(disk.rename(path("db/a"), path("db/b"))));
    assert!(is_power_loss(disk.hard_link(path("db/a"), path("db/b"))));
    assert!(is_power_loss(disk.sync_dir(path("db"))));
    assert!(is_power_loss(disk.sync_files(none)));
    assert!(is_power_loss(disk.lock(path("db/LOCK"))));
    assert_eq!(disk.crash(KeepAll).read_file(path("db/a")).unwrap(), b"content");
    assert_eq!(disk.paths(), [path("db/a")]);
}

#[test]
fn a_write_that_the_power_loss_interrupts_ends_at_a_sector() {
    let mut ends = BTreeSet::new();
    for seed in 0..SEEDS {
        let disk = SimDisk::new(seed);
        disk.write_file(path("db/a"), &[1; 2000]);
        let file = disk.open(path("db/a"), OpenMode::ReadWrite).unwrap();
        disk.arm(Trigger::AtOp(0));
        assert!(is_power_loss(file.write_at(&[2; 1100], 100)));
        let found = disk.crash(KeepAll).read_file(path("db/a")).unwrap();
        ends.insert(100 + found.iter().filter(|&&b| b == 2).count());
        assert_eq!(found.len(), 2000);
    }
    assert_eq!(ends, BTreeSet::from([100, 512, 1024, 1200]));
}

#[test]
fn a_failed_sync_is_never_made_good_by_the_next_one() {
    let (disk, file) = disk_with(b"old");
    file.write_at(b"new", 0).unwrap();
    disk.fail(FaultPlan::once(Fault::SyncError, 0));
    assert!(is_eio(file.sync_data()));
    file.sync_data().unwrap();
    assert_eq!(disk.read_file(path("db/a")).unwrap(), b"new", "readers see it");
    assert_eq!(disk.crash(LoseAll).read_file(path("db/a")).unwrap(), b"old");
    let found = outcomes(&disk);
    assert!(found.contains(b"old".as_slice()) && found.contains(b"new".as_slice()));
    file.write_at(b"new", 0).unwrap();
    file.sync_data().unwrap();
    assert_eq!(outcomes(&disk), BTreeSet::from([b"new".to_vec()]), "written again, it is");
}

#[test]
fn data_synced_after_a_failed_sync_is_durable_even_where_the_length_was_in_doubt() {
    let (disk, file) = disk_with(b"");
    file.write_at(&[1; 1536], 0).unwrap();
    disk.fail(FaultPlan::once(Fault::SyncError, 0));
    assert!(is_eio(file.sync_data()));
    file.write_at(&[2; 512], 512).unwrap();
    file.sync_data().unwrap();
    let found = disk.crash(LoseAll).read_file(path("db/a")).unwrap();
    assert_eq!(found, [[0; 512], [2; 512], [0; 512]].concat());
}

#[test]
fn a_failed_sync_of_a_folder_is_never_made_good_either() {
    let disk = SimDisk::new(1);
    disk.create_dir_all(path("db")).unwrap();
    create(&disk, "db/a");
    disk.fail(FaultPlan::once(Fault::SyncError, 0));
    assert!(is_eio(disk.sync_dir(path("db"))));
    create(&disk, "db/b");
    disk.sync_dir(path("db")).unwrap();
    assert_eq!(disk.crash(LoseAll).paths(), [path("db/b")]);
    let expected = [names(&[("b", "")]), names(&[("a", ""), ("b", "")])];
    assert_eq!(name_outcomes(&disk), BTreeSet::from(expected));
    disk.remove(path("db/a")).unwrap();
    disk.sync_dir(path("db")).unwrap();
    assert_eq!(name_outcomes(&disk), BTreeSet::from([names(&[("b", "")])]));
}

#[test]
fn a_failed_batch_of_syncs_leaves_at_least_one_file_in_doubt() {
    let mut durable = BTreeSet::new();
    for seed in 0..50 {
        let disk = SimDisk::new(seed);
        let files: Vec<_> = ["d/a", "d/b", "d/c"].map(|name| create(&disk, name)).into();
        disk.sync_dir(path("d")).unwrap();
        files.iter().for_each(|file| file.write_at(b"x", 0).unwrap());
        disk.fail(FaultPlan::once(Fault::SyncError, 0));
        assert!(is_eio(disk.sync_files(&files)));
        disk.sync_files(&files).unwrap();
        let found = disk.crash(LoseAll);
        let full = found.paths().iter().filter(|p| !found.read_file(p).unwrap().is_empty()).count();
        durable.insert(full);
    }
    assert_eq!(durable, BTreeSet::from([0, 1, 2]));
}

#[test]
fn a_fault_strikes_once_or_from_then_on() {
    let (disk, file) = disk_with(b"content");
    disk.fail(FaultPlan::once(Fault::OpError, 1));
    file.write_at(b"x", 0).unwrap();
    assert!(is_eio(disk.hard_link(path("db/a"), path("db/b"))));
    disk.hard_link(path("db/a"), path("db/b")).unwrap();
    disk.fail(FaultPlan::onwards(Fault::ReadError, 1));
    file.read_at(&mut [0], 0).unwrap();
    assert!(is_eio(file.read_at(&mut [0], 0)));
    assert!(is_eio(file.read_at(&mut [0], 0)));
    file.write_at(b"x", 0).unwrap();
    disk.heal();
    file.read_at(&mut [0], 0).unwrap();
}

#[test]
fn a_full_disk_fails_only_what_needs_space() {
    let (disk, file) = disk_with(&[1; 1000]);
    disk.fail(FaultPlan::onwards(Fault::NoSpace, 0));
    file.write_at(&[2; 1000], 0).unwrap();
    file.sync_data().unwrap();
    file.set_len(2000).unwrap();
    disk.rename(path("db/a"), path("db/b")).unwrap();
    assert!(is_no_space(file.write_at(b"x", 1500)), "a hole has no room yet");
    assert!(is_no_space(file.write_at(b"x", 2000)));
    assert!(is_no_space(file.allocate(3000)));
    assert!(is_no_space(disk.hard_link(path("db/b"), path("db/c"))));
    assert!(is_no_space(disk.open(path("db/c"), OpenMode::CreateNew)));
    disk.remove(path("db/b")).unwrap();
}

#[test]
fn a_single_full_disk_waits_for_an_operation_that_needs_space() {
    let (disk, file) = disk_with(b"x");
    disk.fail(FaultPlan::once(Fault::NoSpace, 0));
    file.sync_data().unwrap();
    assert!(is_no_space(file.allocate(10_000)));
    file.allocate(10_000).unwrap();
}

#[test]
fn capacity_is_shared_by_all_files_and_allocated_space_is_never_refused() {
    let disk = SimDisk::new(1);
    disk.set_capacity(Some(10 * 512));
    let log = create(&disk, "db/log");
    log.allocate(6 * 512).unwrap();
    assert_eq!(log.len().unwrap(), 6 * 512);
    let other = create(&disk, "db/other");
    assert!(is_no_space(other.allocate(5 * 512)));
    assert_eq!(other.len().unwrap(), 0, "an allocation that fails changes nothing");
    assert!(is_no_space(other.write_at(&[1; 5 * 512], 0)));
    assert!(disk.used_bytes() <= 10 * 512);
    other.set_len(0).unwrap();
    other.write_at(&[1; 4 * 512], 0).unwrap();
    assert_eq!(disk.used_bytes(), 10 * 512);
    log.write_at(&[2; 6 * 512], 0).unwrap();
    log.write_at(&[3; 6 * 512], 0).unwrap();
    assert!(is_no_space(log.write_at(b"x", 6 * 512)));
    disk.remove(path("db/other")).unwrap();
    drop(other);
    log.write_at(b"x", 6 * 512).unwrap();
    disk.set_capacity(None);
    log.allocate(1 << 30).unwrap();
}

#[test]
fn synced_preallocation_keeps_its_space_across_a_crash() {
    let (disk, file) = disk_with(b"");
    disk.set_capacity(Some(4096));
    file.allocate(4096).unwrap();
    file.sync_data().unwrap();
    let found = disk.crash(LoseAll);
    assert_eq!(found.used_bytes(), 4096);
    let file = found.open(path("db/a"), OpenMode::ReadWrite).unwrap();
    file.write_at(&[1; 4096], 0).unwrap();
}

#[test]
fn corruption_is_there_now_and_after_every_crash() {
    let (disk, file) = disk_with(&[0; 600]);
    file.write_at(&[0; 10], 0).unwrap();
    disk.corrupt(path("db/a"), 5, 0x80).unwrap();
    disk.corrupt(path("db/a"), 599, 1).unwrap();
    let mut expected = vec![0; 600];
    expected[5] = 0x80;
    expected[599] = 1;
    assert_eq!(disk.read_file(path("db/a")).unwrap(), expected);
    assert_eq!(outcomes(&disk), BTreeSet::from([expected]));
    disk.corrupt(path("db/a"), 600, 1).unwrap_err();
    disk.corrupt(path("db/none"), 0, 1).unwrap_err();
}

#[test]
fn locks_and_open_modes_are_kept() {
    let disk = SimDisk::new(1);
    let held = disk.lock(path("db/LOCK")).unwrap();
    assert_eq!(disk.lock(path("db/LOCK")).unwrap_err().kind(), io::ErrorKind::WouldBlock);
    drop(held);
    disk.lock(path("db/LOCK")).unwrap();
    let again = disk.open(path("db/LOCK"), OpenMode::CreateNew).unwrap_err();
    assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
    let reader = disk.open(path("db/LOCK"), OpenMode::Read).unwrap();
    assert_eq!(reader.write_at(b"x", 0).unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    assert_eq!(disk.list(path("db")).unwrap(), ["LOCK"]);
    assert_eq!(disk.list(path("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    let foreign = SimDisk::new(2);
    foreign.sync_files(&[reader]).unwrap_err();
}

#[test]
fn a_file_behaves_like_a_vector_of_bytes() {
    use crate::dice::Dice;
    for seed in 0..100 {
        let mut dice = Dice::new(seed);
        let (disk, file) = disk_with(b"");
        let mut model: Vec<u8> = Vec::new();
        for _ in 0..40 {
            let at = dice.below(3000) as usize;
            match dice.below(6) {
                0 => {
                    file.set_len(at as u64).unwrap();
                    model.resize(at, 0);
                }
                1 => {
                    file.allocate(at as u64).unwrap();
                    model.resize(model.len().max(at), 0);
                }
                2 => file.sync_data().unwrap(),
                _ => {
                    let data = vec![dice.below(256) as u8; 1 + dice.below(1500) as usize];
                    file.write_at(&data, at as u64).unwrap();
                    model.resize(model.len().max(at + data.len()), 0);
                    model[at..at + data.len()].copy_from_slice(&data);
                }
            }
            assert_eq!(disk.read_file(path("db/a")).unwrap(), model, "seed {seed}");
        }
        file.sync_data().unwrap();
        assert_eq!(disk.crash(LoseAll).read_file(path("db/a")).unwrap(), model, "seed {seed}");
        assert_eq!(disk.crash(Random(seed)).read_file(path("db/a")).unwrap(), model);
    }
}
