//! Replies that are complete once what they rest on is durable.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use kstone_core::Durable;

use crate::error::Result;

/// The answer to an operation whose work is done, and which other readers see already. What may
/// still be missing is the disk: [`wait`](Reply::wait) for it on a thread, or `.await` it.
///
/// A handle with [`Durability::Sync`](crate::Durability::Sync) answers only when everything that
/// the answer rests on is on disk, reads and failed conditions included: nobody ever sees what a
/// power failure can take back.
#[must_use = "the answer is inside: wait() or .await"]
#[derive(Debug)]
pub struct Reply<T> {
    result: Option<Result<T>>,
    /// What to wait for; `None` when nothing is owed.
    durable: Option<Durable>,
}

impl<T> Reply<T> {
    pub(crate) fn new(result: Result<T>, durable: Option<Durable>) -> Self {
        Reply { result: Some(result), durable }
    }

    /// An answer that rests on nothing stored, such as a refusal of the request itself.
    pub(crate) fn ready(result: Result<T>) -> Self {
        Reply::new(result, None)
    }

    /// Blocks until the answer may be given, and gives it.
    pub fn wait(self) -> Result<T> {
        if let Some(durable) = self.durable {
            durable.wait()?;
        }
        self.result.unwrap_or_else(taken)
    }

    /// The same answer in another form.
    pub fn map<U>(self, with: impl FnOnce(T) -> U) -> Reply<U> {
        Reply { result: self.result.map(|result| result.map(with)), durable: self.durable }
    }

    /// The same answer in another form, failures included.
    pub(crate) fn map_result<U>(self, with: impl FnOnce(Result<T>) -> Result<U>) -> Reply<U> {
        Reply { result: self.result.map(with), durable: self.durable }
    }

    /// The answer before it may be given: for a part of a larger answer, which will rest on at
    /// least as much.
    pub(crate) fn early(self) -> Result<T> {
        self.result.unwrap_or_else(taken)
    }

    /// The answer to a write as the port to items gives it. If the disk fails after the work was
    /// done, nobody knows whether a crash would take it back.
    pub(crate) async fn written(self) -> kstone_ports::Result<T> {
        let Reply { result, durable } = self;
        let done = result.unwrap_or_else(taken);
        if let Some(durable) = durable {
            durable.await.map_err(|error| match &done {
                Ok(_) => kstone_ports::Error::OutcomeUnknown(error.to_string()),
                Err(_) => kstone_ports::Error::Unavailable(error.to_string()),
            })?;
        }
        Ok(done?)
    }

    /// The answer to a read as the port to items gives it.
    pub(crate) async fn read(self) -> kstone_ports::Result<T> {
        Ok(self.await?)
    }

    /// Whether the answer may be given at once.
    pub fn is_ready(&self) -> bool {
        self.durable.is_none()
    }
}

fn taken<T>() -> Result<T> {
    Err(crate::Error::validation("the reply was taken already"))
}

/// A [`Reply`] as a future. Works on any executor; the database's own thread wakes it.
#[derive(Debug)]
pub struct ReplyFuture<T>(Reply<T>);

impl<T> IntoFuture for Reply<T> {
    type Output = Result<T>;
    type IntoFuture = ReplyFuture<T>;

    fn into_future(self) -> ReplyFuture<T> {
        ReplyFuture(self)
    }
}

// Nothing inside is pinned by address.
impl<T> Unpin for ReplyFuture<T> {}

impl<T> Future for ReplyFuture<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Some(durable) = &mut self.0.durable {
            match Pin::new(durable).poll(cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Err(error)) => {
                    self.0.durable = None;
                    return Poll::Ready(Err(error.into()));
                }
                Poll::Ready(Ok(())) => self.0.durable = None,
            }
        }
        match self.0.result.take() {
            Some(result) => Poll::Ready(result),
            None => Poll::Pending,
        }
    }
}
