//! The disk as the test sees it: made, armed, broken, crashed and looked into. None of this is
//! counted, fails or stops; what the engine does goes through `vfs.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::dice::Dice;
use crate::inode::{Inode, SECTOR_LEN};
use crate::names::{InodeId, Names};
use crate::plan::{FaultPlan, Kind, OpOutcome, Plan, Trigger, power_loss};

/// What a crash takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashPolicy {
    /// The power is lost, and with it everything that was not synced.
    LoseAll,
    /// The process is killed, the machine runs on: nothing is lost. What was not synced still is
    /// not, and a later power loss may take it.
    KeepAll,
    /// The power is lost; each unsynced sector and name survives or not, as the seed says.
    Random(u64),
}

/// A simulated disk; it implements [`Vfs`](kstone_core::env::Vfs). Clones are the same disk.
#[derive(Clone)]
pub struct SimDisk {
    pub(crate) state: Arc<Mutex<State>>,
}

impl SimDisk {
    /// An empty disk without limit. The seed decides how far a write gets that fails or during
    /// which the power is lost.
    pub fn new(seed: u64) -> Self {
        Self::from_state(State::new(seed))
    }

    pub(crate) fn from_state(state: State) -> Self {
        SimDisk { state: Arc::new(Mutex::new(state)) }
    }

    /// The disk as it is found after a crash now: a disk of its own, running, without triggers or
    /// faults, its counters at 0, nothing open or locked. The capacity stays. This disk is left as
    /// it is, and may be crashed again in another way.
    pub fn crash(&self, policy: CrashPolicy) -> SimDisk {
        let state = self.state();
        let mut found = State::new(Dice::new(state.seed).seed());
        found.capacity_bytes = state.capacity_bytes;
        found.next_inode = state.next_inode;
        let map = match policy {
            CrashPolicy::KeepAll => {
                found.names = state.names.clone();
                found.inodes = state.inodes.clone();
                found.collect();
                return SimDisk::from_state(found);
            }
            CrashPolicy::LoseAll => {
                let map = state.names.durable().clone();
                for &id in map.values() {
                    let inode = state.inodes.get(&id).map(Inode::without_unsynced);
                    found.inodes.insert(id, inode.unwrap_or_default());
                }
                map
            }
            CrashPolicy::Random(seed) => {
                let mut dice = Dice::new(seed);
                let map = state.names.survivors(&mut dice);
                // In the order of the ids, each once, however many names it has.
                for id in map.values().copied().collect::<BTreeSet<_>>() {
                    let inode = state.inodes.get(&id).map(|inode| inode.survivor(&mut dice));
                    found.inodes.insert(id, inode.unwrap_or_default());
                }
                found.seed = dice.seed();
                found.dice = Dice::new(found.seed);
                map
            }
        };
        found.names = Names::settled(map, state.names.dirs().clone());
        SimDisk::from_state(found)
    }

    /// Lets the power go at that moment, counted from now. Replaces an earlier trigger.
    pub fn arm(&self, trigger: Trigger) {
        self.state().plan.arm(trigger);
    }

    /// Whether the power is lost: every operation fails, and the state is frozen.
    pub fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Lets the power go now.
    pub fn stop(&self) {
        self.state().stopped = true;
    }

    /// Makes operations fail as planned, counted from now. Several plans may be at work.
    pub fn fail(&self, plan: FaultPlan) {
        self.state().plan.fail(plan);
    }

    /// Drops all fault plans.
    pub fn heal(&self) {
        self.state().plan.heal();
    }

    /// Limits (or no longer limits) the bytes of all files together.
    pub fn set_capacity(&self, capacity_bytes: Option<u64>) {
        self.state().capacity_bytes = capacity_bytes;
    }

    /// The room taken by files that have a name or are open, in whole sectors.
    pub fn used_bytes(&self) -> u64 {
        self.state().used_bytes()
    }

    /// How many times anything was synced: a file, a batch of files, a folder.
    pub fn syncs(&self) -> u64 {
        self.state().plan.counters().syncs
    }

    /// How many operations changed the disk, or would have: see [`Trigger::AtOp`].
    pub fn ops(&self) -> u64 {
        self.state().plan.counters().ops
    }

    /// How many times a file's data was read.
    pub fn reads(&self) -> u64 {
        self.state().plan.counters().reads
    }

