// Filters a page with long tables: rows, and parts below a third-level heading, by their text.

const main = document.getElementById("content");
const parts = [...main.querySelectorAll("section > h3")].map((head) => {
  const group = [head];
  for (let next = head.nextElementSibling; next && !/^H[23]$/.test(next.tagName); next = next.nextElementSibling) {
    group.push(next);
  }
  return group;
});
const inside = new Set(parts.flat());
const rows = [...main.querySelectorAll("tbody tr")].filter((row) => !inside.has(row.closest(".table")));
const groups = [...parts, ...rows.map((row) => [row])];
const texts = groups.map((group) => group.map((each) => each.textContent).join(" ").toLowerCase());

const input = document.getElementById("filter");
input.addEventListener("input", () => {
  const wanted = input.value.toLowerCase().split(/\s+/);
  groups.forEach((group, at) => {
    const hidden = !wanted.every((word) => texts[at].includes(word));
    for (const each of group) each.hidden = hidden;
  });
});
