//! Removing the bytes of deleted keys from every file of a store.

use bytes::Bytes;

/// What to delete for good.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PurgeKeys {
    /// Whole keys, by database.
    pub keys: Vec<(u8, Bytes)>,
    /// Members of collections, by database and key: a field of a hash, a member of a set or of a
    /// sorted set, every element of a list that is equal to it, the entry of a stream with this ID.
    pub members: Vec<(u8, Bytes, Bytes)>,
    /// Also every byte of what was deleted or overwritten before, of all owners: all files are
    /// rewritten, and not only those of the keys that are named here. Keys that were deleted, that
    /// expired or were renamed before anybody asked for a purge are in no list. SLOWLOG and ACL LOG
    /// are emptied.
    pub remains: bool,
    /// Only delete them, here and not in checkpoints. The bytes stay until somebody purges the
    /// remains: for those who have more to delete before that. The logs are emptied at once.
    pub files_later: bool,
}
