//! The [`Eraser`]: carries out the steps of an erasure.
//!
//! 1. Remember whom it is about.
//! 2. Refuse writes about them from now on, and wait for those under way.
//! 3. Write down every place where something of them is, or was.
//! 4. Delete it all: from here on nobody reads any of it.
//! 5. Remove the bytes from every file.
//! 6. The same in every checkpoint, by its own index: it may hold what was deleted here long ago.
//!    Then purge the entries of the index, here and there.
//! 7. Remember what was done, without whom it was about; then purge the memory of whom.
//! 8. Sign the receipt.
//!
//! A crash anywhere leaves what step 1 or 7 wrote, and each step can be done again. So
//! [`Eraser::resume`] goes on after a restart, and there is a receipt only if all of it was done.

use std::collections::BTreeSet;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kstone::policy::SUBJECTS_TABLE;
use kstone_core::env::{Clock, Random};
use kstone_ports::items::{PurgeItems, PurgeReport};
use kstone_ports::value::{Item, Value};

use super::holdings::{Ownership, SurveyedPlace};
use super::job::{
    ERASURES_TABLE, ErasureRecord, ErasureState, Job, Jobs, Planned, PlannedContent, counts,
};
use super::receipt::{
    PurgeCount, RECEIPT_VERSION, Receipt, ReceiptKey, SignedReceipt, subject_hash,
};
use super::stores::{ErasureError, Result, Stores};
use crate::index::{IndexEntryKey, Location, pk_of_subject, pk_via};
use crate::policy::Governor;
use crate::subject::Subject;

/// How often what is left is looked for again before somebody has to be told.
const ROUNDS: usize = 4;

/// Lists and opens the checkpoints that were made from a database.
pub trait CheckpointStore: Debug + Send + Sync {
    /// The directories of all checkpoints.
    fn list(&self) -> Vec<PathBuf>;

    /// Opens a checkpoint, with a complete index of persons; `None` if it is no longer in its
    /// directory.
    fn open(&self, path: &Path) -> Result<Option<OpenCheckpoint>>;
}

/// An open checkpoint, which is closed when this is dropped.
#[derive(Debug)]
pub struct OpenCheckpoint {
    /// What is in it.
    pub stores: Stores,
    /// What is in force in it.
    pub governor: Arc<Governor>,
    /// What has to be let go of after the stores.
    pub keep: Box<dyn Keep>,
}

/// A resource that is held until its owner is dropped.
pub trait Keep: Debug + Send + Sync {}

/// Erases persons from one database.
#[derive(Debug)]
pub struct Eraser {
    stores: Stores,
    governor: Arc<Governor>,
    copies: Arc<dyn CheckpointStore>,
    clock: Arc<dyn Clock>,
    random: Arc<dyn Random>,
    key: ReceiptKey,
    /// The database's id, in hex.
    database: String,
    is_busy: AtomicBool,
}

/// The progress of an erasure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Writes about the person are being refused, and those under way waited for.
    Refusing,
    /// So many places were found.
    Found(u64),
    /// What was found is being deleted.
    Deleting,
    /// Files are being rewritten without it.
    Purging,
    /// A checkpoint is being cleared: which, and of how many.
    Checkpoint(u64, u64),
    /// The receipt is being written.
    Sealing,
}

/// The parts that an [`Eraser`] is built from.
#[derive(Debug)]
pub struct EraserParts {
    /// The stores. The handle to items may write to the database's own tables.
    pub stores: Stores,
    /// What is in force.
    pub governor: Arc<Governor>,
    /// The checkpoints.
    pub copies: Arc<dyn CheckpointStore>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Salts and ids. Salts have to be hard to guess.
    pub random: Arc<dyn Random>,
    /// The key with which the database signs.
    pub key: ReceiptKey,
    /// The database's id, in hex.
    pub database: String,
}

impl Eraser {
    /// An eraser of one database.
    pub fn new(parts: EraserParts) -> Eraser {
        let EraserParts { stores, governor, copies, clock, random, key, database } = parts;
        let is_busy = AtomicBool::new(false);
        Eraser { stores, governor, copies, clock, random, key, database, is_busy }
    }

    /// The stores.
    pub fn stores(&self) -> &Stores {
        &self.stores
    }

    /// The public key that belongs to receipts of this database, in hex.
    pub fn public_key(&self) -> String {
        self.key.public_key()
    }

