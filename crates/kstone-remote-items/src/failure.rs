//! What an error of the SDK says about the request: was it carried out, and what can the caller do.

use std::error::Error as StdError;

use aws_credential_types::provider::error::CredentialsError;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::error::{
    ConditionalCheckFailedException, TransactionCanceledException,
};
use kstone_ports::{CancellationCode, CancellationReason, Error};

use crate::value::item_bytes;

/// The error type of one operation of the SDK.
pub(crate) trait Refusal: ProvideErrorMetadata + StdError + Send + Sync + 'static {}

impl<E: ProvideErrorMetadata + StdError + Send + Sync + 'static> Refusal for E {}

/// What to tell the caller. [`Error::OutcomeUnknown`] whenever the request may have been carried out.
pub(crate) fn classify<E: Refusal>(error: &SdkError<E>) -> Error {
    match error {
        SdkError::ServiceError(answer) => refusal(answer.err(), answer.raw().status().as_u16()),
        SdkError::ConstructionFailure(_) => Error::Invalid(explain(error)),
        SdkError::DispatchFailure(failure) if failure.is_user() => Error::Invalid(explain(error)),
        SdkError::DispatchFailure(failure) => {
            let never_sent = failure.as_connector_error().is_some_and(|it| never_sent(it));
            match never_sent {
                true => Error::Unavailable(explain(error)),
                false => Error::OutcomeUnknown(explain(error)),
            }
        }
        _ => Error::OutcomeUnknown(explain(error)),
    }
}

/// Whether there was no connection to send it on, or nothing to sign it with.
fn never_sent(error: &(dyn StdError + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        let connecting = error.downcast_ref::<hyper_util::client::legacy::Error>();
        if connecting.is_some_and(|it| it.is_connect()) || error.is::<CredentialsError>() {
            return true;
        }
        cause = error.source();
    }
    false
}

fn explain(error: &(dyn StdError + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let said = error.to_string();
        if !text.ends_with(&said) {
            text = format!("{text}: {said}");
        }
        cause = error.source();
    }
    text
}

/// An answer of the store that is an error.
fn refusal<E: Refusal>(error: &E, status: u16) -> Error {
    let message = error.message().map_or_else(|| explain(error), str::to_owned);
    match error.code().unwrap_or_default() {
        "ConditionalCheckFailedException" => condition_failed(error),
        "TransactionCanceledException" => canceled(error),
        "TransactionConflictException"
        | "ReplicatedWriteConflictException"
        | "ResourceInUseException" => Error::Conflict(message),
        // The same token is at work: whether it succeeds is not known yet.
        "TransactionInProgressException" => Error::OutcomeUnknown(message),
        "IdempotentParameterMismatchException" => Error::TokenReused(message),
        "ProvisionedThroughputExceededException"
        | "ThrottlingException"
        | "Throttling"
        | "RequestLimitExceeded"
        | "LimitExceededException" => Error::Throttled(message),
        "ResourceNotFoundException" | "TableNotFoundException" => Error::NotFound(message),
        "ItemCollectionSizeLimitExceededException" => Error::TooLarge(message),
        "UnknownOperationException" => Error::Unsupported(message),
        "AccessDeniedException"
        | "UnrecognizedClientException"
        | "ExpiredTokenException"
        | "InvalidSignatureException"
        | "IncompleteSignatureException"
        | "MissingAuthenticationTokenException" => Error::Refused(message),
        "ValidationException" if says_too_large(&message) => Error::TooLarge(message),
        _ if status >= 500 => Error::OutcomeUnknown(message),
        _ if status == 413 => Error::TooLarge(message),
        _ if status == 429 => Error::Throttled(message),
        _ => Error::Invalid(message),
    }
}

/// DynamoDB has no error of its own for what is too large.
fn says_too_large(message: &str) -> bool {
    ["tem size has exceeded", "tem size to update has exceeded", "payload size cannot exceed"]
        .iter()
        .any(|words| message.contains(words))
}

/// The modelled error inside the operation's own, where its details are.
fn details<'e, D: StdError + 'static>(error: &'e (dyn StdError + 'static)) -> Option<&'e D> {
    error.source().and_then(|it| it.downcast_ref::<D>())
}

fn condition_failed(error: &(dyn StdError + 'static)) -> Error {
    let item = details::<ConditionalCheckFailedException>(error).and_then(|it| it.item.as_ref());
    match item.map(item_bytes).transpose() {
        Ok(item) => Error::ConditionFailed { item },
        Err(unreadable) => unreadable,
    }
}

fn canceled(error: &(dyn StdError + 'static)) -> Error {
    let reasons = details::<TransactionCanceledException>(error)
        .and_then(|it| it.cancellation_reasons.as_deref())
        .unwrap_or_default();
    let read = reasons.iter().map(|reason| {
        Ok(CancellationReason {
            code: code(reason.code().unwrap_or("None")),
            message: reason.message.clone(),
            item: reason.item.as_ref().map(item_bytes).transpose()?,
        })
    });
    match read.collect() {
        Ok(reasons) => Error::TransactionCanceled { reasons },
        Err(unreadable) => unreadable,
    }
}

fn code(name: &str) -> CancellationCode {
    match name {
        "None" => CancellationCode::None,
        "ConditionalCheckFailed" => CancellationCode::ConditionalCheckFailed,
        "TransactionConflict" => CancellationCode::TransactionConflict,
        "ThrottlingError" | "ProvisionedThroughputExceeded" => CancellationCode::Throttled,
        "DuplicateItem" => CancellationCode::DuplicateItem,
        // ItemCollectionSizeLimitExceeded and AccessDenied among them: sending it again cannot help.
        _ => CancellationCode::ValidationError,
    }
}
