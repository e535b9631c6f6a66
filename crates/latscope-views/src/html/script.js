// <![CDATA[
// All controls are made here: none is dead without scripts.
"use strict";
document.addEventListener("DOMContentLoaded", () => {
  const hint = made("output", { className: "hint", hidden: true });
  document.body.append(hint);
  themes();
  document.querySelectorAll("table").forEach(ofTable);
  document.querySelectorAll("figure > svg").forEach(svg => ofFigure(svg, hint));
});

const made = (name, properties) => Object.assign(document.createElement(name), properties);
const on = (element, name, action) => element.addEventListener(name, action);
const set = (element, all) => Object.entries(all).forEach(([name, value]) => element.setAttribute(name, value));
const show = (part, shown) => shown ? part.removeAttribute("display") : set(part, { display: "none" });

// A button at the end of a row of controls.
function button(after, text, action) {
  let tools = after.nextElementSibling;
  if (!tools || tools.className !== "tools") {
    tools = made("div", { className: "tools" });
    after.after(tools);
  }
  const control = made("button", { type: "button", textContent: text });
  on(control, "click", () => action(control));
  tools.append(control);
}

function themes() {
  const root = document.documentElement;
  const asked = matchMedia("(prefers-color-scheme: dark)");
  button(document.querySelector("header"), "Light or dark", () => {
    const shown = root.dataset.theme || (asked.matches ? "dark" : "light");
    root.dataset.theme = shown === "dark" ? "light" : "dark";
  });
}

function ofTable(table) {
  button(table.closest(".scrolled"), "Copy as CSV", control => {
    control.textContent = copy(csv(table)) ? "Copied" : "Not copied: the browser forbids it";
    setTimeout(() => { control.textContent = "Copy as CSV"; }, 2000);
  });
}

