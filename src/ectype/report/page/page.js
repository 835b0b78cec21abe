// What can be clicked: the examples sort and filter, a label is chosen, a row is tried.

const byId = (id) => document.getElementById(id);

function examples() {
  const table = byId("examples");
  if (!table) return;
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  const rows = [...body.rows];
  const [said, copied] = ["Original", "Copy"].map((name) => heads.findIndex((head) => head.textContent.trim() === name));
  const number = (text) => (/^-?[\d,]*\.?\d+(e[+-]?\d+)?$/i.test(text) ? Number(text.replaceAll(",", "")) : NaN);
  const compare = (a, b) => {
    const [one, two] = [number(a), number(b)];
    if (one === one && two === two) return one - two;
    if (one === one || two === two) return one === one ? -1 : 1;
    return a.localeCompare(b);
  };
  heads.forEach((head, at) => head.querySelector("button")?.addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach((other) => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const text = (row) => row.cells[at].textContent;
    rows.sort((a, b) => (down ? -1 : 1) * compare(text(a), text(b)));
    body.append(...rows);
  }));
  const filter = () => {
    const wanted = byId("search").value.trim().toLowerCase();
    const [one, two] = [byId("filter-original").value, byId("filter-copy").value];
    const fits = (row) =>
      (!one || row.cells[said].textContent === one) && (!two || row.cells[copied].textContent === two) &&
      (!wanted || [...row.cells].some((cell) => cell.textContent.toLowerCase().includes(wanted)));
    for (const row of rows) row.hidden = !fits(row);
    byId("shown").textContent = `${rows.filter((row) => !row.hidden).length} of ${rows.length} rows`;
  };
  for (const id of ["search", "filter-original", "filter-copy"]) byId(id).addEventListener("input", filter);
}

function dependence() {
  const chosen = byId("dependence-label");
  const parts = [...document.querySelectorAll(".dependence")];
  chosen?.addEventListener("input", () => {
    parts.forEach((part, k) => (part.hidden = k !== Number(chosen.value)));
    byId("dependence-of").textContent = parts[Number(chosen.value)].dataset.label;
  });
}

// Folded parts are printed open.
function printing() {
  let closed = [];
  addEventListener("beforeprint", () => {
    closed = [...document.querySelectorAll("details:not([open])")];
    closed.forEach((one) => (one.open = true));
  });
  addEventListener("afterprint", () => closed.forEach((one) => (one.open = false)));
}

// A field of the form: reads a number, NaN for a gap; and is set to one.
function fieldOf(element, changed) {
  const [range, box] = [element.querySelector("[type=range]"), element.querySelector(".box")];
  const unit = Number(element.dataset.unit); // dates have boxes of their own, which count milliseconds
  const [gap, select] = [element.querySelector("[type=checkbox]"), element.querySelector("select")];
  element.addEventListener("input", (event) => {
    if (event.target === range) box.valueAsNumber = unit * range.value;
    if (event.target === box && box.value !== "") range.value = box.valueAsNumber / unit;
    if (gap && event.target !== gap) gap.checked = false;
    changed();
  });
  return {
    read: () => {
      if (select) return select.value === "" ? NaN : Number(select.value);
      return gap?.checked ? NaN : box.valueAsNumber / unit;
    },
    write: (value) => {
      if (select) select.value = value === null ? "" : String(value);
      else {
        if (gap) gap.checked = value === null;
        if (value !== null) box.valueAsNumber = unit * (range.value = value);
      }
    },
    name: element.querySelector("label").textContent,
    mark: (outside) => element.classList.toggle("outside", outside),
    lacks: () => !select && !gap?.checked && box.value === "" && !gap,
  };
}

const SVG = "http://www.w3.org/2000/svg";

function track(share) {
  const svg = document.createElementNS(SVG, "svg");
  const line = document.createElementNS(SVG, "line");
  for (const [name, value] of Object.entries({ class: "track", viewBox: "0 0 1000 14", preserveAspectRatio: "none", "aria-hidden": "true" })) svg.setAttribute(name, value);
  for (const [name, value] of Object.entries({ class: "bar copy", x1: 0, y1: 7, x2: 1000 * share, y2: 7 })) line.setAttribute(name, value);
  svg.append(line);
  return svg;
}

const MOST_SHOWN = 8;

// Whether a column's value is one that the space has; whether there may be a gap is for the form to say.
const isOutside = (entered, { low, high, whole, values, single }) => {
  const value = single ? Math.fround(entered) : entered;
  if (value !== value) return false;
  if ((low !== null && value < low) || (high !== null && value > high)) return true;
  return values ? !values.includes(value) : whole && value !== Math.round(value);
};

async function tryOut() {
  if (!byId("form")) return;
  const about = JSON.parse(byId("about").textContent);
  const score = await scorer(about, byId("copy").textContent);
  const numbers = (row) => row.map((value) => (value === null ? NaN : value));
  const fields = [...document.querySelectorAll(".field")].map((element) => fieldOf(element, show));
  const told = byId("told");
  let at = 0;
  function show() {
    told.textContent = "";
    if (fields.some((field) => field.lacks())) {
      byId("label").textContent = "…";
      return;
    }
    const row = fields.map((field) => field.read());
    const outside = fields.filter((field, j) => isOutside(row[j], about.support[j]));
    for (const field of fields) field.mark(outside.includes(field));
    byId("outside").hidden = !outside.length;
    byId("outside").textContent = outside.length
      ? `Outside the space: ${outside.map((field) => field.name).join(", ")}. No such row was ever asked about, and no certificate covers the answer.`
      : "";
    const found = score(row);
    const order = found.map((_, k) => k).sort((a, b) => found[b] - found[a]);
    byId("label").textContent = about.classes[order[0]];
    byId("chances").replaceChildren(...order.slice(0, MOST_SHOWN).map((k) => {
      const item = document.createElement("li");
      const [name, share] = [document.createElement("span"), document.createElement("span")];
      name.textContent = about.classes[k];
      share.textContent = `${(100 * found[k]).toFixed(1)} %`;
      share.className = "n";
      item.append(name, share, track(found[k]));
      return item;
    }));
  }
  const fill = (row) => {
    fields.forEach((field, j) => field.write(row[j]));
    show();
  };
  byId("another").addEventListener("click", () => fill(about.rows[++at % about.rows.length]));
  byId("examples")?.addEventListener("click", (event) => {
    const chosen = event.target.closest("[data-row]");
    if (!chosen) return;
    fill(about.examples[Number(chosen.dataset.row)]);
    told.textContent = `The original says ${chosen.closest("tr").cells[1].textContent} to this row.`;
    byId("try").scrollIntoView();
  });
  fill(about.rows[0]);
  const apart = about.rows.map((row, i) => Math.max(...score(numbers(row)).map((p, k) => Math.abs(p - about.chances[i][k]))));
  const worst = Math.max(...apart);
  byId("check").textContent = worst < 1e-3
    ? `Checked: on ${about.rows.length} rows its probabilities are the copy’s own, to ${worst < 1e-6 ? "six" : worst < 1e-4 ? "four" : "three"} digits.`
    : `Warning: on ${about.rows.length} rows its probabilities are up to ${worst.toFixed(3)} from the copy’s own; do not trust this form.`;
  window.ectype = { score: (rows) => rows.map((row) => score(numbers(row))), about };
}

examples();
dependence();
printing();
tryOut()
  .catch((error) => (byId("check").textContent = `The form does not work in this browser: ${error.message}`))
  .finally(() => document.documentElement.setAttribute("data-ready", ""));
