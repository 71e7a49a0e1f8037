// An OpenID Connect provider for tests: npm's oidc-provider, which is certified, on this machine.
// node tests/provider/main.mjs PORT CLIENT_SECRET RETURN_ADDRESS
// It says "ready", knows whoever logs in with any password, and has "boss" and "guest" in groups.
// Each start has another key.
import { generateKeyPairSync, randomUUID } from "node:crypto";
import Provider from "oidc-provider";

const [port, secret, returnAddress] = process.argv.slice(2);
const issuer = `http://127.0.0.1:${port}`;

const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
const name = { kid: randomUUID(), use: "sig", alg: "RS256" };
const key = { ...privateKey.export({ format: "jwk" }), ...name };

const GROUPS = { boss: ["admins", "all"], guest: ["all"] };

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: "wirespool",
      client_secret: secret,
      redirect_uris: [returnAddress],
      grant_types: ["authorization_code"],
      response_types: ["code"],
    },
  ],
  jwks: { keys: [key] },
  pkce: { required: () => true },
  claims: { openid: ["sub"], profile: ["preferred_username", "groups"], email: ["email"] },
  cookies: { keys: ["a key for tests"] },
  features: { devInteractions: { enabled: true } },
  async findAccount(_context, id) {
    return {
      accountId: id,
      claims: () => ({
        sub: id,
        preferred_username: id,
        email: `${id}@example.com`,
        groups: GROUPS[id] ?? [],
      }),
    };
  },
});

provider.listen(Number(port), "127.0.0.1", () => console.log("ready"));
