import { createRequire } from "node:module";
import { listPages, openBrowser, report } from "./pages.mjs";

const [site] = process.argv.slice(2);
const SCREENS = [
  { colorScheme: "light", viewport: { width: 320, height: 640 } },
  { colorScheme: "dark", viewport: { width: 1280, height: 900 } },
];
const RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
const options = { runOnly: { type: "tag", values: RULES }, resultTypes: ["violations"] };

const browser = await openBrowser();
const pages = await listPages(site);
const findings = [];
for (const screen of SCREENS) {
  const context = await browser.newContext(screen);
  await context.addInitScript({ path: createRequire(import.meta.url).resolve("axe-core/axe.min.js") });
  const tab = await context.newPage();
  for (const page of pages) {
    await tab.goto(page);
    const { violations } = await tab.evaluate((given) => axe.run(document, given), options);
    findings.push(...violations.map(({ id, nodes }) => `${page} ${screen.colorScheme}: ${id} ${nodes[0].target}`));
  }
}
await browser.close();
report(`${pages.length * SCREENS.length} pages`, findings);
