//! Commands about replication, cluster and modules, which this server does not have: the replies of
//! a standalone Redis.

use crate::args;
use crate::command_spec::{Command, Context, Flow, Run, flag::*};
use crate::fault::{Fault, Result};

const ADMINS: u32 = NO_DATA | ADMIN | NOSCRIPT;

pub(super) const CLUSTER: &[Command] = &[
    Command::new("cluster|addslots", -3, ADMINS, "", Run::Keys(no_cluster)),
    Command::new("cluster|countkeysinslot", 3, NO_DATA, "", Run::Keys(no_cluster)),
    Command::new("cluster|failover", -2, ADMINS, "", Run::Keys(no_cluster)),
    Command::new("cluster|forget", 3, ADMINS, "", Run::Keys(no_cluster)),
    Command::new("cluster|getkeysinslot", 4, NO_DATA, "", Run::Keys(no_cluster)),
    Command::new("cluster|help", 2, NO_DATA, "", Run::Keys(cluster_help)),
    Command::new("cluster|info", 2, NO_DATA, "", Run::Keys(no_cluster)),
    Command::new("cluster|keyslot", 3, NO_DATA, "", Run::Keys(no_cluster)),
    Command::new("cluster|meet", -4, ADMINS, "", Run::Keys(no_cluster)),
    Command::new("cluster|myid", 2, NO_DATA, "", Run::Keys(no_cluster)),
    Command::new("cluster|nodes", 2, NO_DATA, "", Run::Keys(no_cluster)),
    Command::new("cluster|replicas", 3, ADMINS, "", Run::Keys(no_cluster)),
    Command::new("cluster|reset", -2, ADMINS, "", Run::Keys(no_cluster)),
    Command::new("cluster|setslot", -4, ADMINS, "", Run::Keys(no_cluster)),
    Command::new("cluster|shards", 2, NO_DATA, "", Run::Keys(no_cluster)),
    Command::new("cluster|slots", 2, NO_DATA, "", Run::Keys(no_cluster)),
];

pub(super) const MODULE: &[Command] = &[
    Command::new("module|help", 2, NO_DATA, "", Run::Keys(module_help)),
    Command::new("module|list", 2, NO_DATA | ADMIN | NOSCRIPT, "", Run::Keys(no_modules)),
    Command::new("module|load", -3, ADMINS, "", Run::Keys(cannot_load)),
    Command::new("module|loadex", -3, ADMINS, "", Run::Keys(cannot_load)),
    Command::new("module|unload", 3, ADMINS, "", Run::Keys(cannot_load)),
];

fn no_cluster(_: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    Err(Fault::fixed("ERR This instance has cluster support disabled"))
}

fn cluster_help(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let lines = [("INFO", "Whether this server is part of a cluster: it is not.")];
    crate::commands::help(context, "CLUSTER", &lines)
}

fn no_modules(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    context.out.array(0);
    Ok(Flow::Done)
}

fn cannot_load(_: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    Err(Fault::fixed("ERR modules of Redis cannot be loaded into this server"))
}

fn module_help(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    let lines = [("LIST", "The modules that are loaded: always none.")];
    crate::commands::help(context, "MODULE", &lines)
}

pub(super) fn role(context: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    context.out.array(3);
    context.out.bulk(b"master");
    context.out.integer(0);
    context.out.array(0);
    Ok(Flow::Done)
}

pub(super) fn replica_of(context: &mut Context<'_, '_>, given: &[&[u8]]) -> Result<Flow> {
    match given {
        [_, no, one] if args::is(no, "no") && args::is(one, "one") => context.out.reply_ok(),
        _ => Err(Fault::fixed("ERR this server cannot be a replica of another one")),
    }
}

pub(super) fn fail_over(_: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    Err(Fault::fixed("ERR FAILOVER requires connected replicas."))
}

pub(super) fn no_replicas(_: &mut Context<'_, '_>, _: &[&[u8]]) -> Result<Flow> {
    Err(Fault::fixed("ERR this server does not feed replicas"))
}
