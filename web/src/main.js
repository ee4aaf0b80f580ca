// The labeling page.
import { call, downloadLabels, loadPoints } from "./api.js";
import { showCard } from "./card.js";
import { classColor } from "./colors.js";
import { $, make, percent } from "./dom.js";
import { NodeMap } from "./map.js";

const state = { card: null, overview: null, version: -1, busy: false, selected: [] };

const map = new NodeMap($("points"), $("overlay"), {
  onPick: node => openCard(node),
  onSelect: nodes => showSelection(nodes),
});

function say(text, bad = false) { $("status").textContent = text; $("status").classList.toggle("bad", bad); }

// One request at a time, in the order of the keys.
let queue = Promise.resolve();
function run(task) {
  queue = queue.then(task).catch(error => say(error.message, true));
  return queue;
}

function setCard(card) {
  state.card = card;
  showCard(card, state.overview.classes, openCard);
  map.show(card ? card.node : -1, card?.chosen === "random");
}

function nextCard(resume = false) {
  return call("next", { mode: $("mode").value, resume }).then(setCard);
}

function openCard(node) { run(async () => setCard(await call("card", { node }))); }

function showOverview(overview) {
  const names = overview.classes, old = state.overview;
  state.overview = overview;
  $("run").textContent = overview.run;
  $("counts").textContent = `${overview.labels} new label${overview.labels === 1 ? "" : "s"} (${overview.random} of randomly chosen nodes), ` +
    `${overview.given} given; ${overview.skipped} skipped`;
  const estimate = overview.estimate;
  $("estimate").textContent = estimate
    ? `${percent(estimate.value)} right (95% interval ${Math.round(100 * estimate.low)} to ${Math.round(100 * estimate.high)}), ` +
      `estimated from ${estimate.labels} randomly chosen node${estimate.labels === 1 ? "" : "s"}` +
      (overview.random_skipped ? `; ${overview.random_skipped} more had no answer, and the estimate says nothing about such nodes` : "")
    : "No estimate yet: label randomly chosen nodes.";
  $("interval").hidden = !estimate;
  if (estimate) {
    $("range").style.left = `${100 * estimate.low}%`; $("range").style.width = `${100 * (estimate.high - estimate.low)}%`;
    $("point").style.left = `${100 * estimate.value}%`;
  }
  if (!old || old.classes.length !== names.length) showClasses(names);
  showRefit(overview);
  if (overview.version !== state.version) { state.version = overview.version; refreshMap(); }
}

function showClasses(names) {
  $("classes").replaceChildren(...names.map((name, i) => {
    const swatch = make("i", {}); swatch.style.background = classColor(i, names.length);
    const key = i < 9 ? make("kbd", {}, String(i + 1)) : "";
    return make("button", { type: "button", onclick: () => label(name) }, key, swatch, name);
  }));
  $("legend").replaceChildren(...names.slice(0, 30).map((name, i) => {
    const swatch = make("i", {}); swatch.style.background = classColor(i, names.length);
    return make("span", {}, swatch, name);
  }));
  $("selection-class").replaceChildren(...names.map(name => make("option", { value: name }, name)));
}

function showRefit({ refit, comparison, labels }) {
  $("refit").disabled = refit.state === "running" || !labels;
  $("refit-progress").hidden = refit.state !== "running";
  $("refit-progress").value = refit.progress;
  let text = "";
  if (refit.state === "running") text = `Fitting again: ${percent(refit.progress)}`;
  else if (refit.state === "failed") text = `The fit failed: ${refit.message}`;
  else if (comparison) {
    const audit = comparison.audit;
    text = `${comparison.changed.toLocaleString("en-US")} of ${comparison.compared.toLocaleString("en-US")} predictions changed.` + (audit
      ? ` On ${audit.nodes} randomly chosen nodes, ${audit.right_before} were right before and ${audit.right_after} after.` : "");
  }
  if ($("refit-text").textContent !== text) $("refit-text").textContent = text;
}

async function refreshMap() { map.set(await loadPoints(), state.overview.classes.length); }

function recolor(nodes, code) {
  if (!map.points) return;
  map.classes = state.overview.classes.length;
  for (const node of nodes) { if (code >= 0) map.points.code[node] = code; map.points.source[node] = code >= 0 ? 2 : 0; }
  map.paint();
}

