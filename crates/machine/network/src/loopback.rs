//! A little traffic of our own on the loopback interface, for demonstrations.

use core::net::Ipv4Addr;
use core::time::Duration;
use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};

use crate::Error;

/// Nothing here waits longer for the other end.
const PATIENCE: Duration = Duration::from_secs(2);

const REQUEST: &[u8] = b"GET /hello HTTP/1.1\r\nHost: demo.wirespool.example\r\n\
                         User-Agent: wirespool-demo\r\nConnection: close\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\
                          Content-Length: 6\r\nConnection: close\r\n\r\nhello\n";

/// Where the traffic was: ports on 127.0.0.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conversation {
    /// Of the HTTP server.
    pub tcp_port: u16,
    /// Of the UDP echo.
    pub udp_port: u16,
}

/// One HTTP request with its response, and `datagrams` UDP datagrams with their echoes, between
/// sockets of this process.
pub fn converse(datagrams: u8) -> Result<Conversation, Error> {
    let talk = || Ok(Conversation { tcp_port: http()?, udp_port: echo(datagrams)? });
    talk().map_err(|error: io::Error| Error::system("talk on the loopback interface", error))
}

/// The accepting end needs no thread: the kernel completes the handshake and keeps the request.
fn http() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let address = listener.local_addr()?;
    let mut client = TcpStream::connect_timeout(&address, PATIENCE)?;
    let (mut server, _) = listener.accept()?;
    for end in [&client, &server] {
        end.set_read_timeout(Some(PATIENCE))?;
    }
    client.write_all(REQUEST)?;
    server.read_exact(&mut vec![0; REQUEST.len()])?;
    server.write_all(RESPONSE)?;
    drop(server);
    client.read_to_end(&mut Vec::new())?;
    Ok(address.port())
}

fn echo(datagrams: u8) -> io::Result<u16> {
    let [asking, answering] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)));
    let (asking, answering) = (asking?, answering?);
    asking.connect(answering.local_addr()?)?;
    answering.connect(asking.local_addr()?)?;
    for end in [&asking, &answering] {
        end.set_read_timeout(Some(PATIENCE))?;
    }
    for number in 0..datagrams {
        let mut bytes = [number; 100];
        asking.send(&bytes)?;
        answering.recv(&mut bytes)?;
        answering.send(&bytes)?;
        asking.recv(&mut bytes)?;
    }
    Ok(answering.local_addr()?.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_conversations_come_to_their_end() {
        let ports = match converse(3) {
            // A namespace of its own whose loopback interface is down.
            Err(Error::Host(host::Error::System { source, .. }))
                if source.kind() == io::ErrorKind::NetworkUnreachable =>
            {
                return println!("not run: no loopback interface: {source}");
            }
            ports => ports.unwrap(),
        };
        assert_ne!(ports.tcp_port, 0);
        assert_ne!(ports.udp_port, 0);
    }
}
