// Takes those pictures of docs/web.md that need disks, findings and keys which a machine for tests
// has not: the page itself, with made-up answers of the interface.
// npx vite preview --port 8777 & node tests/made-up.mjs ../docs/pictures
import { chromium } from "@playwright/test";
import { mkdirSync } from "node:fs";

const [folder = "../docs/pictures"] = process.argv.slice(2);
const url = process.env.PREVIEW_URL ?? "http://localhost:8777";
mkdirSync(folder, { recursive: true });

const NOW_NS = 1_795_914_704_403_268_749;
const SECOND_NS = 1e9;
const COLUMNS = 64;
const ZONE_CELLS = 300;

function cellOf(zone, at) {
  const number = zone * ZONE_CELLS + at;
  const cell = { place: number * 8, slots: 8, zone, sequence: 100_000 + number };
  if (zone === 3 && at > 250) {
    return { place: cell.place, slots: 8, zone, content: "unwritten" };
  }
  if (at >= 290) {
    return { ...cell, content: "ahead_of_head" };
  }
  return {
    ...cell,
    content: zone === 1 && at === 150 ? "damaged" : "written",
    age: Math.floor(at / 30),
    head: zone === 0 && at === 0,
    tail: zone === 3 && at === 249,
    holds: zone === 2 && at > 100 && at < 110 ? 1 : 0,
    damaged_members: zone === 1 && at === 47 ? [1] : [],
  };
}

const cells = [0, 1, 2, 3].flatMap((zone) =>
  Array.from({ length: ZONE_CELLS }, (_, at) => cellOf(zone, at)),
);

/** A disk that gets slower towards its inside. */
function report(factor) {
  const steps = Array.from({ length: 20 }, (_, at) => {
    const rate = factor * (250e6 - Math.max(0, at - 2) * 7e6);
    return { offset: at * 1e11, bytes: 2e9, ns: (2e9 / rate) * SECOND_NS };
  });
  const curve = [16, 64, 256, 1024, 4096].map((mib, at) => ({
    pool_bytes: mib * 2 ** 20,
    bytes_per_s: factor * (120e6 + at * 12e6),
  }));
  return {
    guaranteed_bytes_per_s: factor * 168e6,
    mean_bytes_per_s: factor * 190e6,
    minimum_bytes_per_s: factor * 131e6,
    verdict: { pool_bytes: 2 ** 30 },
    target: { path: "/dev/sdb" },
    started_ns: NOW_NS,
    parts: [{ part: "sweep", steps }, { part: "ring", curve }],
  };
}

const finding = {
  kind: "slow",
  severity: "failing",
  what: "7 123 packets were lost at the writer in the last hour",
  evidence: [
    "the pool was empty 41 times",
    "member 2 took 120 ms for a write, 4 ms when qualified",
  ],
  cause: "a disk is slower than when it was qualified",
  remedies: [{ what: "replace the member", now: ["wirespool replace /data/spool 2 /dev/sdf"] }],
};

const job = { volume: "spool", by: "anna", made_ns: NOW_NS, begun_ns: NOW_NS };
const SETTINGS = {
  volumes: ["/data/spool"],
  listen: "0.0.0.0:8420",
  public_url: "https://recorder.example",
  people_file: "/var/lib/wirespool/people",
  role: ["desk=sessions port 53"],
  provider: "/etc/wirespool/provider.toml",
  audit: "/var/lib/wirespool/audit.jsonl",
  audit_size: 64 * 2 ** 20,
  hold_dir: null,
  workers: 4,
  max_time: "900s",
};

