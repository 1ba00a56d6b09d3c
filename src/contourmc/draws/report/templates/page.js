"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const charts = JSON.parse(byId("charts").textContent);

  // What appears where one points: text only, so that a name in it stays a name.
  const hover = byId("hover");
  const showHover = (event, lines) => {
    hover.replaceChildren(...lines.map((text) => {
      const line = document.createElement("div");
      line.textContent = text;
      return line;
    }));
    hover.hidden = false;
    const box = hover.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
    const above = event.clientY + 14 + box.height > window.innerHeight;
    hover.style.left = `${Math.max(8, left)}px`;
    hover.style.top = `${above ? event.clientY - box.height - 10 : event.clientY + 14}px`;
  };

  // The row of a chart that is nearest to a point: a bar or a band that it is in or above, else within some pixels.
  const NEAR = 24;
  const nearest = (chart, x, y) => {
    const [, , width, height] = chart.box;
    const scale = ([low, high, log], length) => (value) => {
      const [a, b, at] = log ? [low, high, value].map(Math.log) : [low, high, value];
      return length * (at - a) / (b - a);
    };
    const across = scale(chart.ends[0], width);
    const up = scale(chart.ends[1], height);
    let best = null;
    for (const layer of chart.layers) {
      const columns = layer.columns;
      columns.x.forEach((value, row) => {
        const away = across(value) - x;
        let distance = Math.hypot(away, columns.y ? height - up(columns.y[row]) - y : 0);
        if (layer.mark === "bars") distance = away <= 0 && across(columns.x2[row]) > x ? 0 : Infinity;
        if (layer.mark === "band") distance = NEAR / 2 + Math.abs(away) / width;  // a line in it comes first
        if (distance < NEAR && (best === null || distance < best.distance)) best = { distance, layer, row };
      });
    }
    return best;
  };
  document.addEventListener("pointermove", (event) => {
    const place = event.target.closest?.("[data-chart]");
    hover.hidden = true;
    if (!place) return;
    const chart = charts[Number(place.dataset.chart)];
    const drawn = place.querySelector("svg").getBoundingClientRect();
    const x = (event.clientX - drawn.x) * chart.size[0] / drawn.width - chart.box[0];
    const y = (event.clientY - drawn.y) * chart.size[1] / drawn.height - chart.box[1];
    const inside = x >= 0 && y >= 0 && x <= chart.box[2] && y <= chart.box[3];
    const found = inside ? nearest(chart, x, y) : null;
    if (!found) return;
    const { titles, columns } = found.layer;
    showHover(event, Object.entries(titles).map(([name, title]) => `${title}: ${columns[name][found.row]}`));
  });

  // Cells that a spreadsheet would take for a formula are marked as text.
  const field = (text) => {
    const harmless = /^[=+\-@\t\r]/.test(text) && !Number.isFinite(Number(text)) ? `'${text}` : text;
    return /[",\n\r]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
  };
  const rowsOf = (table) => [...table.rows].map((row) =>
    [...row.cells].map((cell) => cell.dataset.value ?? cell.textContent));
  const say = (text) => { byId("said").textContent = text; };
  const copy = async (text, button) => {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = document.createElement("textarea");  // where the clipboard is closed to files
      area.value = text;
      document.body.append(area);
      area.select();
      document.execCommand("copy");
      area.remove();
    }
    const before = button.textContent;
    button.textContent = "Copied";
    say("Copied");
    setTimeout(() => { button.textContent = before; }, 1500);
  };
  const save = (text, name) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "text/csv;charset=utf-8" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
    say(`Downloaded ${name}`);
  };
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const table = button.closest(".table")?.querySelector("table");
    if (button.matches(".copy-table")) copy(rowsOf(table).map((row) => row.join("\t")).join("\n"), button);
    if (button.matches(".save-table")) {
      const csv = rowsOf(table).map((row) => row.map(field).join(",")).join("\r\n");
      save(`\ufeff${csv}\r\n`, `${table.dataset.name}.csv`);
    }
    if (button.matches(".copy-code")) copy(button.closest(".code").querySelector("code").textContent, button);
  });

  for (const hidden of document.querySelectorAll(".buttons, .hint")) hidden.hidden = false;
})();
