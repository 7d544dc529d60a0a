//! The items that everyone is given: posts of users, 1 KiB each by DynamoDB's rule.
//!
//! Partition key `user#00000012`, sort key `2026-03-04#post#07`: a user has 100 posts, 20 on each of
//! five days, so that one prefix of the sort key finds 20. Everything is a function of the post's
//! number and version, so that any answer can be checked without keeping a copy.

use crate::random::Rng;
use serde_json::{Value, json};

/// The table that holds them.
pub const TABLE: &str = "posts";
/// Posts of one user.
pub const PER_USER: u32 = 100;
/// Posts that one prefix finds.
pub const PER_DAY: u32 = 20;
/// An item's size by DynamoDB's rule: names and values, without the JSON around them.
pub const ITEM_LEN: usize = 1024;
/// What is left for the text when names, keys and the small attributes are counted.
const TEXT_LEN: usize = 921;

/// One post at one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Post {
    /// Which.
    pub id: u32,
    /// How many times it was overwritten.
    pub version: u32,
}

/// The marker that only this version of this post has: the beginning of its text.
pub fn marker(id: u32, version: u32) -> String {
    format!("{id:08}v{version:08} ")
}

/// The number of the post that a text belongs to: cheap enough for the timed loops.
pub fn number_in(text: &str) -> Option<u32> {
    text.get(..8).and_then(|digits| digits.parse().ok())
}

/// `user#{:08}`: the partition of a post.
pub fn pk(id: u32) -> String {
    format!("user#{:08}", id / PER_USER)
}

/// `2026-03-0{day}#`: what the sort keys of a day's posts begin with.
pub fn sk_prefix(id: u32) -> String {
    format!("2026-03-{:02}#", id % PER_USER / PER_DAY + 1)
}

/// The prefix and `post#{:02}`.
pub fn sk(id: u32) -> String {
    format!("{}post#{:02}", sk_prefix(id), id % PER_DAY)
}

/// The first post of the day that a post is from.
pub fn first_of_day(id: u32) -> u32 {
    id - id % PER_DAY
}

impl Post {
    /// A post as it is loaded.
    pub fn new(id: u32) -> Self {
        Post { id, version: 0 }
    }

    /// Forty letters.
    pub fn title(&self) -> String {
        format!("{:.<40}", format!("About the matter number {} ", self.id))
    }

    /// Six digits.
    pub fn views(&self) -> u32 {
        100_000 + self.id % 900_000
    }

    /// True of all, so that all answers have one length.
    pub fn published(&self) -> bool {
        true
    }

    /// The marker, letters at random up to half the length, and words that repeat: about half of it
    /// compresses.
    pub fn text(&self) -> String {
        let mut text = marker(self.id, self.version);
        let mut rng = Rng::new(u64::from(self.id) << 32 | u64::from(self.version));
        while text.len() < TEXT_LEN / 2 {
            text.push(char::from(b'a' + rng.below(26) as u8));
        }
        text += &"and so it goes on ".repeat(TEXT_LEN / 18);
        text.truncate(TEXT_LEN);
        text
    }

    /// The item in DynamoDB's JSON.
    pub fn to_json(&self) -> Value {
        json!({
            "pk": { "S": pk(self.id) },
            "sk": { "S": sk(self.id) },
            "title": { "S": self.title() },
            "views": { "N": self.views().to_string() },
            "published": { "BOOL": self.published() },
            "text": { "S": self.text() },
        })
    }
}

/// The key in DynamoDB's JSON.
pub fn key_json(id: u32) -> Value {
    json!({ "pk": { "S": pk(id) }, "sk": { "S": sk(id) } })
}

/// What CreateTable is asked for.
pub fn create_table_json() -> Value {
    json!({
        "TableName": TABLE,
        "AttributeDefinitions": [
            { "AttributeName": "pk", "AttributeType": "S" },
            { "AttributeName": "sk", "AttributeType": "S" },
        ],
        "KeySchema": [
            { "AttributeName": "pk", "KeyType": "HASH" },
            { "AttributeName": "sk", "KeyType": "RANGE" },
        ],
        "BillingMode": "PAY_PER_REQUEST",
    })
}

/// What a query for the day of a post is asked for.
pub fn query_json(id: u32) -> Value {
    json!({
        "TableName": TABLE,
        "KeyConditionExpression": QUERY_CONDITION,
        "ExpressionAttributeValues": {
            ":user": { "S": pk(id) },
            ":day": { "S": sk_prefix(id) },
        },
    })
}

/// One partition, and the sort keys that begin as told.
pub const QUERY_CONDITION: &str = "pk = :user AND begins_with(sk, :day)";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_has_one_kibibyte_by_dynamodbs_rule() {
        for id in [0, 7, 99, 12_345, 999_999] {
            let post = Post { id, version: id * 3 };
            let digits = post.views().to_string().len();
            let names = ["pk", "sk", "title", "views", "published", "text"].concat().len();
            let values = pk(id).len() + sk(id).len() + post.title().len() + post.text().len();
            assert_eq!(names + values + digits.div_ceil(2) + 1 + 1, ITEM_LEN, "post {id}");
        }
    }

    #[test]
    fn a_prefix_finds_the_twenty_posts_of_one_day_and_no_other() {
        let of_day = |wanted: u32| {
            (0..PER_USER).filter(|&id| sk(id).starts_with(&sk_prefix(wanted))).collect::<Vec<_>>()
        };
        assert_eq!(of_day(47), (40..60).collect::<Vec<_>>());
        assert_eq!(of_day(47).first(), Some(&first_of_day(47)));
        assert!((1..PER_USER).all(|id| sk(id - 1) < sk(id)));
    }

    #[test]
    fn only_one_version_of_one_post_has_its_marker() {
        let text = Post { id: 5, version: 2 }.text();
        assert!(text.starts_with(&marker(5, 2)));
        assert!(!text.contains(&marker(5, 1)) && !text.contains(&marker(6, 2)));
    }
}
