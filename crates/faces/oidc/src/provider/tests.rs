//! A made-up provider on this machine, honest at first, and then each lie by itself.

use std::collections::BTreeMap;
use std::sync::Arc;

use ring::signature::EcdsaKeyPair;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;
use crate::id_token::tests::{key_set, pair, sign};

const NOW: Moment = Moment { unix_s: 1_800_000_000, boottime_ns: 0 };
const FROM: IpAddr = IpAddr::V4(core::net::Ipv4Addr::LOCALHOST);

/// Answers by path: a status line with headings, and a body.
type Answers = Arc<Mutex<BTreeMap<String, (String, String)>>>;

struct MadeUp {
    issuer: String,
    answers: Answers,
    asked: Arc<Mutex<Vec<String>>>,
    pair: EcdsaKeyPair,
}

impl MadeUp {
    async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let issuer = format!("http://{}", listener.local_addr().unwrap());
        let (answers, asked) = (Answers::default(), Arc::<Mutex<Vec<String>>>::default());
        let (known, heard) = (Arc::clone(&answers), Arc::clone(&asked));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut bytes = vec![0; 16 << 10];
                let mut len = 0;
                loop {
                    let read = stream.read(&mut bytes[len..]).await.unwrap_or(0);
                    len += read;
                    let text = String::from_utf8_lossy(&bytes[..len]).into_owned();
                    let is_whole = match text.split_once("\r\n\r\n") {
                        None => false,
                        Some((_, body)) => !text.starts_with("POST") || !body.is_empty(),
                    };
                    if is_whole || read == 0 {
                        break;
                    }
                }
                let text = String::from_utf8_lossy(&bytes[..len]).into_owned();
                let path = text.split(' ').nth(1).unwrap_or_default().to_owned();
                lock(&heard).push(text);
                let answer = lock(&known).get(&path).cloned();
                let (first, body) =
                    answer.unwrap_or_else(|| ("404 Not Found".to_owned(), String::new()));
                let answer = format!(
                    "HTTP/1.1 {first}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                stream.write_all(answer.as_bytes()).await.unwrap_or_default();
            }
        });
        let made_up = Self { issuer, answers, asked, pair: pair() };
        made_up.says(crate::discovery::PATH, "200 OK", &made_up.discovery());
        made_up.says("/keys", "200 OK", &key_set(&made_up.pair, "a"));
        made_up
    }

    fn discovery(&self) -> Value {
        let at = |path: &str| format!("{}{path}", self.issuer);
        json!({"issuer": self.issuer, "authorization_endpoint": at("/auth"),
            "token_endpoint": at("/token"), "jwks_uri": at("/keys"),
            "userinfo_endpoint": at("/me")})
    }

    fn says(&self, path: &str, head: &str, body: &Value) {
        let body = body.as_str().map_or_else(|| body.to_string(), str::to_owned);
        lock(&self.answers).insert(path.to_owned(), (head.to_owned(), body));
    }

    fn provider(&self) -> Provider {
        let text = format!(
            "issuer = '{}'\nclient_id = 'wirespool'\nclient_secret = 'a secret'\n\
             [[role]]\nclaim = 'groups'\nvalue = 'netops'\nrole = 'analyst'\n",
            self.issuer
        );
        Provider::new(Settings::parse(&text).unwrap(), "http://localhost:8420").unwrap()
    }

    fn claims(&self, nonce: &str) -> Value {
        json!({"iss": self.issuer, "aud": "wirespool", "sub": "1", "nonce": nonce,
            "iat": NOW.unix_s, "exp": NOW.unix_s + 300, "groups": ["netops"],
            "preferred_username": "anna"})
    }

    fn sends(&self, claims: &Value) {
        let token = sign(&self.pair, &json!({"alg": "ES256", "kid": "a"}), claims);
        self.says("/token", "200 OK", &json!({"id_token": token, "access_token": "t"}));
    }
}

fn random(of: u8) -> [u8; 128] {
    [of; 128]
}

fn parameter(location: &str, name: &str) -> String {
    let (_, query) = location.split_once('?').unwrap();
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(key, _)| key == name).unwrap().1.into_owned()
}

