//! Subject data: lists, exports and erases all data about one person.
//!
//! | module | what it does |
//! |---|---|
//! | `stores` | the two ports, and how their answers are read here |
//! | `holdings` | what there is of a person, in every pattern, tenant, database and table |
//! | `export` | the same with values, as JSON |
//! | `shared` | takes a person out of a value that others share |
//! | `removal` | deletes what is found, and nothing of anybody else |
//! | `job` | what an erasure has to remember so that a crash does not end it |
//! | `eraser` | the steps of an erasure, each of which can be done again |
//! | `receipt` | what remains of it, signed |
//! | `embedded` | all of it for a database of this process |
//!
//! Only the ports are used, so that it is the same wherever the data is. What only an embedded
//! database can do (removing bytes from files) a remote port refuses by name.

mod embedded;
mod eraser;
mod export;
mod holdings;
mod job;
mod receipt;
mod removal;
mod shared;
mod stores;

pub(crate) use shared::ids_as_written;

pub use eraser::{CheckpointStore, Eraser, EraserParts, Keep, OpenCheckpoint, Progress};
pub use holdings::PersonalDataLocation;
pub use job::{ErasureRecord, ErasureState};
pub use receipt::{
    PatternCount, PurgeCount, RECEIPT_VERSION, Receipt, ReceiptError, ReceiptKey, SignedReceipt,
};
pub use stores::{ErasureError, Stores};
