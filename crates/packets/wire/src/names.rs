//! What application payload says of a session: the type that `app` fills, `format` puts into a row
//! and `index` stores. The names of its fields are those of the Parquet columns (docs/sessions.md).

use crate::app::App;

/// Names found in the traffic. Lists hold distinct values in the order seen, bounded by `app`.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Names {
    /// What the parser that filled these names reads; a row has it in `SessionRow::app`, not here.
    pub app: Option<App>,
    /// TLS server name (RFC 6066).
    pub sni: Option<String>,
    /// TLS ALPN protocols offered by the client.
    pub alpn: Vec<String>,
    /// TLS version negotiated, or offered while no answer was seen: 0x0303 is 1.2.
    pub tls_version: Option<u16>,
    /// What else the hellos and the server's certificate say.
    pub tls: Option<Box<Tls>>,
    /// HTTP/1 Host.
    pub http_host: Vec<String>,
    /// HTTP/1 methods.
    pub http_method: Vec<String>,
    /// HTTP/1 request targets.
    pub http_path: Vec<String>,
    /// HTTP/1 status codes.
    pub http_status: Vec<u16>,
    /// HTTP/1 User-Agent.
    pub http_user_agent: Vec<String>,
    /// HTTP/1 Content-Type, of requests and responses.
    pub http_content_type: Vec<String>,
    /// DNS names asked for.
    pub dns_names: Vec<String>,
    /// DNS types asked for.
    pub dns_types: Vec<u16>,
    /// DNS response codes.
    pub dns_rcodes: Vec<u16>,
    /// Addresses and names in DNS answers, as text.
    pub dns_answers: Vec<String>,
    /// From the first DNS query to the answer with its id, in nanoseconds.
    pub dns_rtt_ns: Option<u64>,
    /// Of an SSH session.
    pub ssh: Option<Box<Ssh>>,
    /// What else a protocol says, as `key=value`: the keys are listed in docs/sessions.md.
    pub app_detail: Vec<String>,
}

/// What hellos and certificate of TLS say beyond the names; of TLS in QUIC, too.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Tls {
    /// ALPN protocol that the server chose; visible up to TLS 1.2.
    pub alpn_chosen: Option<String>,
    /// Cipher suite that the server chose.
    pub cipher: Option<u16>,
    /// JA3 of the first client hello: MD5 in hexadecimal.
    pub ja3: Option<String>,
    /// JA3S of the server hello.
    pub ja3s: Option<String>,
    /// JA4 of the first client hello.
    pub ja4: Option<String>,
    /// Subject of the server's certificate; visible up to TLS 1.2.
    pub cert_subject: Option<String>,
    /// Issuer of the server certificate.
    pub cert_issuer: Option<String>,
    /// Its validity begins, in nanoseconds since 1970.
    pub cert_not_before_ns: Option<i64>,
    /// Its validity ends; the largest number for what does not fit.
    pub cert_not_after_ns: Option<i64>,
}

/// What SSH says before it encrypts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Ssh {
    /// The originator's identification line (RFC 4253 4.2).
    pub client: Option<String>,
    /// The responder's identification line.
    pub server: Option<String>,
    /// HASSH of the originator's offer: MD5 in hexadecimal.
    pub hassh: Option<String>,
    /// HASSH of the responder's.
    pub hassh_server: Option<String>,
}

impl Tls {
    /// Bytes of the heap that its texts take.
    fn heap_bytes(&self) -> usize {
        let Self { alpn_chosen, ja3, ja3s, ja4, cert_subject, cert_issuer, .. } = self;
        texts([alpn_chosen, ja3, ja3s, ja4, cert_subject, cert_issuer])
    }
}

impl Ssh {
    /// Bytes of the heap that its texts take.
    fn heap_bytes(&self) -> usize {
        let Self { client, server, hassh, hassh_server } = self;
        texts([client, server, hassh, hassh_server])
    }
}

fn texts<const COUNT: usize>(texts: [&Option<String>; COUNT]) -> usize {
    texts.into_iter().flatten().map(String::capacity).sum()
}

fn list(list: &Vec<String>) -> usize {
    let texts: usize = list.iter().map(String::capacity).sum();
    texts + list.capacity() * size_of::<String>()
}

impl Names {
    /// Bytes of the heap that lists and texts take, as requested of the allocator: what stands
    /// in the struct itself is not among them.
    pub fn heap_bytes(&self) -> usize {
        let lists = [
            &self.alpn,
            &self.http_host,
            &self.http_method,
            &self.http_path,
            &self.http_user_agent,
            &self.http_content_type,
            &self.dns_names,
            &self.dns_answers,
            &self.app_detail,
        ];
        let numbers = [&self.http_status, &self.dns_types, &self.dns_rcodes];
        let tls = self.tls.as_deref().map_or(0, |tls| size_of::<Tls>() + tls.heap_bytes());
        let ssh = self.ssh.as_deref().map_or(0, |ssh| size_of::<Ssh>() + ssh.heap_bytes());
        let numbers: usize =
            numbers.map(|numbers| numbers.capacity() * size_of::<u16>()).iter().sum();
        lists.map(list).iter().sum::<usize>() + numbers + texts([&self.sni]) + tls + ssh
    }

    /// No names.
    pub const NONE: Self = Self {
        app: None,
        sni: None,
        alpn: Vec::new(),
        tls_version: None,
        tls: None,
        http_host: Vec::new(),
        http_method: Vec::new(),
        http_path: Vec::new(),
        http_status: Vec::new(),
        http_user_agent: Vec::new(),
        http_content_type: Vec::new(),
        dns_names: Vec::new(),
        dns_types: Vec::new(),
        dns_rcodes: Vec::new(),
        dns_answers: Vec::new(),
        dns_rtt_ns: None,
        ssh: None,
        app_detail: Vec::new(),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_heap_of_names_is_what_their_lists_and_texts_reserve() {
        assert_eq!(Names::NONE.heap_bytes(), 0);
        let mut host = String::with_capacity(100);
        host.push('a');
        let tls = Tls { ja3: Some("abc".into()), ..Tls::default() };
        let names = Names {
            sni: Some("abcd".into()),
            http_host: vec![host],
            http_status: vec![200, 404],
            tls: Some(Box::new(tls)),
            ..Names::NONE
        };
        let host_bytes = 100 + size_of::<String>();
        assert_eq!(names.heap_bytes(), 4 + host_bytes + 4 + size_of::<Tls>() + 3);
    }
}
