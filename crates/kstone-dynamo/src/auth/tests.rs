//! The signatures here were made by botocore, with its clock stopped at 2015-08-30 12:36:00 UTC.

use std::sync::Arc;

use httparse::Header;
use kstone_core::env::ManualClock;

use super::{Authority, Credential, Head, date};
use crate::http::Headers;

const SIGNED_AT: &str = "20150830T123600Z";
const BODY: &[u8] = br#"{"TableName":"t"}"#;
const AUTHORIZATION: &str = "AWS4-HMAC-SHA256 \
    Credential=AKIDEXAMPLE/20150830/us-east-1/dynamodb/aws4_request, \
    SignedHeaders=content-type;host;x-amz-date;x-amz-target, \
    Signature=9806f2165e423893fa9ecf62eb88723890dada4e0c66b72daed5a1d1f9654b04";
const QUERY: &str = "X-Amz-Algorithm=AWS4-HMAC-SHA256\
    &X-Amz-Credential=AKIDEXAMPLE%2F20150830%2Feu-west-1%2Fdynamodb%2Faws4_request\
    &X-Amz-Date=20150830T123600Z&X-Amz-Expires=300&X-Amz-SignedHeaders=host%3Bx-amz-target\
    &X-Amz-Signature=ac97c1fc8b6c27035d337e7d6b8def9405ece23029f430228b859f8bc7a1f70c";

fn authority(clock: &Arc<ManualClock>) -> Authority {
    let key = Credential {
        access_key: "AKIDEXAMPLE".to_owned(),
        secret_key: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY".to_owned(),
    };
    Authority::new(vec![key], clock.clone())
}

fn clock_at(date: &str) -> Arc<ManualClock> {
    Arc::new(ManualClock::at(date::parse(date).unwrap() as u64 * 1000))
}

fn headers<'a>(pairs: &[(&'a str, &'a str)]) -> Vec<Header<'a>> {
    let header = |&(name, value): &(&'a str, &'a str)| Header { name, value: value.as_bytes() };
    pairs.iter().map(header).collect()
}

fn signed_headers(authorization: &str) -> Vec<Header<'_>> {
    headers(&[
        ("host", "127.0.0.1:8000"),
        ("content-type", "application/x-amz-json-1.0"),
        ("x-amz-target", "DynamoDB_20120810.DescribeTable"),
        ("x-amz-date", SIGNED_AT),
        ("authorization", authorization),
    ])
}

