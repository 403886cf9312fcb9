/** The pages of a website, and a browser to read them with. */

import chromium from "@sparticuz/chromium";
import { chromium as playwright } from "playwright-core";

/** Return the addresses of all pages: those of the sitemap, and one that does not exist. */
export async function listPages(site) {
  const sitemap = await (await fetch(`${site}/sitemap.xml`)).text();
  const pages = [...sitemap.matchAll(/<loc>([^<]+)<\/loc>/g)].map(([, address]) => address);
  return [...pages, `${site}/404`];
}

export async function openBrowser(...args) {
  const executablePath = process.env.CHROMIUM ?? (await chromium.executablePath());
  return playwright.launch({ executablePath, args: [...chromium.args, ...args] });
}

/** Print what was checked and found; sets the exit status. */
export function report(checked, findings) {
  findings.forEach((finding) => console.log(finding));
  console.log(`${checked}, ${findings.length} findings`);
  process.exitCode = findings.length ? 1 : 0;
}
