//! The differences that are known, each with its reason. DynamoDB is right where it and DynamoDB
//! Local differ; what DynamoDB does is taken from its documentation and from public test suites
//! that were run against it.
//!
//! A pattern is a text in which `*` stands for anything. Both sides are given, so that an answer
//! of ours that is wrong in a new way is not mistaken for one that is known.
//!
//! | module | what it is |
//! |---|---|
//! | `messages`, `errors` | both refuse, with other words |
//! | `answers` | both answer, alike but for what does not matter |
//! | `wording` | patterns |
//!
//! The rules that need the request as well are in [`known`].

mod answers;
mod errors;
mod messages;
mod wording;

use serde_json::Value as Json;

use super::compare::{Difference, both_failed};
use super::{Answers, Step};
use answers::{
    differ_in_ties, is_described_alike, is_last_page, responses_differ_in_words, same_but_size,
    same_but_status_and_size,
};
use errors::ERRORS;
use messages::MESSAGES;
use wording::{CANCELLED, INVALID, MALFORMED, is};

/// A request with two mistakes, of which each names another: the order of checks is documented
/// nowhere. (Where a public suite pins it, it pins ours.)
pub const TWO_MISTAKES: &str = "two mistakes in one request: which one is named";

/// Complaints about the values that an update computes, in both servers' words.
const UPDATE_FAULTS: &[&str] = &[
    "The provided expression refers to an attribute that does not exist in the item",
    "The document path provided in the update expression is invalid for update",
    "An operand in the update expression has an incorrect data type",
    "Attempting to store more than 38 significant digits in a Number",
    "DynamoDB only supports precision up to 38 digits",
    "Number overflow. *",
    "Number underflow. *",
];

/// DynamoDB Local's complaints about keys: it looks at them before it looks at expressions.
const KEY_FAULTS: &[&str] = &[
    "Invalid attribute value type",
    "One or more parameter values were invalid: Type mismatch for key",
    "The number of conditions on the keys is invalid",
    "One of the required keys was not given a value",
];

/// Whether the two are no longer the same after this request, although they answered alike.
pub fn diverges(step: &Step, answers: &Answers) -> bool {
    // DynamoDB puts a value without an action; DynamoDB Local forgets it.
    let updates = step.body["AttributeUpdates"].as_object();
    let has_no_action =
        updates.is_some_and(|updates| updates.values().any(|update| update["Action"].is_null()));
    // DynamoDB Local refuses two statements about one item, and carries them out all the same.
    let is_batch = step.operation == "BatchExecuteStatement";
    has_no_action || (is_batch && both_failed(answers))
}

