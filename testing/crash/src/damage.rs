//! The damage test: one byte of one file changes behind the engine's back.
//!
//! Every read must then be right, or refused with an error that names a file. Nothing may be
//! missing or different in silence. After a proper close nothing can pass for the torn end of a
//! crashed write; after a kill, the last commit can, and only that.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use kstone_core::env::ManualClock;
use kstone_core::{Durability, Engine, Error, Key, TableId};
use kstone_sim::{CrashPolicy, SimDisk};

use crate::Violation;
use crate::image::told;
use crate::model::{Change, Contents, Stored, difference};
use crate::recording_disk::{ImageDensity, RecordingDisk};
use crate::run::{DIR, Run, contents, env};
use crate::workload::{Step, Workload};

/// The files of a database that nobody has open, and what they hold.
#[derive(Debug)]
pub struct Files {
    disk: SimDisk,
    workload: Workload,
    /// The one before the last commit is right too, after a kill.
    expected: Vec<Contents>,
    now_ms: u64,
}

/// What became of one change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DamageOutcome {
    /// The byte did not matter.
    Harmless,
    /// The database did not open.
    AtOpen,
    /// A read failed.
    AtRead,
}

impl Files {
    /// Runs the workload and closes the database.
    pub fn closed(workload: Workload) -> Result<Files, Violation> {
        Files::after(workload, true)
    }

    /// Runs the workload, commits a few more times, and kills the process. What is in the log then
    /// is nowhere else.
    pub fn killed(mut workload: Workload) -> Result<Files, Violation> {
        for n in 0..4 {
            let key = Key::with_sk("p0", format!("s{n:02}"));
            let stored = Stored { value: format!("last {n}").into(), expires_at_ms: None };
            let changes = vec![Change::Put { table: TableId::DEFAULT, key, stored }];
            let (durability, written) = (Durability::Sync, false);
            workload.steps.push(Step::Commit { changes, durability, written });
        }
        Files::after(workload, false)
    }

    fn after(workload: Workload, close: bool) -> Result<Files, Violation> {
        let disk = SimDisk::new(workload.seed);
        let density = ImageDensity { randoms: 0, sync_stride: u64::MAX, op_stride: 0 };
        let mut run =
            Run::new(RecordingDisk::new(disk.clone(), density, 0), workload.options.clone());
        for step in &workload.steps {
            run.step(step).map_err(told)?;
        }
        let now_ms = run.open().map_err(|error| error.to_string())?.now_ms();
        let models = run.history.iter().rev().take(if close { 1 } else { 2 });
        let expected = models.map(|model| model.visible(now_ms)).collect();
        let killed = disk.crash(CrashPolicy::KeepAll);
        run.close();
        let disk = if close { disk } else { killed };
        Ok(Files { disk, workload, expected, now_ms })
    }

    /// The database's files and their lengths.
    pub fn list(&self) -> Vec<(PathBuf, u64)> {
        let paths = self.disk.paths().into_iter().filter(|path| path.starts_with(DIR));
        paths
            .map(|path| {
                let len = self.disk.read_file(&path).map_or(0, |bytes| bytes.len() as u64);
                (path, len)
            })
            .collect()
    }

    /// Changes one byte and reads everything back.
    pub fn flip(&self, path: &Path, offset: u64, xor: u8) -> Result<DamageOutcome, Violation> {
        let seed = self.workload.seed;
        let place =
            |what| format!("seed {seed}, {} at {offset} ^ {xor:#x}: {what}", path.display());
        let disk = self.disk.crash(CrashPolicy::KeepAll);
        disk.corrupt(path, offset, xor).map_err(|error| place(error.to_string()))?;
        let clock = Arc::new(ManualClock::at(self.now_ms));
        let env = env(Arc::new(disk), &clock);
        let engine = match Engine::open_with(env, DIR, self.workload.options.clone()) {
            Ok(engine) => engine,
            Err(error) => return typed(&error).map(|()| DamageOutcome::AtOpen).map_err(place),
        };
        match contents(&engine, &engine.tables()) {
            Err(error) => typed(&error).map(|()| DamageOutcome::AtRead).map_err(place),
            Ok(found) if self.expected.contains(&found) => Ok(DamageOutcome::Harmless),
            Ok(found) => {
                let expected = self.expected.first().cloned().unwrap_or_default();
                Err(place(format!("in silence, {}", difference(&found, &expected))))
            }
        }
    }
}

/// Damage is reported as damage, with the file.
fn typed(error: &Error) -> Result<(), Violation> {
    match error {
        Error::Corruption { path, .. }
        | Error::ForeignFile { path, .. }
        | Error::Version { path, .. }
            if path.starts_with(DIR) =>
        {
            Ok(())
        }
        other => Err(format!("the wrong kind of error: {other}")),
    }
}
