// A map of many points, drawn by WebGL: pan, zoom, hover, click, lasso.
import { quadtree } from "d3-quadtree";
import { select } from "d3-selection";
import { zoom, zoomIdentity } from "d3-zoom";
import { bytes, classColor, confidenceBytes } from "./colors.js";

const VERTEX = `attribute vec2 place; attribute vec4 color; attribute float size;
uniform vec2 scale, shift; uniform float ratio; varying vec4 shade;
void main() { gl_Position = vec4(place * scale + shift, 0.0, 1.0); gl_PointSize = size * ratio; shade = color; }`;
const FRAGMENT = `precision mediump float; varying vec4 shade;
void main() { float d = length(gl_PointCoord - 0.5); if (d > 0.5) discard;
gl_FragColor = vec4(shade.rgb, shade.a * smoothstep(0.5, 0.42, d)); }`;

function shader(gl, kind, source) {
  const made = gl.createShader(kind);
  gl.shaderSource(made, source); gl.compileShader(made);
  return made;
}

export class NodeMap {
  constructor(canvas, overlay, { onPick, onSelect }) {
    Object.assign(this, { canvas, overlay, onPick, onSelect, points: null, focus: -1, selected: new Set() });
    this.transform = zoomIdentity; this.lasso = null; this.lassoMode = false; this.colorBy = "class"; this.classes = 1;
    const gl = this.gl = canvas.getContext("webgl", { antialias: true, premultipliedAlpha: false, alpha: true });
    if (gl) this.setUp(gl);
    this.zoom = zoom().scaleExtent([0.8, 200]).filter(event => !this.lassoMode && !event.shiftKey && !event.button)
      .on("zoom", event => { this.transform = event.transform; this.draw(); });
    select(overlay).call(this.zoom).on("dblclick.zoom", null);
    overlay.addEventListener("pointerdown", event => this.down(event));
    overlay.addEventListener("pointermove", event => this.move(event));
    overlay.addEventListener("pointerup", event => this.up(event));
    overlay.addEventListener("click", event => this.click(event));
    new ResizeObserver(() => this.draw()).observe(canvas);
  }

