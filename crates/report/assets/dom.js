// Builds elements from parts. What others wrote becomes text nodes and nothing else.

const SVG = "http://www.w3.org/2000/svg";

// Controls, marks of direction and characters of no width. text.rs has the same list.
const HIDDEN =
  /[\0-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\u{e0000}-\u{e007f}]/gu;

// Text with its hidden characters shown as numbers.
function visible(text) {
  return String(text)
    .replace(/\r\n/g, "\n")
    .replace(HIDDEN, (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name === "href" && !/^(#|blob:)/.test(value)) throw new Error("a link must stay in the page");
    else element.setAttribute(name, value === true ? "" : value);
  }
  append(element, children);
  return element;
}

function append(element, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child instanceof Node ? child : visible(child));
  }
}

// h("td.n", { title: "…" }, child, …): functions among the attributes listen to the event of their name.
function h(tag, attributes, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  if (classes.length) element.className = classes.join(" ");
  return fill(element, attributes, children);
}

// The same for drawings.
function svg(tag, attributes, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElementNS(SVG, name);
  if (classes.length) element.setAttribute("class", classes.join(" "));
  return fill(element, attributes, children);
}

// A label, with the whole name on demand.
const labelled = (label, whole) => h("span", { title: label === whole ? null : visible(whole) }, label);

const known = (value) => value !== null && value !== undefined;
const decimals = (value, digits) => (known(value) ? value.toFixed(digits) : "–");
const count = (value) => (known(value) ? value.toLocaleString("en") : "–");
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? "" : "s"}`;

// A cost that is not known is not nothing.
function dollars(value) {
  if (!known(value)) return "unpriced";
  if (value === 0) return "$0";
  return `$${value.toFixed(Math.abs(value) < 1 ? 4 : 2)}`;
}

function interval(low, high) {
  return known(low) && known(high) ? `${low.toFixed(3)} – ${high.toFixed(3)}` : "–";
}

function milliseconds(value) {
  if (!known(value)) return "";
  if (value < 1000) return `${value} ms`;
  if (value < 120000) return `${(value / 1000).toFixed(1)} s`;
  return `${Math.floor(value / 60000)} min ${Math.round((value % 60000) / 1000)} s`;
}
