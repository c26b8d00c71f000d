"use strict";
// Filters and sorts the examples; without it all of them are there, the worst first.
(() => {
  const form = document.querySelector("form.sieve");
  if (!form) return;
  const facts = JSON.parse(document.getElementById("data").textContent).examples;
  const list = document.getElementById("cases");
  const told = document.getElementById("shown");
  const more = document.getElementById("more");
  const FIRST = 6;
  let all = false;
  let found = [];
  const cases = facts.map((fact) => ({ fact, node: document.getElementById(fact.id) }));
  const order = {
    worst: (a, b) => b.distance - a.distance || b.wrong - a.wrong,
    judges: (a, b) => b.wrong - a.wrong || b.distance - a.distance,
    tag: (a, b) => (a.tags[0] || "\uffff").localeCompare(b.tags[0] || "\uffff"),
    item: (a, b) => a.item.localeCompare(b.item, undefined, { numeric: true }),
  };
  const wanted = (fact, value) =>
    fact.lists.some(([judge, kind]) => (!value.judge || judge === value.judge) && (!value.kind || kind === value.kind)) &&
    (!value.tag || fact.tags.includes(value.tag)) &&
    (!value.system || fact.system === value.system);
  const show = () => {
    const value = Object.fromEntries(new FormData(form));
    const needle = (value.text || "").trim().toLowerCase();
    found = cases.filter(
      (one) => wanted(one.fact, value) && (!needle || one.node.textContent.toLowerCase().includes(needle)),
    );
    found.sort((a, b) => order[value.sort](a.fact, b.fact) || a.fact.place - b.fact.place);
    for (const one of cases) one.node.hidden = true;
    for (const [place, one] of found.entries()) {
      one.node.hidden = !all && place >= FIRST;
      list.append(one.node);
    }
    const shown = all ? found.length : Math.min(FIRST, found.length);
    told.textContent = `${shown} of ${found.length} shown; ${cases.length} examples in all`;
    more.hidden = shown === found.length;
    more.textContent = `Show ${found.length - shown} more`;
  };
  const again = () => { all = false; show(); };
  form.addEventListener("input", again);
  form.addEventListener("change", again); // some assistive tools choose an option without an input event
  form.addEventListener("reset", () => setTimeout(show));
  form.addEventListener("submit", (event) => event.preventDefault());
  more.addEventListener("click", () => {
    all = true;
    show();
    found[FIRST]?.node.focus();
  });
  form.hidden = false;
  show();
})();