  setUp(gl) {
    const program = gl.createProgram();
    gl.attachShader(program, shader(gl, gl.VERTEX_SHADER, VERTEX));
    gl.attachShader(program, shader(gl, gl.FRAGMENT_SHADER, FRAGMENT));
    gl.linkProgram(program); gl.useProgram(program);
    this.buffers = {};
    for (const [name, count, kind, scaled] of [["place", 2, gl.FLOAT, false], ["color", 4, gl.UNSIGNED_BYTE, true],
      ["size", 1, gl.FLOAT, false]]) {
      const buffer = this.buffers[name] = gl.createBuffer(), at = gl.getAttribLocation(program, name);
      gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
      gl.enableVertexAttribArray(at); gl.vertexAttribPointer(at, count, kind, scaled, 0, 0);
    }
    this.uniform = Object.fromEntries(["scale", "shift", "ratio"].map(name => [name, gl.getUniformLocation(program, name)]));
    gl.enable(gl.BLEND); gl.blendFuncSeparate(gl.SRC_ALPHA, gl.ONE_MINUS_SRC_ALPHA, gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  }

  set(points, classes) {
    this.points = points; this.classes = classes;
    this.tree = quadtree().x(i => points.x[i]).y(i => points.y[i]).addAll([...Array(points.n).keys()]);
    if (this.gl) {
      const places = new Float32Array(2 * points.n);
      for (let i = 0; i < points.n; i++) { places[2 * i] = points.x[i]; places[2 * i + 1] = points.y[i]; }
      this.fill("place", places);
    }
    this.paint();
  }

  fill(name, data) {
    this.gl.bindBuffer(this.gl.ARRAY_BUFFER, this.buffers[name]);
    this.gl.bufferData(this.gl.ARRAY_BUFFER, data, this.gl.DYNAMIC_DRAW);
  }

  paint() {
    const p = this.points;
    if (!p) return;
    if (this.gl) {
      const palette = Array.from({ length: this.classes }, (_, c) => bytes(classColor(c, this.classes)));
      const colors = new Uint8Array(4 * p.n), sizes = new Float32Array(p.n), small = p.n > 20000 ? 3 : 5;
      for (let i = 0; i < p.n; i++) {
        const color = this.colorBy === "class" ? palette[p.code[i]] || [136, 136, 136] : confidenceBytes(p.confidence[i]);
        colors[4 * i] = color[0]; colors[4 * i + 1] = color[1]; colors[4 * i + 2] = color[2];
        colors[4 * i + 3] = p.source[i] ? 255 : 150;
        sizes[i] = p.source[i] ? small + 5 : small;
      }
      this.fill("color", colors); this.fill("size", sizes);
    }
    this.draw();
  }

  // Position of a point on the screen, in CSS pixels.
  at(i) {
    const { x, y, k } = this.transform, w = this.canvas.clientWidth, h = this.canvas.clientHeight;
    return [x + k * (12 + this.points.x[i] * (w - 24)), y + k * (12 + this.points.y[i] * (h - 24))];
  }

  back(px, py) {
    const { x, y, k } = this.transform, w = this.canvas.clientWidth, h = this.canvas.clientHeight;
    return [((px - x) / k - 12) / (w - 24), ((py - y) / k - 12) / (h - 24)];
  }

  draw() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => { this.pending = null; this.render(); });
  }

  render() {
    const ratio = window.devicePixelRatio || 1, w = this.canvas.clientWidth, h = this.canvas.clientHeight;
    for (const canvas of [this.canvas, this.overlay]) {
      if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
        canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio);
      }
    }
    if (!this.points || !w) return;
    const gl = this.gl, { x, y, k } = this.transform;
    if (gl) {
      gl.viewport(0, 0, this.canvas.width, this.canvas.height);
      gl.clearColor(0, 0, 0, 0); gl.clear(gl.COLOR_BUFFER_BIT);
      gl.uniform2f(this.uniform.scale, 2 * k * (w - 24) / w, -2 * k * (h - 24) / h);
      gl.uniform2f(this.uniform.shift, 2 * (x + 12 * k) / w - 1, 1 - 2 * (y + 12 * k) / h);
      gl.uniform1f(this.uniform.ratio, ratio * Math.min(2.5, Math.sqrt(Math.max(1, k))));
      gl.drawArrays(gl.POINTS, 0, this.points.n);
    }
    const c = this.overlay.getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0); c.clearRect(0, 0, w, h);
    c.strokeStyle = c.fillStyle = getComputedStyle(this.overlay).color; c.lineWidth = 2;
    for (const i of this.selected) { const [px, py] = this.at(i); c.beginPath(); c.arc(px, py, 5, 0, 7); c.lineWidth = 1; c.stroke(); }
    if (this.focus >= 0) { const [px, py] = this.at(this.focus); c.lineWidth = 3; c.beginPath(); c.arc(px, py, 10, 0, 7);
      if (this.hidden) { c.fillStyle = "#888888"; c.fill(); } c.stroke(); }
    if (this.lasso) { c.lineWidth = 1.5; c.beginPath(); this.lasso.forEach(([px, py], j) => j ? c.lineTo(px, py) : c.moveTo(px, py)); c.stroke(); }
  }

  place(event) { const box = this.overlay.getBoundingClientRect(); return [event.clientX - box.left, event.clientY - box.top]; }

  down(event) {
    if (!this.lassoMode && !event.shiftKey) return;
    this.overlay.setPointerCapture(event.pointerId); this.lasso = [this.place(event)];
  }

  move(event) { if (this.lasso) { this.lasso.push(this.place(event)); this.draw(); } }

  up() {
    if (!this.lasso) return;
    const outline = this.lasso; this.lasso = null; this.lassoed = outline.length > 3;
    if (this.lassoed) this.choose(this.inside(outline));
    this.draw();
  }

  // Points inside an outline, by the even-odd rule.
  inside(outline) {
    const found = [];
    for (let i = 0; i < this.points.n; i++) {
      const [px, py] = this.at(i);
      let odd = false;
      for (let a = 0, b = outline.length - 1; a < outline.length; b = a++) {
        const [ax, ay] = outline[a], [bx, by] = outline[b];
        if ((ay > py) !== (by > py) && px < (bx - ax) * (py - ay) / (by - ay) + ax) odd = !odd;
      }
      if (odd) found.push(i);
    }
    return found;
  }

  choose(nodes) { this.selected = new Set(nodes); this.onSelect(nodes); this.draw(); }

  click(event) {
    if (this.lassoed) { this.lassoed = false; return; }
    if (!this.points || this.lassoMode) return;
    const [px, py] = this.place(event), [x, y] = this.back(px, py);
    const reach = 12 / (this.transform.k * Math.min(this.canvas.clientWidth, this.canvas.clientHeight));
    const found = this.tree.find(x, y, reach);
    if (found !== undefined) this.onPick(found);
  }

  // The color of a hidden node is covered, because it shows the prediction.
  show(node, hidden) { this.focus = node; this.hidden = hidden; this.draw(); }
}
