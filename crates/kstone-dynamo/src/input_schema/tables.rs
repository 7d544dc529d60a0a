//! The inputs of the operations on tables: create, change, list, time to live, tags.

use crate::input_schema::Rule::{Max, MaxLength, Min, MinLength, OneOf};
use crate::input_schema::items::{NAME_RULES, TEXT};
use crate::input_schema::{Input, Member, Rule, Shape, TableNameCheck, optional, required};

const INDEX_NAME: Shape = Shape::Text(NAME_RULES);
const BILLING: Shape = Shape::Text(&[OneOf(&["PROVISIONED", "PAY_PER_REQUEST"])]);
const TABLE_CLASS: Shape = Shape::Text(&[OneOf(&["STANDARD", "STANDARD_INFREQUENT_ACCESS"])]);
const ATTRIBUTE_NAME: Shape = Shape::Text(&[MinLength(1), MaxLength(255)]);
const UNITS: Shape = Shape::Long(&[Min(1)]);

const ATTRIBUTE_DEFINITIONS: Shape = Shape::List(
    &Shape::Structure(
        "AttributeDefinition",
        &[
            required("AttributeName", ATTRIBUTE_NAME),
            required("AttributeType", Shape::Text(&[OneOf(&["B", "N", "S"])])),
        ],
    ),
    &[],
);

static KEY_SCHEMA_ELEMENT: Shape = Shape::Structure(
    "KeySchemaElement",
    &[
        required("AttributeName", ATTRIBUTE_NAME),
        required("KeyType", Shape::Text(&[OneOf(&["HASH", "RANGE"])])),
    ],
);

const KEY_SCHEMA_RULES: &[Rule] = &[MinLength(1), MaxLength(2)];
const KEY_SCHEMA: Shape = Shape::List(&KEY_SCHEMA_ELEMENT, KEY_SCHEMA_RULES);
/// The key of a global index. The database checks its limit, four attributes of each kind.
const GLOBAL_KEY_SCHEMA: Shape = Shape::List(&KEY_SCHEMA_ELEMENT, &[MinLength(1)]);

const PROJECTION: Shape = Shape::Structure(
    "Projection",
    &[
        optional("ProjectionType", Shape::Text(&[OneOf(&["ALL", "INCLUDE", "KEYS_ONLY"])])),
        optional("NonKeyAttributes", Shape::List(&ATTRIBUTE_NAME, &[MinLength(1)])),
    ],
);

const THROUGHPUT: Shape = Shape::Structure(
    "ProvisionedThroughput",
    &[required("WriteCapacityUnits", UNITS), required("ReadCapacityUnits", UNITS)],
);

const ON_DEMAND: Shape = Shape::Structure(
    "OnDemandThroughput",
    &[
        optional("MaxReadRequestUnits", Shape::Long(&[])),
        optional("MaxWriteRequestUnits", Shape::Long(&[])),
    ],
);

const WARM: Shape = Shape::Structure(
    "WarmThroughput",
    &[
        optional("ReadUnitsPerSecond", Shape::Long(&[])),
        optional("WriteUnitsPerSecond", Shape::Long(&[])),
    ],
);

const STREAM: Shape = Shape::Structure(
    "StreamSpecification",
    &[
        required("StreamEnabled", Shape::Boolean),
        optional(
            "StreamViewType",
            Shape::Text(&[OneOf(&["NEW_IMAGE", "OLD_IMAGE", "NEW_AND_OLD_IMAGES", "KEYS_ONLY"])]),
        ),
    ],
);

const ENCRYPTION: Shape = Shape::Structure(
    "SSESpecification",
    &[
        optional("Enabled", Shape::Boolean),
        optional("SSEType", Shape::Text(&[OneOf(&["AES256", "KMS"])])),
        optional("KMSMasterKeyId", TEXT),
    ],
);

const TAGS: Shape = Shape::List(
    &Shape::Structure(
        "Tag",
        &[
            required("Key", Shape::Text(&[MinLength(1), MaxLength(128)])),
            required("Value", Shape::Text(&[MaxLength(256)])),
        ],
    ),
    &[],
);

static GLOBAL_INDEX_MEMBERS: &[Member] = &[
    required("IndexName", INDEX_NAME),
    required("KeySchema", GLOBAL_KEY_SCHEMA),
    required("Projection", PROJECTION),
    optional("ProvisionedThroughput", THROUGHPUT),
    optional("OnDemandThroughput", ON_DEMAND),
    optional("WarmThroughput", WARM),
];

