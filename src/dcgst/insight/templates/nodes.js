// The table of nodes: the likeliest of a class or the most uncertain, filtered by id.
const chosen = document.getElementById("order"), query = document.getElementById("query");
const body = document.getElementById("nodes"), count = document.getElementById("count");
const MOST = 25;
function list() {
  const text = query.value.trim().toLowerCase();
  const rows = N.lists[chosen.value].filter(([i]) => !text || N.id[i].toLowerCase().includes(text));
  body.replaceChildren(...rows.slice(0, MOST).map(([i, p]) => {
    const row = document.createElement("tr");
    const cells = [N.id[i], N.names[N.class[i]], p.toFixed(2), N.margin[i].toFixed(2), N.sources[N.source[i]]];
    cells.forEach((value, column) => {
      const cell = document.createElement("td"); cell.textContent = value;
      if (column === 2 || column === 3) cell.className = "n";
      row.append(cell);
    });
    return row;
  }));
  const shown = Math.min(MOST, rows.length);
  count.textContent = rows.length > shown ? `${shown} of ${rows.length} nodes` : `${rows.length} nodes`;
}
chosen.addEventListener("change", list);
query.addEventListener("input", list);
list();
