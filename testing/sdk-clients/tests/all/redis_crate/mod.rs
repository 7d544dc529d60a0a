//! What a learning platform keeps in Redis, through the `redis` crate: a door in a process of its
//! own that promises `sync`, on a folder. Whatever was answered is checked before the process is
//! killed with SIGKILL and after it was started again, TTLs included.

mod behaviour;
mod practice;
mod reviews;
mod support;
