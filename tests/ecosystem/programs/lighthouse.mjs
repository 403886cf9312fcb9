import lighthouse from "lighthouse";
import { openBrowser, report } from "./pages.mjs";

const [site] = process.argv.slice(2);
const PAGES = ["/", "/services/token-risk", "/pricing", "/start"];
const LEAST = { performance: 90, accessibility: 100, "best-practices": 100, seo: 100 };
const ATTEMPTS = 3;
const port = 9222 + (process.pid % 1000);

/** Measure a page; again if an audit could not measure, as a busy machine makes happen. */
async function measure(page) {
  const options = { port, logLevel: "silent", onlyCategories: Object.keys(LEAST) };
  for (let attempt = 1; ; attempt++) {
    const { lhr } = await lighthouse(site + page, options);
    const failed = Object.values(lhr.audits).some((audit) => audit.scoreDisplayMode === "error");
    if (!failed || attempt === ATTEMPTS) return lhr;
  }
}

const browser = await openBrowser(`--remote-debugging-port=${port}`);
const findings = [];
const scores = [];
for (const page of PAGES) {
  const lhr = await measure(page);
  for (const [id, { score, auditRefs }] of Object.entries(lhr.categories)) {
    const points = Math.round(score * 100);
    scores.push(points);
    if (points < LEAST[id]) {
      const failed = auditRefs.filter((each) => each.weight && lhr.audits[each.id].score < 1).map((each) => each.id);
      findings.push(`${page} ${id}: ${points} (${failed})`);
    }
  }
}
await browser.close();
report(`${PAGES.length} pages, ${Math.min(...scores)} to ${Math.max(...scores)}`, findings);
