//! The port to keys on Redis or Valkey, one server or a cluster.
