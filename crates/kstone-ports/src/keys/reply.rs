//! Replies of commands.

/// One of several replies: an error of one command leaves the others as they are.
pub type Reply = std::result::Result<Value, ErrorReply>;

/// The error that a command replied with: a code in capitals, a space, a message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ErrorReply(String);

impl ErrorReply {
    /// An error reply with its code.
    pub fn new(message: impl Into<String>) -> ErrorReply {
        ErrorReply(message.into())
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

/// A reply as a tree.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// A status such as `OK`.
    Simple(String),
    /// An error: a code in capitals, a space, a message.
    Error(Vec<u8>),
    /// A whole number.
    Integer(i64),
    /// Any bytes.
    Bulk(Vec<u8>),
    /// Nothing, where a value could be.
    Null,
    /// Nothing, where a list could be.
    NullArray,
    /// A list.
    Array(Vec<Value>),
    /// Pairs.
    Map(Vec<(Value, Value)>),
    /// A set.
    Set(Vec<Value>),
    /// A message that is not a reply.
    Push(Vec<Value>),
    /// A number with a fraction.
    Double(f64),
    /// True or false.
    Boolean(bool),
    /// A number too large for 64 bits.
    BigNumber(String),
    /// A text with a hint at its format.
    Verbatim(String, Vec<u8>),
}

impl Value {
    /// A byte string.
    pub fn bulk(bytes: impl AsRef<[u8]>) -> Value {
        Value::Bulk(bytes.as_ref().to_vec())
    }
}
