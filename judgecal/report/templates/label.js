"use strict";
// The labelling page. Every text of the set only ever becomes textContent; nothing is loaded but by its own acts.
(() => {
  const LONG = 900; // characters of a context or a field from which on it is folded
  const ENDLESS = 6000; // characters of any text that are drawn before the rest is asked for
  const EVERY_MS = 4000; // between two looks at the counts
  const CANNOT = "cannot tell";
  const at = (id) => document.getElementById(id);
  const fragment = location.hash.slice(1);
  const dot = fragment.lastIndexOf(".");
  const headers = { "Content-Type": "application/json", "Judgecal-Rater": fragment.slice(0, dot), "Judgecal-Token": fragment.slice(dot + 1) };
  let setup = null, item = null, busy = false, marking = false, counted = -EVERY_MS, looks = 0, ended = false;

  const make = (tag, text = "", attributes = {}, ...inner) => {
    const node = document.createElement(tag);
    if (text) node.textContent = text;
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...inner);
    return node;
  };
  const count = (n) => n.toLocaleString("en");

  // --- asking
  const ask = async (verb, sent = {}) => {
    let reply;
    try {
      reply = await fetch(`/act/${verb}`, { method: "POST", headers, body: JSON.stringify(sent), credentials: "omit" });
    } catch {
      throw new Error("judgecal does not answer: it has ended, or the connection broke. What you chose still stands here; press Enter to try again. Where it was started anew, open the link that it printed then.");
    }
    const told = await reply.json();
    if (!reply.ok) throw new Error(told.problem);
    return told;
  };
  const doing = async (act) => {
    if (busy) return;
    busy = true;
    at("problem").textContent = "";
    try { await act(); } catch (error) { at("problem").textContent = error.message; at("problem").scrollIntoView({ block: "nearest" }); }
    busy = false;
  };

  // --- texts
  const SIMPLE = new Set("about after also been before but from have into more most only other over such than that their them then there these they this those very was were what when where which while will with would your the and for are its not has had can".split(" "));
  const words = () => {
    const found = ((item.answers || [item.answer]).join(" ").toLowerCase().match(/[\p{L}\p{N}]+/gu) || []);
    return new Set(found.filter((word) => !SIMPLE.has(word) && (word.length > 2 || /\p{N}/u.test(word))));
  };
  const fill = (node, text, marks) => {
    if (!marks) { node.textContent = text; return; }
    node.replaceChildren(...text.split(/([\p{L}\p{N}]+)/u).map((part, place) =>
      place % 2 && marks.has(part.toLowerCase()) ? make("mark", part) : document.createTextNode(part)));
  };
  const written = (text, marks, kind = "") => {
    const box = make("div", "", { class: `text ${kind}`, dir: "auto" });
    const part = make("span");
    fill(part, text.slice(0, ENDLESS), marks);
    box.append(part);
    if (!text) part.textContent = "(empty)";
    if (text.length > ENDLESS) {
      const more = make("button", `Show all ${count(text.length)} characters`, { type: "button" });
      more.addEventListener("click", () => { fill(part, text, marks); more.remove(); });
      box.append(make("p", "… "), more);
    }
    return box;
  };
  const folded = (title, text, marks) => {
    if (text.length <= LONG) return written(text, marks);
    const fold = make("details", "", {}, make("summary", `${title} (${count(text.length)} characters): ${text.slice(0, 120)}`, { dir: "auto" }));
    fold.addEventListener("toggle", () => { if (fold.children.length < 2) fold.append(written(text, marks)); }, { once: true });
    return fold;
  };
  const section = (title, ...nodes) => make("section", "", {}, make("h3", title), ...nodes);
  const draw = () => {
    const marks = marking ? words() : null, drawn = [];
    for (const [role, text] of item.conversation || [])
      drawn.push(make("div", "", { class: "turn" }, make("b", role), written(text, null)));
    const sections = drawn.length ? [section("Conversation before", ...drawn)] : [];
    if (item.question) sections.push(section("Question", written(item.question, marks)));
    const references = item.references || [];
    if (references.length)
      sections.push(section(references.length > 1 ? "Reference answers, each as right as the others" : "Reference answer", ...references.map((one) => written(one, marks))));
    if (item.answers) sections.push(make("div", "", { class: "pair" },
      ...item.answers.map((text, place) => section(place ? "Right answer" : "Left answer", written(text, null, "under")))));
    else sections.push(section("Answer to be labelled", written(item.answer, null, "under")));
    for (const [name, text] of item.fields || []) sections.push(section(name, folded(name, text, marks)));
    const contexts = (item.contexts || []).map((text, place) => folded(`Context ${place + 1}`, text, marks));
    if (contexts.length) sections.push(section(`Context${contexts.length > 1 ? `s (${contexts.length})` : ""}`, ...contexts));
    if (item.opinions) sections.push(section("What raters said", make("ul", "", { class: "opinions" },
      ...item.opinions.map(([said, note]) => make("li", note ? `${name(said)}: ${note}` : name(said), { dir: "auto" })))));
    at("texts").replaceChildren(...sections);
  };
  const name = (said) => (setup.choices.find((one) => one.said === said) || { name: said }).name;

  // --- the answer
  const radios = () => [...document.querySelectorAll("#choices input")];
  const chosen = () => (radios().find((one) => one.checked) || {}).value;
  const choose = (said) => {
    for (const one of radios()) one.checked = one.value === said;
    if (said !== undefined) at("typed").value = "";
    const says = said === undefined ? "" : `${said === CANNOT ? "Cannot tell" : name(said)} chosen`;
    at("status").textContent = says;
  };
  const pick = (said) => {
    choose(said);
    if (quick() && !setup.adjudicates) save();
  };
  const quick = () => { try { return localStorage.getItem("judgecal-quick") === "1"; } catch { return false; } };
  const buttons = () => {
    const offered = [...setup.choices, { said: CANNOT, name: "Cannot tell", meaning: "", key: "d" }];
    for (const { said, name: title, meaning, key } of offered) {
      const radio = make("input", "", { type: "radio", name: "label", value: said });
      const shape = said === CANNOT || meaning ? "choice wide-choice" : "choice";
      const box = make("label", "", { class: shape }, radio, make("kbd", key || "·", { "aria-hidden": "true" }), make("b", title));
      if (meaning) box.append(make("small", meaning));
      radio.addEventListener("change", () => pick(said));
      at("choices").append(box);
    }
    if (!setup.choices.some((one) => one.meaning)) at("choices").classList.add("short");
    const typed = setup.typed;
    at("typed-row").hidden = !typed;
    if (typed && !typed.words) at("typed-name").textContent = `Number, ${typed.low} to ${typed.high}${typed.step ? ` by ${typed.step}` : ""} (t)`;
    if (typed && typed.words) at("typed-name").textContent = "A word (t)";
    at("typed").addEventListener("input", () => { if (at("typed").value) for (const one of radios()) one.checked = false; });
    at("note-name").textContent = setup.adjudicates ? "Reason (w): why this label settles it" : "Note (w)";
    if (setup.adjudicates) at("note").placeholder = "needed";
    if (setup.pass_at !== null) at("asked").textContent = `Your label (${setup.pass_at} and above passes)`;
    if (setup.adjudicates) at("asked").textContent = "The label that settles it";
    at("rubric").hidden = !setup.rubric;
    at("rubric-text").textContent = setup.rubric.replace(/([^\n|])\n(?=[^\n|#*\s\d-])/g, "$1 "); // lines of a paragraph
    at("rubric").open = matchMedia("(min-width: 56rem)").matches;
  };
  const save = () => doing(async () => {
    if (!item) return;
    const typed = at("typed").value.trim(), note = at("note").value.trim(), picked = typed || chosen();
    if (picked === undefined) throw new Error("Choose a label first, or d where you cannot tell.");
    if (setup.adjudicates && !note && picked !== CANNOT) {
      at("note").focus();
      throw new Error("Say why: others will see the reason beside your label.");
    }
    const label = picked === CANNOT ? null : picked;
    const sent = { item: item.key, label, before: item.mine ? item.mine.said : null };
    if (label === null) sent.reason = CANNOT;
    if (setup.adjudicates && label !== null) sent.reason = note; else sent.note = note;
    show(await ask("label", sent), "Saved. ");
  });
  const step = (by) => doing(async () => show(await ask("step", { item: item && item.key, by })));

  // --- showing
  const counts = (told) => {
    at("back").disabled = !told.done;
    at("bar").max = told.done + told.left || 1;
    at("bar").value = told.done;
    at("together").textContent = `All raters together: ${count(told.all_done)} of ${count(told.all)} items`;
    if (!item) return;
    const place = item.mine ? "labelled before" : `${count(told.done + 1)} of ${count(told.done + told.left)}`;
    at("where").textContent = `Item ${place}`;
  };
  const show = (told, first = "") => {
    item = told.item;
    recount();
    if (!item) { counts(told); return end(told); }
    for (const id of ["choices", "save"]) at(id).hidden = false;
    counts(told);
    draw();
    at("typed").value = "";
    at("note").value = "";
    choose(undefined);
    if (item.mine) {
      const { said, note, reason } = item.mine;
      if (radios().some((one) => one.value === said)) choose(said); else at("typed").value = said;
      at("note").value = (setup.adjudicates ? reason : note) || "";
    }
    scrollTo(0, 0);
    at("answer").scrollTop = 0;
    at("where").focus({ preventScroll: true });
    at("status").textContent = `${first}${at("where").textContent}.`;
  };
  const end = (told) => {
    at("where").textContent = told.left ? "The rest is before somebody else's eyes" : "Nothing is left for you";
    const finish = make("button", "I am through", { type: "button" });
    finish.addEventListener("click", () => doing(async () => {
      const { next, others } = await ask("finish");
      ended = others.length === 0;
      const said = others.length ? `Thank you. Still labelling: ${others.join(", ")}.` : "Thank you. All are through, and judgecal has ended. Next, in the terminal:";
      at("texts").replaceChildren(make("div", "", { class: "end" }, make("p", said), ...(others.length ? [] : [make("code", next)])));
    }));
    at("texts").replaceChildren(make("div", "", { class: "end" },
      ...(told.left ? [make("p", "→ looks whether any of it has become free.")] : []),
      make("p", `You labelled ${count(told.done)} items. Each label is on the disk. ← shows what you labelled.`), finish));
    for (const id of ["choices", "save"]) at(id).hidden = true;
    at("status").textContent = "Nothing is left for you.";
    at("where").focus({ preventScroll: true });
  };
  const recount = async () => {
    counted = performance.now();
    if (document.hidden || ended) return;
    const shown = item, look = ++looks;
    let told;
    try { told = await ask("counts", { item: item && item.key }); } catch { return; } // the next act says it
    if (busy || item !== shown || look !== looks) return; // an act has told more meanwhile
    const untouched = chosen() === undefined && !at("typed").value && !at("note").value;
    if (item && !item.mine && told.elsewhere && untouched) return doing(async () => show(await ask("next"))); // another tab
    counts(told);
  };

  // --- keys
  const mark = () => { marking = !marking; at("marks").setAttribute("aria-pressed", marking); if (item) draw(); };
  const fold = () => {
    const folds = [...document.querySelectorAll("#texts details")], open = folds.some((one) => !one.open);
    for (const one of folds) one.open = open;
  };
  const toggleQuick = () => {
    try { localStorage.setItem("judgecal-quick", quick() ? "0" : "1"); } catch { return; }
    at("status").textContent = quick() ? "A label is saved as soon as it is chosen." : "Enter saves.";
    at("problem").textContent = at("status").textContent;
  };
  const shift = (by) => {
    const every = radios(), place = every.findIndex((one) => one.checked);
    choose(every[Math.min(Math.max(place + by, 0), every.length - 1)].value);
  };
  const type = (first) => { if (setup.typed) { choose(undefined); at("typed").value = first; at("typed").focus(); } };
  const KEYS = {
    m: mark, o: fold, a: toggleQuick, ArrowLeft: () => step(-1), ArrowRight: () => step(1),
    "+": () => shift(1), "-": () => shift(-1), w: () => at("note").focus(), t: () => type(""), d: () => pick(CANNOT), "?": () => at("help").showModal(),
  };
  document.addEventListener("keydown", (event) => {
    if (!setup || event.ctrlKey || event.metaKey || event.altKey || at("help").open) return;
    const field = event.target.matches("input:not([type=radio])");
    if (field && event.key === "Escape") return at("where").focus();
    if (field || (event.key === "Enter" && event.target.matches("button, summary"))) return;
    const choice = item && setup.choices.find((one) => one.key.split(" ").includes(event.key));
    if (event.key === "Enter") save();
    else if (choice) pick(choice.said);
    else if (item && setup.typed && !setup.typed.words && /^[0-9-]$/.test(event.key)) type(event.key);
    else if (KEYS[event.key]) KEYS[event.key]();
    else return;
    event.preventDefault();
  });
  at("answer").addEventListener("submit", (event) => { event.preventDefault(); save(); });
  at("back").addEventListener("click", () => step(-1));
  at("marks").addEventListener("click", mark);
  at("keys").addEventListener("click", () => at("help").showModal());
  document.addEventListener("visibilitychange", () => { if (setup) recount(); });
  setInterval(() => { if (setup && performance.now() - counted > EVERY_MS) recount(); }, 2000);

  doing(async () => {
    const told = await ask("open");
    setup = told;
    at("title").textContent = setup.adjudicates ? "Adjudicate" : "Label";
    document.title = `${setup.adjudicates ? "Adjudicate" : "Label"} ${setup.set} · judgecal`;
    at("about").textContent = setup.adjudicates ? setup.set : `${setup.set} · you are ${setup.rater}`;
    buttons();
    at("answer").hidden = at("side").hidden = false;
    show(told);
    document.documentElement.dataset.ready = "true";
  }).then(() => {
    if (setup) return;
    at("where").textContent = at("problem").textContent;
    document.documentElement.dataset.ready = "true";
  });
})();
