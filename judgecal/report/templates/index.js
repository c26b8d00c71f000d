"use strict";
// Searches and sorts the list of experiments.
(() => {
  const rows = [...document.querySelectorAll("tbody tr")];
  const show = () => {
    const words = document.getElementById("find").value.trim().toLowerCase();
    for (const row of rows) row.hidden = !row.textContent.toLowerCase().includes(words);
    const left = rows.filter((row) => !row.hidden).length;
    document.getElementById("shown").textContent = `${left} of ${rows.length} shown`;
  };
  document.getElementById("find").addEventListener("input", show);
  const heads = [...document.querySelectorAll("thead th")];
  const said = (row, place) => row.children[place].dataset.sort ?? row.children[place].textContent.trim();
  heads.forEach((head, place) => head.addEventListener("click", () => {
    const up = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
    for (const one of heads) one.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", up === 1 ? "ascending" : "descending");
    rows.sort((a, b) => up * said(a, place).localeCompare(said(b, place), "en", { numeric: true }));
    document.querySelector("tbody").append(...rows);
  }));
  document.getElementById("controls").hidden = false;
  show();
})();
