//! A network namespace for one program, with a way out through this machine.

use std::fs::{self, File};
use std::io;
use std::net::Ipv4Addr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;

use crate::Error;
use crate::forwarding::{Family, Forwarding, turn_on_for_good};
use crate::guard::{Guard, end_all, processes_in};
use crate::ipv6::Six;
use crate::link::interfaces;
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
    /// That by which those of IPv6 leave, if they do.
    pub interface_6: Option<String>,
}

impl Way {
    /// That of the default route of IPv4, if there is one.
    pub fn default_route() -> Result<Option<Self>, Error> {
        let routes = route::routes().map_err(|error| Error::system("list the routes", error))?;
        let way = routes.into_iter().find(route::Route::is_default);
        let interface_6 = route::default_interface_6();
        Ok(way.map(|route| Self { interface: route.interface, interface_6 }))
    }

    /// By this interface; IPv6 only where its default route is by it, too.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn by(interface: String) -> Result<Self, Error> {
        if !interfaces()?.contains(&interface) {
            return Err(Error::NoInterface { interface });
        }
        let interface_6 = route::default_interface_6().filter(|six| *six == interface);
        Ok(Self { interface, interface_6 })
    }
}

/// A namespace whose programs reach the world through this machine, which translates their
/// addresses (`nf_tables`): by IPv4, and by IPv6 where this machine has a way. Nothing of it stays
/// when this value is dropped, or when this process is killed: the programs inside end, and
/// settings of this machine are as they were.
#[derive(Debug)]
pub struct Enclosure {
    namespace: File,
    inode: u64,
    /// Our end of the pair.
    outer: String,
    address: Ipv4Addr,
    /// This machine has a way by IPv6, and the programs do not.
    lacks_ipv6: bool,
    // Removed in this order: rules, then everything else by the guard.
    _translations: Vec<Translation>,
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
        let forwarding = Forwarding::turn_on(&way.interface, Family::Four)
            .map_err(|error| Error::system("turn on forwarding of the interface", error))?;
        // Without IPv6 there is IPv4.
        let six = way.interface_6.as_deref().and_then(|via| Six::turn_on(via, theirs).ok()?);
        let guard = Guard::start(|| {
            end_all(inode);
            route::remove(&outer).unwrap_or_default();
            forwarding.restore();
            six.iter().for_each(Six::restore);
        });
        let guard = guard.map_err(fail("start a process that clears up"))?;
        // What waits until the other end's address of Ethernet is known is sent then, and nobody
        // can tell any more by whom. So nothing waits.
        let station = connect(&outer, ours, &namespace);
        let station = station.map_err(fail("make a pair of interfaces"))?;
        within(&namespace, || {
            route::bring_up("lo")?;
            route::add_address(INSIDE, theirs.into(), PREFIX)?;
            route::bring_up(INSIDE)?;
            route::add_default_route(ours.into())?;
            route::add_neighbour(INSIDE, ours.into(), &station)
        })?
        .map_err(fail("set up the network of a namespace"))?;
        let only = forwarding.is_changed().then_some([&*way.interface, &*outer]);
        let table = format!("wirespool_{outer}");
        let rules = Rules { table: &table, source: theirs.into(), only };
        let translation =
            Translation::new(rules).map_err(fail("translate addresses by nf_tables"))?;
        let by_six = six.and_then(|six| {
            six.set_up_outside(&outer).ok()?;
            let inside = || {
                six.set_up_inside(INSIDE)?;
                route::add_neighbour(INSIDE, six.gateway().into(), &station)
            };
            within(&namespace, inside).ok()?.ok()?;
            six.translate(&format!("{table}_6"), &outer).ok()
        });
        let lacks_ipv6 = way.interface_6.is_some() && by_six.is_none();
        let translations = [translation].into_iter().chain(by_six).collect();
        Ok(Self {
            namespace,
            inode,
            outer,
            address: theirs,
            lacks_ipv6,
            _translations: translations,
            _guard: guard,
        })
    }

    /// Whether this machine has a way by IPv6 that the programs inside have not: its kernel
    /// forwards IPv6 for all interfaces or for none (before Linux 6.17), and does for none.
    pub fn lacks_ipv6(&self) -> bool {
        self.lacks_ipv6
    }

    /// The address of the programs inside.
    pub fn address(&self) -> Ipv4Addr {
        self.address
    }

    /// The other end of the interface that they see, which has a name of its own on this machine.
    pub fn outer_interface(&self) -> &str {
        &self.outer
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

/// Makes the pair, gives our end its address, and has it forward; gives its address of Ethernet.
fn connect(outer: &str, ours: Ipv4Addr, namespace: &File) -> io::Result<Vec<u8>> {
    route::add_pair(outer, INSIDE, namespace.as_raw_fd())?;
    // As inside, until it is known that there is a way.
    drop(fs::write(format!("/proc/sys/net/ipv6/conf/{outer}/disable_ipv6"), "1"));
    route::add_address(outer, ours.into(), PREFIX)?;
    route::bring_up(outer)?;
    turn_on_for_good(outer, Family::Four)?;
    route::station_of(outer)
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
