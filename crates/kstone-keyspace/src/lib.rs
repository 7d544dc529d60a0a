//! Declared keyspaces: the catalogue of all keys of an application, and its enforcement.
//!
//! A [`Catalogue`] is a TOML file in which an application declares its keys: for each pattern its
//! type, its TTL, its fields, where its partition ends, its tenant, whose data it is. A [`Keyspace`]
//! is all catalogues together. It finds the pattern of a key without allocating
//! ([`Keyspace::find`]), says what a write must keep to ([`Pattern::admit`]), whose data a key holds
//! ([`Match::subjects`]) and where it is stored ([`Keyspace::split`]).
//!
//! | module | what it is |
//! |---|---|
//! | `catalogue` | reads the TOML; every problem points at its line and column |
//! | `pattern`, `segment`, `placeholder`, `field`, `ttl` | what a catalogue says, as types |
//! | `keyspace`, `matcher`, `words`, `overlap` | from a key to its pattern; which of two wins |
//! | `shipped` | the five catalogues that ship with this crate |
//! | `problem` | errors of a catalogue, with line and column |
//! | `rules`, `value` | what a write must keep to |
//! | `subject` | learners under one name, however a key writes it |
//! | `check`, `explain`, `docs` | for people |
//! | `text`, `date` | which bytes a key may have; dates and times in keys |
//! | [`index`] | the form of the index of persons |
//! | `policy` | a keyspace in force on a database: [`Governor`] |
//! | [`erasure`] | everything about one person: listed, exported, erased with a receipt |
//! | `tenant` | the two ports, confined to the keys of one tenant |
//! | [`typed`], [`keys`] | keys as types, so that a wrong key does not compile |
//!
//! Nothing but `policy`, `erasure` and `tenant` knows a store or a clock: the database asks, and acts
//! on the answers.
#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used))]

extern crate self as kstone_keyspace;

mod catalogue;
mod check;
mod date;
mod docs;
pub mod erasure;
mod explain;
mod field;
pub mod index;
pub mod keys;
mod keyspace;
mod matcher;
mod overlap;
mod pattern;
mod placeholder;
mod policy;
mod problem;
mod rules;
mod segment;
mod shipped;
mod subject;
mod tenant;
mod text;
mod ttl;
pub mod typed;
mod value;
mod words;

pub use catalogue::{Catalogue, Reserved};
pub use check::{Report, check};
pub use date::{Date, Millis, TimeError};
pub use docs::Usage;
pub use explain::{Explanation, Finding};
pub use field::{Choice, Field, FieldType, Range};
pub use keyspace::{ItemKeyParts, KeyStore, Keyspace, Match, Tenancy, WHOLE_KEY};
pub use pattern::{
    BuildError, Example, Limits, OverflowAction, Pattern, Store, SubjectSource, ValueType,
};
pub use placeholder::{Kind, PartError, Placeholder, Slot};
pub use policy::{
    Expiring, Governor, GovernorOptions, Metrics, PatternMetrics, Recount, SweepReport,
    UnknownKeys, UnknownSeen,
};
pub use problem::{Position, Problem, Problems, Severity};
pub use rules::{Admission, Refusal, Rule, StoredType, Write};
pub use segment::{SEGMENTS_MAX, Segment};
pub use shipped::{SHIPPED, shipped};
pub use subject::{Subject, Subjects};
pub use tenant::{Tenant, TenantItems, TenantKeys};
pub use ttl::{Effect, Expiry, RequestedTtl, Span, Ttl};
pub use value::FieldValue;
