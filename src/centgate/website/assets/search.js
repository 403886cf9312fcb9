// Search over all pages: in a dialog (Ctrl-K) and on the search page. Texts are put on the page as text.

const WORD = /[a-z0-9][a-z0-9_]{1,31}/g;
const POINTS = [[9, "titleWords"], [4, "pageWords"], [1, "words"]];
let loading;

const wordsOf = (text) => `${text} ${text.replace(/([a-z])(?=[A-Z])/g, "$1 ")}`.toLowerCase().match(WORD) ?? [];

async function load() {
  const response = await fetch("/search.json");
  return (await response.json()).map(([page, title, path, excerpt, words]) => ({
    page, title, path, excerpt, words: words.split(" "), titleWords: wordsOf(title), pageWords: wordsOf(page),
  }));
}

function score(entry, wanted) {
  const scores = wanted.map((word) =>
    POINTS.find(([, list]) => entry[list].some((each) => each.startsWith(word)))?.[0] ?? 0);
  return scores.every(Boolean) ? scores.reduce((sum, each) => sum + each, 0) + (entry.title === entry.page ? 3 : 0) : 0;
}

async function find(query) {
  const wanted = (query.slice(0, 100).toLowerCase().match(WORD) ?? []).slice(0, 8);
  if (!wanted.length) return [];
  loading ??= load().catch((error) => {
    loading = undefined; // the next search tries again
    throw error;
  });
  const entries = await loading;
  return entries
    .map((entry) => [score(entry, wanted), entry])
    .filter(([points]) => points)
    .sort(([one], [other]) => other - one)
    .slice(0, 30)
    .map(([, entry]) => entry);
}

function item({ page, title, path, excerpt }) {
  const link = document.createElement("a");
  link.href = path;
  link.textContent = title === page ? title : `${page}: ${title}`;
  const text = document.createElement("span");
  text.textContent = excerpt;
  const node = document.createElement("li");
  node.append(link, text);
  return node;
}

export function connect(input, list, said) {
  const show = async () => {
    const query = input.value;
    const found = await find(query).catch(() => null);
    if (query !== input.value) return;
    list.replaceChildren(...(found ?? []).map(item));
    if (!found) said.textContent = "The search could not be loaded. Type again to retry.";
    else said.textContent = query.trim().length > 1 ? `${found.length} results` : "";
  };
  input.addEventListener("input", show);
  if (input.value) show();
}

let dialog;

export function open() {
  dialog ??= build();
  dialog.showModal();
  dialog.querySelector("input").select();
}

function build() {
  const made = document.createElement("dialog");
  made.className = "search-dialog";
  made.ariaLabel = "Search";
  const form = document.createElement("form");
  form.action = "/search";
  const input = document.createElement("input");
  Object.assign(input, { type: "search", name: "q", className: "query", ariaLabel: "Search all pages", autocomplete: "off" });
  const list = document.createElement("ol");
  list.className = "found";
  const said = document.createElement("p");
  said.className = "hint";
  said.setAttribute("role", "status");
  form.append(input);
  made.append(form, said, list);
  made.addEventListener("click", (event) => {
    if (event.target === made || event.target.closest("a")) made.close();
  });
  made.addEventListener("keydown", (event) => step(event, made));
  document.body.append(made);
  connect(input, list, said);
  return made;
}

// Moves through the results with the arrow keys.
function step(event, made) {
  const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!move) return;
  const stops = [...made.querySelectorAll("input, a")];
  stops[Math.max(0, Math.min(stops.length - 1, stops.indexOf(document.activeElement) + move))].focus();
  event.preventDefault();
}

const form = document.getElementById("search");
if (form) connect(form.elements.q, document.getElementById("found"), document.getElementById("found-count"));
