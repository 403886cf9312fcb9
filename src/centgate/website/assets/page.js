// For every page: theme switch, copy buttons, tabs. Pages are readable without this script.
"use strict";

const root = document.documentElement;
const THEMES = ["system", "light", "dark"];
let stored = {};
try {
  stored = localStorage;
} catch {} // storage can be disabled: choices then last as long as the page
let theme = THEMES.includes(stored.theme) ? stored.theme : "system";
root.dataset.theme = theme; // before the first paint, as is what needs this script
root.dataset.scripts = "";

function remember(name, value) {
  try {
    stored[name] = value;
  } catch {} // storage can be full
}

function themeSwitch() {
  const button = document.getElementById("theme");
  const label = button.querySelector("span");
  const say = () => button.replaceChildren(label, theme);
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    root.dataset.theme = theme;
    say();
    remember("theme", theme);
  });
  say();
}

function make(tag, attributes) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

function copyButton(block, said) {
  const code = block.querySelector("pre");
  const button = make("button", { type: "button", class: "copy", title: code.getAttribute("aria-label") });
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(code.textContent.trimEnd());
      said.textContent = "Copied";
    } catch {
      getSelection().selectAllChildren(code);
      said.textContent = "Selected";
    }
    button.textContent = said.textContent;
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  block.append(button);
}

// Keeps only scrollable blocks in the Tab order; an observer knows sizes without forcing a layout.
const tabStops = new ResizeObserver((entries) => {
  for (const { target: block } of entries) {
    if (block.scrollWidth > block.clientWidth || block.scrollHeight > block.clientHeight) block.tabIndex = 0;
    else block.removeAttribute("tabindex");
  }
});

// Converts a section with code samples in several languages to tabs, one for each h3.
function tabs(section) {
  const heads = [...section.querySelectorAll(":scope > h3")];
  if (!heads.length) return;
  const list = make("div", { role: "tablist", "aria-label": section.querySelector("h2").textContent });
  heads[0].before(list);
  const pairs = heads.map(pair);
  const choose = (chosen) => {
    for (const { tab, panel } of pairs) {
      tab.setAttribute("aria-selected", tab === chosen);
      tab.tabIndex = tab === chosen ? 0 : -1;
      panel.hidden = tab !== chosen;
    }
  };
  const pick = (tab) => {
    choose(tab);
    remember("language", tab.textContent);
  };
  pairs.forEach(({ tab }, at) => {
    list.append(tab);
    tab.addEventListener("click", () => pick(tab));
    tab.addEventListener("keydown", ({ key }) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
      const next = step && pairs.at((at + step) % pairs.length).tab;
      next?.focus();
      if (next) pick(next);
    });
  });
  choose((pairs.find(({ tab }) => tab.textContent === stored.language) ?? pairs[0]).tab);
}

function pair(head) {
  const tab = make("button", { type: "button", role: "tab", id: `tab-${head.id}`, "aria-controls": head.id });
  const panel = make("div", { role: "tabpanel", id: head.id, "aria-labelledby": tab.id });
  tab.textContent = head.textContent;
  while (head.nextElementSibling && head.nextElementSibling.tagName !== "H3") panel.append(head.nextElementSibling);
  head.replaceWith(panel);
  return { tab, panel };
}

// Copies the page's Markdown as the beginning of a prompt.
function copyPage(said) {
  const button = document.getElementById("copy-page");
  const label = button.textContent;
  button.addEventListener("click", async () => {
    try {
      const source = document.querySelector("#forms a").href;
      const text = await (await fetch(source, { headers: { Accept: "text/markdown" } })).text();
      await navigator.clipboard.writeText(`Read this page of ${location.origin}, then help me use it.\n\n${text}`);
      said.textContent = "Page copied";
    } catch {
      said.textContent = "The page cannot be copied here";
    }
    button.textContent = said.textContent;
    setTimeout(() => (button.textContent = label), 2000);
  });
}

// Opens the search in a dialog; without it, the link leads to the search page.
function searchDialog() {
  const link = document.getElementById("find");
  const open = (event) => {
    event.preventDefault();
    import("/search.js").then((search) => search.open(), () => (location.href = link.href));
  };
  link.addEventListener("click", (event) => event.ctrlKey || event.metaKey || event.shiftKey || open(event));
  addEventListener("keydown", (event) => {
    if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey)) open(event);
  });
}

document.addEventListener("DOMContentLoaded", () => {
  const said = make("p", { class: "unseen", role: "status" });
  document.body.append(said);
  themeSwitch();
  const online = !("offline" in document.body.dataset); // other pages may load nothing later
  if (online) searchDialog();
  for (const block of document.querySelectorAll(".code")) copyButton(block, said);
  document.querySelectorAll("section[data-tabs]").forEach(tabs);
  if (online) copyPage(said);
  for (const block of document.querySelectorAll(".table, .code pre")) tabStops.observe(block);
});
