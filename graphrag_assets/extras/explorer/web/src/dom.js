// Elements are built from text, never from markup: what documents contain can only ever be shown.

export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "swatch") element.style.setProperty("--swatch", value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const count = (number) => Number(number).toLocaleString("en");

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

// A list that shows its first items, and more when asked.
export function longList(items, render, { first = 12, more = 100, tag = "ul", name = "list" } = {}) {
  const list = h(tag, { class: name });
  const button = h("button", { type: "button", class: "more" });
  const box = h("div", null, list, button);
  let shown = 0;
  const show = (n) => {
    list.append(...items.slice(shown, shown + n).map(render));
    shown = Math.min(items.length, shown + n);
    button.hidden = shown === items.length;
    button.textContent = `Show ${count(Math.min(more, items.length - shown))} more of ${count(items.length)}`;
  };
  button.addEventListener("click", () => {
    const next = shown;
    show(more);
    list.children[next]?.querySelector("a, button, summary")?.focus();
  });
  show(first);
  return box;
}

export function section(title, total, ...content) {
  return h("section", null, h("h3", null, title, total === null ? null : h("span", { class: "count" }, count(total))), content);
}

const EMPHASIS = /(\*\*[^*\n]+\*\*|\*[^*\n]+\*)/;

// Markdown's emphasis; models and documents use it in prose.
export function prose(text) {
  return (text ?? "").split(EMPHASIS).map((part) => {
    if (part.length > 4 && part.startsWith("**") && part.endsWith("**")) return h("strong", null, part.slice(2, -2));
    if (part.length > 2 && part.startsWith("*") && part.endsWith("*")) return h("em", null, part.slice(1, -1));
    return part;
  });
}

const UNSPACED = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}]/u;

function pattern(names) {
  const one = (name) => {
    const words = name.trim().split(/\s+/).map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
    const edge = (character) => (UNSPACED.test(character) ? ["", ""] : ["(?<![\\p{L}\\p{N}])", "(?![\\p{L}\\p{N}])"]);
    return edge(name.trim()[0])[0] + words.join("\\s+") + edge(name.trim().at(-1))[1];
  };
  const longestFirst = [...new Set(names)].filter((name) => name?.trim()).sort((a, b) => b.length - a.length);
  return longestFirst.length ? new RegExp(`(${longestFirst.map(one).join("|")})`, "giu") : null;
}

// The text with every place marked where it has one of the names; `found` tells whether there is any.
export function marked(text, names) {
  const expression = pattern(names);
  const parts = expression ? text.split(expression) : [text];
  return { nodes: parts.map((part, i) => (i % 2 ? h("mark", null, part) : part)), found: parts.length > 1 };
}
