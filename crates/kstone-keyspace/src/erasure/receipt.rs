//! The signed receipt of an erasure: what was removed and when. It does not name the person.
//!
//! What is signed is the receipt in one form that every JSON library can make again: names in byte
//! order, no spaces, whole numbers only. So a receipt can be checked without this program; see
//! `docs/erasure.md`.

use std::collections::BTreeMap;
use std::fmt;

use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};
use hex::FromHex as _;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use crate::subject::Subject;

/// The form of receipts that this version writes.
pub const RECEIPT_VERSION: u32 = 1;

/// The receipt of an erasure.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// The form of the receipt.
    pub version: u32,
    /// The id of the database, in hex.
    pub database: String,
    /// The id of the erasure.
    pub erasure: String,
    /// A random salt, in hex, of this receipt alone.
    pub salt: String,
    /// SHA-256 of salt, tenant and id: who knows the id can tell that it was this person.
    pub subject_sha256: String,
    /// The tenant, if the erasure was in one tenant alone.
    pub tenant: Option<String>,
    /// Milliseconds since 1970 when it was asked for.
    pub began_ms: u64,
    /// When no file held any of it any more.
    pub finished_ms: u64,
    /// What was there, by pattern.
    pub patterns: BTreeMap<String, PatternCount>,
    /// The database's sequence number before the first delete.
    pub first_seq: u64,
    /// The database's sequence number after the last one.
    pub last_seq: u64,
    /// Which files were rewritten.
    pub purge: PurgeCount,
}

/// How many keys and items of one pattern were deleted or changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PatternCount {
    /// Keys and items that were deleted.
    pub deleted: u64,
    /// Keys and items that others share, from which the person was taken out.
    pub changed: u64,
}

/// How much the purge removed from files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PurgeCount {
    /// Stored records that were deleted.
    pub records: u64,
    /// Stripes that were rewritten, some of them more than once.
    pub stripes: u64,
    /// Checkpoints in which the same was done.
    pub checkpoints: u64,
    /// Checkpoints that were made from this database and are not where they were made. If they were
    /// moved and not deleted, the person's data is still in them.
    pub missing_checkpoints: Vec<String>,
    /// Bytes of files that were read to rewrite them, without the checkpoints'.
    pub read_bytes: u64,
    /// Milliseconds that this took.
    pub took_ms: u64,
}

/// A receipt with its signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignedReceipt {
    /// The receipt.
    pub receipt: Receipt,
    /// The public key that belongs to the signature (Ed25519), in hex.
    pub public_key: String,
    /// The signature, in hex.
    pub signature: String,
}

/// The key with which a database signs.
pub struct ReceiptKey {
    key: SigningKey,
}

/// Why a receipt is not valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    /// It cannot be read.
    #[error("this is no receipt: {0}")]
    Malformed(String),
    /// It was written by a later version.
    #[error("the receipt has version {0}; this program knows version {RECEIPT_VERSION}")]
    Version(u32),
    /// It is not what was signed.
    #[error("the signature does not belong to this receipt: it was changed, or never signed")]
    Forged,
    /// It is signed with another key than was expected.
    #[error("the receipt is signed with key {found}, and not with {expected}")]
    OtherKey {
        /// The key that it is signed with.
        found: String,
        /// The key that was expected.
        expected: String,
    },
}

impl ReceiptKey {
    /// The key that belongs to these 32 secret bytes.
    pub fn from_secret(secret: &[u8; 32]) -> ReceiptKey {
        ReceiptKey { key: SigningKey::from_bytes(secret) }
    }

    /// The public key, in hex: what those who check receipts should know.
    pub fn public_key(&self) -> String {
        hex::encode(self.key.verifying_key().as_bytes())
    }

    /// Signs a receipt.
    pub fn sign(&self, receipt: Receipt) -> SignedReceipt {
        let signature = hex::encode(self.key.sign(&receipt.signed_bytes()).to_bytes());
        SignedReceipt { receipt, public_key: self.public_key(), signature }
    }
}

impl fmt::Debug for ReceiptKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReceiptKey({})", self.public_key())
    }
}

impl Receipt {
    /// The bytes that are signed.
    pub fn signed_bytes(&self) -> Vec<u8> {
        let mut text = String::new();
        // Names and whole numbers alone cannot fail to be JSON.
        let json = serde_json::to_value(self).unwrap_or_default();
        write_canonical(&json, &mut text);
        text.into_bytes()
    }

    /// Whether it is about this person.
    pub fn concerns(&self, subject: &Subject) -> bool {
        hex::decode(&self.salt)
            .is_ok_and(|salt| subject_hash(&salt, subject) == self.subject_sha256)
    }
}

impl SignedReceipt {
    /// Reads a receipt, and checks that it is what was signed.
    pub fn from_json(text: &str) -> Result<SignedReceipt, ReceiptError> {
        let malformed = |error: serde_json::Error| ReceiptError::Malformed(error.to_string());
        let json: Json = serde_json::from_str(text).map_err(malformed)?;
        let version = json.pointer("/receipt/version").and_then(Json::as_u64);
        match version.and_then(|version| u32::try_from(version).ok()) {
            Some(RECEIPT_VERSION) => {}
            Some(other) => return Err(ReceiptError::Version(other)),
            None => return Err(ReceiptError::Malformed("it has no version".to_owned())),
        }
        let signed: SignedReceipt = serde_json::from_value(json).map_err(malformed)?;
        signed.check()?;
        Ok(signed)
    }

