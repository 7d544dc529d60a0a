//! Users, their passwords, and the commands, keys and channels that they may use.

mod log;
mod rules;
mod selector;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use kstone_core::sync::Mutex;
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

use crate::command_spec::Command;
pub(crate) use log::{Entry, Log};
pub(crate) use rules::RuleError;
pub(crate) use selector::{Denied, Selector, categories_of, is_in};

/// The user of clients that have not authenticated.
pub(crate) const DEFAULT: &str = "default";

/// The categories, in the order in which they are listed.
pub(crate) const CATEGORIES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// One user. A change makes another one: who holds a user sees it unchanged.
#[derive(Debug, Clone)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) is_on: bool,
    /// Whether any password will do.
    pub(crate) no_password: bool,
    /// `skip-sanitize-payload`, which means nothing here, or `sanitize-payload`.
    pub(crate) sanitize: Option<bool>,
    /// SHA-256 of each password, in hexadecimal.
    pub(crate) passwords: Vec<String>,
    /// What it may do; the first is the user's own.
    pub(crate) selectors: Vec<Selector>,
}

impl Default for User {
    /// A nameless user who may do nothing.
    fn default() -> Self {
        User::new("", false)
    }
}

impl User {
    /// A user who may do nothing yet.
    fn new(name: &str, all_channels: bool) -> User {
        User {
            name: name.to_owned(),
            is_on: false,
            no_password: false,
            sanitize: None,
            passwords: Vec::new(),
            selectors: vec![Selector::new(all_channels)],
        }
    }

    /// The default user as it is at first: it may do everything.
    pub(crate) fn all_powerful() -> User {
        let mut user = User::new(DEFAULT, true);
        (user.is_on, user.no_password) = (true, true);
        if let Some(own) = user.selectors.first_mut() {
            own.allow_all();
        }
        user
    }

    /// Whether it may do everything, so that no rule has to be checked.
    pub(crate) fn is_all_powerful(&self) -> bool {
        self.selectors.first().is_some_and(Selector::is_all)
    }

    /// Whether it may execute this command with these arguments.
    pub(crate) fn check(&self, command: &'static Command, args: &[&[u8]]) -> Result<(), Denied> {
        let mut worst = Denied::Command;
        for selector in &self.selectors {
            match selector.check(command, args) {
                Ok(()) => return Ok(()),
                Err(denied) => worst = worst.max(denied),
            }
        }
        Err(worst)
    }

    /// Whether it may execute this command whatever keys that reads beside those it names.
    pub(crate) fn may_read_any_key(&self, command: &'static Command, args: &[&[u8]]) -> bool {
        let allows = |one: &Selector| one.reads_every_key() && one.check(command, args).is_ok();
        self.selectors.iter().any(allows)
    }

    /// Whether this is one of its passwords.
    fn knows(&self, password: &[u8]) -> bool {
        let given = hash(password);
        // Every password is compared with, and all of it, so that time tells nothing.
        let is_given = |have: &String| have.as_bytes().ct_eq(given.as_bytes());
        self.passwords.iter().fold(Choice::from(0), |known, have| known | is_given(have)).into()
    }

    /// As ACL LIST shows it.
    pub(crate) fn show(&self) -> String {
        let mut words: Vec<String> = self.flags().iter().map(|flag| (*flag).to_owned()).collect();
        words.extend(self.passwords.iter().map(|hash| format!("#{hash}")));
        for (place, selector) in self.selectors.iter().enumerate() {
            let shown = selector.show();
            words.push(if place == 0 { shown } else { format!("({shown})") });
        }
        format!("user {} {}", self.name, words.join(" "))
    }

    /// `on`, `nopass` and their kind.
    pub(crate) fn flags(&self) -> Vec<&'static str> {
        let mut flags = vec![if self.is_on { "on" } else { "off" }];
        if self.no_password {
            flags.push("nopass");
        }
        match self.sanitize {
            Some(true) => flags.push("sanitize-payload"),
            Some(false) => flags.push("skip-sanitize-payload"),
            None => {}
        }
        flags
    }
}

/// All users.
#[derive(Debug)]
pub(crate) struct Acl {
    users: Mutex<BTreeMap<String, Arc<User>>>,
    /// Goes up with every change, so that sessions know when to look again.
    version: AtomicU64,
    pub(crate) log: Log,
}

impl Default for Acl {
    fn default() -> Self {
        let users = BTreeMap::from([(DEFAULT.to_owned(), Arc::new(User::all_powerful()))]);
        Acl { users: Mutex::new(users), version: AtomicU64::new(1), log: Log::default() }
    }
}

impl Acl {
    /// Goes up with every change.
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn user(&self, name: &str) -> Option<Arc<User>> {
        self.users.lock().get(name).cloned()
    }

    pub(crate) fn users(&self) -> Vec<Arc<User>> {
        self.users.lock().values().cloned().collect()
    }

    /// Changes or makes a user: all of the rules or none.
    pub(crate) fn set(
        &self,
        name: &str,
        rules: &[&[u8]],
        all_channels: bool,
    ) -> Result<(), RuleError> {
        let mut users = self.users.lock();
        let mut user = match users.get(name) {
            Some(user) => User::clone(user),
            None => User::new(name, all_channels),
        };
        for rule in rules::joined(rules)? {
            user.apply(&rule, all_channels)?;
        }
        users.insert(name.to_owned(), Arc::new(user));
        self.version.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Removes a user; false if there was none.
    pub(crate) fn remove(&self, name: &str) -> bool {
        let was_there = self.users.lock().remove(name).is_some();
        self.version.fetch_add(1, Ordering::Release);
        was_there
    }

    /// The user, if name and password are right.
    pub(crate) fn authenticate(&self, name: &str, password: &[u8]) -> Option<Arc<User>> {
        let user = self.user(name)?;
        (user.is_on && (user.no_password || user.knows(password))).then_some(user)
    }

    /// `requirepass`: the default user's only password, or none.
    pub(crate) fn require_password(&self, password: &str) {
        let mut users = self.users.lock();
        if let Some(user) = users.get_mut(DEFAULT) {
            let user = Arc::make_mut(user);
            user.no_password = password.is_empty();
            user.passwords.clear();
            if !password.is_empty() {
                user.passwords.push(hash(password.as_bytes()));
            }
        }
        self.version.fetch_add(1, Ordering::Release);
    }
}

/// SHA-256 in hexadecimal.
pub(crate) fn hash(password: &[u8]) -> String {
    hex::encode(Sha256::digest(password))
}
