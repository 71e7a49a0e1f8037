//! What a TCP segment may begin with, and who reads it.

use wire::{App, Names};

use crate::dialog::Dialog;
use crate::values::VALUE_LEN_MAX;
use crate::{Reading, Side, Step, dialog, dns, http, modbus, rdp, smb, ssh, tls};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Application {
    Tls,
    Http,
    /// A request of HTTP/0.9, on a port of HTTP or not.
    SimpleHttp {
        is_on_port: bool,
    },
    Dns,
    Ssh,
    Smb,
    Rdp,
    Modbus,
    /// FTP or SMTP, distinguished while it goes on.
    Dialog,
}

/// What a session remembers from one message to the next.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Memory {
    pub(crate) query: Option<dns::Query>,
    pub(crate) dialog: Dialog,
    /// The target of what may be a request of HTTP/0.9: the answer will show it.
    pub(crate) simple_target: Option<Box<[u8]>>,
}

impl Application {
    /// What a TCP segment begins with, by its first bytes and, where they are weak, by the ports.
    pub(crate) fn of_segment(payload: &[u8], ports: (u16, u16)) -> Option<Self> {
        let on = |port| ports.0 == port || ports.1 == port;
        if on(dns::PORT) {
            return dns::may_begin(payload).then_some(Self::Dns);
        }
        let &first = payload.first()?;
        if first.is_ascii_uppercase() {
            let is_ssh = first == b'S' && ssh::begins(payload);
            return if is_ssh {
                Some(Self::Ssh)
            } else if first == b'G' && http::simple_target(payload).is_some() {
                Some(Self::SimpleHttp { is_on_port: http::is_simple_port(ports) })
            } else {
                http::begins(payload).then_some(Self::Http)
            };
        }
        if first.is_ascii_lowercase() && http::is_rare_request(payload) {
            return Some(Self::Http);
        }
        match first {
            tls::HANDSHAKE | tls::ALERT if tls::begins(payload) => Some(Self::Tls),
            b'2' if dialog::begins(payload) => Some(Self::Dialog),
            rdp::TPKT if rdp::begins(payload) => Some(Self::Rdp),
            0 if smb::begins(payload) => Some(Self::Smb),
            _ if on(modbus::PORT) && modbus::begins(payload) => Some(Self::Modbus),
            _ => dns::is_tcp_message(payload).then_some(Self::Dns),
        }
    }

    /// Whether its messages are put together from several segments.
    pub(crate) fn is_collected(self) -> bool {
        !matches!(self, Self::Smb | Self::Modbus | Self::SimpleHttp { .. })
    }

    /// Reads one message from the start of `bytes`.
    pub(crate) fn read(
        self,
        bytes: &[u8],
        reading: Reading,
        names: &mut Names,
        memory: &mut Memory,
    ) -> Step {
        let (app, step) = match self {
            Self::Tls => (App::Tls, tls::read(bytes, reading.is_last, names)),
            Self::Http => return http::read(bytes, reading.is_last, names),
            Self::SimpleHttp { is_on_port } => {
                let Some(target) = http::simple_target(bytes) else { return Step::Foreign };
                if is_on_port {
                    http::keep_simple(target, names);
                } else if reading.side == Side::Orig {
                    // No more than is kept of a value.
                    let target = target.get(..VALUE_LEN_MAX).unwrap_or(target);
                    memory.simple_target = Some(target.into());
                }
                return Step::Done(bytes.len());
            }
            Self::Dns => (App::Dns, dns::read_tcp(bytes, reading, names, &mut memory.query)),
            Self::Ssh => (App::Ssh, ssh::read(bytes, reading, names)),
            Self::Smb => (App::Smb, smb::read(bytes, names)),
            Self::Rdp => (App::Rdp, rdp::read(bytes, reading.is_last, names)),
            Self::Modbus => (App::Modbus, modbus::read(bytes, names)),
            Self::Dialog => return dialog::read(bytes, reading, names, &mut memory.dialog),
        };
        if let Step::Done(_) = step {
            names.app.get_or_insert(app);
        }
        step
    }
}