    /// The receipt for people and programs.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    /// Whether the signature belongs to the receipt and to the key that is named in it.
    pub fn check(&self) -> Result<(), ReceiptError> {
        let malformed = |problem: &str| ReceiptError::Malformed(problem.to_owned());
        let key = <[u8; 32]>::from_hex(&self.public_key)
            .map_err(|_| malformed("the public key has no 32 bytes"))?;
        let signature = <[u8; 64]>::from_hex(&self.signature)
            .map_err(|_| malformed("the signature has no 64 bytes"))?;
        let key = VerifyingKey::from_bytes(&key).map_err(|_| ReceiptError::Forged)?;
        key.verify_strict(&self.receipt.signed_bytes(), &Signature::from_bytes(&signature))
            .map_err(|_| ReceiptError::Forged)
    }

    /// Whether it is signed with this key, which somebody knows to be the database's.
    pub fn check_key(&self, public_key: &str) -> Result<(), ReceiptError> {
        match self.public_key.eq_ignore_ascii_case(public_key.trim()) {
            true => Ok(()),
            false => Err(ReceiptError::OtherKey {
                found: self.public_key.clone(),
                expected: public_key.trim().to_owned(),
            }),
        }
    }
}

/// The salted hash of a person in a receipt.
pub(crate) fn subject_hash(salt: &[u8], subject: &Subject) -> String {
    let mut hash = Sha256::new();
    hash.update(salt);
    let tenant = subject.tenant.as_deref().unwrap_or_default();
    for part in [tenant, &subject.id] {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part);
    }
    hex::encode(hash.finalize())
}

/// JSON with names in byte order and no spaces.
fn write_canonical(json: &Json, out: &mut String) {
    match json {
        Json::Object(fields) => {
            let mut names: Vec<_> = fields.iter().collect();
            names.sort_by_key(|(name, _)| name.as_bytes());
            out.push('{');
            for (at, (name, value)) in names.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&Json::from(name.as_str()).to_string());
                out.push(':');
                write_canonical(value, out);
            }
            out.push('}');
        }
        Json::Array(members) => {
            out.push('[');
            for (at, member) in members.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write_canonical(member, out);
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn receipt() -> Receipt {
        let person = Subject::canonical("student_12345", None);
        Receipt {
            version: RECEIPT_VERSION,
            database: "00".repeat(16),
            erasure: "e-1".to_owned(),
            salt: hex::encode([7; 16]),
            subject_sha256: subject_hash(&[7; 16], &person),
            tenant: None,
            began_ms: 1,
            finished_ms: 3,
            patterns: [("b.x".to_owned(), PatternCount { deleted: 2, changed: 1 })].into(),
            first_seq: 10,
            last_seq: 20,
            purge: PurgeCount::default(),
        }
    }

    #[test]
    fn a_receipt_reads_back_and_every_change_of_it_is_noticed() {
        let key = ReceiptKey::from_secret(&[1; 32]);
        let signed = key.sign(receipt());
        let text = signed.to_json();
        assert_eq!(SignedReceipt::from_json(&text), Ok(signed.clone()));
        // However it is laid out.
        let compact = serde_json::to_string(&signed).unwrap();
        assert_eq!(SignedReceipt::from_json(&compact), Ok(signed.clone()));
        for (from, to) in [("\"deleted\": 2", "\"deleted\": 3"), ("e-1", "e-2"), ("null", "\"x\"")]
        {
            assert!(text.contains(from), "{from}");
            let changed = text.replacen(from, to, 1);
            assert_eq!(SignedReceipt::from_json(&changed), Err(ReceiptError::Forged), "{to}");
        }
        let added = text.replacen("\"erasure\"", "\"note\": 1, \"erasure\"", 1);
        assert!(matches!(SignedReceipt::from_json(&added), Err(ReceiptError::Malformed(_))));
    }

    #[test]
    fn a_receipt_signed_with_another_key_is_told_apart() {
        let (ours, other) = (ReceiptKey::from_secret(&[1; 32]), ReceiptKey::from_secret(&[2; 32]));
        let signed = ours.sign(receipt());
        assert_eq!(signed.check_key(&ours.public_key()), Ok(()));
        let refused = signed.check_key(&other.public_key()).unwrap_err();
        assert!(matches!(refused, ReceiptError::OtherKey { .. }), "{refused}");
        let mut swapped = signed;
        swapped.public_key = other.public_key();
        assert_eq!(swapped.check(), Err(ReceiptError::Forged));
    }

    #[test]
    fn only_who_knows_the_id_can_tell_whom_a_receipt_is_about() {
        let receipt = receipt();
        assert!(receipt.concerns(&Subject::canonical("12345", None)));
        assert!(!receipt.concerns(&Subject::canonical("12346", None)));
        assert!(!receipt.concerns(&Subject::canonical("12345", Some("abc"))));
        assert!(!String::from_utf8(receipt.signed_bytes()).unwrap().contains("12345"));
    }

    #[test]
    fn what_is_signed_has_one_form() {
        let text = String::from_utf8(receipt().signed_bytes()).unwrap();
        let begin =
            r#"{"began_ms":1,"database":"00000000000000000000000000000000","erasure":"e-1","#;
        assert!(text.starts_with(begin), "{text}");
        assert!(text.contains(r#""patterns":{"b.x":{"changed":1,"deleted":2}}"#), "{text}");
    }
}
