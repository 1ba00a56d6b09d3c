"use strict";
(() => {
  const byId = (id) => document.getElementById(id);
  const { config, charts } = JSON.parse(byId("charts").textContent);

  // What appears when one hovers: text only, so that a name in it stays a name.
  const hover = byId("hover");
  const showHover = (_handler, event, _item, value) => {
    if (value === null || value === undefined || value === "") {
      hover.hidden = true;
      return;
    }
    hover.replaceChildren(...Object.entries(value).map(([name, entry]) => {
      const line = document.createElement("div");
      line.textContent = name ? `${name}: ${entry}` : entry;
      return line;
    }));
    hover.hidden = false;
    const box = hover.getBoundingClientRect();
    const left = Math.min(event.clientX + 14, window.innerWidth - box.width - 8);
    const above = event.clientY + 14 + box.height > window.innerHeight;
    hover.style.left = `${Math.max(8, left)}px`;
    hover.style.top = `${above ? event.clientY - box.height - 10 : event.clientY + 14}px`;
  };

  // The charts one after the other, from the top: the page can be read meanwhile.
  const draw = async () => {
    for (const place of document.querySelectorAll("[data-chart]")) {
      const spec = { ...charts[Number(place.dataset.chart)], autosize: { type: "fit-x", contains: "padding" } };
      const inside = document.createElement("div");  // Vega gives it a role; the place keeps its words
      place.append(inside);
      try {
        await vegaEmbed(inside, spec, {
          mode: "vega-lite", renderer: "svg", actions: false, ast: true, config, tooltip: showHover,
        });
        place.style.minHeight = "0";
      } catch (error) {
        place.textContent = "This chart could not be drawn; its caption says what it shows.";
        place.classList.add("failed");
        console.error(error);
      }
      await new Promise((resume) => setTimeout(resume));
    }
    document.documentElement.dataset.charts = "drawn";
  };

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
  draw();
})();
