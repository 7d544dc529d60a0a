//! AWS Signature Version 4 for the one kind of request that is sent here.

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

use crate::serve::settings::AccessKey;
use crate::time;

pub const CONTENT_TYPE: &str = "application/x-amz-json-1.0";

const HEADERS: &str = "content-type;host;x-amz-date;x-amz-target";
const REGION: &str = "us-east-1";

/// The headers that make a request a signed one.
pub struct SignedHeaders {
    /// `x-amz-date`
    pub date: String,
    /// `authorization`
    pub authorization: String,
}

/// Signs a POST to `/`.
pub fn sign(key: &AccessKey, host: &str, target: &str, body: &str, now_ms: u64) -> SignedHeaders {
    // 2024-01-15T10:00:00.000Z becomes 20240115T100000Z.
    let date: String = time::moment(now_ms).replace(['-', ':'], "");
    let date = format!("{}Z", date.split('.').next().unwrap_or_default());
    let day = date.split('T').next().unwrap_or_default();
    let request = format!(
        "POST\n/\n\ncontent-type:{CONTENT_TYPE}\nhost:{host}\nx-amz-date:{date}\n\
         x-amz-target:{target}\n\n{HEADERS}\n{}",
        sha256(body)
    );
    let scope = format!("{day}/{REGION}/dynamodb/aws4_request");
    let to_sign = format!("AWS4-HMAC-SHA256\n{date}\n{scope}\n{}", sha256(&request));
    let mut signing_key = format!("AWS4{}", key.secret).into_bytes();
    for part in scope.split('/') {
        signing_key = hmac(&signing_key, part);
    }
    let signature = hex::encode(hmac(&signing_key, &to_sign));
    let authorization = format!(
        "AWS4-HMAC-SHA256 Credential={}/{scope}, SignedHeaders={HEADERS}, Signature={signature}",
        key.id
    );
    SignedHeaders { date, authorization }
}

fn sha256(text: &str) -> String {
    hex::encode(Sha256::digest(text))
}

fn hmac(key: &[u8], text: &str) -> Vec<u8> {
    // HMAC takes keys of any length: there is no error to meet.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.update(text.as_bytes());
    mac.finalize().into_bytes().to_vec()
}
