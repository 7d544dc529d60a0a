//! The error that a command replies with.

use std::borrow::Cow;

use kstone_ports::keys::ErrorReply;

/// An error reply: a code in capitals, a space, a message, as Redis's clients know them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(Cow<'static, str>);

/// What a command comes to.
pub type Result<T, E = Fault> = std::result::Result<T, E>;

impl Fault {
    /// Options that do not go together, or that is unknown.
    pub const SYNTAX: Fault = Fault::fixed("ERR syntax error");
    /// The key holds another type than the command works on.
    pub const WRONG_TYPE: Fault =
        Fault::fixed("WRONGTYPE Operation against a key holding the wrong kind of value");
    /// Not a 64-bit integer.
    pub const NOT_INTEGER: Fault = Fault::fixed("ERR value is not an integer or out of range");
    /// Not a number.
    pub const NOT_FLOAT: Fault = Fault::fixed("ERR value is not a valid float");
    /// The command needs the key to exist.
    pub const NO_SUCH_KEY: Fault = Fault::fixed("ERR no such key");
    /// An index beyond the ends.
    pub const INDEX_OUT_OF_RANGE: Fault = Fault::fixed("ERR index out of range");
    /// A number that must not be negative.
    pub const MUST_BE_POSITIVE: Fault = Fault::fixed("ERR value is out of range, must be positive");
    /// A time to wait that is no number.
    pub const BAD_TIMEOUT: Fault = Fault::fixed("ERR timeout is not a float or out of range");
    /// A time to wait below zero.
    pub const NEGATIVE_TIMEOUT: Fault = Fault::fixed("ERR timeout is negative");

    /// There is less memory than the server can work with.
    pub const OUT_OF_MEMORY: Fault =
        Fault::fixed("OOM command not allowed when used memory > 'maxmemory'.");
    /// Fewer replicas than `min-replicas-to-write` asks for.
    pub const NO_REPLICAS: Fault = Fault::fixed("NOREPLICAS Not enough good replicas to write.");
    /// One command, or all commands of a MULTI or of a script together, would write more than the
    /// engine takes in one batch ([`kstone_core::BATCH_LEN_MAX`]).
    pub const TOO_MUCH_AT_ONCE: Fault = Fault::fixed(
        "ERR a command, and all commands of a MULTI or of a script together, can write at most \
         64 MiB at once: this one was not carried out",
    );
    /// A key that the user may not use.
    pub const NO_KEY_PERMISSION: Fault = Fault::fixed(
        "NOPERM this user has no permissions to access one of the keys used as arguments",
    );
    /// A channel that the user may not use.
    pub const NO_CHANNEL_PERMISSION: Fault = Fault::fixed(
        "NOPERM this user has no permissions to access one of the channels used as arguments",
    );

    /// A message known when the program was written, code included.
    pub const fn fixed(message: &'static str) -> Fault {
        Fault(Cow::Borrowed(message))
    }

    /// A message with details, code included. What would end a line is taken out of it.
    pub fn new(message: impl Into<String>) -> Fault {
        let message: String = message.into();
        if message.contains(['\r', '\n']) {
            return Fault(Cow::Owned(message.replace(['\r', '\n'], " ")));
        }
        Fault(Cow::Owned(message))
    }

    /// Code and message.
    pub fn message(&self) -> &str {
        &self.0
    }

    /// The code: the first word.
    pub fn code(&self) -> &str {
        self.0.split(' ').next().unwrap_or_default()
    }
}

impl From<kstone_core::Error> for Fault {
    fn from(error: kstone_core::Error) -> Self {
        if matches!(error, kstone_core::Error::BatchTooLarge { .. }) {
            return Fault::TOO_MUCH_AT_ONCE;
        }
        Fault::new(format!("MISCONF the storage refused: {error}"))
    }
}

impl From<Fault> for ErrorReply {
    fn from(fault: Fault) -> Self {
        ErrorReply::new(fault.0)
    }
}

impl From<Fault> for kstone_ports::Error {
    fn from(fault: Fault) -> Self {
        kstone_ports::Error::Reply(fault.into())
    }
}

impl From<kstone::Error> for Fault {
    fn from(error: kstone::Error) -> Self {
        match error {
            kstone::Error::Engine(error) => error.into(),
            kstone::Error::Refused(message) => Fault::new(format!("ERR {message}")),
            other => Fault::new(format!("MISCONF the storage refused: {other}")),
        }
    }
}