function csv(table) {
  const text = cell => {
    const copied = cell.cloneNode(true);
    copied.querySelectorAll("svg").forEach(svg => svg.remove());
    const shown = copied.textContent.trim().replace(/\s+/g, " ");
    // No formula.
    const found = (/^[=+\-@]/.test(shown) && isNaN(shown) ? "'" : "") + shown;
    return /[",\n]/.test(found) ? `"${found.replace(/"/g, '""')}"` : found;
  };
  return [...table.rows].map(row => [...row.cells].map(text).join(",")).join("\n") + "\n";
}

// In pages of http, too, where navigator.clipboard is not.
function copy(text) {
  const area = made("textarea", { value: text });
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

function ofFigure(svg, hint) {
  const figure = svg.parentElement;
  svg.querySelectorAll("g.key").forEach(key => hides(svg, key));
  button(figure, "Save as SVG", () => save(svg));
  const group = svg.querySelector("g[data-plot]");
  const map = svg.querySelector("g[data-map]");
  let found;
  if (!group) return values(svg, hint, () => found ??= map ? cells(map) : parts(svg));
  const [left, top, width, height] = group.dataset.plot.split(" ").map(Number);
  const plot = { svg, group, left, top, width, height, from: left, to: left + width };
  plot.x = axis(group.dataset.x);
  plot.y = axis(group.dataset.y);
  values(svg, hint, () => corners(plot));
  zooms(plot);
}

// An entry of the legend shows and hides its curves.
function hides(svg, key) {
  set(key, { role: "button", tabindex: 0, "aria-pressed": true, "aria-label": `show ${key.textContent}` });
  const toggle = () => {
    const hidden = key.getAttribute("aria-pressed") === "true";
    set(key, { "aria-pressed": !hidden, opacity: hidden ? 0.4 : 1 });
    svg.querySelectorAll(`g.curve[data-curve="${key.dataset.curve}"]`).forEach(curve => show(curve, !hidden));
  };
  on(key, "click", toggle);
  on(key, "keydown", event => {
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); toggle(); }
  });
}

function save(svg) {
  const href = URL.createObjectURL(new Blob([standalone(svg)], { type: "image/svg+xml" }));
  const title = svg.querySelector("title").textContent;
  made("a", { href, download: title.replace(/[^\w.-]+/g, "-").slice(0, 80) + ".svg" }).click();
  setTimeout(() => URL.revokeObjectURL(href), 1000);
}

function standalone(svg) {
  const copied = svg.cloneNode(true);
  copied.removeAttribute("tabindex");
  copied.querySelectorAll("[tabindex]").forEach(key => {
    ["role", "tabindex", "aria-pressed", "aria-label"].forEach(name => key.removeAttribute(name));
  });
  return new XMLSerializer().serializeToString(copied) + "\n";
}

// "Log10 Nanoseconds 2 6.1": the scale, the unit, and the places at both ends.
function axis(text) {
  const [scale, unit, low, high] = text.split(" ");
  const value = place => scale === "Log10" ? 10 ** place : scale === "Log2" ? 2 ** place : place;
  return share => written(unit, value(Number(low) + share * (high - low)));
}

function written(unit, value) {
  const by = (step, text) => {
    const units = text.split(" ");
    while (value >= step && units.length > 1) { value /= step; units.shift(); }
    return `${Number(value.toPrecision(3))} ${units[0]}`;
  };
  switch (unit) {
    case "Nanoseconds": return by(1000, "ns µs ms s");
    case "Bytes": return by(1024, "B KiB MiB GiB TiB");
    case "Rate": return by(1000, "B/s kB/s MB/s GB/s TB/s");
    case "Percentile": return `${Number((100 - 100 / value).toFixed(Math.max(1, Math.log10(value))))} %`;
    case "Count": return Math.round(value).toLocaleString("en");
    default: return `${Number(value.toPrecision(4))}`;
  }
}

// The corners of the curves that are shown.
function corners(plot) {
  const scale = plot.width / (plot.to - plot.from);
  const found = [];
  plot.svg.querySelectorAll("g.curve:not([display])").forEach(curve => {
    const name = curve.querySelector("title").textContent;
    const d = curve.querySelector(":scope > path[fill=none]").getAttribute("d");
    const hollow = new Set([...curve.querySelectorAll("g.hollow circle")].map(dot => dot.getAttribute("cx")));
    for (const [, x, y] of d.matchAll(/[ML](-?[\d.]+) (-?[\d.]+)/g)) {
      if (x < plot.from - 0.1 || x - 0.1 > plot.to) continue;
      const at = plot.left + (x - plot.from) * scale;
      const tell = () => {
        plot.told = Number(x);
        const across = plot.x((x - plot.left) / plot.width);
        const up = plot.y((plot.top + plot.height - y) / plot.height);
        return `${name}: ${across}, ${up}${hollow.has(x) ? ", doubtful" : ""}`;
      };
      found.push({ from: at, to: at, y: Number(y), tell });
    }
  });
  return found;
}

function parts(svg) {
  return [...svg.querySelectorAll("g title")].map(title => {
    const { x, y, width, height } = title.parentElement.getBBox();
    return { from: x, to: x + width, y: y + height / 2, tell: () => title.textContent };
  });
}

// The cells of a map, row by row.
function cells(map) {
  const [left, top, side] = map.dataset.map.split(" ").map(Number);
  const names = map.dataset.names.split(",");
  const cell = (value, row, column) => {
    const from = left + column * side;
    const tell = () => `${names[row]} and ${names[column]}: ${value} ${map.dataset.unit}`;
    return value ? [{ from, to: from + side, y: top + (row + 0.5) * side, tell }] : [];
  };
  const cells = map.dataset.cells.split(",");
  return cells.flatMap((text, row) => text.split(" ").flatMap((value, column) => cell(value, row, column)));
}

function point(svg, event) {
  const place = new DOMPoint(event.clientX, event.clientY);
  return place.matrixTransform(svg.getScreenCTM().inverse());
}

// Tells what is nearest to the pointer, or what the arrow keys have come to.
function values(svg, hint, places) {
  set(svg, { tabindex: 0 });
  let at = -1;
  const told = ({ from, to, y, tell }) => {
    hint.textContent = tell();
    const place = new DOMPoint((from + to) / 2, y).matrixTransform(svg.getScreenCTM());
    hint.hidden = false;
    hint.style.left = `${Math.min(place.x + 12, innerWidth - hint.offsetWidth - 4)}px`;
    hint.style.top = `${Math.max(place.y - hint.offsetHeight - 8, 0)}px`;
  };
  const hide = () => { hint.hidden = true; };
  on(svg, "pointermove", event => {
    const here = point(svg, event);
    let nearest = null, least = 40 ** 2;
    for (const one of places()) {
      const aside = Math.max(one.from - here.x, 0, here.x - one.to);
      const distance = aside ** 2 + (one.y - here.y) ** 2;
      if (distance < least) { nearest = one; least = distance; }
    }
    if (nearest) told(nearest); else hide();
  });
  on(svg, "pointerleave", hide);
  on(svg, "blur", hide);
  on(svg, "keydown", event => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (event.key === "Escape") hide();
    if (!step || event.target !== svg) return;
    const all = places();
    if (!all.length) return;
    event.preventDefault();
    at = (Math.max(at + step, 0)) % all.length;
    told(all[at]);
  });
}

// A range of the x axis that is dragged over fills the figure.
function zooms(plot) {
  const { svg, group, left, top, width, height } = plot;
  const make = (name, attributes) => {
    const element = document.createElementNS("http://www.w3.org/2000/svg", name);
    set(element, attributes);
    return element;
  };
  let begun = null, dragged = null;
  const inside = x => Math.min(Math.max(x, left), left + width);
  const range = (from, to) => {
    const all = to - from > width - 0.1;
    const scale = width / (to - from);
    [plot.from, plot.to] = [from, to];
    const curves = group.querySelector("g.curves");
    curves.querySelectorAll("path").forEach(path => set(path, { "vector-effect": "non-scaling-stroke" }));
    // Dots would become ellipses, and names of marks wide.
    svg.querySelectorAll(".curve circle, .marks, .x").forEach(part => show(part, all));
    svg.querySelectorAll(".zoomed").forEach(part => part.remove());
    if (all) { curves.removeAttribute("transform"); group.querySelector(".clip")?.replaceWith(curves); return; }
    curves.setAttribute("transform", `translate(${left - from * scale} 0) scale(${scale} 1)`);
    if (!group.querySelector(".clip")) {
      // A picture within the picture cuts what is outside.
      const clip = make("svg", { class: "clip", x: left, y: top, width, height, viewBox: `${left} ${top} ${width} ${height}` });
      curves.replaceWith(clip);
      clip.append(curves);
    }
    for (let tick = 0; tick !== 5; tick += 1) {
      const x = left + width * tick / 4;
      const text = make("text", { class: "zoomed", x, y: top + height + 16, "text-anchor": "middle" });
      text.textContent = plot.x((from + (to - from) * tick / 4 - left) / width);
      group.append(text);
    }
  };
  on(svg, "pointerdown", event => {
    const { x, y } = point(svg, event);
    if (event.button || event.target.closest(".key") || y < top || y > top + height) return;
    event.preventDefault();
    svg.focus({ preventScroll: true });
    begun = inside(x);
    dragged = make("rect", { y: top, height, fill: "#0072b2", "fill-opacity": 0.15, width: 0 });
    svg.append(dragged);
  });
  addEventListener("pointermove", event => {
    if (begun === null) return;
    const x = inside(point(svg, event).x);
    set(dragged, { x: Math.min(x, begun), width: Math.abs(x - begun) });
  });
  addEventListener("pointerup", event => {
    if (begun === null) return;
    const ends = [begun, inside(point(svg, event).x)].sort((a, b) => a - b);
    dragged.remove();
    begun = null;
    const value = x => plot.from + (x - left) / width * (plot.to - plot.from);
    if (ends[1] - ends[0] > 8) range(value(ends[0]), value(ends[1]));
  });
  on(svg, "keydown", event => {
    const by = { "+": 0.5, "-": 2 }[event.key];
    if (!by) return;
    const half = Math.min((plot.to - plot.from) * by, width) / 2;
    const middle = Math.min(Math.max(plot.told ?? left + width / 2, left + half), left + width - half);
    range(middle - half, middle + half);
  });
  on(svg, "dblclick", () => range(left, left + width));
  button(svg.parentElement, "Show all", () => range(left, left + width));
}
// ]]>
