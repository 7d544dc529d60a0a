//! Failures and crashes at every step, with every disk that they could leave behind.

use super::*;

#[test]
fn a_torn_manifest_takes_no_edit_before_it_is_rewritten() {
    let (disk, states, ends) = sample();
    let bytes = disk.read(&live_path(1));
    disk.put(&live_path(1), &bytes[..ends[3] - 1]);
    let vfs: Arc<dyn Vfs> = disk;
    let (mut manifest, state, opened) = open(&vfs);
    assert!(opened.torn);
    assert!(matches!(manifest.append(&edits()[2]), Err(Error::Invalid { .. })));
    manifest.rewrite(&state).unwrap();
    manifest.append(&edits()[2]).unwrap();
    let (_, state, opened) = open(&vfs);
    assert_eq!((state, opened.torn), (states[3].clone(), false));
}

#[test]
fn a_crash_at_any_step_of_create_leaves_nothing_or_an_empty_database() {
    for steps in 0.. {
        let disk = Arc::new(TestVfs::default());
        let vfs: Arc<dyn Vfs> = disk.clone();
        disk.fail_after(steps);
        let created = Manifest::create(&vfs, dir(), DB_ID).is_ok();
        for vfs in disk.crashes() {
            match Manifest::open(&vfs, dir()).unwrap() {
                Some((_, state, opened)) => {
                    assert_eq!((state, opened.torn), (State::new(DB_ID), false));
                }
                None => {
                    assert!(!created);
                    Manifest::create(&vfs, dir(), DB_ID).unwrap();
                    assert_eq!(open(&vfs).1, State::new(DB_ID));
                }
            }
        }
        if created {
            assert_eq!(steps, 9);
            break;
        }
    }
}

#[test]
fn a_crash_at_any_step_of_a_rewrite_leaves_the_same_state() {
    for steps in 0.. {
        let (disk, states, _) = sample();
        // An earlier rewrite that crashed has left its files.
        disk.put(&live_path(2), b"half a manifest");
        disk.put(&dir().join("CURRENT.tmp"), b"half");
        let vfs: Arc<dyn Vfs> = disk.clone();
        let (mut manifest, state, _) = open(&vfs);
        disk.fail_after(steps);
        let rewritten = manifest.rewrite(&state);
        for vfs in disk.crashes() {
            let (mut manifest, state, opened) = open(&vfs);
            assert_eq!((&state, opened.torn), (&states[3], false), "after {steps} steps");
            manifest.rewrite(&state).unwrap();
            assert_eq!(open(&vfs).1, states[3]);
        }
        if rewritten.is_ok() && !disk.is_failing() {
            assert_eq!(steps, 13);
            break;
        }
    }
}

#[test]
fn a_crash_at_any_step_of_an_append_leaves_the_state_before_or_after_it() {
    let edit = added(1, file(3, 200, "n", "z", 70));
    for steps in 0..=2 {
        let (disk, states, _) = sample();
        let vfs: Arc<dyn Vfs> = disk.clone();
        let (mut manifest, before, _) = open(&vfs);
        let mut after = before.clone();
        after.apply(&edit).unwrap();
        disk.fail_after(steps);
        let appended = manifest.append(&edit).is_ok();
        assert_eq!(appended, steps == 2);
        for vfs in disk.crashes() {
            let (_, state, opened) = open(&vfs);
            assert!(state == after || (!appended && state == states[3]), "after {steps} steps");
            assert!(!(appended && opened.torn));
        }
    }
}

#[test]
fn what_open_has_read_survives_a_crash_of_the_machine() {
    let edit = added(1, file(3, 200, "n", "z", 70));
    let (disk, _, _) = sample();
    let vfs: Arc<dyn Vfs> = disk.clone();
    let (mut manifest, ..) = open(&vfs);
    // The process dies between the write and its sync.
    disk.fail_after(1);
    manifest.append(&edit).unwrap_err();
    disk.fail_after(usize::MAX);
    let (_, state, _) = open(&vfs);
    for vfs in disk.crashes() {
        assert_eq!(open(&vfs).1, state);
    }
}

#[test]
fn after_a_failed_append_every_later_change_is_refused() {
    for steps in 0..2 {
        let (disk, states, _) = sample();
        let vfs: Arc<dyn Vfs> = disk.clone();
        let (mut manifest, ..) = open(&vfs);
        let edit = Edit { clock_ms: Some(1), ..Edit::default() };
        disk.fail_after(steps);
        assert!(matches!(manifest.append(&edit), Err(Error::Io { .. })));
        disk.fail_after(usize::MAX);
        assert!(matches!(manifest.append(&edit), Err(Error::Poisoned { .. })));
        assert!(matches!(manifest.rewrite(&states[3]), Err(Error::Poisoned { .. })));
    }
}

#[test]
fn a_rewrite_that_fails_in_front_of_the_switch_leaves_the_manifest_usable() {
    for steps in 0..9 {
        let (disk, states, _) = sample();
        let vfs: Arc<dyn Vfs> = disk.clone();
        let (mut manifest, state, _) = open(&vfs);
        disk.fail_after(steps);
        manifest.rewrite(&state).unwrap_err();
        disk.fail_after(usize::MAX);
        let appended = manifest.append(&Edit::default());
        match steps {
            ..7 => appended.unwrap(),
            _ => assert!(matches!(appended, Err(Error::Poisoned { .. }))),
        }
        assert_eq!(open(&vfs).1, states[3]);
    }
}
