//! The policy in force, as a session keeps it from one command to the next: to ask the database for
//! it takes a lock and counts its holders, which costs as much as a good part of the policy's answer.

use std::sync::Arc;

use kstone::Database;
use kstone::policy::WritePolicy;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct KeptPolicy {
    /// Its number ([`Database::policy_number`]).
    number: u64,
    policy: Option<Arc<dyn WritePolicy>>,
}

impl KeptPolicy {
    /// Sees to it that this is the policy which is in force now. The caller has locked what it is
    /// about to write: who puts another in force waits for that.
    pub(super) fn renew(&mut self, database: &Database) {
        let number = database.policy_number();
        if number != self.number {
            // If it changes in between, the number says so next time.
            (self.number, self.policy) = (number, database.policy());
        }
    }

    /// The policy that was in force at the last [`renew`](KeptPolicy::renew), and its number.
    pub(super) fn get(&self) -> (Option<&dyn WritePolicy>, u64) {
        (self.policy.as_deref(), self.number)
    }
}
