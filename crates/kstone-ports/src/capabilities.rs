//! What a store can promise. A system asks before it starts, and says by name what it needs and does
//! not find.

use std::fmt;

/// Something that one store can promise and another cannot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    /// Several items of one partition are written together or not at all.
    PartitionTransactions,
    /// Any items, of any tables, are written together or not at all.
    Transactions,
    /// A read of a global index sees every write that was acknowledged before.
    ConsistentIndexes,
    /// An item or key whose time to live is over is never returned. Otherwise items may be, for up to
    /// some days, and the reader leaves them out.
    ExactExpiry,
    /// Bytes of deleted data can be removed from every file of the store.
    Purge,
}

impl Capability {
    const ALL: [Capability; 5] = [
        Capability::PartitionTransactions,
        Capability::Transactions,
        Capability::ConsistentIndexes,
        Capability::ExactExpiry,
        Capability::Purge,
    ];

    /// Its name in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Capability::PartitionTransactions => "transactions within a partition",
            Capability::Transactions => "transactions",
            Capability::ConsistentIndexes => "consistent indexes",
            Capability::ExactExpiry => "exact expiry",
            Capability::Purge => "purging of deleted bytes",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capabilities(u8);

impl Capabilities {
    /// These.
    pub const fn of(capabilities: &[Capability]) -> Capabilities {
        let (mut bits, mut at) = (0, 0);
        while at < capabilities.len() {
            bits |= 1 << capabilities[at] as u8;
            at += 1;
        }
        Capabilities(bits)
    }

    /// Whether it has this one.
    pub fn has(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u8) != 0
    }

    /// All that it has.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL.into_iter().filter(move |it| self.has(*it))
    }

    /// Fails, and names what is missing, unless all that a system needs is here.
    ///
    /// # Errors
    /// [`Missing`], for whoever starts the system.
    pub fn require(
        self,
        system: &'static str,
        store: &str,
        needed: &[Capability],
    ) -> Result<(), Missing> {
        let missing: Vec<Capability> = needed.iter().copied().filter(|it| !self.has(*it)).collect();
        match missing.is_empty() {
            true => Ok(()),
            false => Err(Missing { system, store: store.to_owned(), missing }),
        }
    }
}

/// A store cannot do what a system needs.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{system} needs {}, which {store} does not have", names(missing))]
pub struct Missing {
    /// The system that cannot start.
    pub system: &'static str,
    /// The store.
    pub store: String,
    /// What it lacks.
    pub missing: Vec<Capability>,
}

fn names(missing: &[Capability]) -> String {
    missing.iter().map(|it| it.as_str()).collect::<Vec<_>>().join(" and ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_named() {
        let store = Capabilities::of(&[Capability::ExactExpiry, Capability::ConsistentIndexes]);
        let has = [Capability::ConsistentIndexes, Capability::ExactExpiry];
        assert_eq!(store.iter().collect::<Vec<_>>(), has);
        store.require("practice", "the store", &[Capability::ExactExpiry]).unwrap();
        let needed = [Capability::Purge, Capability::ExactExpiry, Capability::Transactions];
        let error = store.require("practice", "redis://localhost", &needed).unwrap_err();
        assert_eq!(
            error.to_string(),
            "practice needs purging of deleted bytes and transactions, which redis://localhost does not have"
        );
    }
}
