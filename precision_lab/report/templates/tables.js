// Tables that sort and filter. Without this file a page is whole; with it no order of rows is lost.
(() => {
  "use strict";
  const UNITS = {
    ns: 1e-9, us: 1e-6, "µs": 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600,
    B: 1, kB: 1e3, MB: 1e6, GB: 1e9, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30,
  };
  const RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹";
  const NUMBER = /^(?:[<>≤≥≈~±]|under)?\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?)\s*(%|[µA-Za-z]+)?$/;
  const POWER = /^(?:([+-]?[\d.]+)\s*[×·]\s*)?(\d+)([⁺⁻]?)([⁰¹²³⁴⁵⁶⁷⁸⁹]+)$/;
  const HEX = /^([+-]?)0x([0-9a-f]+)\.?([0-9a-f]*)p([+-]?\d+)$/i;

  // The value of a text, or undefined where it is no number.
  function value(text) {
    const plain = text.replace(/\u2212/g, "-").replace(/,(?=\d{3}(?!\d))/g, "");
    if (/^nan$/i.test(plain)) return NaN;
    const endless = plain.match(/^([+-]?)(?:inf|infinity|∞)$/i);
    if (endless) return endless[1] === "-" ? -Infinity : Infinity;
    let found = plain.match(HEX);
    if (found) {
      const whole = parseInt(found[2] + found[3], 16);
      return (found[1] === "-" ? -1 : 1) * whole * 2 ** (Number(found[4]) - 4 * found[3].length);
    }
    found = plain.match(POWER);
    if (found) {
      const size = Number([...found[4]].map((digit) => RAISED.indexOf(digit)).join(""));
      return Number(found[1] ?? 1) * Number(found[2]) ** (found[3] === "⁻" ? -size : size);
    }
    found = plain.match(NUMBER);
    return found ? Number(found[1]) * (UNITS[found[2]] ?? 1) : undefined;
  }

  // Numbers, then words, then NaN, then nothing: in that order both up and down.
  function key(cell) {
    const text = (cell.dataset.sort ?? cell.textContent).trim();
    const number = value(text);
    const rank = text === "" ? 3 : number === undefined ? 1 : Number.isNaN(number) ? 2 : 0;
    return { rank, number, parts: text.toLowerCase().split(/(\d+)/) };
  }

  const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

  // Words by their letters' codes, the whole numbers in them by value, wherever the reader lives.
  function words(a, b) {
    for (let at = 0; at < Math.min(a.length, b.length); at++) {
      const found = at % 2 ? order(Number(a[at]), Number(b[at])) : order(a[at], b[at]);
      if (found) return found;
    }
    return a.length - b.length;
  }

  function compare(a, b, way) {
    if (a.rank !== b.rank) return a.rank - b.rank;
    return way * (a.rank === 0 ? order(a.number, b.number) : a.rank === 1 ? words(a.parts, b.parts) : 0);
  }

  function made(tag, properties, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }

  function enhance(table) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    const texts = rows.map((row) => [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase());
    const keys = heads.map(() => null);
    const names = heads.map((head) => head.textContent.trim());

    // way is 1 up, -1 down, 0 as it was; a stable sort keeps equal rows as they were.
    function sort(column, way) {
      keys[column] ??= rows.map((row) => key(row.cells[column]));
      const places = rows.map((_, at) => at);
      if (way) places.sort((a, b) => compare(keys[column][a], keys[column][b], way));
      body.append(...places.map((at) => rows[at]));
      heads.forEach((head, at) => {
        if (at === column && way) head.setAttribute("aria-sort", way > 0 ? "ascending" : "descending");
        else head.removeAttribute("aria-sort");
      });
      choice.value = way ? `${column} ${way}` : "";
    }

    function filter() {
      const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let shown = 0;
      rows.forEach((row, at) => {
        row.hidden = !wanted.every((word) => texts[at].includes(word));
        shown += !row.hidden;
      });
      count.textContent = wanted.length ? `${shown} of ${rows.length} rows` : `${rows.length} rows`;
    }

    const field = made("input", { type: "search", autocomplete: "off", spellcheck: false });
    const count = made("output");
    const choice = made("select", {}, made("option", { value: "", textContent: "original order" }));
    names.forEach((name, column) => {
      choice.append(
        made("option", { value: `${column} 1`, textContent: `${name}, up` }),
        made("option", { value: `${column} -1`, textContent: `${name}, down` }),
      );
    });
    heads.forEach((head, column) => {
      const button = made("button", { type: "button", title: "Sort: up, down, original order" }, ...head.childNodes);
      button.addEventListener("click", () => {
        const now = head.getAttribute("aria-sort");
        sort(column, now === "ascending" ? -1 : now ? 0 : 1);
      });
      head.append(button);
    });
    field.addEventListener("input", filter);
    choice.addEventListener("change", () => {
      const [column, way] = choice.value.split(" ").map(Number);
      sort(column, way ?? 0);
    });
    const box = table.closest(".scroll") ?? table;
    box.before(
      made("div", { className: "controls" }, made("label", {}, "Filter ", field),
        made("label", { className: "narrow" }, "Sort ", choice), count),
    );
    filter();
  }

  document.querySelectorAll("main table").forEach(enhance);
})();
