//! Errors as they are sent: an HTTP status and a JSON body that names the type. Also the conversion
//! of the database's errors, whose messages are DynamoDB's already.

use std::borrow::Cow;
use std::fmt;

use kstone::{CancellationReason, Error, ItemBytes, RequestError};

use crate::http::Status;
use crate::wire::JsonWriter;

/// The prefix of error types that DynamoDB itself defines.
const DYNAMODB_PREFIX: &str = "com.amazonaws.dynamodb.v20120810#";
/// The prefix of error types of the framework that every AWS service runs on.
const SERVICE_PREFIX: &str = "com.amazon.coral.service#";
const VALIDATION_PREFIX: &str = "com.amazon.coral.validate#";

/// An error, ready to be sent.
#[derive(Debug, Clone)]
pub(crate) struct Fault {
    status: Status,
    prefix: &'static str,
    kind: &'static str,
    message: Option<Message>,
    detail: Detail,
}

/// Further members of the body.
#[derive(Debug, Clone)]
enum Detail {
    None,
    /// The item that did not meet the condition.
    Item(ItemBytes),
    /// Why each action of a cancelled transaction failed.
    Reasons(Vec<CancellationReason>),
}

#[derive(Debug, Clone)]
struct Message {
    /// `message` or `Message`: DynamoDB writes one or the other, depending on the error.
    name: &'static str,
    text: Cow<'static, str>,
}

impl Fault {
    fn new(
        prefix: &'static str,
        kind: &'static str,
        message: impl Into<Cow<'static, str>>,
    ) -> Self {
        Fault {
            status: Status::BadRequest,
            prefix,
            kind,
            message: Some(Message { name: "message", text: message.into() }),
            detail: Detail::None,
        }
    }

    /// A parameter of the request is invalid.
    pub(crate) fn validation(message: impl Into<Cow<'static, str>>) -> Self {
        Fault::new(VALIDATION_PREFIX, "ValidationException", message)
    }

    /// A value of the body has the wrong JSON type.
    pub(crate) fn serialization(message: impl Into<Cow<'static, str>>) -> Self {
        Fault::new(SERVICE_PREFIX, "SerializationException", message).with_capital_message()
    }

    /// The body is not JSON, or not an object.
    pub(crate) fn malformed() -> Self {
        Fault { message: None, ..Fault::serialization("") }
    }

    /// There is no such operation.
    pub(crate) fn unknown_operation() -> Self {
        Fault { message: None, ..Fault::service("UnknownOperationException", "") }
    }

    /// An error of the framework: authentication and such.
    pub(crate) fn service(kind: &'static str, message: impl Into<String>) -> Self {
        Fault::new(SERVICE_PREFIX, kind, message.into())
    }

    /// A failure that is not the client's fault; it may try again.
    pub(crate) fn internal(message: impl Into<Cow<'static, str>>) -> Self {
        Fault { status: Status::InternalError, ..Fault::dynamodb("InternalServerError", message) }
    }

    /// The server is overloaded; the client may try again.
    pub(crate) fn unavailable(message: impl Into<Cow<'static, str>>) -> Self {
        let fault = Fault::new(SERVICE_PREFIX, "ServiceUnavailableException", message);
        Fault { status: Status::ServiceUnavailable, ..fault }
    }

    /// No permission. AWS reports this for ARNs of tables that do not exist.
    pub(crate) fn access_denied(message: impl Into<String>) -> Self {
        Fault::service("AccessDeniedException", message).with_capital_message()
    }

    /// An error that DynamoDB defines.
    fn dynamodb(kind: &'static str, message: impl Into<Cow<'static, str>>) -> Self {
        Fault::new(DYNAMODB_PREFIX, kind, message)
    }

    fn with_capital_message(mut self) -> Self {
        if let Some(message) = &mut self.message {
            message.name = "Message";
        }
        self
    }

    /// The HTTP status.
    pub(crate) fn status(&self) -> Status {
        self.status
    }

    /// The message, empty if there is none.
    pub(crate) fn message(&self) -> &str {
        self.message.as_ref().map_or("", |message| &message.text)
    }

    /// The body to send.
    pub(crate) fn body(&self) -> Vec<u8> {
        let mut out = JsonWriter::with_capacity(128 + self.message().len());
        out.object(|out| {
            out.text_member("__type", &format!("{}{}", self.prefix, self.kind));
            match &self.detail {
                Detail::None => {}
                Detail::Item(item) => out.name("Item").item(item),
                Detail::Reasons(reasons) => {
                    out.name("CancellationReasons").list(reasons, write_reason);
                }
            }
            if let Some(message) = &self.message {
                out.text_member(message.name, &message.text);
            }
        });
        out.finish().unwrap_or_else(|damaged| damaged.body())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.kind, self.message())
    }
}

