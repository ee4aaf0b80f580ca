// The card of a node: its columns, neighbors and likeliest classes.
import { classColor } from "./colors.js";
import { $, make, percent, svg } from "./dom.js";

const WHY = {
  random: "Randomly chosen, to measure the accuracy. Predictions are hidden so that they do not influence you.",
  suggested: "Suggested, because its label helps most.",
  selected: "Chosen by you.",
};

export function showCard(card, names, open) {
  $("card").hidden = !card; $("empty").hidden = Boolean(card);
  if (!card) return;
  const color = name => classColor(names.indexOf(name), names.length);
  $("node-id").textContent = card.id;
  $("why").textContent = WHY[card.chosen] || "";
  $("reason").textContent = card.reason && card.chosen === "suggested"
    ? `It would be the most similar label of ${card.reason.similar.toLocaleString("en-US")} nodes and cover ` +
      `${(100 * card.reason.covers).toFixed(1)}% of the uncertainty.` : "";
  const known = card.label || card.given;
  $("known").textContent = known ? `${card.label ? "Labeled" : "Given label"}: ${known}` : "";
  $("columns").replaceChildren(...Object.entries(card.columns).flatMap(([name, value]) => [
    make("dt", {}, name), make("dd", {}, value || "–")]));
  $("likeliest").replaceChildren(...card.likeliest.map(({ name, probability }) => {
    const bar = make("span", { class: "bar" }); bar.style.width = `${Math.max(1, 100 * probability)}%`;
    bar.style.background = color(name);
    return make("li", {}, make("span", { class: "name" }, name), make("span", { class: "track" }, bar), percent(probability));
  }));
  $("likeliest-title").hidden = !card.likeliest.length;
  $("neighbors-title").textContent = card.degree === card.neighbors.length
    ? `Neighbors (${card.degree})` : `Neighbors (${card.neighbors.length} of ${card.degree})`;
  $("neighbors").replaceChildren(...card.neighbors.map(other => make("li", {},
    make("button", { class: "link", type: "button", onclick: () => open(other.node) }, other.id),
    make("span", { class: other.label ? "label" : "soft" }, other.label || (other.predicted ? `${other.predicted} (predicted)` : "no label")))));
  drawNeighborhood(card, color, open);
}

function drawNeighborhood(card, color, open) {
  const count = card.neighbors.length, middle = [120, 90];
  const places = card.neighbors.map((_, i) => {
    const angle = 2 * Math.PI * i / Math.max(1, count) - Math.PI / 2;
    return [middle[0] + 98 * Math.cos(angle), middle[1] + 72 * Math.sin(angle)];
  });
  const line = (a, b) => svg("line", { x1: a[0], y1: a[1], x2: b[0], y2: b[1] });
  const dots = card.neighbors.map((other, i) => {
    const name = other.label || other.predicted;
    const dot = svg("circle", { cx: places[i][0], cy: places[i][1], r: 7, fill: name ? color(name) : "none",
      "fill-opacity": other.label ? 1 : 0.35 }, svg("title", {}, `${other.id}${name ? `: ${name}` : ""}`));
    dot.addEventListener("click", () => open(other.node));
    return dot;
  });
  const own = card.label || card.given || (card.likeliest[0] || {}).name;
  $("neighborhood").replaceChildren(
    ...card.edges.map(([a, b]) => line(places[a], places[b])), ...places.map(place => line(middle, place)), ...dots,
    svg("circle", { cx: middle[0], cy: middle[1], r: 10, class: "center", fill: own ? color(own) : "none" }));
}