fn check(
    authority: &Authority,
    headers: &[Header<'_>],
    query: Option<&str>,
    body: &[u8],
) -> Result<(), String> {
    let head = Head::new("POST", "/", query, Headers::new(headers));
    let claim = authority.read_claim(&head).map_err(|fault| fault.to_string())?;
    let checked = claim.map_or(Ok(()), |claim| authority.check(&claim, &head, body));
    checked.map_err(|fault| fault.to_string())
}

/// The error for this `Authorization` header.
fn refused(authorization: &str) -> String {
    let authority = authority(&clock_at(SIGNED_AT));
    check(&authority, &signed_headers(authorization), None, BODY).unwrap_err()
}

#[test]
fn a_request_signed_by_botocore_passes_again_and_again() {
    let authority = authority(&clock_at(SIGNED_AT));
    let headers = signed_headers(AUTHORIZATION);
    assert_eq!(check(&authority, &headers, None, BODY), Ok(()));
    // This time with the derived key of the first.
    assert_eq!(authority.derived.len(), 1);
    assert_eq!(check(&authority, &headers, None, BODY), Ok(()));
}

#[test]
fn runs_of_spaces_in_a_signed_header_count_as_one() {
    let authority = authority(&clock_at(SIGNED_AT));
    let headers = headers(&[
        ("host", "127.0.0.1:8000"),
        ("content-type", "application/x-amz-json-1.0"),
        ("x-amz-target", "DynamoDB_20120810.ListTables"),
        ("x-amz-date", SIGNED_AT),
        ("x-amz-meta", "  a   b  "),
        (
            "authorization",
            "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/dynamodb/aws4_request, \
             SignedHeaders=content-type;host;x-amz-date;x-amz-meta;x-amz-target, \
             Signature=ea1ef97abed99a70a980aca9da0ec191ddb281df17c1534d4e27b2328e5c143f",
        ),
    ]);
    assert_eq!(check(&authority, &headers, None, b"{}"), Ok(()));
}

#[test]
fn a_signature_in_the_query_string_passes_until_it_expires() {
    let headers =
        headers(&[("host", "127.0.0.1:8000"), ("x-amz-target", "DynamoDB_20120810.ListTables")]);
    let clock = clock_at(SIGNED_AT);
    let authority = authority(&clock);
    assert_eq!(check(&authority, &headers, Some(QUERY), b"{}"), Ok(()));
    clock.advance(301_000);
    assert_eq!(
        check(&authority, &headers, Some(QUERY), b"{}").unwrap_err(),
        "InvalidSignatureException: Signature expired: 20150830T123600Z is now earlier than \
         20150830T123601Z (20150830T124101Z - 5 min.)"
    );
}

#[test]
fn a_changed_body_header_or_path_is_noticed() {
    let authority = authority(&clock_at(SIGNED_AT));
    let mismatch = "InvalidSignatureException: The request signature we calculated does not match \
         the signature you provided. Check your AWS Secret Access Key and signing method. Consult \
         the service documentation for details.";
    let headers = signed_headers(AUTHORIZATION);
    assert_eq!(check(&authority, &headers, None, br#"{"TableName":"u"}"#).unwrap_err(), mismatch);
    let mut other = headers.clone();
    let target = other.iter_mut().find(|header| header.name == "x-amz-target").unwrap();
    target.value = b"DynamoDB_20120810.DeleteTable";
    assert_eq!(check(&authority, &other, None, BODY).unwrap_err(), mismatch);
    assert_eq!(check(&authority, &headers, Some("a=b"), BODY).unwrap_err(), mismatch);
    for signature in ["0".repeat(64), "0".repeat(63), "x".repeat(64)] {
        let (start, _) = AUTHORIZATION.split_once("Signature=").unwrap();
        let forged = format!("{start}Signature={signature}");
        assert_eq!(refused(&forged), mismatch);
    }
    assert!(authority.derived.is_empty(), "a forged request left a key behind");
}

#[test]
fn a_signature_holds_for_a_quarter_of_an_hour_in_both_directions() {
    let headers = signed_headers(AUTHORIZATION);
    for (now, answer) in [
        ("20150830T125100Z", None),
        ("20150830T122100Z", None),
        (
            "20150830T125101Z",
            Some(
                "InvalidSignatureException: Signature expired: 20150830T123600Z is now earlier \
                 than 20150830T123601Z (20150830T125101Z - 15 min.)",
            ),
        ),
        (
            "20150830T122059Z",
            Some(
                "InvalidSignatureException: Signature not yet current: 20150830T123600Z is still \
                 later than 20150830T123559Z (20150830T122059Z + 15 min.)",
            ),
        ),
    ] {
        let authority = authority(&clock_at(now));
        let got = check(&authority, &headers, None, BODY).err();
        assert_eq!(got.as_deref(), answer, "{now}");
    }
}

#[test]
fn an_unknown_key_is_told_so() {
    assert_eq!(
        refused(&AUTHORIZATION.replace("AKIDEXAMPLE", "AKIDOTHER")),
        "UnrecognizedClientException: The security token included in the request is invalid."
    );
}

#[test]
fn what_is_missing_from_the_header_is_named() {
    let missing = "MissingAuthenticationTokenException: Request is missing Authentication Token";
    assert_eq!(refused("AWS4"), missing);
    assert_eq!(refused("Basic Zm9v"), missing);
    let authority = authority(&clock_at(SIGNED_AT));
    assert_eq!(check(&authority, &[], None, BODY).unwrap_err(), missing);
    let bare = headers(&[("authorization", "AWS4-")]);
    assert_eq!(
        check(&authority, &bare, None, BODY).unwrap_err(),
        "IncompleteSignatureException: Authorization header requires 'Credential' parameter. \
         Authorization header requires 'Signature' parameter. Authorization header requires \
         'SignedHeaders' parameter. Authorization header requires existence of either a \
         'X-Amz-Date' or a 'Date' header. Authorization=AWS4-"
    );
    assert_eq!(
        refused("AWS4- Signature=b,Credential=a"),
        "IncompleteSignatureException: Authorization header requires 'SignedHeaders' parameter. \
         Authorization=AWS4- Signature=b,Credential=a"
    );
}

#[test]
fn a_signature_in_two_places_is_refused_and_a_partial_query_named() {
    let authority = authority(&clock_at(SIGNED_AT));
    assert_eq!(
        check(&authority, &signed_headers(AUTHORIZATION), Some(QUERY), BODY).unwrap_err(),
        "InvalidSignatureException: Found both 'X-Amz-Algorithm' as a query-string param and \
         'Authorization' as HTTP header."
    );
    assert_eq!(
        check(
            &authority,
            &[],
            Some("X-Amz-Algorithm=a&X-Amz-Credential=b&X-Amz-Signature=c&X-Amz-Date=d"),
            BODY
        )
        .unwrap_err(),
        "IncompleteSignatureException: AWS query-string parameters must include \
         'X-Amz-SignedHeaders'. Re-examine the query-string parameters."
    );
}

#[test]
fn a_wrong_scope_lists_everything_that_is_wrong_with_it() {
    assert_eq!(
        refused(&AUTHORIZATION.replace("20150830/us-east-1/dynamodb/aws4_request", "b/c/d/e")),
        "InvalidSignatureException: Credential should be scoped to correct service: 'dynamodb'. \
         Credential should be scoped with a valid terminator: 'aws4_request', not 'e'. Date in \
         Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: 'b' != \
         '20150830', from '20150830T123600Z'."
    );
    assert_eq!(
        refused(&AUTHORIZATION.replace("/aws4_request", "")),
        "IncompleteSignatureException: Credential must have exactly 5 slash-delimited elements, \
         e.g. keyid/date/region/service/term, got 'AKIDEXAMPLE/20150830/us-east-1/dynamodb'"
    );
    assert_eq!(
        refused(&AUTHORIZATION.replace("host;", "")),
        "InvalidSignatureException: 'Host' or ':authority' must be a 'SignedHeader' in the AWS \
         Authorization."
    );
    assert_eq!(
        refused(&AUTHORIZATION.replace("SHA256", "SHA25")),
        "IncompleteSignatureException: Unsupported AWS 'algorithm': 'AWS4-HMAC-SHA25' (only \
         AWS4-HMAC-SHA256 for now). "
    );
}

#[test]
fn what_decides_the_operation_and_its_time_has_to_be_signed() {
    for (unsigned, name) in [("x-amz-target", "X-Amz-Target"), ("x-amz-date", "X-Amz-Date")] {
        let fewer = AUTHORIZATION.replace(&format!(";{unsigned}"), "");
        assert_eq!(
            refused(&fewer),
            format!(
                "InvalidSignatureException: '{name}' must be a 'SignedHeader' in the AWS \
                 Authorization."
            )
        );
    }
    // The date of a query string is signed with it; the operation is in a header all the same.
    let authority = authority(&clock_at(SIGNED_AT));
    let target = headers(&[("host", "127.0.0.1:8000"), ("x-amz-target", "DynamoDB.Any")]);
    assert_eq!(
        check(&authority, &target, Some(&QUERY.replace("%3Bx-amz-target", "")), BODY).unwrap_err(),
        "InvalidSignatureException: 'X-Amz-Target' must be a 'SignedHeader' in the AWS \
         Authorization."
    );
}

#[test]
fn a_claim_is_judged_before_there_is_a_body() {
    let authority = authority(&clock_at(SIGNED_AT));
    for (authorization, is_good) in [
        (AUTHORIZATION.to_owned(), true),
        (AUTHORIZATION.replace("AKIDEXAMPLE", "AKIDOTHER"), false),
        (AUTHORIZATION.replace("20150830/", "20150831/"), false),
        ("Basic Zm9v".to_owned(), false),
    ] {
        let headers = signed_headers(&authorization);
        let head = Head::new("POST", "/", None, Headers::new(&headers));
        assert_eq!(authority.read_claim(&head).is_ok(), is_good, "{authorization}");
    }
}

#[test]
fn without_keys_everything_passes() {
    let authority = Authority::new(Vec::new(), clock_at(SIGNED_AT));
    assert_eq!(check(&authority, &[], None, BODY), Ok(()));
    let forged = AUTHORIZATION.replace("9806", "0000");
    assert_eq!(check(&authority, &signed_headers(&forged), None, BODY), Ok(()));
}

#[test]
fn a_secret_is_never_printed() {
    let key = Credential { access_key: "id".to_owned(), secret_key: "hush".to_owned() };
    assert!(!format!("{key:?}").contains("hush"));
    let authority = Authority::new(vec![key], clock_at(SIGNED_AT));
    assert!(!format!("{authority:?}").contains("hush"));
}
