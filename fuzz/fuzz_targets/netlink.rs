//! Datagrams of sock_diag and rtnetlink.
#![no_main]

use fuzz::costs;

fuzz::binary!(costs::NETLINK, |input| network::untrusted::netlink(input));
