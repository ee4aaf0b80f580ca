// Requests to the server; every request carries the token of the address.
const parameters = new URLSearchParams(location.search);
const token = parameters.get("token") || sessionStorage.getItem("token") || "";
if (token) {
  sessionStorage.setItem("token", token);
  history.replaceState(null, "", location.pathname); // the token does not stay in the address bar
}
export const client = sessionStorage.getItem("client") || crypto.randomUUID();
sessionStorage.setItem("client", client); // a reloaded page can undo what it did before

async function request(path, options = {}) {
  const response = await fetch(path, { ...options, headers: { "x-dcgst-token": token, ...options.headers } });
  if (!response.ok) {
    const body = await response.json().catch(() => ({}));
    throw new Error(body.error || `the server answered ${response.status}`);
  }
  return response;
}

export async function call(name, body = {}) {
  const response = await request(`/api/${name}`, {
    method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify({ client, ...body }),
  });
  return response.json();
}

export async function loadPoints() {
  const buffer = await (await request("/api/points")).arrayBuffer();
  const n = new Int32Array(buffer, 0, 1)[0], part = (kind, index) => new kind(buffer, 4 + 4 * n * index, n);
  return {
    n, x: part(Float32Array, 0), y: part(Float32Array, 1), confidence: part(Float32Array, 2),
    code: part(Int32Array, 3), source: part(Int32Array, 4),
  };
}

export async function downloadLabels() {
  const text = await (await request("/api/labels.csv")).blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(text); link.download = "labels.csv"; link.click();
  URL.revokeObjectURL(link.href);
}