    /// Erases a person, in the tenant that is named or in all of them, and answers with the receipt.
    /// Goes on with an erasure of the same person that was interrupted.
    pub async fn erase(
        &self,
        subject: &Subject,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<SignedReceipt> {
        let _only_one = ErasureLock::take(&self.is_busy)?;
        let (job, plan) = self.find_or_begin(subject).await?;
        self.go_on(job, plan, progress).await
    }

    /// Records an erasure, and returns its id, or that of a running one of the same person. Nothing
    /// is removed yet: [`carry_out`](Eraser::carry_out) does that, or [`resume`](Eraser::resume)
    /// after a restart.
    pub async fn ask(&self, subject: &Subject) -> Result<String> {
        Ok(self.find_or_begin(subject).await?.0.id)
    }

    /// Completes an erasure, and returns its receipt.
    ///
    /// # Errors
    /// [`ErasureError::Running`] while another erasure is under way: try again.
    pub async fn carry_out(
        &self,
        id: &str,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<SignedReceipt> {
        let _only_one = ErasureLock::take(&self.is_busy)?;
        match self.jobs().find(id).await?.map(|record| record.state) {
            None => Err(ErasureError::Unreadable(format!("there is no erasure {id}"))),
            Some(ErasureState::Done(receipt)) => Ok(*receipt),
            Some(ErasureState::Sealed(receipt)) => self.finish(*receipt).await,
            Some(ErasureState::Running) => self.go_on_with(id, progress).await,
        }
    }

    async fn find_or_begin(&self, subject: &Subject) -> Result<(Job, Vec<Planned>)> {
        let jobs = self.jobs();
        jobs.prepare().await?;
        for record in jobs.all().await? {
            if let ErasureState::Running = record.state
                && let Some((job, plan)) = jobs.load(&record.id).await?
                && job.subject() == *subject
            {
                return Ok((job, plan));
            }
        }
        let began_ms = self.clock.now_ms();
        let id = format!("{began_ms:013}-{:016x}", self.random.next_u64());
        let job = Job::new(id, subject, &self.salt(), began_ms);
        jobs.begin(&job).await?;
        Ok((job, Vec::new()))
    }

    /// Goes on with every erasure that was interrupted; answers with their receipts.
    ///
    /// # Errors
    /// [`ErasureError::Unfinished`] if some could not go on. Those after them are done all the same,
    /// and their receipts are among the [`erasures`](Eraser::erasures).
    pub async fn resume(&self, progress: &(dyn Fn(Progress) + Sync)) -> Result<Vec<SignedReceipt>> {
        let _only_one = ErasureLock::take(&self.is_busy)?;
        let (mut receipts, mut failed) = (Vec::new(), Vec::new());
        for ErasureRecord { id, state, .. } in self.jobs().all().await? {
            let resumed = match state {
                ErasureState::Done(_) => continue,
                ErasureState::Sealed(receipt) => self.finish(*receipt).await,
                ErasureState::Running => self.go_on_with(&id, progress).await,
            };
            match resumed {
                Ok(receipt) => receipts.push(receipt),
                // The next erasure must not wait for this one.
                Err(error) => failed.push(format!("{id}: {error}")),
            }
        }
        match failed.is_empty() {
            true => Ok(receipts),
            false => Err(ErasureError::Unfinished(failed.join("; "))),
        }
    }

    async fn go_on_with(
        &self,
        id: &str,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<SignedReceipt> {
        let (job, plan) = self.jobs().load(id).await?.ok_or_else(|| {
            ErasureError::Unreadable("it runs, and nothing says whom it is about".to_owned())
        })?;
        self.go_on(job, plan, progress).await
    }

    /// All erasures that there were, the earliest first.
    pub async fn erasures(&self) -> Result<Vec<ErasureRecord>> {
        self.jobs().all().await
    }

    /// One of them.
    pub async fn erasure(&self, id: &str) -> Result<Option<ErasureRecord>> {
        self.jobs().find(id).await
    }

    fn jobs(&self) -> Jobs<'_> {
        Jobs { items: &*self.stores.items }
    }

    fn salt(&self) -> Vec<u8> {
        (0..2).flat_map(|_| self.random.next_u64().to_be_bytes()).collect()
    }

    async fn go_on(
        &self,
        mut job: Job,
        mut plan: Vec<Planned>,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<SignedReceipt> {
        let subject = job.subject();
        progress(Progress::Refusing);
        self.governor.mark_erased(&subject).await?;
        self.stores.settle().await?;
        self.refuse_through(&subject).await?;
        if job.first_seq.is_none() {
            let now = self.stores.items.purge(&PurgeItems::default()).await?;
            job.first_seq = Some(now.first_seq);
            // A purge forgets those that are not there.
            job.checkpoints = self.copies.list();
            self.jobs().keep(&job).await?;
        }
        let mut entries = BTreeSet::new();
        for _ in 0..ROUNDS {
            entries.extend(self.plan(&job, &mut plan, &subject).await?);
            progress(Progress::Found(plan.len() as u64));
            progress(Progress::Deleting);
            let places: Vec<IndexEntryKey> = plan.iter().filter_map(Planned::place).collect();
            let (keys, items) = self.stores.remove(&places, &subject, &self.governor).await?;
            job.add(&keys);
            progress(Progress::Purging);
            job.add(&self.stores.items.purge(&items).await?);
            let left = self.stores.survey(&subject).await?;
            if left.iter().all(|seen| !matches!(seen.ownership, Ownership::Theirs { .. })) {
                self.clear_checkpoints(&mut job, &subject, progress).await?;
                progress(Progress::Purging);
                // Last, because each checkpoint is cleared by its own index, which this purges too.
                entries.extend(places.iter().cloned());
                entries.extend(left.into_iter().map(|seen| seen.indexed));
                let index = index_of(&subject, &entries, &self.stores.link_keys_among(&places));
                job.add(&self.stores.items.purge(&index).await?);
                return self.seal(job, &plan, progress).await;
            }
        }
        Err(ErasureError::Busy("what is left of the person".to_owned()))
    }

    /// Refuses writes to keys that belong to the person through another key.
    async fn refuse_through(&self, subject: &Subject) -> Result<()> {
        let links = self.stores.link_keys_of(subject).await?;
        for link in &links {
            self.governor.mark_place_erased(link).await?;
        }
        match links.is_empty() {
            true => Ok(()),
            false => self.stores.settle().await,
        }
    }

    /// Adds every indexed place to the plan that is not in it, and stores the plan. Returns all
    /// places that the index names, also those that belong to others by now.
    async fn plan(
        &self,
        job: &Job,
        plan: &mut Vec<Planned>,
        subject: &Subject,
    ) -> Result<Vec<IndexEntryKey>> {
        let known: BTreeSet<IndexEntryKey> = plan.iter().filter_map(Planned::place).collect();
        let seen = self.stores.survey(subject).await?;
        let new: Vec<Planned> =
            seen.iter().filter(|it| !known.contains(&it.indexed)).filter_map(planned).collect();
        self.jobs().plan(job, plan.len(), &new).await?;
        plan.extend(new);
        Ok(seen.into_iter().map(|seen| seen.indexed).collect())
    }

    /// Removes the person from the checkpoints.
    async fn clear_checkpoints(
        &self,
        job: &mut Job,
        subject: &Subject,
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<()> {
        let mut cleared = BTreeSet::new();
        loop {
            // One that was made meanwhile may have been begun before.
            let mut known: BTreeSet<PathBuf> = job.checkpoints.iter().cloned().collect();
            known.extend(self.copies.list());
            let all = known.len() as u64;
            let Some(path) = known.into_iter().find(|path| !cleared.contains(path)) else { break };
            progress(Progress::Checkpoint(cleared.len() as u64 + 1, all));
            match self.copies.open(&path)? {
                None => job.purge.miss(&path),
                Some(OpenCheckpoint { stores: copy, governor, keep: _closed_last }) => {
                    let seen = copy.survey(subject).await?;
                    let places: Vec<IndexEntryKey> = seen
                        .iter()
                        .filter(|it| is_theirs(it))
                        .map(|it| it.indexed.clone())
                        .collect();
                    let (keys, items) = copy.remove(&places, subject, &governor).await?;
                    job.purge.records += keys.records;
                    job.purge.records += copy.items.purge(&items).await?.records;
                    // Of what was found here only this index may know.
                    let links = copy.link_keys_among(&places);
                    let entries = seen.iter().map(|seen| seen.indexed.clone()).collect();
                    let index = index_of(subject, &entries, &links);
                    job.purge.records += copy.items.purge(&index).await?.records;
                    job.purge.checkpoints += 1;
                }
            }
            cleared.insert(path);
        }
        Ok(())
    }

    async fn seal(
        &self,
        job: Job,
        plan: &[Planned],
        progress: &(dyn Fn(Progress) + Sync),
    ) -> Result<SignedReceipt> {
        progress(Progress::Sealing);
        let subject = job.subject();
        let salt = job.salt();
        let receipt = Receipt {
            version: RECEIPT_VERSION,
            database: self.database.clone(),
            erasure: job.id.clone(),
            subject_sha256: subject_hash(&salt, &subject),
            salt: hex::encode(salt),
            tenant: subject.tenant,
            began_ms: job.began_ms,
            finished_ms: 0,
            patterns: counts(plan),
            first_seq: job.first_seq.unwrap_or_default(),
            last_seq: job.last_seq,
            purge: job.purge,
        };
        self.jobs().seal(&receipt).await?;
        self.finish(receipt).await
    }

    /// Removes the record of whom an erasure was about, and signs its receipt.
    async fn finish(&self, mut receipt: Receipt) -> Result<SignedReceipt> {
        let partitions = vec![(ERASURES_TABLE.to_owned(), Job::partition_of(&receipt.erasure))];
        let report =
            self.stores.items.purge(&PurgeItems { partitions, ..PurgeItems::default() }).await?;
        receipt.purge.add(&report);
        receipt.last_seq = report.last_seq;
        receipt.finished_ms = self.clock.now_ms();
        let signed = self.key.sign(receipt);
        self.jobs().finish(&signed).await?;
        Ok(signed)
    }
}

fn planned(seen: &SurveyedPlace) -> Option<Planned> {
    let how = match seen.ownership {
        Ownership::Theirs { is_shared: false, .. } => PlannedContent::Whole,
        Ownership::Theirs { is_shared: true, .. } => PlannedContent::Shared,
        Ownership::Gone => PlannedContent::Gone,
        Ownership::Others => return None,
    };
    Some(Planned::new(&seen.indexed, seen.pattern.clone(), how))
}

fn is_theirs(seen: &SurveyedPlace) -> bool {
    seen.ownership != Ownership::Others
}

/// These entries of the index, or all about a person who is erased everywhere.
fn index_of(
    subject: &Subject,
    entries: &BTreeSet<IndexEntryKey>,
    links: &[&Location],
) -> PurgeItems {
    let table = || SUBJECTS_TABLE.to_owned();
    let pk = pk_of_subject(&subject.id);
    let mut purge = PurgeItems::default();
    match subject.tenant {
        None => purge.partitions.push((table(), Value::S(pk))),
        // In another tenant the same id is somebody else.
        Some(_) => {
            let entry = |place: &IndexEntryKey| {
                let entry = place.entry(pk.clone());
                (table(), Item::new().with("pk", entry.pk).with("sk", entry.sk))
            };
            purge.items.extend(entries.iter().map(entry));
        }
    }
    let via = |link: &&Location| (table(), Value::S(pk_via(link)));
    purge.partitions.extend(links.iter().map(via));
    purge
}

impl PurgeCount {
    fn add(&mut self, report: &PurgeReport) {
        self.records += report.records;
        self.stripes += report.stripes;
        self.read_bytes += report.read_bytes;
        self.took_ms += u64::try_from(report.took.as_millis()).unwrap_or(u64::MAX);
        report.missing_checkpoints.iter().for_each(|path| self.miss(path));
    }

    fn miss(&mut self, path: &Path) {
        let path = path.display().to_string();
        if !self.missing_checkpoints.contains(&path) {
            self.missing_checkpoints.push(path);
        }
    }
}

impl Job {
    fn add(&mut self, report: &PurgeReport) {
        self.purge.add(report);
        self.last_seq = report.last_seq;
    }
}

/// Ensures that only one erasure runs at a time.
struct ErasureLock<'b>(&'b AtomicBool);

impl<'b> ErasureLock<'b> {
    fn take(flag: &'b AtomicBool) -> Result<ErasureLock<'b>> {
        match flag.swap(true, Ordering::AcqRel) {
            false => Ok(ErasureLock(flag)),
            true => Err(ErasureError::Running),
        }
    }
}

impl Drop for ErasureLock<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}
