//! The model of what the clients work on: a group of three accounts.

use kstone_torture::linear::Object;

/// How many accounts a group has.
pub const ACCOUNTS: usize = 3;

/// An account: an item with these two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Account {
    /// Changes with every write, so that a write can be conditional on it.
    pub version: u64,
    /// What transfers move.
    pub balance: i64,
}

/// The accounts of a group that there are.
pub type Accounts = [Option<Account>; ACCOUNTS];

/// The result of a conditional write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteResult {
    /// It was carried out.
    Done,
    /// The condition failed, and this was there.
    Refused(Option<Account>),
    /// Nothing: the door was killed.
    Nothing,
}

/// A call and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Call {
    /// GetItem.
    Get(usize, Option<Account>),
    /// TransactGetItems of all accounts, or a Query of the index that has them all.
    ReadAll(Accounts),
    /// PutItem on condition that the version is this one, or that there is no item.
    Put {
        /// Which account.
        at: usize,
        /// The version that it must have.
        expected: Option<u64>,
        /// What is put.
        account: Account,
        /// The answer.
        told: WriteResult,
    },
    /// DeleteItem on condition that the version is this one.
    Delete {
        /// Which account.
        at: usize,
        /// The version that it must have.
        expected: u64,
        /// The answer.
        told: WriteResult,
    },
    /// UpdateItem that adds to both numbers, and the item after it if there was an answer.
    Add {
        /// Which account.
        at: usize,
        /// What is added to the balance.
        amount: i64,
        /// The answer: the item after it.
        after: Option<Account>,
    },
    /// TransactWriteItems: moves an amount if the first account has it and the second is there.
    Transfer {
        /// The account that pays.
        from: usize,
        /// The account that gets it.
        to: usize,
        /// How much.
        amount: i64,
        /// Whether it was carried out; `None` without an answer.
        done: Option<bool>,
    },
}

/// A group of accounts.
#[derive(Debug)]
pub struct Group;

impl Object for Group {
    type State = Accounts;
    type Call = Call;

    fn initial() -> Accounts {
        [None; ACCOUNTS]
    }

    fn step(state: &Accounts, call: &Call) -> Option<Accounts> {
        let mut after = *state;
        let is_right = match *call {
            Call::Get(at, found) => state[at] == found,
            Call::ReadAll(found) => *state == found,
            Call::Put { at, expected, account, told } => {
                let holds = state[at].map(|account| account.version) == expected;
                if holds {
                    after[at] = Some(account);
                }
                is_explained(told, holds, state[at])
            }
            Call::Delete { at, expected, told } => {
                let holds = state[at].is_some_and(|account| account.version == expected);
                if holds {
                    after[at] = None;
                }
                is_explained(told, holds, state[at])
            }
            Call::Add { at, amount, after: told } => {
                let before = state[at].unwrap_or(Account { version: 0, balance: 0 });
                after[at] = Some(changed(before, amount));
                told.is_none() || told == after[at]
            }
            Call::Transfer { from, to, amount, done } => {
                let holds = match (state[from], state[to]) {
                    (Some(payer), Some(payee)) if payer.balance >= amount => {
                        after[from] = Some(changed(payer, -amount));
                        after[to] = Some(changed(payee, amount));
                        true
                    }
                    _ => false,
                };
                done.is_none_or(|done| done == holds)
            }
        };
        is_right.then_some(after)
    }
}

/// What adding to an account makes of it.
fn changed(account: Account, amount: i64) -> Account {
    Account { version: account.version + 1, balance: account.balance + amount }
}

fn is_explained(told: WriteResult, holds: bool, was: Option<Account>) -> bool {
    match told {
        WriteResult::Done => holds,
        WriteResult::Refused(had) => !holds && had == was,
        WriteResult::Nothing => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Account = Account { version: 1, balance: 10 };
    const B: Account = Account { version: 4, balance: 0 };

    #[test]
    fn a_transfer_needs_both_accounts_and_the_money() {
        let transfer = |amount, done| Call::Transfer { from: 0, to: 1, amount, done };
        let after = Group::step(&[Some(A), Some(B), None], &transfer(10, Some(true)));
        let moved = [
            Some(Account { version: 2, balance: 0 }),
            Some(Account { version: 5, balance: 10 }),
            None,
        ];
        assert_eq!(after, Some(moved));
        assert_eq!(Group::step(&[Some(A), Some(B), None], &transfer(11, Some(true))), None);
        let state = [Some(A), None, None];
        assert_eq!(Group::step(&state, &transfer(1, Some(false))), Some(state));
    }

    #[test]
    fn a_condition_that_holds_is_not_refused() {
        let put = |told| Call::Put { at: 0, expected: Some(1), account: B, told };
        let state = [Some(A), None, None];
        assert_eq!(Group::step(&state, &put(WriteResult::Refused(Some(A)))), None);
        assert_eq!(Group::step(&state, &put(WriteResult::Done)), Some([Some(B), None, None]));
        let state = [Some(B), None, None];
        assert_eq!(Group::step(&state, &put(WriteResult::Refused(Some(A)))), None);
        assert_eq!(Group::step(&state, &put(WriteResult::Refused(Some(B)))), Some(state));
    }
}