const WORDS = { skip: "skipped", unsure: "unsure" };

async function decide(kind, nodes, name, chosen) {
  const answer = await call("decide", { kind, nodes, name, chosen, mode: $("mode").value });
  showOverview(answer.overview);
  setCard(answer.card);
  if (kind === "label") recolor(nodes, state.overview.classes.indexOf(name));
}

function decideCard(kind, name = "") {
  const card = state.card;
  run(async () => {
    if (!card || state.card?.node !== card.node) return; // a second key before the next card was shown
    await decide(kind, [card.node], name, card.chosen);
    say(`${card.id}: ${WORDS[kind] || name}`);
  });
}

const label = name => decideCard("label", name);

function undo(again) {
  run(async () => {
    const answer = await call("undo", { again });
    if (!answer.nodes.length) { say(again ? "nothing to redo" : "nothing to undo"); return; }
    showOverview(answer.overview);
    await refreshMap();
    say(again ? "redone" : "undone");
    if (answer.card) setCard(answer.card);
    else await nextCard();
  });
}

function showSelection(nodes) {
  state.selected = nodes;
  $("selection").hidden = !nodes.length;
  $("selection-count").textContent = `${nodes.length.toLocaleString("en-US")} nodes selected`;
}

let asked = 0;
async function search() {
  const text = $("search").value, number = ++asked;
  const found = text.trim() ? await call("search", { text }) : [];
  if (number !== asked) return;
  $("found").replaceChildren(...found.map(({ id, node }) => make("li", {},
    make("button", { type: "button", class: "link", onclick: () => { openCard(node); $("found").replaceChildren(); } }, id))));
}

function addClass(event) {
  event.preventDefault();
  const name = $("new-class").value.trim();
  if (!name) return;
  $("new-class").value = ""; $("new-class").blur();
  label(name);
}

const KEYS = { s: () => decideCard("skip"), u: () => decideCard("unsure"), z: () => undo(false), y: () => undo(true),
  "/": () => $("search").focus(), n: () => $("new-class").focus(), l: () => $("lasso").click() };

document.addEventListener("keydown", event => {
  if (event.target.matches("input, select, textarea")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.repeat || event.altKey || event.metaKey || (event.ctrlKey && !"zy".includes(event.key))) return;
  const digit = Number(event.key);
  if (digit >= 1 && digit <= Math.min(9, state.overview?.classes.length || 0)) label(state.overview.classes[digit - 1]);
  else if (KEYS[event.key]) KEYS[event.key]();
  else if (event.key === "Escape") map.choose([]);
  else return;
  event.preventDefault();
});

$("skip").addEventListener("click", KEYS.s); $("unsure").addEventListener("click", KEYS.u);
$("undo").addEventListener("click", KEYS.z); $("redo").addEventListener("click", KEYS.y);
// A list keeps the focus after a choice, and the keys of the page with it.
$("mode").addEventListener("change", () => { $("mode").blur(); run(() => nextCard()); });
$("color").addEventListener("change", () => { $("color").blur(); map.colorBy = $("color").value; map.paint(); });
$("lasso").addEventListener("click", () => {
  map.lassoMode = !map.lassoMode; $("lasso").setAttribute("aria-pressed", map.lassoMode);
});
$("search").addEventListener("input", () => search().catch(error => say(error.message, true)));
$("add-class").addEventListener("submit", addClass);
$("selection-apply").addEventListener("click", () => {
  const nodes = state.selected, name = $("selection-class").value;
  run(async () => { await decide("label", nodes, name, "selected"); map.choose([]); say(`${nodes.length} nodes: ${name}`); });
});
$("selection-clear").addEventListener("click", () => map.choose([]));
$("refit").addEventListener("click", () => run(async () => showOverview(await call("refit"))));
$("export").addEventListener("click", () => downloadLabels().catch(error => say(error.message, true)));

// Other tabs, the fit and the map may change at any time.
setInterval(() => run(async () => {
  const before = state.overview?.refit.state;
  showOverview(await call("overview"));
  if (before === "running" && state.overview.refit.state === "done" && state.card) openCard(state.card.node);
}), 1500);

run(async () => { showOverview(await call("overview")); await nextCard(true); document.body.dataset.ready = "true"; });