/// Logs in, with claims and answers as they are made.
async fn login(
    made_up: &MadeUp,
    provider: &Provider,
    (of, now): (u8, Moment),
    lie: impl FnOnce(&mut Value),
) -> Result<Identity, Wrong> {
    let begun = provider.begin(FROM, &random(of), now).await?;
    let mut claims = made_up.claims(&parameter(&begun.location, "nonce"));
    lie(&mut claims);
    made_up.sends(&claims);
    let state = parameter(&begun.location, "state");
    let cookie = Some(&*begun.cookie);
    provider.finish(Returned { code: "c", state: &state, issuer: None, cookie }, now).await
}

#[tokio::test]
async fn a_login_goes_there_and_back() {
    let made_up = MadeUp::start().await;
    let provider = made_up.provider();
    let begun = provider.begin(FROM, &random(1), NOW).await.unwrap();
    assert!(begun.location.starts_with(&format!("{}/auth?response_type=code&", made_up.issuer)));
    for (name, value) in [
        ("client_id", "wirespool"),
        ("redirect_uri", "http://localhost:8420/"),
        ("scope", "openid profile email"),
        ("code_challenge_method", "S256"),
    ] {
        assert_eq!(parameter(&begun.location, name), value);
    }
    let anna = login(&made_up, &provider, (2, NOW), |_| ()).await.unwrap();
    assert_eq!((&*anna.name, &*anna.role), ("anna", "analyst"));
    let asked = lock(&made_up.asked).join("\n");
    assert!(asked.to_lowercase().contains("authorization: basic d2lyzxnwb29s"), "{asked}");
    assert!(asked.contains("code_verifier=") && !asked.contains("a+secret&"), "{asked}");
}

#[tokio::test]
async fn each_lie_is_refused() {
    let made_up = MadeUp::start().await;
    let provider = made_up.provider();
    assert!(login(&made_up, &provider, (1, NOW), |_| ()).await.is_ok());
    let lies: [(&str, Value); 6] = [
        ("iss", json!("https://evil.example.com")),
        ("aud", json!("other")),
        ("exp", json!(NOW.unix_s - 100)),
        ("nonce", json!("that of an earlier login")),
        ("sub", json!("")),
        ("groups", json!(["others"])),
    ];
    for (at, (name, value)) in (2..).zip(lies) {
        let told = login(&made_up, &provider, (at, NOW), |claims| claims[name] = value).await;
        assert!(matches!(told, Err(Wrong::Token(_) | Wrong::Person(_))), "{name}: {told:?}");
    }
    // A token that is not signed at all.
    let begun = provider.begin(FROM, &random(90), NOW).await.unwrap();
    let claims = made_up.claims(&parameter(&begun.location, "nonce"));
    let token = sign(&made_up.pair, &json!({"alg": "none"}), &claims);
    let (signed, _) = token.rsplit_once('.').unwrap();
    let token = format!("{signed}.");
    made_up.says("/token", "200 OK", &json!({ "id_token": token }));
    let (state, cookie) = (parameter(&begun.location, "state"), Some(&*begun.cookie));
    let returned = Returned { code: "c", state: &state, issuer: None, cookie };
    assert!(matches!(provider.finish(returned, NOW).await, Err(Wrong::Token(_))));
    assert_eq!(provider.finish(returned, NOW).await, Err(Wrong::Over), "it counts once");
    // An answer that another provider gave (RFC 9207).
    let begun = provider.begin(FROM, &random(91), NOW).await.unwrap();
    let (state, cookie) = (parameter(&begun.location, "state"), Some(&*begun.cookie));
    let issuer = Some("https://evil.example.com");
    let returned = Returned { code: "c", state: &state, issuer, cookie };
    assert!(matches!(provider.finish(returned, NOW).await, Err(Wrong::Token(_))));
}

