//! The plan of faults: when the disk stops, and which operations fail.

use std::io;

/// When the power is lost. Counted from 0, from the moment of `SimDisk::arm`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// At the start of the n-th sync, which does nothing.
    BeforeSync(u64),
    /// At the end of the n-th sync, which did everything and whose caller never hears of it.
    AfterSync(u64),
    /// At the n-th operation that changes the disk: a write, an allocation, a new length, a created,
    /// linked, renamed or removed name, a new folder, a sync. It does nothing, except that a write
    /// or an allocation may get as far as a sector within it.
    AtOp(u64),
}

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// No space left. Strikes the first operation from the n-th change on that needs space: a
    /// write past the end or where the file has no room, an allocation, a created or linked name.
    NoSpace,
    /// EIO from the n-th operation that changes the disk, syncs included.
    OpError,
    /// EIO from the n-th sync.
    SyncError,
    /// EIO from the n-th read of a file's data.
    ReadError,
}

/// One fault, once or for good. Counted from 0, from the moment of `SimDisk::fail`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultPlan {
    /// What goes wrong.
    pub fault: Fault,
    /// Which operation, among those that the fault counts.
    pub at: u64,
    /// Whether every later one fails too.
    pub sticky: bool,
}

impl FaultPlan {
    /// Fails one operation.
    pub fn once(fault: Fault, at: u64) -> Self {
        FaultPlan { fault, at, sticky: false }
    }

    /// Fails that operation and every later one.
    pub fn onwards(fault: Fault, at: u64) -> Self {
        FaultPlan { fault, at, sticky: true }
    }
}

/// What an operation is, to those who decide about its fate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    /// Changes the disk, in blocks or names it already has.
    Change,
    /// Changes the disk and needs more of it.
    Growth,
    Sync,
}

/// How many operations there were.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Counters {
    pub(crate) reads: u64,
    pub(crate) ops: u64,
    pub(crate) syncs: u64,
}

/// What happens to an operation.
#[derive(Debug)]
pub(crate) enum OpOutcome {
    Done,
    /// Fails with this error, perhaps halfway.
    Fails(io::Error),
    /// The power goes, perhaps halfway.
    Stops,
    /// The power goes right after.
    DoneThenStops,
}

/// Counts operations and decides about them.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    counters: Counters,
    trigger: Option<(Trigger, Counters)>,
    faults: Vec<(FaultPlan, Counters)>,
}

impl Plan {
    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    pub(crate) fn arm(&mut self, trigger: Trigger) {
        self.trigger = Some((trigger, self.counters));
    }

    pub(crate) fn fail(&mut self, plan: FaultPlan) {
        self.faults.push((plan, self.counters));
    }

    pub(crate) fn heal(&mut self) {
        self.faults.clear();
    }

    /// Counts the operation and says what becomes of it.
    pub(crate) fn decide(&mut self, kind: Kind) -> OpOutcome {
        let now = self.counters;
        match kind {
            Kind::Read => self.counters.reads += 1,
            Kind::Change | Kind::Growth => self.counters.ops += 1,
            Kind::Sync => {
                self.counters.ops += 1;
                self.counters.syncs += 1;
            }
        }
        let stops_after = match self.trigger {
            Some((Trigger::AtOp(n), since)) if kind != Kind::Read && now.ops - since.ops == n => {
                return OpOutcome::Stops;
            }
            Some((Trigger::BeforeSync(n), since))
                if kind == Kind::Sync && now.syncs - since.syncs == n =>
            {
                return OpOutcome::Stops;
            }
            Some((Trigger::AfterSync(n), since)) => {
                kind == Kind::Sync && now.syncs - since.syncs == n
            }
            _ => false,
        };
        if stops_after {
            return OpOutcome::DoneThenStops;
        }
        let struck = self.faults.iter().position(|(plan, since)| {
            let (concerned, index) = match plan.fault {
                Fault::NoSpace => (kind == Kind::Growth, now.ops - since.ops),
                Fault::OpError => (kind != Kind::Read, now.ops - since.ops),
                Fault::SyncError => (kind == Kind::Sync, now.syncs - since.syncs),
                Fault::ReadError => (kind == Kind::Read, now.reads - since.reads),
            };
            concerned && index >= plan.at
        });
        let Some(struck) = struck else { return OpOutcome::Done };
        let (plan, _) = self.faults[struck];
        if !plan.sticky {
            self.faults.remove(struck);
        }
        OpOutcome::Fails(match plan.fault {
            Fault::NoSpace => no_space(),
            Fault::OpError | Fault::SyncError | Fault::ReadError => {
                io::Error::from_raw_os_error(EIO)
            }
        })
    }
}

/// The same number on every system that has it.
const EIO: i32 = 5;

pub(crate) fn no_space() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

pub(crate) fn power_loss() -> io::Error {
    io::Error::other("simulated power loss")
}
