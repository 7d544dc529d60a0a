//! Replies with members and scores: flat in RESP2, in pairs in RESP3.

use crate::command_spec::Context;
use crate::reply::Out;

/// The head of a list of so many members.
pub(super) fn head(context: &mut Context<'_, '_>, members: usize, with_scores: bool) {
    context.out.array(len(context.client.resp3, members, with_scores));
}

/// How long a list of so many members is.
pub(super) fn len(resp3: bool, members: usize, with_scores: bool) -> usize {
    if with_scores && !resp3 { 2 * members } else { members }
}

/// One member.
pub(super) fn member(out: Out<'_>, resp3: bool, member: &[u8], score: f64, with_score: bool) {
    if with_score && resp3 {
        out.array(2);
    }
    out.bulk(member);
    if with_score {
        out.double(score);
    }
}