const person = {
  role: "administrator",
  must_change_password: false,
  has_second_factor: true,
  has_authenticator: false,
  keys: [{ id: "a", name: "the blue one", since: "2026-10-01T00:00:00Z" }],
  recovery_codes: 9,
};
const whoami = {
  name: "anna",
  scopes: ["sessions", "payload", "extract", "hold", "admin"],
  filter: null,
  person,
  guest: null,
  keys_at: url,
  manages: { people: true, tokens: true, audit: true, requests: true },
  volumes: [{ name: "spool", id: "v" }],
  version: "0",
  now_ns: NOW_NS,
};
const second = {
  authenticator: false,
  key: { challenge: "AA", rp_id: "localhost", origin: url, credentials: ["AA"] },
};
const volume = {
  name: "spool",
  volume_id: "v",
  path: "/data/spool",
  data_columns: 3,
  parity_columns: 1,
  is_whole: true,
  members: [],
};

const problem = (word, title, more = {}) => ({
  status: 401,
  contentType: "application/problem+json",
  body: JSON.stringify({ type: `urn:wirespool:problem:${word}`, title, ...more }),
});
let isIn = true;
const ANSWERS = {
  "GET whoami": () => (isIn ? { json: whoami } : problem("no-credential", "log in")),
  "GET login": () => ({
    json: { people: true, tokens: true, provider: "Log in at the office", origin: url },
  }),
  "POST login": () => problem("needs-code", "a code is needed", { second_factor: second }),
  "GET volumes": () => ({ json: { volumes: [volume] } }),
  "GET fields": () => ({ json: { fields: [] } }),
  "GET ring": () => ({
    json: {
      zones: 4,
      slots: 9600,
      columns: COLUMNS,
      slots_per_cell: 8,
      written_ns: [NOW_NS],
      cells,
    },
  }),
  "GET qualification": () => ({
    json: {
      reports: [
        { file: "sdb.json", id: "1", is_of_volume: true, report: report(1) },
        { file: "sdb-later.json", id: "2", is_of_volume: false, report: report(0.85) },
      ],
    },
  }),
  "GET findings": () => ({
    json: {
      looked_at: ["the recorder of /data/spool: 12 threads for 1 s"],
      findings: [finding],
      unseen: [{ what: "functions of the recorder's threads", needs: "CAP_PERFMON" }],
    },
  }),
  "GET jobs": () => ({
    json: {
      jobs: [
        { ...job, id: "2", kind: "scrub", state: "running", done: 4e11, of: 1e12 },
        {
          ...job,
          id: "1",
          kind: "verify",
          state: "done",
          is_clean: true,
          ended_ns: NOW_NS + 3600 * SECOND_NS,
          done: 1e12,
        },
      ],
    },
  }),
  "GET settings": () => ({
    json: {
      settings: Object.entries(SETTINGS).map(([key, value]) => ({
        key,
        flag: `--${key.replaceAll("_", "-")}`,
        value,
      })),
    },
  }),
};

const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
const page = await browser.newPage({ viewport: { width: 1200, height: 800 } });
await page.addInitScript(() => localStorage.setItem("wirespool.theme", "light"));
await page.route("**/api/v1/**", (route) => {
  const path = new URL(route.request().url()).pathname.replace("/api/v1/", "");
  const answer = ANSWERS[`${route.request().method()} ${path}`];
  return route.fulfill(answer ? answer() : { status: 404, json: {} });
});

async function open(view) {
  await page.goto(`${url}/#/${view}`);
  await page.reload();
  await page.waitForTimeout(1500);
}

const picture = (name, part) => part.screenshot({ path: `${folder}/web-${name}.png` });
const region = (name) => page.getByRole("region", { name }).first();

await open("storage");
await picture("ring", region(/Ring over the surface/));
await page.getByLabel("Compare with").selectOption("1");
await page.waitForTimeout(500);
await picture("qualification", region(/Qualification of/));
for (const view of ["findings", "jobs", "settings"]) {
  await open(view);
  await picture(view, page.locator("main"));
}
await open("account");
await picture("keys", region("Keys"));
isIn = false;
await open("overview");
await picture("provider", page.locator("form"));
await page.getByLabel("Name").fill("anna");
await page.getByLabel("Password").fill("correct horse battery");
await page.getByRole("button", { name: "Log in", exact: true }).click();
await page.waitForTimeout(500);
await picture("key-login", page.locator("form"));
await browser.close();
