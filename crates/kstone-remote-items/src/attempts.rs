//! Sending again what may be sent again.

use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::error::SdkError;
use kstone_core::env::Random;
use kstone_ports::{Error, Result};

use crate::failure::{Refusal, classify};

/// When a request may be sent a second time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeat {
    /// Always: it changes nothing.
    Read,
    /// Only when it was certainly not carried out.
    Write,
    /// Always: the store carries it out once, however often it gets the token.
    WithToken,
}

/// How often a request is sent, and how long the pauses between are.
#[derive(Debug, Clone)]
pub(crate) struct Attempts {
    /// How often at most; at least once.
    pub(crate) max: u32,
    /// The longest pause after the first attempt; it doubles with each.
    pub(crate) pause: Duration,
    /// The longest pause of all.
    pub(crate) pause_max: Duration,
    /// Decides how much of a pause is waited.
    pub(crate) random: Arc<dyn Random>,
}

impl Attempts {
    /// Sends until there is an answer that another attempt would not change.
    pub(crate) async fn run<T, E, F>(&self, repeat: Repeat, ask: impl Fn() -> F) -> Result<T>
    where
        E: Refusal,
        F: Future<Output = Result<T, SdkError<E>>>,
    {
        let mut unknown = None;
        let mut attempt = 1;
        loop {
            let error = match ask().await {
                Ok(answer) => return Ok(answer),
                Err(error) => classify(&error),
            };
            let again = match &error {
                Error::OutcomeUnknown(_) => repeat != Repeat::Write,
                other => other.may_be_retried(),
            };
            if matches!(error, Error::OutcomeUnknown(_)) {
                unknown = Some(error.clone());
            }
            if !again || attempt >= self.max {
                return Err(verdict(repeat, unknown, error));
            }
            self.wait(attempt).await;
            attempt += 1;
        }
    }

    /// Waits for some part of the pause after this attempt, the first being 1.
    pub(crate) async fn wait(&self, attempt: u32) {
        let doubled = self.pause.saturating_mul(1 << attempt.saturating_sub(1).min(20));
        let longest = doubled.min(self.pause_max);
        // At least half of it, so that attempts are really apart.
        let part = (self.random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        tokio::time::sleep(longest.mul_f64(0.5 + part / 2.0)).await;
    }
}

/// What to say after the last attempt, when one before may have been carried out.
fn verdict(repeat: Repeat, unknown: Option<Error>, last: Error) -> Error {
    match (repeat, unknown, last) {
        // Nothing hangs on whether a read was carried out.
        (Repeat::Read, _, Error::OutcomeUnknown(message)) => Error::Unavailable(message),
        // The store has decided about the token: an attempt before that was carried out would have
        // made this one succeed.
        (Repeat::WithToken, Some(_), canceled @ Error::TransactionCanceled { .. })
            if !canceled.may_be_retried() =>
        {
            canceled
        }
        (Repeat::WithToken, Some(unknown), _) => unknown,
        (_, _, last) => last,
    }
}

#[cfg(test)]
mod tests {
    use kstone_ports::{CancellationCode, CancellationReason};

    use super::*;

    fn canceled(code: CancellationCode) -> Error {
        let reason = CancellationReason { code, message: None, item: None };
        Error::TransactionCanceled { reasons: vec![reason] }
    }

    #[test]
    fn an_outcome_that_was_unknown_stays_so_unless_the_store_decided() {
        let unknown = Error::OutcomeUnknown("no answer".to_owned());
        let busy = Error::Throttled("too much".to_owned());
        let with_token =
            |last: &Error| verdict(Repeat::WithToken, Some(unknown.clone()), last.clone());
        assert_eq!(with_token(&busy), unknown);
        assert_eq!(with_token(&canceled(CancellationCode::TransactionConflict)), unknown);
        let failed = canceled(CancellationCode::ConditionalCheckFailed);
        assert_eq!(with_token(&failed), failed);
        assert_eq!(verdict(Repeat::WithToken, None, busy.clone()), busy);
        assert_eq!(verdict(Repeat::Write, Some(unknown.clone()), unknown.clone()), unknown);
    }

    #[test]
    fn a_read_that_got_no_answer_found_the_store_unavailable() {
        let unknown = Error::OutcomeUnknown("no answer".to_owned());
        let said = verdict(Repeat::Read, Some(unknown.clone()), unknown);
        assert_eq!(said, Error::Unavailable("no answer".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_double_up_to_the_longest_and_are_never_shorter_than_half() {
        let attempts = Attempts {
            max: 3,
            pause: Duration::from_millis(100),
            pause_max: Duration::from_millis(300),
            random: Arc::new(kstone_core::env::SeededRandom::new(7)),
        };
        for (attempt, longest) in [(1, 100), (2, 200), (3, 300), (40, 300)] {
            let before = tokio::time::Instant::now();
            attempts.wait(attempt).await;
            let took = before.elapsed().as_millis();
            assert!((longest / 2..=longest + 2).contains(&took), "{attempt}: {took} ms");
        }
    }
}
