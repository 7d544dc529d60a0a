//! The port to items on a service that speaks DynamoDB's protocol: Amazon DynamoDB, ScyllaDB Alternator,
//! DynamoDB Local, or another KeystoneDB.
