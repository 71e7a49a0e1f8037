//! A process that runs, those that it starts, and the sockets that they open.
//!
//! Members are followed by what the kernel reports of processes that start and end, where it may be
//! listened to; else by looks, which miss one that ends between two.

use std::collections::BTreeSet;
use std::sync::Arc;

use network::sockets::{Endpoint, Owner, Owners, endpoints, family};
use observe::tracepoints::{self, NotTraced};

use crate::belongings::{Ends, Opened, Seen};
use crate::names::Names;

/// Members that are followed at a time.
const MEMBERS_MAX: usize = 1 << 16;
/// A process that is gone has ended: its name comes with the report of that, which is under way.
const TRIES: u32 = 8;
/// Sockets that wait for the name of their process.
const NAMELESS_MAX: usize = 1 << 12;

/// A process and those that it starts.
#[derive(Debug)]
pub struct Family {
    first: u32,
    members: BTreeSet<u32>,
    kernel: Result<tracepoints::Openers, NotTraced>,
    names: Names,
    owners: Owners,
    /// Sockets of processes without a name, and how often it may still be asked for.
    nameless: Vec<(u32, Ends, u32)>,
}

impl Family {
    /// The family of a process; `None` where there is no such process.
    pub fn of(first: u32) -> Option<Self> {
        // First, so that no child is born between the two.
        let kernel = tracepoints::Openers::open();
        let members = family(first);
        let (names, owners, nameless) = (Names::default(), Owners::default(), Vec::new());
        let new = Self { first, members, kernel, names, owners, nameless };
        (!new.members.is_empty()).then_some(new)
    }

    /// What it takes to be told by the kernel, where it does not tell.
    pub fn needs(&self) -> Option<String> {
        self.kernel.as_ref().err().map(ToString::to_string)
    }

    /// The sockets of the namespace that this thread is in.
    ///
    /// # Errors
    /// They cannot be listed.
    pub fn look(&mut self) -> Result<Seen, network::Error> {
        let now = family(self.first);
        match &self.kernel {
            // Who has ended is reported, and may have ended since `now`.
            Ok(_) => self.members.extend(now),
            // At its end its sockets may still be asked for.
            Err(_) if !now.is_empty() => self.members = now,
            Err(_) => {}
        }
        let endpoints = endpoints()?;
        // Of a socket that several processes have, that of a member counts.
        self.owners.prefer(&self.members);
        self.owners.learn(endpoints.iter().map(|endpoint| endpoint.inode));
        let owned = endpoints.into_iter().filter_map(|endpoint: Endpoint| {
            let owner = self.owners.get(endpoint.inode)?;
            Some((endpoint, self.members.contains(&owner.process).then(|| Arc::clone(owner))))
        });
        Ok(Seen { sockets: owned.collect(), only: None })
    }

    /// What members and others have opened since the last time.
    pub fn opened(&mut self) -> Vec<Opened> {
        let Ok(kernel) = &mut self.kernel else { return Vec::new() };
        let happened = kernel.read();
        let ends = happened.iter().filter_map(|one| match one {
            tracepoints::Opened::Ended { process, name } => Some((*process, name.clone())),
            _ => None,
        });
        self.names.end(ends.collect());
        let waiting = core::mem::take(&mut self.nameless);
        let mut opened: Vec<Opened> = waiting
            .into_iter()
            .filter_map(|(process, ends, tries)| self.named(process, ends, tries))
            .collect();
        opened.extend(happened.iter().filter_map(|one| self.take(one)));
        opened
    }

    fn take(&mut self, happened: &tracepoints::Opened) -> Option<Opened> {
        let (process, ends) = match *happened {
            tracepoints::Opened::Connection { process, ends } => (process, Ends::Connection(ends)),
            tracepoints::Opened::Sender { process, protocol, port, remote } => {
                (process, Ends::Sender { protocol, port, remote })
            }
            tracepoints::Opened::Listener { process, at } => (process, Ends::Listener(at)),
            tracepoints::Opened::Forked { parent, child } => {
                // Of a thread the number is never a process's, as long as it is there.
                if self.members.contains(&parent) && self.members.len() < MEMBERS_MAX {
                    self.members.insert(child);
                }
                return None;
            }
            tracepoints::Opened::Ended { process, .. } => {
                self.members.remove(&process);
                self.names.forget(&[process]);
                return None;
            }
        };
        if self.members.contains(&process) {
            self.named(process, ends, TRIES)
        } else {
            Some(Opened { ends, owner: None })
        }
    }

    /// A socket of a member, as soon as the name of that is known.
    fn named(&mut self, process: u32, ends: Ends, tries: u32) -> Option<Opened> {
        self.names.meet(process);
        let owner = self.names.owner(process);
        let owner = owner.unwrap_or_else(|| Arc::new(Owner { process, name: String::new() }));
        if owner.name.is_empty() && tries > 0 && self.nameless.len() < NAMELESS_MAX {
            self.nameless.push((process, ends, tries - 1));
            return None;
        }
        Some(Opened { ends, owner: Some(owner) })
    }
}