    /// The paths of all files, as callers see them now, in order.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.state().names.current().keys().cloned().collect()
    }

    /// The paths that would be there after [`CrashPolicy::LoseAll`], in order.
    pub fn durable_names(&self) -> Vec<PathBuf> {
        self.state().names.durable().keys().cloned().collect()
    }

    /// The content of a file, as callers see it now.
    pub fn read_file(&self, path: &Path) -> io::Result<Vec<u8>> {
        let state = self.state();
        let id = state.find(path)?;
        Ok(state.inodes.get(&id).map(Inode::bytes).unwrap_or_default())
    }

    /// Puts a file there, or another in its place, durably.
    pub fn write_file(&self, path: &Path, content: &[u8]) {
        let mut state = self.state();
        let id = state.new_inode(Inode::with_content(content));
        state.names.put_durably(path, id);
        state.collect();
    }

    /// Changes one byte of a file on the disk and in every cache. `InvalidInput` past the end.
    pub fn corrupt(&self, path: &Path, offset: u64, xor_byte: u8) -> io::Result<()> {
        let mut state = self.state();
        let id = state.find(path)?;
        let corrupted =
            state.inodes.get_mut(&id).is_some_and(|inode| inode.corrupt(offset, xor_byte));
        if corrupted { Ok(()) } else { Err(io::ErrorKind::InvalidInput.into()) }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // A test that panics while it holds the disk should be reported for that panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for SimDisk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        f.debug_struct("SimDisk")
            .field("files", &state.names.current().len())
            .field("counters", &state.plan.counters())
            .field("stopped", &state.stopped)
            .finish_non_exhaustive()
    }
}

/// Everything behind the disk's lock.
pub(crate) struct State {
    seed: u64,
    pub(crate) dice: Dice,
    plan: Plan,
    pub(crate) stopped: bool,
    capacity_bytes: Option<u64>,
    pub(crate) names: Names,
    pub(crate) inodes: BTreeMap<InodeId, Inode>,
    next_inode: InodeId,
    /// How many handles are open on a file.
    pub(crate) open: BTreeMap<InodeId, u64>,
    pub(crate) locked: BTreeSet<PathBuf>,
}

impl State {
    fn new(seed: u64) -> Self {
        State {
            seed,
            dice: Dice::new(seed),
            plan: Plan::default(),
            stopped: false,
            capacity_bytes: None,
            names: Names::default(),
            inodes: BTreeMap::new(),
            next_inode: 0,
            open: BTreeMap::new(),
            locked: BTreeSet::new(),
        }
    }

    pub(crate) fn alive(&self) -> io::Result<()> {
        if self.stopped { Err(power_loss()) } else { Ok(()) }
    }

    /// Counts the operation and says what becomes of it.
    pub(crate) fn decide(&mut self, kind: Kind) -> OpOutcome {
        self.plan.decide(kind)
    }

    /// Loses the power.
    pub(crate) fn lose_power<T>(&mut self) -> io::Result<T> {
        self.stopped = true;
        Err(power_loss())
    }

    /// Carries out an operation that happens as a whole or not at all.
    pub(crate) fn perform<T>(
        &mut self,
        kind: Kind,
        operation: impl FnOnce(&mut State) -> T,
    ) -> io::Result<T> {
        match self.decide(kind) {
            OpOutcome::Done => Ok(operation(self)),
            OpOutcome::Fails(error) => Err(error),
            OpOutcome::Stops => self.lose_power(),
            OpOutcome::DoneThenStops => {
                operation(self);
                self.lose_power()
            }
        }
    }

    pub(crate) fn find(&self, path: &Path) -> io::Result<InodeId> {
        self.names.current().get(path).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    pub(crate) fn is_free(&self, path: &Path) -> io::Result<()> {
        if self.names.current().contains_key(path) || self.names.has_dir(path) {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        Ok(())
    }

    pub(crate) fn new_inode(&mut self, inode: Inode) -> InodeId {
        let id = self.next_inode;
        self.next_inode += 1;
        self.inodes.insert(id, inode);
        id
    }

    fn used_bytes(&self) -> u64 {
        let named: BTreeSet<InodeId> = self.names.current().values().copied().collect();
        let live =
            self.inodes.iter().filter(|(id, _)| named.contains(id) || self.open.contains_key(id));
        live.map(|(_, inode)| inode.used_sectors() * SECTOR_LEN).sum()
    }

    /// How many more sectors may be taken.
    pub(crate) fn free_sectors(&self) -> u64 {
        let Some(capacity) = self.capacity_bytes else { return u64::MAX };
        capacity.saturating_sub(self.used_bytes()) / SECTOR_LEN
    }

    /// Forgets the files that neither a handle nor a crash can bring back.
    pub(crate) fn collect(&mut self) {
        let mentioned = self.names.mentioned();
        self.inodes.retain(|id, _| self.open.contains_key(id) || mentioned.contains(id));
    }
}