#[tokio::test]
async fn keys_are_changed_and_asked_for_again_not_too_often() {
    let mut made_up = MadeUp::start().await;
    let provider = made_up.provider();
    assert!(login(&made_up, &provider, (1, NOW), |_| ()).await.is_ok());
    made_up.pair = pair();
    made_up.says("/keys", "200 OK", &key_set(&made_up.pair, "b"));
    // The token names a key of the same name, which is another one: nothing is asked for it.
    assert!(login(&made_up, &provider, (2, NOW), |_| ()).await.is_err());
    let later = Moment { boottime_ns: KEYS_EVERY_NS, ..NOW };
    let begun = provider.begin(FROM, &random(3), later).await.unwrap();
    let claims = made_up.claims(&parameter(&begun.location, "nonce"));
    let token = sign(&made_up.pair, &json!({"alg": "ES256", "kid": "b"}), &claims);
    made_up.says("/token", "200 OK", &json!({ "id_token": token }));
    let (state, cookie) = (parameter(&begun.location, "state"), Some(&*begun.cookie));
    let returned = Returned { code: "c", state: &state, issuer: None, cookie };
    assert!(provider.finish(returned, later).await.is_ok());
    let of_keys = |asked: &Vec<String>| asked.iter().filter(|it| it.contains("/keys")).count();
    assert_eq!(of_keys(&lock(&made_up.asked)), 2);
}

#[tokio::test]
async fn what_is_too_large_or_sends_elsewhere_is_refused() {
    let made_up = MadeUp::start().await;
    let huge = json!({"keys": [], "x": "x".repeat(KEYS_BYTES_MAX)});
    let other = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let private = format!("http://{}/keys", other.local_addr().unwrap());
    made_up.says("/keys", "200 OK", &huge);
    let provider = made_up.provider();
    let told = login(&made_up, &provider, (1, NOW), |_| ()).await;
    assert!(matches!(&told, Err(Wrong::Away(why)) if why.contains("more than")), "{told:?}");
    made_up.says("/keys", &format!("302 Found\r\nLocation: {private}"), &json!(""));
    let told = login(&made_up, &provider, (2, NOW), |_| ()).await;
    assert!(matches!(&told, Err(Wrong::Away(why)) if why.contains("elsewhere")), "{told:?}");
    made_up.says("/keys", "200 OK", &json!("<html>"));
    let told = login(&made_up, &provider, (3, NOW), |_| ()).await;
    assert!(matches!(told, Err(Wrong::Away(_))), "{told:?}");
    // Another port of this machine is another service: it is not even connected to.
    let mut discovery = made_up.discovery();
    discovery["jwks_uri"] = json!(private);
    made_up.says(crate::discovery::PATH, "200 OK", &discovery);
    let told = login(&made_up, &made_up.provider(), (4, NOW), |_| ()).await;
    assert!(matches!(&told, Err(Wrong::Away(why)) if why.contains("private")), "{told:?}");
    let connected = tokio::time::timeout(core::time::Duration::from_millis(50), other.accept());
    assert!(connected.await.is_err());
}

#[tokio::test]
async fn claims_that_the_token_lacks_are_asked_for_and_of_nobody_else() {
    let made_up = MadeUp::start().await;
    let provider = made_up.provider();
    let without = |claims: &mut Value| {
        claims.as_object_mut().unwrap().remove("groups");
    };
    made_up.says("/me", "200 OK", &json!({"sub": "1", "groups": "netops", "iss": "other"}));
    assert!(login(&made_up, &provider, (1, NOW), without).await.is_ok());
    made_up.says("/me", "200 OK", &json!({"sub": "2", "groups": "netops"}));
    assert!(login(&made_up, &provider, (2, NOW), without).await.is_err());
    made_up.says("/me", "500 Oops", &json!(""));
    assert!(matches!(login(&made_up, &provider, (3, NOW), without).await, Err(Wrong::Away(_))));
}

#[tokio::test]
async fn a_provider_that_is_away_is_said() {
    let made_up = MadeUp::start().await;
    let provider = made_up.provider();
    made_up.says("/token", "400 Bad Request", &json!({"error": "invalid_grant"}));
    let begun = provider.begin(FROM, &random(1), NOW).await.unwrap();
    let (state, cookie) = (parameter(&begun.location, "state"), Some(&*begun.cookie));
    let told =
        provider.finish(Returned { code: "c", state: &state, issuer: None, cookie }, NOW).await;
    assert!(matches!(&told, Err(Wrong::Away(why)) if why.contains("invalid_grant")), "{told:?}");
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let issuer = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let nobody = MadeUp { issuer, ..made_up };
    let told = nobody.provider().begin(FROM, &random(2), NOW).await;
    assert!(matches!(told, Err(Wrong::Away(_))), "{told:?}");
}
