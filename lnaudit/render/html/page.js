
"use strict";
// Search: without it every site is shown.
(() => {
  const form = document.getElementById("search");
  if (!form) return;
  const box = form.elements.words, said = form.querySelector("output");
  const sites = [...document.querySelectorAll("[data-words]")];
  const rows = [...document.querySelectorAll("[data-of]")];
  const filter = () => {
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const left = new Set();
    for (const site of sites) {
      const shown = words.every((word) => site.dataset.words.includes(word));
      site.hidden = !shown;
      if (shown) left.add(site.id);
    }
    for (const row of rows) row.hidden = !left.has(row.dataset.of);
    said.textContent = words.length ? `${left.size} of ${sites.length} sites` : "";
  };
  const clear = () => {
    box.value = "";
    filter();
  };
  // what comes into sight is laid out only then, and moves what is below it
  const settle = (target, frames) => {
    target.scrollIntoView();
    if (frames) requestAnimationFrame(() => settle(target, frames - 1));
  };
  const reveal = () => {
    const target = document.getElementById(location.hash.slice(1));
    const site = target && target.closest("[data-words]");
    if (!site || !site.hidden) return;
    clear();
    settle(target, 8);
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.querySelector("button").addEventListener("click", clear);
  box.addEventListener("input", filter);
  addEventListener("hashchange", reveal);
  // a link to where we are changes no hash
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (link && link.getAttribute("href") === location.hash) reveal();
  });
  form.hidden = false;
  filter();
})();
