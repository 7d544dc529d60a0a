//! The payload of FUNCTION DUMP and FUNCTION RESTORE, in Redis's own form: a mark and a text for
//! each library, then a version and a checksum.

use crate::fault::{Fault, Result};
use crate::rdb;

/// The mark of a library.
const LIBRARY: u8 = 245;

const DAMAGED: Fault = Fault::fixed("ERR DUMP payload version or checksum are wrong");
const UNREADABLE: Fault = Fault::fixed("ERR failed loading the given functions payload");

/// The payload of some libraries.
pub(super) fn write<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    for text in texts {
        out.push(LIBRARY);
        rdb::write::text(&mut out, text);
    }
    rdb::seal(out, rdb::write::VERSION)
}

/// The texts of the libraries in a payload.
pub(super) fn read(payload: &[u8]) -> Result<Vec<Vec<u8>>> {
    let (payload, version) = rdb::unseal(payload).ok_or(DAMAGED)?;
    if version > rdb::VERSION_MAX {
        return Err(DAMAGED);
    }
    let mut reader = rdb::Reader::new(payload);
    let mut texts = Vec::new();
    while let Some(mark) = reader.byte() {
        if mark != LIBRARY {
            return Err(Fault::fixed("ERR given type is not a function"));
        }
        texts.push(reader.text().ok_or(UNREADABLE)?.into_owned());
    }
    Ok(texts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again_and_damage_is_noticed() {
        let texts = [b"short".to_vec(), vec![b'x'; 100], vec![b'y'; 20_000]];
        let payload = write(texts.iter().map(Vec::as_slice));
        assert_eq!(read(&payload).unwrap(), texts);
        for at in [0, 3, payload.len() - 9, payload.len() - 1] {
            let mut damaged = payload.clone();
            damaged[at] ^= 1;
            assert!(read(&damaged).is_err(), "{at}");
        }
        assert!(read(b"").is_err());
    }
}
