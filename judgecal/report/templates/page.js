"use strict";
// The explorer: filters and opens the items that the page carries. Their texts only ever become
// textContent. What is chosen stands in the address behind #, so that a link opens the same item in the same list.
// Whatever has data-show filters to the rows with its marks, one a line.
(async () => {
  const store = document.getElementById("items");
  if (!store) return;
  const bytes = Uint8Array.from(atob(store.textContent.trim()), (one) => one.charCodeAt(0));
  const unpacked = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { heads, judges, listed, loud, chips: named, items } = await new Response(unpacked).json();
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
  for (const item of items) Object.assign(item, { said: item.said || [], marks: new Set(item.marks) });
  const known = new Set(items.flatMap((item) => [...item.marks]));
  const chips = new Map([...named].filter(([mark]) => known.has(mark)));
  const wrong = (item) => item.said.filter(parts).length;
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
      item: one("item"), find: one("find"), tag: one("tag"), system: one("system"),
      chips: new Set(given.getAll("only").filter((mark) => known.has(mark))),
      quiet: given.has("agreed") || !loud,
    };
  };
  const address = (item) => {
    const told = new URLSearchParams({ item });
    for (const name of ["find", "tag", "system"]) if (state[name]) told.set(name, state[name]);
    if (state.quiet && loud) told.set("agreed", "1");
    for (const chip of state.chips) told.append("only", chip);
    return `#${told}`;
  };
  const write = () => framed || history.replaceState(null, "", address(state.item));

  // --- the list
  const filtered = () => {
    const needle = state.find.trim().toLowerCase();
    const wanted = [...state.chips];
    return (state.quiet ? items : items.slice(0, loud))
      .filter((item) => wanted.every((mark) => item.marks.has(mark)) && (!needle || item.words.includes(needle)) &&
        (!state.tag || (item.tags || []).includes(state.tag)) && (!state.system || item.system === state.system));
  };
  const verdict = (said, name) =>
    make("td", said ? said.verdict : "", { "data-name": name, class: parts(said) ? "bad" : "" });
  const brief = (words) => make("td", "", { class: "long" }, make("div", words, { class: "q", dir: "auto" }));
  const cells = { question: brief, answer: brief, label: (words) => make("td", words, { "data-name": heads.label }),
    note: (words) => make("td", words, { "data-name": heads.note }), system: brief };
  const row = (item) => {
    const link = make("a", item.id, { href: address(item.id) });
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      choose(item.id);
    });
    const line = make("tr", "", { id: `row-${items.indexOf(item)}` },
      make("th", "", { scope: "row" }, link), ...Object.keys(cells).filter((part) => heads[part]).map((part) => cells[part](item[part])),
      ...judges.slice(0, listed).map(({ name }, place) => verdict(item.said[place], name)));
    if (judges.length && !listed) line.append(make("td", `${wrong(item)} of ${judges.length}`, { "data-name": "judges wrong" }));
    return line;
  };
  const chipOf = (mark, words) => {
    const chip = make("button", words, { type: "button", "data-mark": mark }, make("span"));
    chip.addEventListener("click", () => narrow(() => state.chips.delete(mark) || state.chips.add(mark)));
    at("chips").append(chip);
  };
  const count = () => { // how many are left with each: what is chosen narrows the others
    const n = new Map();
    for (const item of found) for (const mark of item.marks) n.set(mark, (n.get(mark) || 0) + 1);
    for (const mark of state.chips)
      if (![...at("chips").children].some((chip) => chip.dataset.mark === mark)) chipOf(mark, mark.replace(":", ": "));
    for (const chip of at("chips").children) {
      const { mark } = chip.dataset, pressed = state.chips.has(mark), left = n.get(mark) || 0;
      chip.setAttribute("aria-pressed", pressed);
      chip.lastChild.textContent = ` ${left.toLocaleString("en")}`;
      chip.disabled = !pressed && !left;
      chip.hidden = !pressed && !chips.has(mark);
    }
  };
  const list = () => {
    const inside = at("rows").contains(document.activeElement);
    at("rows").replaceChildren(...found.slice(0, drawn).map(row));
    at("more").hidden = found.length <= drawn;
    if (inside) at("list").focus({ preventScroll: true });
    at("shown").textContent = `${found.length.toLocaleString("en")} of ${(state.quiet ? items.length : loud).toLocaleString("en")} shown`;
    at("quiet")?.setAttribute("aria-pressed", state.quiet);
    count();
    for (const name of ["find", "tag", "system"]) if (at(name)) at(name).value = state[name];
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
    const title = (part) => heads[part][0].toUpperCase() + heads[part].slice(1);
    if (heads.question) fact(title("question"), text("div", item.question));
    if (item.references) fact("Reference", ...item.references.map((one) => text("div", one)));
    if (heads.answer) fact(title("answer"), make("b", "", {}, text("div", item.answer)));
    for (const [name, words] of item.further || []) fact(name, words.length > 300 ? fold(`${words.slice(0, 70)} …`, words) : text("div", words));
    if (heads.label) fact(title("label"), make("b", item.label));
    if (heads.note) fact(title("note"), item.note || "");
    const about = [item.system && `system ${item.system}`, ...(item.tags || [])].filter(Boolean).join(" · ");
    if (about) fact("About", about);
    const link = make("a", "Link to this item", { href: address(item.id) });
    const asked = item.id.replace(/\(\d+\)$/, "("), all = make("button", "This question in every system", { type: "button" });
    all.hidden = asked === item.id || items.filter((one) => one.id.startsWith(asked)).length < 2;
    all.addEventListener("click", () => narrow(() => {
      Object.assign(state, { find: asked, tag: "", system: "", chips: new Set() });
    }));
    at("one").replaceChildren(head, make("p", where, { class: "meta" }),
      facts, ...judges.flatMap((judge, number) => (item.said[number] ? [said(judge, item.said[number])] : [])),
      make("p", "", { class: "btn" }, link, " ", all));
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
  for (const [mark, words] of chips) chipOf(mark, words);
  at("quiet")?.addEventListener("click", () => narrow(() => { state.quiet = !state.quiet; }));
  for (const name of ["find", "tag", "system"])
    at(name)?.addEventListener("input", (event) => narrow(() => { state[name] = event.target.value; }));
  at("more").addEventListener("click", () => { drawn += STEP; show(false); });

  // --- what on the page shows rows of it
  for (const shows of document.querySelectorAll("[data-show]")) {
    const wanted = shows.dataset.show.split("\n");
    if (!items.some((item) => wanted.every((mark) => item.marks.has(mark)))) continue;
    let button = shows;
    if (shows.matches("td, th")) {
      button = make("button", "", { type: "button" }, ...shows.childNodes);
      shows.append(button);
    } else if (!shows.matches("a, button")) {
      shows.closest("[role=img]")?.setAttribute("role", "group");
      for (const [name, value] of [["role", "button"], ["tabindex", "0"]]) shows.setAttribute(name, value);
      shows.addEventListener("keydown", (event) => {
        if (event.key === "Enter" || event.key === " ") { event.preventDefault(); shows.dispatchEvent(new Event("click")); }
      });
    }
    button.addEventListener("click", (event) => {
      event.preventDefault();
      narrow(() => { Object.assign(state, { chips: new Set(wanted), quiet: true, find: "", tag: "", system: "" }); });
      at("explore").scrollIntoView();
      at("list").focus({ preventScroll: true });
    });
  }
  addEventListener("hashchange", () => { read(); show(true); });
  read();
  for (const hidden of ["tools", "one"]) at(hidden).hidden = false;
  show(Boolean(state.item));
  document.documentElement.dataset.ready = "true";
})();
