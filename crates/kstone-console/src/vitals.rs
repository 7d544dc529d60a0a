//! What only the process knows of itself.

use std::fmt::Debug;

/// What the console shows of the process that serves it.
pub trait Vitals: Debug + Send + Sync {}

/// A process that tells nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoVitals;

impl Vitals for NoVitals {}
