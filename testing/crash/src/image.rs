//! Opens a disk that a crash left and checks it against the history.

use std::sync::Arc;

use bytes::Bytes;
use kstone_core::env::{Env, ManualClock, Vfs};
use kstone_core::{Durability, Engine, Key, Options, PurgeSnapshots, PurgeTarget, TableId, verify};
use kstone_sim::{CrashPolicy, SimDisk};

use crate::Violation;
use crate::model::{Change, Model, Stored, difference};
use crate::recording_disk::{Image, ImageDensity, Promises, RecordingDisk};
use crate::run::{DIR, Failure, batch_of, check_expired, check_gets, contents, env};
use crate::run::{holds_database, position};

/// How thoroughly an image is looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CheckDepth {
    /// Check the expiry index, close, run `verify`, and look at the checkpoints.
    pub(crate) verify: bool,
    /// Crash the recovery too, then write on and crash again.
    pub(crate) again: bool,
}

/// Holds disks against a history.
pub(crate) struct Checker<'a> {
    pub(crate) options: &'a Options,
    pub(crate) history: &'a [Model],
    pub(crate) recoveries: &'a mut u64,
}

/// A clock at 0: after a crash the machine's clock may be anything.
fn reset_env(vfs: Arc<dyn Vfs>) -> Env {
    env(vfs, &Arc::new(ManualClock::at(0)))
}