/// The name of the known difference that this is.
pub fn known(step: &Step, difference: &Difference) -> Option<&'static str> {
    let (ours, theirs) = (&difference.ours, &difference.theirs);
    if let Some(known) = MESSAGES.iter().chain(ERRORS).find(|known| known.fits(ours, theirs)) {
        return Some(known.name);
    }
    let is_any = |error: &Json, of: &[&str]| of.iter().any(|message| is(error, (INVALID, message)));
    if is_any(ours, UPDATE_FAULTS) && is_any(theirs, UPDATE_FAULTS) {
        return Some(TWO_MISTAKES);
    }
    if is(ours, (INVALID, "Invalid *Expression: *")) && is_any(theirs, KEY_FAULTS) {
        return Some("an expression and a key with mistakes: DynamoDB looks at the first first");
    }
    let is_about_tables = matches!(step.operation, "CreateTable" | "DescribeTable" | "DeleteTable");
    if is_about_tables && is_described_alike(ours, theirs) {
        return Some("the throughput of an index without any: DynamoDB says zero");
    }
    let both_succeed = ours.get("error").is_none() && theirs.get("error").is_none();
    let is_refused = |pattern| is(ours, (INVALID, pattern)) && theirs.get("error").is_none();
    if is_refused("ExpressionAttribute* can only be specified when using expressions*") {
        return Some("placeholders without an expression: DynamoDB Local lets empty ones pass");
    }
    if is(ours, (MALFORMED, "*_VALUE cannot be converted to *")) && theirs.get("error").is_none() {
        return Some("JSON of other types: DynamoDB Local makes a text of it");
    }
    if step.operation == "CreateTable"
        && is_refused("*Neither ReadCapacityUnits nor WriteCapacityUnits can be specified *")
    {
        return Some("a throughput for a table without one: DynamoDB Local lets it pass");
    }
    if is_refused("*validation error* detected: *") {
        return Some("a member out of bounds: DynamoDB Local lets some pass");
    }
    if is_refused("*Secondary index * does not project one or more filter attributes: *") {
        return Some("a filter on what an index lacks, by PartiQL: DynamoDB Local lets it pass");
    }
    if step.operation == "BatchGetItem"
        && is(theirs, (INVALID, "Can not use both expression and non-expression parameters *"))
    {
        return Some("expressions for one table and AttributesToGet for another");
    }
    let text = step.body["UpdateExpression"].as_str().unwrap_or("");
    let returns = step.body["ReturnValues"].as_str().unwrap_or("");
    if text.contains(['.', '[']) && returns.starts_with("UPDATED") && both_succeed {
        return Some("what an update returns of a map or list: DynamoDB only what it names");
    }
    if step.operation == "Scan" && step.body.get("Segment").is_some() && both_succeed {
        return Some("which items are in a segment of a scan");
    }
    if step.operation == "BatchExecuteStatement" && both_succeed && says(step, &["\\\".\\\""]) {
        return Some("a statement of a batch that reads an index");
    }
    let null_name =
        |names: &Json| names.as_object().is_some_and(|names| names.values().any(Json::is_null));
    if null_name(&step.body["ExpressionAttributeNames"])
        || null_name(&step.body["ExpressionAttributeValues"])
    {
        return Some("a null among placeholders");
    }
    if is(theirs, (INVALID, "The provided starting key does not match the range key predicate"))
        && ours.get("error").is_none()
    {
        return Some("a query that starts at the end of its range: DynamoDB Local refuses it");
    }
    let by_schema = "*Condition parameter type does not match schema type";
    if step.operation == "ExecuteStatement" && both_differ(ours, theirs, by_schema) {
        return Some("a table's key of another type in a filter of an index, by PartiQL");
    }
    if is(ours, (INVALID, "*Attribute name is a reserved keyword; reserved keyword: size")) {
        return Some("size is a reserved word: DynamoDB Local lets it pass");
    }
    if is(theirs, ("InternalFailure", "*")) {
        return Some("DynamoDB Local fails");
    }
    let selects_part = says(step, &["SELECT"]) && says(step, &["m.", "l["]);
    if step.operation != "ExecuteStatement" && both_succeed && selects_part {
        return Some("the names of parts of a document that one of several statements selects");
    }
    if step.operation == "ExecuteStatement" && both_succeed && says(step, &["\\\".\\\""]) {
        return Some("a scan of an index: DynamoDB Local's filter sees what is not projected");
    }
    if step.operation == "ExecuteStatement" && both_succeed && step.body.get("Limit").is_some() {
        return Some("which items are in a page of a scan");
    }
    if is(ours, (MALFORMED, "*")) && theirs.get("error").is_none() {
        return Some("JSON of other types: DynamoDB Local makes something of it");
    }
    if both_differ(ours, theirs, "*Two document paths overlap with each other; *")
        && says(step, &["SELECT"])
    {
        return Some("paths that overlap in a SELECT: open, DynamoDB may refuse them as well");
    }
    if both_differ(ours, theirs, "Attribute name must be specified.") {
        return Some("a null among names");
    }
    if is_refused("*List of * is empty") {
        return Some("an empty list of indexes: DynamoDB Local lets it pass");
    }
    if is_refused("Provided list of item keys contains duplicates") {
        return Some("two statements about one item, of which one fails");
    }
    if both_succeed && says(step, &["MODIFIED"]) {
        return Some("what an update returns of a map or list: DynamoDB only what it names");
    }
    if step.operation == "Query" && differ_in_ties(step, ours, theirs) {
        return Some("the order of items with the same key in a global index");
    }
    if step.operation == "DeleteTable" && same_but_status_and_size(ours, theirs) {
        return Some("the status of a table that is being deleted");
    }
    if step.operation == "DescribeTable" && same_but_size(ours, theirs) {
        return Some("the size of a table: each counts in its own way");
    }
    let is_in_index = step.body.get("IndexName").is_some() && step.operation == "Scan";
    if is_in_index && both_succeed {
        return Some("a scan of an index: DynamoDB Local's filter sees what is not projected");
    }
    if step.operation == "Query" && step.body.get("Limit").is_some() && is_last_page(ours, theirs) {
        return Some(
            "a page that ends where a query must end: DynamoDB Local knows it is the last",
        );
    }
    if is(ours, (CANCELLED, "*[*DuplicateItem*]*")) && is(theirs, (CANCELLED, "*")) {
        return Some("the reason of an insert that fails in a transaction");
    }
    if step.operation == "BatchExecuteStatement" && responses_differ_in_words(ours, theirs) {
        return Some("the words of an error in a batch of statements");
    }
    None
}

fn both_differ(ours: &Json, theirs: &Json, message: &str) -> bool {
    ours.get("error").is_none() && is(theirs, (INVALID, message))
}

/// Whether a statement of the request has one of these words.
fn says(step: &Step, words: &[&str]) -> bool {
    let text = step.body.to_string();
    text.contains("Statement") && words.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_known_difference_has_to_be_right_on_both_sides() {
        let step = Step::new("PutItem", json!({}));
        let invalid = |message: &str| json!({"error": 400, "type": INVALID, "message": message});
        let known = |ours, theirs| {
            known(&step, &Difference { ours, theirs, signature: String::new() }).is_some()
        };
        let ours = "One or more parameter values were invalid: Missing the key pk in the item";
        let theirs = "One of the required keys was not given a value";
        assert!(known(invalid(ours), invalid(theirs)));
        assert!(!known(invalid("something else"), invalid(theirs)));
        assert!(!known(json!({}), invalid(theirs)));
    }
}