pub(crate) static CREATE_TABLE: Input = Input {
    table_name: TableNameCheck::NewTable,
    members: &[
        required("AttributeDefinitions", ATTRIBUTE_DEFINITIONS),
        required("TableName", TEXT),
        optional("BillingMode", BILLING),
        optional("ProvisionedThroughput", THROUGHPUT),
        required("KeySchema", KEY_SCHEMA),
        optional(
            "LocalSecondaryIndexes",
            Shape::List(
                &Shape::Structure(
                    "LocalSecondaryIndex",
                    &[
                        required("IndexName", INDEX_NAME),
                        required("KeySchema", KEY_SCHEMA),
                        required("Projection", PROJECTION),
                    ],
                ),
                &[],
            ),
        ),
        optional(
            "GlobalSecondaryIndexes",
            Shape::List(&Shape::Structure("GlobalSecondaryIndex", GLOBAL_INDEX_MEMBERS), &[]),
        ),
        optional("StreamSpecification", STREAM),
        optional("SSESpecification", ENCRYPTION),
        optional("Tags", TAGS),
        optional("TableClass", TABLE_CLASS),
        optional("DeletionProtectionEnabled", Shape::Boolean),
        optional("OnDemandThroughput", ON_DEMAND),
        optional("WarmThroughput", WARM),
    ],
};

pub(crate) static UPDATE_TABLE: Input = Input {
    table_name: TableNameCheck::Required,
    members: &[
        required("TableName", TEXT),
        optional("AttributeDefinitions", ATTRIBUTE_DEFINITIONS),
        optional("ProvisionedThroughput", THROUGHPUT),
        optional("BillingMode", BILLING),
        optional(
            "GlobalSecondaryIndexUpdates",
            Shape::List(
                &Shape::Structure(
                    "GlobalSecondaryIndexUpdate",
                    &[
                        optional(
                            "Update",
                            Shape::Structure(
                                "UpdateGlobalSecondaryIndexAction",
                                &[
                                    required("IndexName", INDEX_NAME),
                                    optional("ProvisionedThroughput", THROUGHPUT),
                                    optional("OnDemandThroughput", ON_DEMAND),
                                    optional("WarmThroughput", WARM),
                                ],
                            ),
                        ),
                        optional(
                            "Create",
                            Shape::Structure(
                                "CreateGlobalSecondaryIndexAction",
                                GLOBAL_INDEX_MEMBERS,
                            ),
                        ),
                        optional(
                            "Delete",
                            Shape::Structure(
                                "DeleteGlobalSecondaryIndexAction",
                                &[required("IndexName", INDEX_NAME)],
                            ),
                        ),
                    ],
                ),
                &[],
            ),
        ),
        optional("StreamSpecification", STREAM),
        optional("SSESpecification", ENCRYPTION),
        optional("TableClass", TABLE_CLASS),
        optional("DeletionProtectionEnabled", Shape::Boolean),
        optional("OnDemandThroughput", ON_DEMAND),
        optional("WarmThroughput", WARM),
    ],
};

/// DeleteTable, DescribeTable and DescribeTimeToLive.
pub(crate) static ONE_TABLE: Input =
    Input { table_name: TableNameCheck::Required, members: &[required("TableName", TEXT)] };

pub(crate) static LIST_TABLES: Input = Input {
    table_name: TableNameCheck::Ordinary,
    members: &[
        optional("Limit", Shape::Integer(&[Min(1), Max(100)])),
        optional("ExclusiveStartTableName", Shape::Text(NAME_RULES)),
    ],
};

pub(crate) static UPDATE_TIME_TO_LIVE: Input = Input {
    table_name: TableNameCheck::Required,
    members: &[
        required("TableName", TEXT),
        required(
            "TimeToLiveSpecification",
            Shape::Structure(
                "TimeToLiveSpecification",
                &[required("AttributeName", ATTRIBUTE_NAME), required("Enabled", Shape::Boolean)],
            ),
        ),
    ],
};

pub(crate) static TAG_RESOURCE: Input = Input {
    table_name: TableNameCheck::Ordinary,
    members: &[required("ResourceArn", RESOURCE_ARN), required("Tags", TAGS)],
};

const RESOURCE_ARN: Shape = Shape::Text(&[MinLength(1), MaxLength(1283)]);

pub(crate) static UNTAG_RESOURCE: Input = Input {
    table_name: TableNameCheck::Ordinary,
    members: &[
        required("ResourceArn", RESOURCE_ARN),
        required("TagKeys", Shape::List(&Shape::Text(&[MinLength(1), MaxLength(128)]), &[])),
    ],
};

pub(crate) static LIST_TAGS_OF_RESOURCE: Input = Input {
    table_name: TableNameCheck::Ordinary,
    members: &[required("ResourceArn", RESOURCE_ARN), optional("NextToken", TEXT)],
};

/// DescribeLimits and DescribeEndpoints.
pub(crate) static NOTHING: Input = Input { table_name: TableNameCheck::Ordinary, members: &[] };
