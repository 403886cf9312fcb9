// Draws an answer by its plan: level, figures, findings, results, sources with their age. Text is never HTML.

const MAX_LISTED = 5;
const MAX_CHARACTERS = 160;
const SIGNIFICANT = { maximumSignificantDigits: 4 };
const UNITS = [[1e12, "T"], [1e9, "B"], [1e6, "M"]];

export function el(tag, ...content) {
  const node = document.createElement(tag);
  node.append(...content);
  return node;
}

function classed(tag, name, ...content) {
  const node = el(tag, ...content);
  node.className = name;
  return node;
}

const items = (value) => (Array.isArray(value) ? value : []);
const follow = (node, path) => path.split(".").reduce((each, name) => each?.[name], node);
const cut = (value, limit = MAX_CHARACTERS) => String(value).slice(0, limit);

// Returns the objects at a path, those of every list on its way: `approvals[].findings[]`.
function spread(node, [step, ...rest]) {
  if (!step) return node && typeof node === "object" ? [node] : [];
  const value = node?.[step.replace("[]", "")];
  return (step.endsWith("[]") ? items(value) : [value]).flatMap((each) => spread(each, rest));
}

function format({ unit }, value) {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return cut(typeof value === "object" ? JSON.stringify(value) : value);
  if (unit === "percent") return `${value.toLocaleString("en", SIGNIFICANT)} %`;
  const sign = unit === "usd" ? "$" : "";
  const [limit, letter] = UNITS.find(([least]) => Math.abs(value) >= least) ?? [1, ""];
  const digits = letter || Math.abs(value) < 1 ? SIGNIFICANT : { maximumFractionDigits: 4 };
  return `${sign}${(value / limit).toLocaleString("en", digits)}${letter}`;
}

function chip({ name, role, status, fetchedAt }) {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(fetchedAt)) / 1000));
  const age = Number.isFinite(seconds) ? `, ${ageText(seconds)} old` : "";
  return el("li", `${name} `, el("span", `${role ? `${role}: ` : ""}${status}${age}`));
}

function ageText(seconds) {
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

function result(each) {
  const [title, address, text] = [["title"], ["url", "sourceUrl", "id"], ["description", "text", "code"]].map((names) =>
    cut(names.map((name) => each[name]).find((value) => typeof value === "string") ?? ""));
  const node = el("li", el("strong", title || address));
  if (title && address) node.append(" ", classed("span", "address", address));
  if (text) node.append(classed("span", "text", text));
  return node;
}

const list = (tag, name, nodes) => (nodes.length ? [classed(tag, name, ...nodes)] : []);

export function drawAnswer({ plan, tones }, { data, warnings, providers }) {
  const tone = (word) => tones[word] ?? "unknown";
  const rank = (word) => Object.values(tones).indexOf(tone(word));
  const findings = plan.findings
    .flatMap((path) => spread(data, path.split(".")))
    .map(({ severity, explanation }) => [cut(severity), explanation])
    .sort(([one], [other]) => rank(one) - rank(other));
  const level = plan.level && typeof data?.[plan.level] === "string" ? cut(data[plan.level]) : findings[0]?.[0];
  const facts = plan.facts
    .map((fact) => [fact, follow(data, fact.path)])
    .filter(([, value]) => value !== undefined && value !== null)
    .map(([fact, value]) => el("div", el("dt", fact.label), el("dd", format(fact, value))));
  const excerpt = plan.excerpt && typeof data?.[plan.excerpt] === "string" ? [cut(data[plan.excerpt], 600)] : [];
  const verdict = level
    ? [classed("p", `verdict ${tone(level)}`, classed("span", "verdict-label", "Level"), " ", el("strong", level))]
    : [];
  const found = findings.slice(0, MAX_LISTED).map(([word, text]) =>
    el("li", classed("span", `level ${tone(word)}`, word), ` ${text}`));
  const results = items(plan.listed && data?.[plan.listed]).filter(Boolean).slice(0, MAX_LISTED).map(result);
  return [
    ...verdict,
    ...list("dl", "facts", facts),
    ...list("ul", "findings", found),
    ...list("ol", "listed", results),
    ...excerpt.map((text) => classed("pre", "wrap excerpt", el("code", text))),
    ...list("ul", "warnings", items(warnings).map((text) => el("li", cut(text, 600)))),
    ...list("ul", "chips", items(providers).map(chip)),
  ];
}
