//! UDP payload: each is a message of its own.

use wire::App;

use crate::findings::Findings;
use crate::payload::Datagram;
use crate::search::{ATTEMPT_COUNT_MAX, Interest, LOOK_LEN_MAX, Search, Stage};
use crate::{Budget, Reading, Step, dhcp, dns, http, ntp, quic};

const DNS_PORTS: [u16; 3] = [dns::PORT, 5353, 5355];

/// Its messages have the form of DNS and another meaning (RFC 1002 4.2).
const NETBIOS_NAME_PORT: u16 = 137;

/// Looks at a UDP payload. The search is made when there is something to keep.
pub fn datagram(
    findings: &mut Findings,
    interest: &mut Interest,
    datagram: &Datagram<'_>,
    budget: &mut Budget,
) {
    let payload = datagram.payload.get(..LOOK_LEN_MAX).unwrap_or(datagram.payload);
    let datagram = &Datagram { payload, ..*datagram };
    let (from, to) = datagram.ports;
    let on = |port| from == port || to == port;
    let is_dns_port = DNS_PORTS.into_iter().any(on);
    if is_dns_port || !on(NETBIOS_NAME_PORT) && dns::is_message(datagram.payload) {
        if dns::may_be_message(datagram.payload)
            && findings.with(interest, budget, |search, _| read_dns(search, datagram))
                != Some(false)
        {
            // A question waits for its answer, which comes soon.
            findings.rest(interest, budget);
            return;
        }
    } else if quic::begins(datagram.payload)
        && (quic::may_begin_connection(datagram.payload)
            || interest.has_search() && findings.is_open_and(|search| search.quic.is_some()))
    {
        let read = |search: &mut Search, budget: &mut Budget| read_quic(search, datagram, budget);
        if findings.with(interest, budget, read) == Some(true) {
            findings.rest(interest, budget);
            *interest = Interest::NONE;
        }
        return;
    } else if begins(datagram)
        && findings.with(interest, budget, |search, _| read_other(search, datagram)) != Some(false)
    {
        findings.rest(interest, budget);
        return;
    }
    let is_named = |search: &Search| search.names.app.is_some();
    let found =
        interest.stage == Stage::Named || interest.has_search() && findings.is_open_and(is_named);
    if !found {
        interest.attempts = (interest.attempts + 1).min(ATTEMPT_COUNT_MAX);
    }
}

fn read_dns(search: &mut Search, datagram: &Datagram<'_>) -> bool {
    let Datagram { side, time_ns, payload, .. } = *datagram;
    let reading = Reading { side, time_ns, is_last: true };
    let is_read = dns::read(payload, reading, &mut search.names, &mut search.memory.query);
    if is_read {
        search.names.app.get_or_insert(App::Dns);
    }
    is_read
}

/// True when all is read that can be.
fn read_quic(search: &mut Search, datagram: &Datagram<'_>, budget: &mut Budget) -> bool {
    let quic = search.quic.get_or_insert_default();
    let is_over = quic.read(datagram, &mut search.names, budget);
    if is_over && let Some(quic) = search.quic.take() {
        quic.free(budget);
    }
    is_over
}

/// A cheap look before a search is made.
fn begins(datagram: &Datagram<'_>) -> bool {
    let payload = datagram.payload;
    http::begins(payload) || dhcp::begins(payload) || ntp::begins(payload, datagram.ports)
}

fn read_other(search: &mut Search, datagram: &Datagram<'_>) -> bool {
    let (payload, names) = (datagram.payload, &mut search.names);
    if dhcp::begins(payload) {
        dhcp::read(payload, names);
        names.app.get_or_insert(App::Dhcp);
    } else if ntp::begins(payload, datagram.ports) {
        ntp::read(payload, names);
        names.app.get_or_insert(App::Ntp);
    } else {
        return http::read(payload, true, names) != Step::Foreign;
    }
    true
}
