//! The policy in force, cached by a session from one command to the next: asking the database for
//! it takes a lock and counts a reference, which costs as much as a good part of the policy's
//! answer.

use std::sync::Arc;

use kstone::policy::WritePolicy;

use crate::server::Server;
use crate::session::Client;
use crate::store::Txn;

/// The policy that was in force when the last command began, if there was one.
#[derive(Debug, Default)]
pub(super) struct CachedPolicy {
    /// Its number ([`kstone::Database::policy_number`]).
    number: u64,
    policy: Option<Arc<dyn WritePolicy>>,
}

impl CachedPolicy {
    /// Begins a client's transaction under the policy that is in force now. The caller has locked
    /// what it is about to write: a change of policy waits for that.
    pub(super) fn begin<'s>(&'s mut self, server: &'s Server, client: &Client) -> Txn<'s> {
        let number = server.database.policy_number();
        if number != self.number {
            // If it changes in between, the number says so next time.
            (self.number, self.policy) = (number, server.database.policy());
        }
        let mut txn = server.begin_under(self.policy.as_deref(), number, client.db);
        txn.set_origin(client.id);
        txn
    }
}
