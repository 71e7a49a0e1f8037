//! TLS, certificates of clients, and Stenographer's own scripts at Stenographer's door.

use std::fs;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::Served;
use crate::golden::pcap_of;
use crate::machine::{Ran, Volume, run, write_key};
use crate::stenographer::{question, scripts};

/// Files are looked at each second.
const A_LOOK: Duration = Duration::from_millis(1200);

/// Certificates of a CA of the test; `None` with a printed reason where openssl cannot make them.
pub(super) struct Certificates {
    folder: String,
}

impl Certificates {
    pub(super) fn new(volume: &Volume) -> Option<Self> {
        let folder = volume.file("certs");
        fs::create_dir(&folder).unwrap();
        let made = Self { folder };
        let curve = "ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2";
        made.call(&format!(
            "req -x509 -newkey {curve} -keyout ca_key.pem -out ca_cert.pem -subj /CN=test-ca \
             -addext basicConstraints=critical,CA:TRUE"
        ))?;
        for (file, name, further) in [
            ("server", "server", "-addext subjectAltName=IP:127.0.0.1,DNS:localhost"),
            ("client", "sensor", "-addext subjectAltName=DNS:sensor"),
            ("other", "other", "-addext subjectAltName=DNS:other"),
        ] {
            made.call(&format!(
                "req -x509 -newkey {curve} -keyout {file}_key.pem -out {file}_cert.pem \
                 -subj /CN={name} {further} -addext basicConstraints=critical,CA:FALSE \
                 -CA ca_cert.pem -CAkey ca_key.pem"
            ))?;
        }
        // One that nobody has vouched for.
        made.call(&format!(
            "req -x509 -newkey {curve} -keyout foreign_key.pem -out foreign_cert.pem \
             -subj /CN=sensor"
        ))?;
        Some(made)
    }

    fn call(&self, words: &str) -> Option<()> {
        let mut openssl = Command::new("openssl");
        openssl.args(words.split_whitespace()).current_dir(&self.folder).stdin(Stdio::null());
        let called = openssl.output();
        if called.as_ref().is_ok_and(|output| output.status.success()) {
            return Some(());
        }
        println!("not run: openssl makes no certificates here: {called:?}");
        None
    }

    pub(super) fn file(&self, name: &str) -> String {
        format!("{}/{name}.pem", self.folder)
    }

    pub(super) fn flags(&self) -> Vec<String> {
        let [cert, key, ca] = ["server_cert", "server_key", "ca_cert"].map(|it| self.file(it));
        ["--tls-cert", &cert, "--tls-key", &key, "--client-ca", &ca].map(str::to_owned).to_vec()
    }

    /// A connection that stays open, with the certificate of a client.
    fn connect(&self, client: &str, address: &str) -> Child {
        let mut openssl = Command::new("openssl");
        openssl.args(["s_client", "-quiet", "-connect", address, "-CAfile"]);
        openssl.arg(self.file("ca_cert")).arg("-cert").arg(self.file(&format!("{client}_cert")));
        openssl.arg("-key").arg(self.file(&format!("{client}_key")));
        openssl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        openssl.spawn().unwrap()
    }

    /// `curl` with the certificate of a client; `None` with a printed reason where there is none.
    fn curl(&self, client: Option<&str>, words: &[&str]) -> Option<Ran> {
        let mut curl = Command::new("curl");
        curl.args(["--silent", "--show-error", "--max-time", "60", "--cacert"]);
        curl.arg(self.file("ca_cert"));
        if let Some(client) = client {
            curl.arg("--cert").arg(self.file(&format!("{client}_cert")));
            curl.arg("--key").arg(self.file(&format!("{client}_key")));
        }
        match curl.args(words).stdin(Stdio::null()).output() {
            Ok(output) => Some(Ran::new(&output)),
            Err(error) => {
                println!("not run: curl: {error}");
                None
            }
        }
    }
}

fn serve(volume: Volume, certificates: &Certificates, further: &[&str]) -> Served {
    let flags = certificates.flags();
    let flags: Vec<&str> =
        flags.iter().map(String::as_str).chain(further.iter().copied()).collect();
    Served::with(volume, &flags)
}

