
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
  const reveal = () => {
    const target = document.getElementById(location.hash.slice(1));
    if (target && target.hidden) {
      clear();
      target.scrollIntoView();
    }
  };
  form.addEventListener("submit", (event) => event.preventDefault());
  form.querySelector("button").addEventListener("click", clear);
  box.addEventListener("input", filter);
  addEventListener("hashchange", reveal);
  form.hidden = false;
  filter();
})();
