import { check } from "linkinator";
import { report } from "./pages.mjs";

const [site] = process.argv.slice(2);
// the address of the MCP server takes POST alone; other hosts are not reached from here
const linksToSkip = ["/mcp$", "^https?://(?!127\\.0\\.0\\.1)"];
const { links } = await check({ path: site, recurse: true, linksToSkip });
const checked = links.filter(({ state }) => state !== "SKIPPED");
const broken = checked.filter(({ state }) => state === "BROKEN");
report(`${checked.length} links`, broken.map(({ url, status, parent }) => `${status} ${url}, on ${parent}`));
