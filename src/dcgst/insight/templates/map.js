"use strict";
const canvas = document.getElementById("canvas"), tip = document.getElementById("tip");
let size = { w: 0, h: 0 };
const at = i => [12 + P.x[i] / 1000 * (size.w - 24), 12 + P.y[i] / 1000 * (size.h - 24)];
function draw(focus = -1) {
  const ratio = window.devicePixelRatio || 1, box = canvas.getBoundingClientRect();
  const ink = getComputedStyle(document.body).color;
  size = { w: box.width, h: box.height };
  canvas.width = box.width * ratio; canvas.height = box.height * ratio;
  const c = canvas.getContext("2d"); c.scale(ratio, ratio); c.clearRect(0, 0, size.w, size.h);
  const order = [...P.x.keys()].sort((a, b) => P.source[b] - P.source[a]);
  for (const i of order) {
    const [x, y] = at(i), given = P.source[i] === 0;
    c.beginPath(); c.arc(x, y, given ? 5 : 3, 0, 7);
    c.globalAlpha = P.source[i] === 2 ? .35 : .85; c.fillStyle = P.colors[P.class[i]]; c.fill();
    if (given || i === focus) { c.globalAlpha = 1; c.lineWidth = i === focus ? 3 : 1.5; c.strokeStyle = ink; c.stroke(); }
  }
}
function show(i) {
  if (i < 0) { tip.style.display = "none"; return; }
  const [x, y] = at(i);
  tip.textContent = `${P.id[i]}: ${P.names[P.class[i]]}, ${Math.round(100 * P.probability[i])} % (${P.sources[P.source[i]]})`;
  tip.style.display = "block";
  tip.style.left = Math.max(0, Math.min(x + 12, size.w - tip.offsetWidth - 4)) + "px";
  tip.style.top = Math.max(0, y - tip.offsetHeight - 8) + "px";
}
function nearest(event) {
  const box = canvas.getBoundingClientRect(), mx = event.clientX - box.left, my = event.clientY - box.top;
  let best = -1, least = 14 * 14;
  for (let i = 0; i < P.x.length; i++) {
    const [x, y] = at(i), d = (x - mx) ** 2 + (y - my) ** 2;
    if (d < least) { least = d; best = i; }
  }
  return best;
}
canvas.addEventListener("pointermove", e => show(nearest(e)));
canvas.addEventListener("pointerdown", e => show(nearest(e)));
canvas.addEventListener("pointerleave", () => show(-1));
window.addEventListener("resize", () => draw());
window.addEventListener("beforeprint", () => draw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => draw());
draw();
// report.html#node=ID shows that node
const wanted = decodeURIComponent((location.hash.match(/^#node=(.*)$/) || [])[1] || "");
const focus = P.id.indexOf(wanted);
if (wanted && focus >= 0) {
  draw(focus);
  const box = canvas.getBoundingClientRect(), [x, y] = at(focus);
  canvas.dispatchEvent(new PointerEvent("pointermove", { clientX: box.left + x, clientY: box.top + y }));
}
