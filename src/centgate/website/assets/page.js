// For every page: theme switch, copy buttons, tabs. Pages are readable without this script.
"use strict";

const root = document.documentElement;
const THEMES = ["system", "light", "dark"];
let theme = "system";
try {
  theme = localStorage.theme ?? theme;
} catch {} // storage can be disabled: the theme then lasts as long as the page
root.dataset.theme = theme; // before the first paint

function themeSwitch() {
  const button = document.getElementById("theme");
  const say = () => (button.textContent = `Theme: ${theme}`);
  button.addEventListener("click", () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    root.dataset.theme = theme;
    say();
    try {
      localStorage.theme = theme;
    } catch {}
  });
  say();
  button.hidden = false;
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

// Keeps only scrollable blocks in the Tab order.
function updateTabStops() {
  for (const block of document.querySelectorAll(".table, .code pre")) {
    if (block.scrollWidth > block.clientWidth || block.scrollHeight > block.clientHeight) block.tabIndex = 0;
    else block.removeAttribute("tabindex");
  }
}

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
    updateTabStops();
  };
  pairs.forEach(({ tab }, at) => {
    list.append(tab);
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", ({ key }) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
      const next = step && pairs.at((at + step) % pairs.length).tab;
      next?.focus();
      if (next) choose(next);
    });
  });
  choose(pairs[0].tab);
}

function pair(head) {
  const tab = make("button", { type: "button", role: "tab", id: `tab-${head.id}`, "aria-controls": head.id });
  const panel = make("div", { role: "tabpanel", id: head.id, "aria-labelledby": tab.id });
  tab.textContent = head.textContent;
  while (head.nextElementSibling && head.nextElementSibling.tagName !== "H3") panel.append(head.nextElementSibling);
  head.replaceWith(panel);
  return { tab, panel };
}

document.addEventListener("DOMContentLoaded", () => {
  const said = make("p", { class: "unseen", role: "status" });
  document.body.append(said);
  themeSwitch();
  for (const block of document.querySelectorAll(".code")) copyButton(block, said);
  document.querySelectorAll("section[data-tabs]").forEach(tabs);
  updateTabStops();
  addEventListener("resize", updateTabStops);
});
