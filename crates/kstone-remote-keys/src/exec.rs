//! MULTI, some commands, EXEC: sent as one message, and what comes back.

use kstone_ports::keys::{ErrorReply, Reply};
use redis::{Pipeline, cmd};

use crate::form::{Form, reply_of};
use crate::node::packed;
use crate::reply::{Verdict, verdict_of_error};
use crate::store::Job;

/// What became of a transaction.
#[derive(Debug)]
pub(crate) enum Executed {
    /// It was executed; these are the replies.
    Replies(Vec<Reply>),
    /// A watched key has changed, so nothing was done.
    Changed,
    /// It was not executed, for this reason; never [`Verdict::Done`] with a value.
    Not(Verdict),
    /// The node did not accept the beginning, so that commands were executed one by one.
    Torn(ErrorReply),
}

/// The message. With `asking` it is for a node that the slot is still moving to.
pub(crate) fn message(jobs: &[Job<'_>], asking: bool) -> Pipeline {
    let mut message = Pipeline::with_capacity(jobs.len() + 3);
    if asking {
        message.add_command(cmd("ASKING"));
    }
    message.add_command(cmd("MULTI"));
    for job in jobs {
        message.add_command(packed(job.given));
    }
    message.add_command(cmd("EXEC"));
    message
}

/// What the replies to [`message`] mean. `asked` is who replied.
pub(crate) fn executed(
    replies: Vec<redis::Value>,
    jobs: &[Job<'_>],
    slot: Option<u16>,
    asking: bool,
    asked: &str,
) -> Executed {
    let mut replies = replies.into_iter().skip(usize::from(asking));
    let begun = reply_of(replies.next().unwrap_or_default(), Form::Plain);
    if let Err(error) = begun {
        let is_error = |it| matches!(it, redis::Value::ServerError(_));
        return match replies.all(is_error) {
            true => Executed::Not(verdict_of_error(error, slot, asked)),
            false => Executed::Torn(error),
        };
    }
    let last = replies.next_back().unwrap_or_default();
    match last {
        redis::Value::Array(values) => {
            let forms = jobs.iter().map(|job| Form::of(job.command.name, job.given));
            Executed::Replies(
                values.into_iter().zip(forms).map(|(it, form)| reply_of(it, form)).collect(),
            )
        }
        redis::Value::Nil => Executed::Changed,
        other => {
            let mut queued = replies.map(|it| reply_of(it, Form::Plain));
            let error = match reply_of(other, Form::Plain) {
                // Why it was aborted is the answer to the command that was not accepted.
                Err(error) if error.code() == "EXECABORT" => {
                    queued.find_map(Reply::err).unwrap_or(error)
                }
                Err(error) => error,
                Ok(other) => ErrorReply::new(format!("ERR EXEC answered {other:?}")),
            };
            Executed::Not(verdict_of_error(error, slot, asked))
        }
    }
}

#[cfg(test)]
mod tests {
    use redis::Value::{Array, Int, Nil, Okay};

    use super::*;

    fn error(message: &'static str) -> redis::Value {
        // The library has no other way to make one.
        redis::parse_redis_value(format!("-{message}\r\n").as_bytes()).unwrap()
    }

    #[test]
    fn the_answers_tell_what_was_done() {
        let given = [bytes::Bytes::from_static(b"INCR"), bytes::Bytes::from_static(b"a")];
        let jobs = [Job::of(&given).unwrap()];
        let slot = jobs[0].command.slot;
        let meaning = |replies| executed(replies, &jobs, slot, false, "h:1");
        let replies = meaning(vec![Okay, Okay, Array(vec![Int(2)])]);
        assert!(matches!(&replies, Executed::Replies(all) if all.len() == 1), "{replies:?}");
        assert!(matches!(meaning(vec![Okay, Okay, Nil]), Executed::Changed));
        let moved = error("MOVED 15495 h:2");
        let aborted = error("EXECABORT Transaction discarded");
        let answer = meaning(vec![Okay, moved.clone(), aborted.clone()]);
        assert!(matches!(answer, Executed::Not(Verdict::Moved(_))), "{answer:?}");
        let answer = meaning(vec![Okay, Okay, moved]);
        assert!(matches!(answer, Executed::Not(Verdict::Moved(_))), "{answer:?}");
        let answer = meaning(vec![Okay, error("ERR syntax error"), aborted]);
        assert!(matches!(answer, Executed::Not(Verdict::Done(Err(_)))), "{answer:?}");
        // Without a beginning: nothing was done, or one by one.
        let refused = error("NOAUTH Authentication required.");
        let answer = meaning(vec![refused.clone(), refused.clone(), refused.clone()]);
        assert!(matches!(answer, Executed::Not(_)), "{answer:?}");
        let answer = meaning(vec![refused.clone(), Int(1), refused]);
        assert!(matches!(answer, Executed::Torn(_)), "{answer:?}");
    }
}
