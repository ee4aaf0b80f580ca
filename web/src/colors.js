// Colors of Okabe and Ito, which people with color blindness can distinguish; hues for many classes.
const PALETTE = ["#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#888888"];

export function classColor(code, classes) {
  if (code < 0) return "#888888";
  if (classes <= PALETTE.length) return PALETTE[code];
  return `hsl(${Math.round(360 * code / classes)} ${60 + 20 * (code % 2)}% ${45 + 10 * (code % 3)}%)`;
}

const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
export function bytes(color) {
  probe.clearRect(0, 0, 1, 1); probe.fillStyle = color; probe.fillRect(0, 0, 1, 1);
  return probe.getImageData(0, 0, 1, 1).data;
}

// From orange (uncertain) to blue (certain).
export function confidenceBytes(p) {
  const t = Math.max(0, Math.min(1, (p - 0.3) / 0.7));
  return [213 * (1 - t), 94 + 20 * t, 178 * t, 255];
}
