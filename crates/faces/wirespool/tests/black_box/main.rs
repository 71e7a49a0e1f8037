//! The binary as its users meet it.
//!
//! One program for all of these tests, so that there is one to link. What a machine does not allow
//! is not tested there and said: "not run: reason".

#![expect(clippy::unwrap_used, reason = "helpers of tests")]
#![expect(clippy::print_stdout, reason = "tests say why they did not run")]
#![expect(clippy::disallowed_methods, reason = "tests look at the clock and open files")]

mod anchors;
mod approval;
mod archive;
mod asked;
mod attacked;
mod bench;
mod clients;
mod confinement;
mod demo;
mod diagnose;
mod diagnose_calls;
mod diagnose_io;
mod diagnose_page;
mod discards;
mod encrypted;
mod engine;
mod evidence;
mod examples;
mod forget;
mod fuse;
mod golden;
mod guards;
mod handover;
mod hang;
mod holes;
mod hostile;
mod import;
mod indexer;
mod layout;
mod lines;
mod live_hold;
mod long_sessions;
mod machine;
mod members;
mod neighbours;
mod order;
mod page;
mod pivots;
mod prove;
mod pseudonyms;
mod qualify;
mod questions;
mod reforged;
mod refusals;
mod replay;
mod restored;
mod retention;
mod running;
mod said;
mod schema;
mod selection;
mod serve;
mod service;
mod setup;
mod slow_disks;
mod sockets;
mod spared;
mod standing;
mod stenographer;
mod strangers;
mod supervised;
mod surroundings;
mod tap;
mod top;
mod trace;
mod turnover;
mod two_writers;
mod verbs;
mod whole;
mod wire_names;
mod wireshark;
mod wrong_clock;
