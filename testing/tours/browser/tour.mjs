// Looks at every page of the console with a real Chromium: follows all links from the overview, and
// looks at each kind of page in light, in dark and on a phone. Fails on an error in the browser's log,
// a broken link, a page that is wider than a phone, a finding of axe-core, or a focus that is not seen.
//
// CONSOLE_URL says where the console is, CHROMIUM which browser, SCREENS where pictures go.
import { mkdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import puppeteer from "puppeteer-core";

const origin = new URL(process.env.CONSOLE_URL).origin;
const screens = process.env.SCREENS ?? "screens";
const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
/** Pages of one kind that are opened: a table of a thousand learners leads to a thousand pages. */
const OF_A_KIND = 3;

const LOOKS = [
  { name: "light", width: 1280, height: 900, scheme: "light" },
  { name: "dark", width: 1280, height: 900, scheme: "dark" },
  { name: "phone", width: 360, height: 740, scheme: "light" },
];

const problems = [];
const complain = (where, what) => {
  problems.push(`${where}: ${what}`);
  console.error(`  ${where}: ${what}`);
};

/** What kind of page an address is: ids and searches do not make another kind. */
const kindOf = (url) => {
  const parts = url.pathname.split("/").filter(Boolean);
  const depth = parts.length;
  if (depth === 0) return "overview";
  const fixed = { learn: [0, 1], people: [0], erasures: [0], keyspaces: [0], data: [0, 1, 3], work: [0, 1], audit: [0] };
  const keep = fixed[parts[0]] ?? [0];
  return parts.map((part, nth) => (keep.includes(nth) ? part : "one")).join("-");
};

const newPage = async (browser, look) => {
  const page = await browser.newPage();
  await page.setViewport({ width: look.width, height: look.height });
  await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: look.scheme }]);
  page.on("console", (message) => {
    if (["error", "warn"].includes(message.type())) complain(page.url(), `browser log: ${message.text()}`);
  });
  page.on("pageerror", (error) => complain(page.url(), `script: ${error.message}`));
  page.on("requestfailed", (request) => {
    const why = request.failure()?.errorText ?? "";
    // A refresh that was under way when the page was left is nobody's mistake.
    if (why !== "net::ERR_ABORTED") complain(page.url(), `${request.url()} failed: ${why}`);
  });
  return page;
};

/** Every link of the console that leads to a page, from one page. */
const linksOf = (page) =>
  page.$$eval("a[href]:not([download])", (links) => links.map((link) => link.href));

const checkPage = async (page, look, where) => {
  const facts = await page.evaluate(() => ({
    title: document.title,
    headings: document.querySelectorAll("h1").length,
    main: document.querySelectorAll("main").length,
    wide: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    inline: document.querySelectorAll("[style], style, script:not([src])").length,
  }));
  if (!facts.title.includes("KeystoneDB")) complain(where, `title: ${facts.title}`);
  if (facts.headings !== 1) complain(where, `${facts.headings} first headings`);
  if (facts.main !== 1) complain(where, `${facts.main} main landmarks`);
  if (facts.inline) complain(where, `${facts.inline} inline styles or scripts`);
  if (facts.wide > 0) complain(where, `${facts.wide} px wider than the screen (${look.name})`);
  // The policy of the page forbids scripts that are not its own; the browser's own door does not.
  await page.evaluate(axe);
  const found = await page.evaluate(async () => (await globalThis.axe.run(document, { resultTypes: ["violations"] })).violations);
  for (const violation of found) {
    const nodes = violation.nodes.slice(0, 3).map((node) => `${node.target.join(" ")} ${node.any?.[0]?.message ?? ""}`);
    complain(where, `axe ${violation.id} (${look.name}): ${violation.help}: ${nodes.join("; ")}`);
  }
};

