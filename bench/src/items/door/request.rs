//! The requests, ready to be sent: HTTP/1.1, signed as an AWS SDK signs them.
//!
//! Everyone is sent the same signed bytes; who checks the signature pays for that alone.

use crate::items::posts::{self, Post, TABLE};
use hmac::{Hmac, KeyInit, Mac};
use jiff::Timestamp;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// The key id that requests are signed with.
pub const ACCESS_KEY: &str = "KSTONEBENCH";
/// The secret that requests are signed with.
pub const SECRET_KEY: &str = "kstone-bench-secret";
/// The region in the signature's scope.
pub const REGION: &str = "us-east-1";

/// A request and what its answer must be.
pub struct Prepared {
    /// Head and body, as they are sent.
    pub bytes: Vec<u8>,
    /// What the body of the answer must be.
    pub expect: Expect,
}

/// What the body of an answer must be. Attributes come in whatever order a server likes, so the
/// timed loops look at the length, which no order changes, and for what only this answer holds;
/// around them, items are compared whole.
pub struct Expect {
    len: usize,
    holds: String,
}

impl Expect {
    /// Whether `body` is the answer.
    pub fn accepts(&self, body: &[u8]) -> bool {
        body.len() == self.len && memchr::memmem::find(body, self.holds.as_bytes()).is_some()
    }
}

/// The answer to GetItem.
pub fn get_answer(id: u32) -> String {
    json!({ "Item": Post::new(id).to_json() }).to_string()
}

/// The answer to PutItem that asked for nothing back.
pub const PUT_ANSWER: &str = "{}";

/// The answer to Query for the day of a post.
pub fn query_answer(id: u32) -> String {
    let first = posts::first_of_day(id);
    let items: Vec<Value> =
        (first..first + posts::PER_DAY).map(|id| Post::new(id).to_json()).collect();
    json!({ "Items": items, "Count": items.len(), "ScannedCount": items.len() }).to_string()
}

/// Signs for as long as DynamoDB takes a signature: some minutes around the moment of signing.
pub struct Signer {
    host: String,
    date: String,
    time: String,
    key: [u8; 32],
}

fn hmac(key: &[u8], text: &str) -> [u8; 32] {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("a key of any length");
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().into()
}

impl Signer {
    /// Signs requests to `host` as of now.
    pub fn new(host: String) -> Self {
        Self::at(host, Timestamp::now())
    }

    fn at(host: String, now: Timestamp) -> Self {
        let time = now.strftime("%Y%m%dT%H%M%SZ").to_string();
        let date = time[..8].to_owned();
        let parts = [date.as_str(), REGION, "dynamodb", "aws4_request"];
        let secret = format!("AWS4{SECRET_KEY}").into_bytes();
        let key = parts.iter().fold(secret, |key, part| hmac(&key, part).to_vec());
        let key = key.try_into().expect("a digest has 32 bytes");
        Signer { host, date, time, key }
    }

    /// Head and body of a call of `operation`.
    pub fn sign(&self, operation: &str, body: &str) -> Vec<u8> {
        let Signer { host, date, time, .. } = self;
        let target = format!("DynamoDB_20120810.{operation}");
        let signed = "content-type;host;x-amz-date;x-amz-target";
        let canonical = format!(
            "POST\n/\n\ncontent-type:application/x-amz-json-1.0\nhost:{host}\nx-amz-date:{time}\n\
             x-amz-target:{target}\n\n{signed}\n{}",
            hex::encode(Sha256::digest(body))
        );
        let scope = format!("{date}/{REGION}/dynamodb/aws4_request");
        let to_sign =
            format!("AWS4-HMAC-SHA256\n{time}\n{scope}\n{}", hex::encode(Sha256::digest(canonical)));
        let signature = hex::encode(hmac(&self.key, &to_sign));
        format!(
            "POST / HTTP/1.1\r\nhost: {host}\r\ncontent-type: application/x-amz-json-1.0\r\n\
             x-amz-target: {target}\r\nx-amz-date: {time}\r\nuser-agent: kstone-bench\r\n\
             authorization: AWS4-HMAC-SHA256 Credential={ACCESS_KEY}/{scope}, \
             SignedHeaders={signed}, Signature={signature}\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }

    /// A GetItem whose answer is that of post `answered`.
    pub fn get(&self, id: u32, answered: u32) -> Prepared {
        let body = json!({ "TableName": TABLE, "Key": posts::key_json(id) }).to_string();
        Prepared {
            bytes: self.sign("GetItem", &body),
            expect: Expect { len: get_answer(answered).len(), holds: posts::marker(answered, 0) },
        }
    }

    /// A PutItem.
    pub fn put(&self, post: &Post) -> Prepared {
        let body = json!({ "TableName": TABLE, "Item": post.to_json() }).to_string();
        Prepared {
            bytes: self.sign("PutItem", &body),
            expect: Expect { len: PUT_ANSWER.len(), holds: PUT_ANSWER.into() },
        }
    }

    /// A Query for the day of post `id` whose answer is that for the day of `answered`.
    pub fn query(&self, id: u32, answered: u32) -> Prepared {
        let last = posts::first_of_day(answered) + posts::PER_DAY - 1;
        Prepared {
            bytes: self.sign("Query", &posts::query_json(id).to_string()),
            expect: Expect { len: query_answer(answered).len(), holds: posts::marker(last, 0) },
        }
    }

    /// A BatchWriteItem of posts as they are loaded.
    pub fn batch(&self, ids: &[u32]) -> Prepared {
        let put = |&id| json!({ "PutRequest": { "Item": Post::new(id).to_json() } });
        let puts: Vec<Value> = ids.iter().map(put).collect();
        let body = json!({ "RequestItems": { TABLE: puts } }).to_string();
        let answer = r#"{"UnprocessedItems":{}}"#;
        Prepared {
            bytes: self.sign("BatchWriteItem", &body),
            expect: Expect { len: answer.len(), holds: answer.into() },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_signed_as_botocore_signs_it() {
        let signer = Signer::at("127.0.0.1:8000".into(), "2026-01-01T00:00:00Z".parse().unwrap());
        let request = String::from_utf8(signer.sign("ListTables", "{}")).unwrap();
        assert!(request.contains("x-amz-date: 20260101T000000Z\r\n"), "{request}");
        assert!(
            request.contains(
                "Credential=KSTONEBENCH/20260101/us-east-1/dynamodb/aws4_request, \
                 SignedHeaders=content-type;host;x-amz-date;x-amz-target, Signature=92e3750f02b2f310203e5a0aeedb8edbeda2471933d0090a8965913f669fd73d\r\n"
            ),
            "{request}"
        );
        assert!(request.ends_with("content-length: 2\r\n\r\n{}"), "{request}");
    }

    #[test]
    fn an_answer_of_another_length_or_without_the_marker_is_not_accepted() {
        let prepared = Signer::new("h".into()).get(7, 7);
        assert!(prepared.expect.accepts(get_answer(7).as_bytes()));
        assert!(!prepared.expect.accepts(get_answer(8).as_bytes()));
        assert!(!prepared.expect.accepts(&get_answer(7).as_bytes()[1..]));
    }
}
