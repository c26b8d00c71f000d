"use strict";
// The explorer: filters, sorts, opens and exports the items that the page carries. Their texts only ever become
// textContent. What is chosen stands in the address behind #, so that a link opens the same item in the same list.
(async () => {
  const store = document.getElementById("items");
  if (!store) return;
  const bytes = Uint8Array.from(atob(store.textContent.trim()), (one) => one.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { judges, items } = await new Response(unpacked).json();
  const STEP = 200; // rows drawn at once
  const at = (id) => document.getElementById(id);
  const framed = location.protocol === "about:"; // in a notebook there is no address to write to

  const make = (tag, text = "", attributes = {}, ...inner) => {
    const node = document.createElement(tag);
    if (text) node.textContent = text;
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...inner);
    return node;
  };

  // --- what can be chosen
  const parts = (said) => Boolean(said && said.error);
  const errs = (item, kind) => (item.said || []).some((said) => parts(said) && said.error.startsWith(kind));
  const KINDS = ["false pass", "false fail", "too high", "too low", "another word", "unscored"];
  const chips = [
    ["all judges wrong", (item) => item.said.every((said) => !said || parts(said)), judges.length > 1],
    ...judges.map(({ name }, place) => [`${name} wrong`, (item) => parts(item.said[place]), judges.length < 6]),
    ["judges differ", (item) => item.differ, true],
    ["people differ", (item) => item.people, true],
    ...KINDS.map((kind) => [kind, (item) => errs(item, kind), true]),
  ].filter(([, has, offered]) => offered && items.some(has));
  const FLAGS = { flag: "Label looks wrong", wrong: "Judge is wrong" };
  const flagsOf = (item) => Object.keys(FLAGS).filter((name) => state.flags[name].has(item.id));
  chips.push(["flagged", (item) => flagsOf(item).length > 0]);
  const wrong = (item) => item.said.filter(parts).length;
  const byId = (a, b) => a.id.localeCompare(b.id, undefined, { numeric: true });
  const orders = {
    worst: () => 0, // as they came
    judges: (a, b) => wrong(b) - wrong(a),
    item: byId,
    tag: (a, b) => ((a.tags || ["\uffff"])[0]).localeCompare((b.tags || ["\uffff"])[0]),
    system: (a, b) => (a.system || "\uffff").localeCompare(b.system || "\uffff"),
  };
  items.forEach((item) => {
    item.words = [item.id, item.question, item.answer, ...(item.references || []), ...item.said.map((one) => one?.why)]
      .join("\n").toLowerCase();
  });

  // --- the state, and the address that holds it
  let state, found = [], drawn = STEP;
  const read = () => {
    const given = new URLSearchParams(framed ? "" : location.hash.slice(1));
    const one = (name, other = "") => given.get(name) || other;
    state = {
      item: one("item"), find: one("find"), tag: one("tag"), system: one("system"), judge: one("judge"),
      sort: one("sort") in orders ? one("sort") : "worst",
      chips: new Set(given.getAll("only")),
      flags: Object.fromEntries(Object.keys(FLAGS).map((name) => [name, new Set(given.getAll(name))])),
    };
  };
  const address = (item) => {
    const told = new URLSearchParams({ item });
    for (const name of ["find", "tag", "system", "judge"]) if (state[name]) told.set(name, state[name]);
    if (state.sort !== "worst") told.set("sort", state.sort);
    for (const chip of state.chips) told.append("only", chip);
    for (const [name, ids] of Object.entries(state.flags)) for (const id of ids) told.append(name, id);
    return `#${told}`;
  };
  const write = () => framed || history.replaceState(null, "", address(state.item));

  // --- the list
  const filtered = () => {
    const needle = state.find.trim().toLowerCase();
    const wanted = chips.filter(([name]) => state.chips.has(name)).map(([, has]) => has);
    const judge = judges.findIndex(({ name }) => name === state.judge);
    return items
      .filter((item) => wanted.every((has) => has(item)) && (!needle || item.words.includes(needle)) &&
        (!state.tag || (item.tags || []).includes(state.tag)) && (!state.system || item.system === state.system) &&
        (judge < 0 || parts(item.said[judge])))
      .sort(orders[state.sort]);
  };
  const columns = judges.length < 5 ? judges.map(({ name }, place) => [name, place]) : [];
  const verdict = (said, name) =>
    make("td", said ? said.verdict : "", { "data-name": name, class: parts(said) ? "bad" : "" });
  const brief = (words) => make("td", "", {}, make("div", words, { class: "q", dir: "auto" }));
  const row = (item) => {
    const link = make("a", item.id, { href: address(item.id) });
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      choose(item.id);
    });
    const line = make("tr", "", { id: `row-${items.indexOf(item)}` },
      make("th", "", { scope: "row" }, link), brief(item.question), brief(item.answer),
      make("td", item.label, { "data-name": "people" }),
      ...columns.map(([name, place]) => verdict(item.said[place], name)));
    if (!columns.length) line.append(make("td", `${wrong(item)} of ${judges.length}`, { "data-name": "judges wrong" }));
    return line;
  };
  const list = () => {
    at("rows").replaceChildren(...found.slice(0, drawn).map(row));
    at("more").hidden = found.length <= drawn;
    if (at("flagged")) at("flagged").hidden = !state.flags.flag.size;
    at("shown").textContent = `${found.length.toLocaleString("en")} of ${items.length.toLocaleString("en")} shown`;
    for (const chip of at("chips").children) chip.setAttribute("aria-pressed", state.chips.has(chip.textContent));
    for (const name of ["find", "sort", "tag", "system", "judge"]) if (at(name)) at(name).value = state[name];
  };

  // --- beside it
  const text = (node, words) => make(node, words || "(empty)", { class: "text", dir: "auto" });
  const fold = (title, words) => make("details", "", {}, make("summary", title), text("div", words));
  const said = ({ name, prompt }, one) => {
    const box = make("div", "", { class: parts(one) ? "say bad" : "say" }, make("b", `${name}: ${one.verdict}`));
    if (one.given) box.append(` (raw verdict ${one.given})`);
    if (one.error) box.append(` ${one.error}`);
    if (one.why) box.append(text("div", one.why));
    if (prompt) box.append(fold("Prompt", prompt));
    if (one.raw) box.append(fold("Raw reply", one.raw));
    return box;
  };
  const detail = (item) => {
    const place = found.indexOf(item);
    const where = place < 0 ? "not in this list" : `${place + 1} of ${found.length}`;
    const head = make("h3", item.id, { tabindex: "-1" });
    const facts = make("dl");
    const fact = (name, ...nodes) => facts.append(make("dt", name), make("dd", "", {}, ...nodes));
    fact("Question", text("div", item.question));
    if (item.references) fact("Reference", ...item.references.map((one) => text("div", one)));
    fact("Answer", make("b", "", {}, text("div", item.answer)));
    for (const [name, words] of item.further || []) fact(name, words.length > 300 ? fold("Show", words) : text("div", words));
    const raters = (item.raters || []).map(([name, label, note]) =>
      make("div", `${name} ${label}${note ? `: ${note}` : ""}`, { dir: "auto" }));
    fact("People", make("b", item.label), ...raters);
    const about = [item.system && `system ${item.system}`, ...(item.tags || [])].filter(Boolean).join(" · ");
    if (about) fact("About", about);
    const link = make("a", "Link to this item", { href: address(item.id) });
    const flags = Object.entries(FLAGS).map(([name, title]) => {
      const button = make("button", title, { type: "button", "aria-pressed": state.flags[name].has(item.id) });
      button.addEventListener("click", () => toggle(name, item.id));
      return button;
    });
    const keys = "j/k next, f flag label, w flag judge, c copy link";
    at("one").replaceChildren(head, make("p", `${where} · ${keys}`, { class: "meta" }),
      facts, ...judges.flatMap((judge, number) => (item.said[number] ? [said(judge, item.said[number])] : [])),
      make("p", "", { class: "btn" }, ...flags, link));
  };
  const show = (scroll) => {
    found = filtered();
    if (!items.some((item) => item.id === state.item)) state.item = "";
    if (!state.item && found.length) state.item = found[0].id;
    const place = found.findIndex((item) => item.id === state.item);
    while (drawn <= place) drawn += STEP;
    list();
    const item = items.find((one) => one.id === state.item);
    if (item) detail(item); else at("one").replaceChildren();
    if (place < 0) return;
    const line = at(`row-${items.indexOf(item)}`);
    line.setAttribute("aria-current", "true");
    if (scroll) line.scrollIntoView({ block: "nearest" });
  };
  const choose = (id) => { state.item = id; write(); show(true); };
  const narrow = (change) => { change(); state.item = ""; drawn = STEP; show(false); write(); };
  const toggle = (name, id) => {
    const ids = state.flags[name];
    ids.delete(id) || ids.add(id);
    write();
    show(false);
  };
  const step = (by) => {
    const place = found.findIndex((item) => item.id === state.item);
    const next = found[Math.min(Math.max(place + by, 0), found.length - 1)];
    if (next) choose(next.id);
  };
  const copy = async () => {
    const link = at("one").querySelector(".btn a");
    await navigator.clipboard?.writeText(link.href);
    link.textContent = navigator.clipboard ? "Link copied" : "Copy this link by hand";
  };

  // --- CSV of what is shown, a calibrated verdict with the raw one beside it
  // A cell that a spreadsheet would run as a formula begins with an apostrophe
  const safe = (words) => (Number.isFinite(Number(words)) ? words : words.replace(/^\s*[=+\-@]/, "'$&"));
  const cell = (value) => `"${safe(String(value ?? "")).replaceAll('"', '""')}"`;
  const mapped = judges.map((_, place) => items.some((item) => item.said[place]?.given));
  const csv = (rows, file) => {
    const header = ["item_id", "question", "reference_answer", "answer", "system", "tags", "people", "flag",
      ...judges.flatMap(({ name }, place) => [name, ...(mapped[place] ? [`${name} raw verdict`] : []),
        `${name} error`, `${name} reasoning`])];
    const lines = rows.map((item) => [item.id, item.question, (item.references || []).join(" | "), item.answer,
      item.system, (item.tags || []).join(" "), item.label, flagsOf(item).map((name) => FLAGS[name].toLowerCase()).join("; "),
      ...item.said.flatMap((one, place) => [one?.verdict, ...(mapped[place] ? [one?.given] : []), one?.error, one?.why])]);
    const words = [header, ...lines].map((line) => line.map(cell).join(",")).join("\r\n");
    const link = make("a", "", { download: file,
      href: URL.createObjectURL(new Blob([`\ufeff${words}\r\n`], { type: "text/csv" })) });
    link.click();
    URL.revokeObjectURL(link.href);
  };

  // --- the controls
  const choices = (name, title, values) => {
    if (values.length < 2) return;
    const every = make("select", "", { id: name }, make("option", title, { value: "" }));
    every.append(...values.map((value) => make("option", value, { value })));
    at("controls").prepend(make("label", "", {}, make("span", title, { class: "unseen" }), every));
  };
  const values = (of) => [...new Set(items.flatMap(of))].filter(Boolean).sort();
  choices("system", "any system", values((item) => item.system || []));
  choices("tag", "any tag", values((item) => item.tags || []));
  if (judges.length > 5) choices("judge", "any judge wrong", judges.map(({ name }) => name));
  for (const [name] of chips) {
    const chip = make("button", name, { type: "button", "aria-pressed": "false" });
    chip.addEventListener("click", () => narrow(() => state.chips.delete(name) || state.chips.add(name)));
    at("chips").append(chip);
  }
  for (const name of ["find", "sort", "tag", "system", "judge"])
    at(name)?.addEventListener("input", (event) => narrow(() => { state[name] = event.target.value; }));
  at("more").addEventListener("click", () => { drawn += STEP; show(false); });
  at("csv").addEventListener("click", () => csv(found, "items.csv"));
  at("save-flagged")?.addEventListener("click", () => csv(items.filter((item) => state.flags.flag.has(item.id)), "flagged.csv"));
  for (const [name] of columns.length ? columns : [["judges wrong"]])
    at("heads").append(make("th", name, { scope: "col" }));
  const KEYS = { j: () => step(1), k: () => step(-1), c: copy };
  for (const [key, name] of [["f", "flag"], ["w", "wrong"]]) KEYS[key] = () => state.item && toggle(name, state.item);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input, select, textarea")) return;
    if (KEYS[event.key]) KEYS[event.key]();
  });
  addEventListener("hashchange", () => { read(); show(true); });
  read();
  at("explorer").hidden = false;
  show(Boolean(state.item));
  document.documentElement.dataset.ready = "true";
})();