/** The first Tab is the way past the rooms, and every stop after it can be seen. */
const checkKeyboard = async (page, where) => {
  await page.keyboard.press("Tab");
  const first = await page.evaluate(() => document.activeElement?.className);
  if (first !== "skip") complain(where, `the first stop of Tab is ${first}`);
  for (let stop = 0; stop < 12; stop += 1) {
    await page.keyboard.press("Tab");
    const seen = await page.evaluate(() => {
      const element = document.activeElement;
      if (!element || element === document.body) return "";
      const style = getComputedStyle(element);
      return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0 ? "" : element.outerHTML.slice(0, 80);
    });
    if (seen) complain(where, `a focus that is not seen: ${seen}`);
  }
};

/** A wrong name erases nobody; the right one ends with a receipt, which comes without loading the page again. */
const eraseSomebody = async (browser, learner) => {
  if (!learner) return complain("/people", "there is nobody to erase");
  const id = decodeURIComponent(learner.split("/").at(-1));
  // The refusal is an error to the browser's log, and what is looked for here.
  const page = await browser.newPage();
  const confirm = async (name) => {
    await page.type("#confirm", name);
    await Promise.all([page.waitForNavigation({ waitUntil: "load" }), page.click("button.danger")]);
  };
  await page.goto(`${origin}/people/${encodeURIComponent(id)}`, { waitUntil: "load" });
  await confirm(`${id}x`);
  if (!(await page.$("[role=alert]"))) complain(page.url(), "a wrong name is not refused");
  await confirm(id);
  if (!page.url().includes("/erasures/")) complain(page.url(), "the erasure did not begin");
  const isDone = () => document.body.textContent.includes("Every byte is gone");
  await page.waitForFunction(isDone, { timeout: 120000 }).catch(() => complain(page.url(), "no receipt came"));
  await page.screenshot({ path: path.join(screens, "erasure-done.png"), fullPage: true });
  await page.close();
};

const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "chromium",
  args: ["--no-sandbox", "--disable-dev-shm-usage", "--hide-scrollbars"],
});
await mkdir(screens, { recursive: true });
try {
  const kinds = new Map();
  const seen = new Set();
  const queue = (process.env.START ?? "/").split(" ").map((it) => new URL(it, origin).href);
  const crawler = await newPage(browser, LOOKS[0]);
  while (queue.length > 0) {
    const address = queue.shift();
    const url = new URL(address);
    url.hash = "";
    // Searches and orders of one page are one address.
    const name = url.pathname + url.search;
    if (url.origin !== origin || url.pathname.startsWith("/api/") || seen.has(name)) continue;
    seen.add(name);
    const kind = kindOf(url);
    const known = kinds.get(kind) ?? [];
    if (known.length >= OF_A_KIND) continue;
    kinds.set(kind, [...known, name]);
    const answer = await crawler.goto(url.href, { waitUntil: "load" });
    if (!answer?.ok()) {
      complain(name, `answered ${answer?.status()}`);
      continue;
    }
    queue.push(...(await linksOf(crawler)));
  }
  await crawler.close();
  for (const look of LOOKS) {
    const page = await newPage(browser, look);
    for (const [kind, addresses] of kinds) {
      const address = addresses[0];
      await page.goto(origin + address, { waitUntil: "load" });
      await checkPage(page, look, address);
      const file = path.join(screens, `${kind}-${look.name}.png`);
      await page.screenshot({ path: file, fullPage: true });
      if (look.name === "light") await checkKeyboard(page, address);
    }
    await page.close();
  }
  // What is kept fresh comes again by itself, and comes as part of the page.
  const page = await newPage(browser, LOOKS[0]);
  const fresh = page.waitForResponse((answer) => answer.url().includes("/live/overview"), { timeout: 15000 });
  await page.goto(origin, { waitUntil: "load" });
  if (!(await fresh).ok()) complain("/", "the live part was refused");
  await page.close();
  await eraseSomebody(browser, kinds.get("learn-learners-one")?.at(-1));
  const pages = [...kinds.values()].flat().length;
  console.log(`browser: ${pages} pages of ${kinds.size} kinds, ${LOOKS.length} looks, pictures in ${screens}`);
} finally {
  await browser.close();
}
if (problems.length > 0) {
  console.error(`${problems.length} problems`);
  process.exit(1);
}
