//! The inputs of DynamoDB Streams.

use crate::input_schema::Rule::{MaxLength, Min, MinLength, OneOf};
use crate::input_schema::items::NAME_RULES;
use crate::input_schema::{Input, Shape, TableNameCheck, optional, required};

const STREAM_ARN: Shape = Shape::Text(&[MinLength(37), MaxLength(1024)]);
const SHARD_ID: Shape = Shape::Text(&[MinLength(28), MaxLength(65)]);
const LIMIT: Shape = Shape::Integer(&[Min(1)]);

pub(crate) static LIST_STREAMS: Input = Input {
    table_name: TableNameCheck::Ordinary,
    members: &[
        optional("TableName", Shape::Text(NAME_RULES)),
        optional("Limit", LIMIT),
        optional("ExclusiveStartStreamArn", STREAM_ARN),
    ],
};

pub(crate) static DESCRIBE_STREAM: Input = Input {
    table_name: TableNameCheck::Ordinary,
    members: &[
        required("StreamArn", STREAM_ARN),
        optional("Limit", LIMIT),
        optional("ExclusiveStartShardId", SHARD_ID),
        optional(
            "ShardFilter",
            Shape::Structure(
                "ShardFilter",
                &[
                    optional("Type", Shape::Text(&[OneOf(&["CHILD_SHARDS"])])),
                    optional("ShardId", SHARD_ID),
                ],
            ),
        ),
    ],
};

pub(crate) static GET_SHARD_ITERATOR: Input = Input {
    table_name: TableNameCheck::Ordinary,
    members: &[
        required("StreamArn", STREAM_ARN),
        required("ShardId", SHARD_ID),
        required(
            "ShardIteratorType",
            Shape::Text(&[OneOf(&[
                "TRIM_HORIZON",
                "LATEST",
                "AT_SEQUENCE_NUMBER",
                "AFTER_SEQUENCE_NUMBER",
            ])]),
        ),
        optional("SequenceNumber", Shape::Text(&[MinLength(21), MaxLength(40)])),
    ],
};

pub(crate) static GET_RECORDS: Input = Input {
    table_name: TableNameCheck::Ordinary,
    members: &[
        required("ShardIterator", Shape::Text(&[MinLength(1), MaxLength(2048)])),
        optional("Limit", Shape::Integer(&[Min(1), crate::input_schema::Rule::Max(1000)])),
    ],
};