impl From<RequestError> for Fault {
    fn from(error: RequestError) -> Self {
        Error::from(error).into()
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let message = error.to_string();
        match error {
            Error::Validation(_) | Error::Refused(_) => Fault::validation(message),
            Error::ConditionFailed { item } => {
                let detail = item.map_or(Detail::None, Detail::Item);
                Fault { detail, ..Fault::dynamodb("ConditionalCheckFailedException", message) }
            }
            Error::NotFound(_) => Fault::dynamodb("ResourceNotFoundException", message),
            Error::InUse(_) => Fault::dynamodb("ResourceInUseException", message),
            Error::LimitExceeded(_) => Fault::dynamodb("LimitExceededException", message),
            Error::TransactionCanceled { reasons } => {
                let fault =
                    Fault::dynamodb("TransactionCanceledException", message).with_capital_message();
                Fault { detail: Detail::Reasons(reasons), ..fault }
            }
            Error::IdempotentParameterMismatch(_) => {
                Fault::dynamodb("IdempotentParameterMismatchException", message)
                    .with_capital_message()
            }
            Error::DuplicateItem => Fault::dynamodb("DuplicateItemException", message),
            Error::ExpiredIterator(_) => Fault::dynamodb("ExpiredIteratorException", message),
            Error::TrimmedData(_) => Fault::dynamodb("TrimmedDataAccessException", message),
            // The engine's own message, for the operator of the server.
            _ => Fault::internal(message),
        }
    }
}

fn write_reason(out: &mut JsonWriter, reason: &CancellationReason) {
    out.object(|out| {
        out.text_member("Code", reason.code.as_str());
        if let Some(item) = &reason.item {
            out.name("Item").item(item);
        }
        if let Some(message) = &reason.message {
            out.text_member("Message", message);
        }
    });
}

#[cfg(test)]
mod tests {
    use kstone::{CancellationCode, Item};

    use super::*;

    /// What a client gets to see of an error.
    fn shown(error: Error) -> (Status, String) {
        let fault = Fault::from(error);
        (fault.status(), String::from_utf8(fault.body()).unwrap())
    }

    #[test]
    fn an_error_of_the_database_is_named_as_dynamodb_names_it() {
        let (status, body) = shown(Error::validation("no \"good\""));
        assert_eq!(status, Status::BadRequest);
        assert_eq!(
            body,
            r#"{"__type":"com.amazon.coral.validate#ValidationException","message":"no \"good\""}"#
        );
        let (status, body) = shown(Error::Refused("pattern profile: too long".to_owned()));
        assert_eq!(status, Status::BadRequest);
        assert_eq!(
            body,
            r#"{"__type":"com.amazon.coral.validate#ValidationException","message":"pattern profile: too long"}"#
        );
        let (status, body) = shown(Error::NotFound("Requested resource not found".to_owned()));
        assert_eq!(status, Status::BadRequest);
        assert!(body.contains("com.amazonaws.dynamodb.v20120810#ResourceNotFoundException"));
    }

    #[test]
    fn a_failed_condition_carries_the_item_when_there_is_one() {
        let item = ItemBytes::encode(&Item::new().with("pk", "a"));
        assert_eq!(
            shown(Error::ConditionFailed { item: Some(item) }).1,
            r#"{"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException","Item":{"pk":{"S":"a"}},"message":"The conditional request failed"}"#
        );
        assert!(!shown(Error::ConditionFailed { item: None }).1.contains("Item"));
    }

    #[test]
    fn a_cancelled_transaction_lists_a_reason_for_each_action() {
        let failed = CancellationReason {
            code: CancellationCode::ConditionalCheckFailed,
            message: Some("The conditional request failed".to_owned()),
            item: None,
        };
        let reasons = vec![CancellationReason::none(), failed];
        assert_eq!(
            shown(Error::TransactionCanceled { reasons }).1,
            r#"{"__type":"com.amazonaws.dynamodb.v20120810#TransactionCanceledException","CancellationReasons":[{"Code":"None"},{"Code":"ConditionalCheckFailed","Message":"The conditional request failed"}],"Message":"Transaction cancelled, please refer cancellation reasons for specific reasons [None, ConditionalCheckFailed]"}"#
        );
    }

    #[test]
    fn a_body_that_is_not_json_gets_a_type_and_nothing_else() {
        let body = Fault::malformed().body();
        assert_eq!(body, br#"{"__type":"com.amazon.coral.service#SerializationException"}"#);
        // The checksum that AWS sends with this body.
        assert_eq!(crc32fast::hash(&body), 3_948_637_019);
        assert_eq!(crc32fast::hash(&Fault::unknown_operation().body()), 1_368_724_161);
    }
}