impl Checker<'_> {
    pub(crate) fn check(&mut self, image: &Image, depth: CheckDepth) -> Result<(), Violation> {
        self.check_inner(image, depth)
            .map_err(|what| format!("crash {}, {:?}: {what}", image.moment, image.policy))
    }

    fn check_inner(&mut self, image: &Image, depth: CheckDepth) -> Result<(), Violation> {
        // The recovery itself may be crashed: it is watched, and every image of it is held to the
        // same promises.
        let density =
            ImageDensity { randoms: 1, sync_stride: 1, op_stride: if depth.again { 3 } else { 0 } };
        let watched = RecordingDisk::new(image.disk.clone(), density, 7);
        watched.promise(|promises| {
            *promises = image.promises.clone();
            if image.policy != CrashPolicy::KeepAll {
                // What was only written may have gone with the power.
                promises.written = promises.durable;
            }
        });
        let vfs: Arc<dyn Vfs> =
            if depth.again { Arc::new(watched.clone()) } else { Arc::new(image.disk.clone()) };
        let engine = self.open(vfs)?;
        let index = self.check_contents(&engine, image)?;
        if depth.verify {
            // Commits that only reclaim what has expired leave the same contents.
            let now_ms = engine.now_ms();
            let found = self.history.get(index).map(|model| model.visible(now_ms));
            let same: Vec<_> =
                self.history.iter().filter(|m| Some(m.visible(now_ms)) == found).collect();
            check_expired(&engine, &same).map_err(told)?;
        }
        let checkpoints = if depth.verify { self.check_checkpoints(image) } else { Ok(()) };
        checkpoints?;
        if depth.again {
            for second in watched.take_images() {
                let depth = CheckDepth::default();
                self.check(&second, depth).map_err(|what| format!("then recovery, {what}"))?;
            }
            self.write_on(&engine, index, image)?;
            watched.take_images();
        }
        drop(engine);
        if depth.verify {
            let report = verify(&reset_env(Arc::new(image.disk.clone())), DIR)
                .map_err(|error| format!("verify cannot read it: {error}"))?;
            if !report.is_sound() {
                return Err(format!("verify finds {:?}", report.faults));
            }
        }
        Ok(())
    }

    fn open(&mut self, vfs: Arc<dyn Vfs>) -> Result<Engine, Violation> {
        *self.recoveries += 1;
        Engine::open_with(reset_env(vfs), DIR, self.options.clone())
            .map_err(|error| format!("it does not open: {error}"))
    }

    /// The recovered contents are a prefix of the history that keeps the promises; which one.
    fn check_contents(&self, engine: &Engine, image: &Image) -> Result<usize, Violation> {
        let promises = &image.promises;
        let least = match image.policy {
            CrashPolicy::KeepAll => promises.written,
            _ => promises.durable,
        };
        let history = self.history.get(..=promises.begun).unwrap_or(self.history);
        let now_ms = engine.now_ms();
        let found =
            contents(engine, &engine.tables()).map_err(|error| format!("a scan fails: {error}"))?;
        let Some(index) = position(history, &found, now_ms, least) else {
            let nearest = history.last().map(|m| m.visible(now_ms)).unwrap_or_default();
            return Err(format!(
                "the contents are those after no commit of {}; the last one would differ so: {}",
                history.len() - 1,
                difference(&found, &nearest)
            ));
        };
        if index < least {
            return Err(format!("commit {index} is the last one there, {least} was promised"));
        }
        check_gets(engine, &found).map_err(told)?;
        if now_ms < promises.clock_ms {
            return Err(format!("the clock says {now_ms}, it was {} before", promises.clock_ms));
        }
        let seq = engine.applied_seq();
        if seq < promises.durable_seq {
            return Err(format!("numbers go on after {seq}, {} was durable", promises.durable_seq));
        }
        Ok(index)
    }

    /// What was recovered is durable, and so is what is written on top of it; a purge, which must
    /// find its way through whatever the crash left, works too.
    fn write_on(&mut self, engine: &Engine, index: usize, image: &Image) -> Result<(), Violation> {
        let mut models = vec![self.history[index].clone()];
        let crash = |policy| Image {
            moment: "after recovery".to_owned(),
            policy,
            disk: image.disk.crash(policy),
            promises: Promises::default(),
        };
        let put = |key: &str, value: &str| Change::Put {
            table: TableId::DEFAULT,
            key: Key::with_sk("p0", key.to_owned()),
            stored: Stored { value: Bytes::from(value.to_owned()), expires_at_ms: None },
        };
        let mut crashes = vec![(crash(CrashPolicy::LoseAll), 0, 1)];
        let batches =
            [vec![put("s01", "after 1"), put("s02", "after 1")], vec![put("s02", "after 2")]];
        for (changes, durability) in batches.iter().zip([Durability::Os, Durability::Sync]) {
            let mut next = models[models.len() - 1].clone();
            changes.iter().for_each(|change| next.apply(change));
            models.push(next);
            let written = batch_of(changes)
                .and_then(|batch| engine.write(&batch, durability))
                .and_then(|commit| commit.wait_written().and_then(|()| commit.wait()));
            written.map_err(|error| format!("writing does not go on: {error}"))?;
            let least = if durability == Durability::Sync { models.len() - 1 } else { 0 };
            crashes.push((crash(CrashPolicy::Random(index as u64)), least, models.len()));
            crashes.push((crash(CrashPolicy::LoseAll), least, models.len()));
        }
        engine.flush().map_err(|error| format!("flush after recovery: {error}"))?;
        crashes.push((crash(CrashPolicy::LoseAll), 2, 3));
        let last_change = Change::DropPartition { table: TableId::DEFAULT, pk: "p1".into() };
        let mut purged = models[models.len() - 1].clone();
        purged.apply(&last_change);
        models.push(purged);
        let target = PurgeTarget::Partition { table: TableId::DEFAULT, pk: "p1".into() };
        engine
            .purge(&[target], PurgeSnapshots::End)
            .map_err(|error| format!("purge after recovery: {error}"))?;
        crashes.push((crash(CrashPolicy::LoseAll), 3, 4));
        for (mut image, least, len) in crashes {
            image.promises.durable = least;
            image.promises.written = least;
            image.promises.begun = len - 1;
            let mut again = Checker {
                options: self.options,
                history: models.get(..len).unwrap_or_default(),
                recoveries: self.recoveries,
            };
            again.check(&image, CheckDepth::default()).map_err(|what| format!("then {what}"))?;
        }
        Ok(())
    }

    /// A checkpoint that was finished opens and holds what it should; one that was not is either
    /// whole, or no database.
    fn check_checkpoints(&mut self, image: &Image) -> Result<(), Violation> {
        let paths = image.disk.paths();
        for checkpoint in &image.promises.checkpoints {
            let name = checkpoint.path.display();
            if !holds_database(&paths, &checkpoint.path) {
                if checkpoint.done {
                    return Err(format!("checkpoint {name} is gone"));
                }
                continue;
            }
            let options = Options { create_if_missing: false, ..self.options.clone() };
            *self.recoveries += 1;
            let copy: SimDisk = image.disk.crash(CrashPolicy::KeepAll);
            let engine = Engine::open_with(reset_env(Arc::new(copy)), &checkpoint.path, options)
                .map_err(|error| format!("checkpoint {name} does not open: {error}"))?;
            let found = contents(&engine, &engine.tables())
                .map_err(|error| format!("checkpoint {name}: {error}"))?;
            let now_ms = engine.now_ms();
            if position(&checkpoint.may_hold, &found, now_ms, 0).is_none() {
                let wanted =
                    checkpoint.may_hold.last().map(|m| m.visible(now_ms)).unwrap_or_default();
                return Err(format!("checkpoint {name} holds {}", difference(&found, &wanted)));
            }
        }
        Ok(())
    }
}

pub(crate) fn told(failure: Failure) -> Violation {
    match failure {
        Failure::Error(error) => format!("an error where there should be none: {error}"),
        Failure::Wrong(what) => what,
    }
}