#[test]
fn a_certificate_of_a_client_counts_where_the_ca_and_the_file_say_so() {
    let volume = Volume::recorded();
    let Some(certificates) = Certificates::new(&volume) else { return };
    write_key(&volume.file("tokens"), "sensor:sessions:certificate\n");
    let served = serve(volume, &certificates, &[]);
    let url = |path: &str| format!("https://{}/api/v1/{path}", served.address);
    let status = ["-o", "/dev/null", "-w", "%{http_code}"];
    let code = |client: Option<&str>, path: &str| {
        certificates.curl(client, &[&status[..], &[&url(path)]].concat()).map(|ran| ran.out)
    };
    let Some(health) = code(None, "health") else { return };
    assert_eq!(health, "200");
    for (client, path, expected) in [
        (Some("client"), "sessions", "200"),
        (Some("client"), "extract?query=port+53", "403"),
        // The CA has signed it, and no line gives it anything.
        (Some("other"), "sessions", "401"),
        (None, "sessions", "401"),
    ] {
        assert_eq!(code(client, path).unwrap(), expected, "{client:?} {path}");
    }
    let foreign = certificates.curl(Some("foreign"), &[&url("health")]).unwrap();
    assert_ne!(foreign.code, Some(0), "{foreign:?}");
    // What is no TLS is no request.
    let mut plain = served.connect();
    plain.write_all(b"GET /api/v1/health HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut said = Vec::new();
    drop(plain.read_to_end(&mut said));
    assert!(!said.starts_with(b"HTTP"), "{said:?}");
    assert_eq!(code(None, "health").unwrap(), "200");
}

#[test]
fn a_revoked_certificate_counts_no_more_and_needs_no_restart() {
    let volume = Volume::recorded();
    let Some(certificates) = Certificates::new(&volume) else { return };
    write_key(&volume.file("tokens"), "*:sessions:certificate\n");
    let config = "[ca]\ndefault_ca=ca_of_test\n[ca_of_test]\ndatabase=index.txt\n\
                  crlnumber=crlnumber\ndefault_md=sha256\ndefault_crl_days=1\n";
    for (name, text) in [("ca.cnf", config), ("index.txt", ""), ("crlnumber", "01\n")] {
        fs::write(format!("{}/{name}", certificates.folder), text).unwrap();
    }
    let ca = "ca -config ca.cnf -keyfile ca_key.pem -cert ca_cert.pem";
    // Replaced as a whole, as whoever fetches it does.
    let publish = || {
        certificates.call(&format!("{ca} -gencrl -out new.pem"))?;
        fs::rename(certificates.file("new"), certificates.file("crl")).ok()
    };
    if publish().is_none() {
        return;
    }
    let crl = certificates.file("crl");
    let mut served = serve(volume, &certificates, &["--client-crl", &crl]);
    let url = format!("https://{}/api/v1/sessions", served.address);
    let status = ["-o", "/dev/null", "-w", "%{http_code}", &url];
    let code = |client: &str| certificates.curl(Some(client), &status).map(|ran| ran.out);
    let Some(before) = code("client") else { return };
    assert_eq!((before.as_str(), code("other").unwrap().as_str()), ("200", "200"));

    let mut open = certificates.connect("client", &served.address.to_string());
    let mut ask = |further: &str| {
        let request = format!("GET /api/v1/sessions HTTP/1.1\r\nHost: x\r\n{further}\r\n");
        open.stdin.as_mut().unwrap().write_all(request.as_bytes()).unwrap();
    };
    ask("");
    std::thread::sleep(A_LOOK);
    certificates.call(&format!("{ca} -revoke client_cert.pem")).unwrap();
    publish().unwrap();
    std::thread::sleep(A_LOOK);
    ask("Connection: close\r\n");
    let said = String::from_utf8(open.wait_with_output().unwrap().stdout).unwrap();
    let statuses: Vec<&str> = said.lines().filter(|line| line.starts_with("HTTP/1.1 ")).collect();
    assert_eq!(statuses, ["HTTP/1.1 200 OK", "HTTP/1.1 401 Unauthorized"], "{said}");
    assert_eq!(code("client").unwrap(), "000", "no handshake");
    let line = served.hear(" no TLS: ");
    assert!(line.contains("127.0.0.1:") && line.to_lowercase().contains("revoked"), "{line}");
    assert_eq!(code("other").unwrap(), "200");

    // What is no list changes nothing, and is said.
    fs::write(&crl, "no list").unwrap();
    std::thread::sleep(A_LOOK);
    assert_eq!(code("client").unwrap(), "000");
    assert_eq!(code("other").unwrap(), "200");
    served.hear("the certificates of before count");
}

/// Stenographer's scripts with a configuration that leads to our door.
struct Theirs {
    served: Served,
    folder: String,
}

impl Theirs {
    fn over(volume: Volume) -> Option<Self> {
        for tool in ["tcpdump", "jq", "curl"] {
            if Command::new(tool).arg("--version").output().is_err() {
                println!("not run: no {tool}");
                return None;
            }
        }
        let certificates = Certificates::new(&volume)?;
        write_key(&volume.file("tokens"), "*:extract:certificate\n");
        let mut served = serve(volume, &certificates, &["--stenographer", "127.0.0.1:0"]);
        let line = served.hear("answering Stenographer's clients at ");
        let port = line.trim().rsplit(':').next().unwrap().to_owned();
        let folder = served.volume.file("theirs");
        fs::create_dir(&folder).unwrap();
        for script in scripts(Path::new(&folder))? {
            let name = script.file_name().unwrap();
            fs::copy(&script, Path::new(&folder).join(name)).unwrap();
        }
        let config = serde_json::json!({"Threads": [], "Host": "127.0.0.1",
            "Port": port.parse::<u16>().unwrap(), "CertPath": certificates.folder});
        fs::write(format!("{folder}/config"), config.to_string()).unwrap();
        Some(Self { served, folder })
    }

    fn call(&self, program: &str, arguments: &[&str]) -> Ran {
        let mut command = Command::new(format!("{}/{program}", self.folder));
        command.env("STENOGRAPHER_CONFIG", format!("{}/config", self.folder));
        Ran::new(&command.args(arguments).stdin(Stdio::null()).output().unwrap())
    }
}

#[test]
fn stenographer_s_own_scripts_run_unchanged_against_the_service() {
    let Some(theirs) = Theirs::over(Volume::recorded()) else { return };
    let query = "port 53 and after 2000-01-01T00:00:00Z";
    let all = theirs.call("stenoread", &[query, "-n", "-t"]).done();
    assert_eq!(all.out.lines().count(), 16, "{all:?}");
    assert!(all.err.contains("Running stenographer query"), "it is the script: {all:?}");
    let some = theirs.call("stenoread", &["--limit-packets", "3", query, "-n", "-t"]).done();
    assert_eq!(some.out.lines().collect::<Vec<_>>(), all.out.lines().take(3).collect::<Vec<_>>());
    let few = theirs.call("stenoread", &["--limit-bytes", "300", query, "-n", "-t"]).done();
    assert!((1..16).contains(&few.out.lines().count()), "{few:?}");
    let file = format!("{}/out.pcap", theirs.folder);
    theirs.call("stenocurl", &["/query", "-d", query, "-s", "-o", &file]).done();
    let ours = theirs.served.volume.file("ours.pcap");
    let path = &theirs.served.volume.path;
    let words = ["stenocurl", "--volume", path, "/query", "-d", query, "-s", "-o", &ours];
    run(&words).done();
    assert_eq!(fs::read(&file).unwrap(), fs::read(&ours).unwrap());
    let wrong = theirs.call("stenocurl", &["/query", "-d", "port", "-s", "-w", "%{http_code}"]);
    assert!(wrong.out.contains("the query is wrong") && wrong.out.ends_with("400"), "{wrong:?}");
    let elsewhere = theirs.call("stenocurl", &["/debug/stats", "-s", "-w", "%{http_code}"]);
    assert!(elsewhere.out.ends_with("404"), "{elsewhere:?}");
}

#[test]
fn an_answer_with_several_link_types_reaches_their_tcpdump_whole() {
    let volume = Volume::empty();
    let ethernet = [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 2, 8, 0][..], &question()].concat();
    for (number, (link_type, packet)) in (0..).zip([(1, ethernet), (101, question())]) {
        let file = volume.file(&format!("{link_type}.pcap"));
        let time_ns = (1_700_000_000 + number) * 1_000_000_000;
        fs::write(&file, pcap_of(link_type, [(time_ns, packet)])).unwrap();
        volume.record(&["--read", &file]).done();
    }
    let Some(theirs) = Theirs::over(volume) else { return };
    let ran = theirs.call("stenoread", &["port 53", "-n", "-t"]).done();
    assert_eq!(ran.out.matches("10.0.0.1.40000 > 10.0.0.2.53").count(), 2, "{ran:?}");
}
