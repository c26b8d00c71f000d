"use strict";
// Filters the list of experiments.
(() => {
  const rows = [...document.querySelectorAll("tbody tr")];
  const controls = [...document.querySelectorAll("#controls select, #controls input")];
  const show = () => {
    const words = document.getElementById("find").value.trim().toLowerCase();
    for (const row of rows) {
      const wanted = controls.every((one) => one.id === "find" || !one.value || row.dataset[one.id] === one.value);
      row.hidden = !wanted || !row.textContent.toLowerCase().includes(words);
    }
    const left = rows.filter((row) => !row.hidden).length;
    document.getElementById("shown").textContent = `${left} of ${rows.length} shown`;
  };
  for (const one of controls) one.addEventListener("input", show);
  document.getElementById("controls").hidden = false;
  show();
})();
