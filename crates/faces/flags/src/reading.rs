//! Flags of every verb that reads a volume.

use core::time::Duration;
use std::path::PathBuf;

use ::extract::Options;
use ::packet_output::MergeMemory;
use clap::Args;
use indexer::Workers;

use crate::arguments::{self, KeyFlags};
use crate::failure::warn;
use crate::recorder;
use crate::remote::first_given;

/// Flags that find and extract share.
#[derive(Debug, Args)]
pub struct ReadingFlags {
    /// Another member, or a folder of such, where it is not found by itself; may be given several
    /// times
    #[arg(long = "member", value_name = "PATH")]
    members: Vec<PathBuf>,
    /// Where index files are cached
    #[arg(long, value_name = "DIR")]
    index_dir: Option<PathBuf>,
    /// Show rows whose packets are overwritten, as far back as this
    #[arg(long, value_name = "TIME", value_parser = arguments::duration)]
    keep_sessions: Option<Duration>,
    /// Take the VLAN id as part of a session's key in packets without an index; an index has its
    /// own key
    #[arg(long)]
    vlan_in_key: bool,
    #[command(flatten)]
    keys: KeyFlags,
}

impl ReadingFlags {
    /// The first of them that was given: they are about files of this machine.
    pub fn given(&self) -> Option<&'static str> {
        let flags = [
            (!self.members.is_empty(), "--member"),
            (self.index_dir.is_some(), "--index-dir"),
            (self.keep_sessions.is_some(), "--keep-sessions"),
            (self.vlan_in_key, "--vlan-in-key"),
            (self.keys.is_given(), "--identity"),
        ];
        first_given(&flags)
    }

    /// Members that were named and have a superblock.
    pub fn members(&self) -> Vec<PathBuf> {
        let is_usable = |path: &&PathBuf| !volume::lacks_superblock(path);
        self.members.iter().filter(is_usable).cloned().collect()
    }

    /// What a recorder of the volume has taken so far can be read, too.
    pub fn catch_up(&self, options: &mut Options) {
        options.is_recorded = recorder::catch_up(&options.volume, &self.members());
    }

    /// A member that was named and is none, half made or overwritten, is left to the others.
    pub fn options(&self, volume: PathBuf) -> anyhow::Result<Options> {
        let members = self.members();
        for path in self.members.iter().filter(|path| !members.contains(path)) {
            let path = page::safe::path(path);
            warn(&format!("{path} has no superblock of a volume: it was left out"));
        }
        // Before any output is begun.
        self.index_dir.iter().for_each(|folder| host::keep_folder(folder));
        Ok(Options {
            recorder: recorder::beginning(volume.clone(), members.clone()),
            volume,
            members,
            index_dir: self.index_dir.clone(),
            keep_sessions: self.keep_sessions,
            vlan_in_key: self.vlan_in_key,
            workers: Workers::default(),
            is_recorded: false,
            merge: MergeMemory::default(),
            identities: self.keys.identities()?,
        })
    }
}
