//! A network namespace for one program, with a way out through this machine.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use crate::Error;
use crate::forwarding::{Forwarding, turn_on_for_good};
use crate::guard::{Guard, end_all, processes_in};
use crate::namespace::{new_namespace, within};
use crate::nat::{Rules, Translation};
use crate::route;

/// The interface inside.
const INSIDE: &str = "eth0";
/// Networks of four addresses are taken from here: private ones that few use.
const FIRST_NETWORK: Ipv4Addr = Ipv4Addr::new(10, 213, 0, 0);
const NETWORKS: u32 = 1 << 14;
const PREFIX: u8 = 30;

/// How packets leave this machine.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Way {
    /// The interface by which they leave.
    pub interface: String,
}

impl Way {
    /// That of the default route of IPv4, if there is one.
    pub fn default_route() -> Result<Option<Self>, Error> {
        let routes = route::routes().map_err(|error| Error::system("list the routes", error))?;
        let way = routes.into_iter().find(route::Route::is_default);
        Ok(way.map(|route| Self { interface: route.interface }))
    }
}

/// A namespace whose programs reach the world by IPv4 through this machine, which translates their
/// address (`nf_tables`). Nothing of it stays when this value is dropped, or when this process is
/// killed: the programs inside end, and settings of this machine are as they were.
#[derive(Debug)]
pub struct Enclosure {
    namespace: File,
    inode: u64,
    address: Ipv4Addr,
    // Removed in this order: rules, then everything else by the guard.
    _translation: Translation,
    _guard: Guard,
}

impl Enclosure {
    /// Makes one.
    ///
    /// # Errors
    /// This process has several threads; or something of it cannot be made.
    pub fn new(way: &Way) -> Result<Self, Error> {
        let fail = |operation| move |error: io::Error| Error::system(operation, error);
        let (ours, theirs) = free_network().map_err(fail("find a free network"))?;
        let namespace = new_namespace()?;
        let inode = namespace.metadata().map_err(fail("look at a network namespace"))?.ino();
        let outer = format!("trace{}", std::process::id());
        let forwarding = Forwarding::turn_on(&way.interface)
            .map_err(|error| Error::system("turn on forwarding of the interface", error))?;
        let guard = Guard::start(|| {
            end_all(inode);
            route::remove(&outer).unwrap_or_default();
            forwarding.restore();
        });
        let guard = guard.map_err(fail("start a process that clears up"))?;
        connect(&outer, ours, &namespace).map_err(fail("make a pair of interfaces"))?;
        within(&namespace, || {
            route::bring_up("lo")?;
            route::add_address(INSIDE, theirs, PREFIX)?;
            route::bring_up(INSIDE)?;
            route::add_default_route(ours)
        })?
        .map_err(fail("set up the network of a namespace"))?;
        let only = forwarding.is_changed().then_some([&*way.interface, &*outer]);
        let table = format!("wirespool_{outer}");
        let translation = Translation::new(Rules { table: &table, source: theirs, only })
            .map_err(fail("translate addresses by nf_tables"))?;
        Ok(Self { namespace, inode, address: theirs, _translation: translation, _guard: guard })
    }

    /// The address of the programs inside.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The interface that they see.
    pub fn interface(&self) -> &'static str {
        INSIDE
    }

    /// Does something inside, on a thread that ends with it; programs that it starts are inside,
    /// too.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Result<T, Error> {
        within(&self.namespace, work)
    }

    /// Numbers of the processes inside; who only looks inside by [`Self::within`] is not among
    /// them.
    pub fn processes(&self) -> Vec<u32> {
        processes_in(self.inode)
    }
}

/// Makes the pair, gives our end its address, and has it forward.
fn connect(outer: &str, ours: Ipv4Addr, namespace: &File) -> io::Result<()> {
    route::add_pair(outer, INSIDE, namespace.as_raw_fd())?;
    // As inside.
    drop(fs::write(format!("/proc/sys/net/ipv6/conf/{outer}/disable_ipv6"), "1"));
    route::add_address(outer, ours, PREFIX)?;
    route::bring_up(outer)?;
    turn_on_for_good(outer)
}

/// Both usable addresses of a network that no route of this machine leads to.
fn free_network() -> io::Result<(Ipv4Addr, Ipv4Addr)> {
    let routes = route::routes()?;
    let process = std::process::id();
    let network = |number: u32| {
        let number = process.wrapping_add(number) % NETWORKS;
        Ipv4Addr::from(u32::from(FIRST_NETWORK) + number * 4)
    };
    let is_free = |first: &Ipv4Addr| !routes.iter().any(|route| route.meets(*first, PREFIX));
    let first = (0..NETWORKS).map(network).find(is_free);
    let first = u32::from(first.ok_or(io::ErrorKind::AddrInUse)?);
    Ok((Ipv4Addr::from(first + 1), Ipv4Addr::from(first + 2)))
}
