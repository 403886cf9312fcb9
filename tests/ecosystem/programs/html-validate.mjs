import { HtmlValidate, StaticConfigLoader } from "html-validate";
import { listPages, report } from "./pages.mjs";

const CONFIGURATION = {
  root: true,
  extends: ["html-validate:standard", "html-validate:a11y", "html-validate:document"],
  rules: {
    "no-inline-style": "error",
    "require-sri": ["error", { target: "crossorigin" }],
    // what scrolls sideways is a region so that it has a name and takes the focus: `pre` has no native one
    "prefer-native-element": ["error", { exclude: ["region"] }],
  },
};
const validator = new HtmlValidate(new StaticConfigLoader(CONFIGURATION));
const pages = await listPages(process.argv[2]);
const findings = [];
for (const page of pages) {
  const html = await (await fetch(page, { headers: { Accept: "text/html" } })).text();
  for (const { messages } of (await validator.validateString(html)).results) {
    findings.push(...messages.map((each) => `${page}:${each.line} ${each.ruleId}: ${each.message}`));
  }
}
report(`${pages.length} pages`, findings);
