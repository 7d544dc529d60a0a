//! Tokens that make a transaction idempotent: kept for ten minutes, in the same commit as the
//! transaction itself, so that a repetition after a crash finds it too.

use kstone_core::Key;

use crate::error::{Error, Result};
use crate::ops::fingerprint::VERSION;
use crate::staging::Staged;
use crate::table::catalog::SYSTEM;
use crate::value::Corrupt;

/// How long a token is remembered.
const KEPT_MS: u64 = 10 * 60 * 1000;

/// Whether a transaction with this token was done before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeated {
    Yes,
    No,
}

/// Where a token is kept.
pub(crate) fn key(token: &str) -> Key {
    Key::new(format!("token#{token}").into_bytes())
}

/// Remembers the token, or finds that it was used. Its stripe must be locked.
pub(crate) fn claim(
    staged: &mut Staged<'_>,
    token: &str,
    fingerprint: [u8; 16],
) -> Result<Repeated> {
    let key = key(token);
    if let Some(record) = staged.locked.get(SYSTEM, &key)? {
        staged.seen = staged.seen.max(record.version);
        let (&found, kept) = record.value.split_first().ok_or(Corrupt)?;
        if found != VERSION {
            let what = "token of a transaction";
            return Err(Error::UnknownVersion { what, found, known: VERSION });
        }
        if kept != fingerprint {
            return Err(Error::IdempotentParameterMismatch(
                "The client token was used for a different transaction in the last ten minutes"
                    .to_owned(),
            ));
        }
        return Ok(Repeated::Yes);
    }
    let until_ms = staged.locked.now_ms() + KEPT_MS;
    let value = [&[VERSION], &fingerprint[..]].concat();
    staged.batch.put_expiring(SYSTEM, &key, &value, until_ms)?;
    Ok(Repeated::No)
}
