//! What the counters of the interfaces say of them: down, up again, losing packets, no more.

use events::{EventKind, Events};
use recording::Account;
use units::{NANOS_PER_SECOND, Timestamp};

/// Drops have ended when there were none for so long.
const CALM_NS: i64 = 5 * NANOS_PER_SECOND;

/// Where packets are lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Place {
    Card,
    Kernel,
    Pool,
}

impl Place {
    const ALL: [Self; 3] = [Self::Card, Self::Kernel, Self::Pool];

    fn count(self, account: &Account) -> u64 {
        match self {
            Self::Card => account.interface_drops.unwrap_or_default(),
            Self::Kernel => account.kernel_drops,
            Self::Pool => account.writer_drops,
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Card => "card or driver",
            Self::Kernel => "kernel ring full",
            Self::Pool => "pool exhausted: the disks do not keep up",
        }
    }
}

/// Packets that are lost at one place.
#[derive(Clone, Copy, Debug, Default)]
struct Drops {
    counted: u64,
    /// When they began, and how many there were before; and the last time that there were more.
    under_way: Option<(Timestamp, u64, i64)>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Link {
    times_down: u64,
    is_away: bool,
    drops: [Drops; 3],
}

/// Compares the accounts of one look with those of the look before.
#[derive(Debug, Default)]
pub(crate) struct Links {
    links: Vec<Link>,
}

impl Links {
    pub(crate) fn look(
        &mut self,
        accounts: &[Account],
        (now_ns, at): (i64, Timestamp),
        events: &Events,
    ) {
        if self.links.len() < accounts.len() {
            self.links.resize(accounts.len(), Link::default());
        }
        for (link, account) in self.links.iter_mut().zip(accounts) {
            link.look_at_state(account, events);
            for (place, drops) in Place::ALL.into_iter().zip(&mut link.drops) {
                drops.look((place, account), (now_ns, at), events);
            }
        }
    }
}

impl Link {
    fn look_at_state(&mut self, account: &Account, events: &Events) {
        let before = *self;
        (self.times_down, self.is_away) = (account.times_down, account.is_away);
        let name = &account.name;
        let went_down = account.times_down > before.times_down;
        if went_down {
            let text =
                format!("interface {name} is down: until it is up again nothing is stored of it");
            events.say(EventKind::InterfaceDown, name, text);
        }
        if !account.is_away && (before.is_away || went_down) {
            let text = format!("interface {name} is up again; what passed meanwhile is not stored");
            events.say(EventKind::InterfaceUp, name, text);
        }
    }
}

impl Drops {
    fn look(
        &mut self,
        (place, account): (Place, &Account),
        (now_ns, at): (i64, Timestamp),
        events: &Events,
    ) {
        let (before, count) = (self.counted, place.count(account));
        self.counted = count;
        let name = match &*account.name {
            "" => "the input",
            name => name,
        };
        let (words, subject) = (place.words(), format!("{name} {place:?}"));
        match self.under_way {
            None if count > before => {
                self.under_way = Some((at, before, now_ns));
                let packets = count - before;
                let text = format!("{name} loses packets ({words}): {packets} so far");
                events.say(EventKind::DropsBegin, &subject, text);
            }
            Some((since, base, _)) if count > before => {
                self.under_way = Some((since, base, now_ns));
            }
            Some((since, base, last_ns)) if now_ns.saturating_sub(last_ns) >= CALM_NS => {
                self.under_way = None;
                let packets = count.saturating_sub(base);
                let text = format!(
                    "{name} lost packets ({words}) and loses no more: {packets} since {since}"
                );
                events.say(EventKind::DropsEnd, &subject, text);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(links: &mut Links, seconds: i64, account: Account) -> Vec<(EventKind, String)> {
        let events = Events::default();
        let account = Account { name: "eth0".to_owned(), ..account };
        let now = (seconds * NANOS_PER_SECOND, Timestamp(seconds * NANOS_PER_SECOND));
        links.look(&[account], now, &events);
        events.take().into_iter().map(|news| (news.kind, news.text)).collect()
    }

    #[test]
    fn drops_are_said_when_they_begin_and_when_they_have_ended() {
        let mut links = Links::default();
        let lossy = |kernel_drops| Account { kernel_drops, ..Account::default() };
        assert!(said(&mut links, 0, lossy(0)).is_empty());
        let begun = said(&mut links, 1, lossy(3));
        let line = "eth0 loses packets (kernel ring full): 3 so far";
        assert_eq!(begun, [(EventKind::DropsBegin, line.to_owned())]);
        assert!(
            said(&mut links, 4, lossy(10)).is_empty() && said(&mut links, 8, lossy(10)).is_empty()
        );
        let ended = said(&mut links, 9, lossy(10));
        let [(EventKind::DropsEnd, line)] = &ended[..] else { panic!("{ended:?}") };
        assert!(
            line.contains("(kernel ring full) and loses no more: 10 since 1970-01-01"),
            "{line}"
        );
        assert!(said(&mut links, 20, lossy(10)).is_empty());
        assert_eq!(said(&mut links, 21, lossy(11)).len(), 1);
    }

    #[test]
    fn each_place_of_drops_is_told_apart() {
        let mut links = Links::default();
        let all = Account {
            kernel_drops: 1,
            writer_drops: 1,
            interface_drops: Some(1),
            ..<_>::default()
        };
        let told = said(&mut links, 0, all);
        assert_eq!(told.len(), 3, "{told:?}");
    }

    #[test]
    fn an_interface_is_down_and_up_also_where_that_was_between_two_looks() {
        let mut links = Links::default();
        let link = |is_away, times_down| Account { is_away, times_down, ..Account::default() };
        let kinds =
            |said: Vec<(EventKind, String)>| said.into_iter().map(|it| it.0).collect::<Vec<_>>();
        assert!(said(&mut links, 0, link(false, 0)).is_empty());
        assert_eq!(kinds(said(&mut links, 1, link(true, 1))), [EventKind::InterfaceDown]);
        assert!(said(&mut links, 2, link(true, 1)).is_empty());
        assert_eq!(kinds(said(&mut links, 3, link(false, 1))), [EventKind::InterfaceUp]);
        let both = [EventKind::InterfaceDown, EventKind::InterfaceUp];
        assert_eq!(kinds(said(&mut links, 4, link(false, 2))), both);
        // One that is removed is away for good, and was not down.
        assert!(said(&mut links, 5, link(true, 2)).is_empty());
    }
}
