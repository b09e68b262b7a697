// Search over everything on the page: titles first, then what claims, reports and texts say.

import { h } from "./dom.js";

const folded = (text) => (text ?? "").normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

const PER_KIND = 8;
const TEXTS = 6;

export function buildSearch(model) {
  let index = null;
  const build = () => {
    return {
      entities: model.entities.map((one) => {
        const names = model.otherNames(one);
        return { row: one, title: folded(one.title), others: names.map(folded), names };
      }),
      communities: model.communities.map((one) => ({ row: one, title: folded(model.title(one)) })),
      documents: model.documents.map((one) => ({ row: one, title: `${folded(one.title)} ${folded(one.source)}` })),
      claims: model.claims.map((one) => ({ row: one, title: folded(one.description) })),
      texts: model.units.filter((unit) => unit.text !== null).map((one) => ({ row: one, title: null })),
    };
  };
  return (question) => {
    const wanted = folded(question).trim().replace(/\s+/g, " ");
    if (!wanted) return [];
    index ??= build();
    const ranked = (list) =>
      list
        .map((one, i) => ({ ...one, i, rank: Math.min(rankOf(one.title, wanted), ...(one.others ?? []).map((name) => rankOf(name, wanted) + 0.5)) }))
        .filter((one) => one.rank < 9)
        .sort((a, b) => a.rank - b.rank || a.i - b.i);
    const hit = (kind, href, label, ...note) => ({ kind, href, label, note: note.filter(Boolean).join(" · ") });
    const hits = [
      ...ranked(index.entities).slice(0, PER_KIND).map(({ row, others, names }) => hit("Entities", `#entity=${row.number}`, row.title, row.type, aliasNote(row, others, names, wanted))),
      ...ranked(index.communities).slice(0, 4).map(({ row }) => hit("Communities", `#community=${row.number}`, model.title(row), `${row.size} entities`)),
      ...ranked(index.documents).slice(0, 4).map(({ row }) => hit("Documents", `#document=${row.number}`, row.title, row.source)),
      ...ranked(index.claims).slice(0, 4).map(({ row }) => hit("Claims", `#claim=${row.number}`, row.description, row.subject_name)),
    ];
    let texts = 0;
    for (const text of index.texts) {
      if (texts === TEXTS) break;
      text.title ??= folded(text.row.text).replace(/\s+/g, " ");
      const at = text.title.indexOf(wanted);
      if (at < 0) continue;
      const start = Math.max(0, at - 18);
      const label = `…${text.row.text.replace(/\s+/g, " ").slice(start, start + 110)}…`;
      hits.push(hit("Texts", `#unit=${text.row.number}&words=${encodeURIComponent(question.trim())}`, label, model.document.get(text.row.document)?.title));
      texts += 1;
    }
    return hits;
  };
}

function rankOf(title, wanted) {
  if (title === wanted) return 0;
  if (title.startsWith(wanted)) return 1;
  const at = title.indexOf(wanted);
  if (at < 0) return 9;
  return /[\p{L}\p{N}]/u.test(title[at - 1]) ? 3 : 2;
}

function aliasNote(row, others, names, wanted) {
  if (folded(row.title).includes(wanted)) return "";
  const at = others.findIndex((name) => name.includes(wanted));
  return at < 0 ? "" : `also ${names[at]}`;
}

// The box in the header: a combobox, as WAI-ARIA describes it.
export function mountSearch(input, list, search, go) {
  let hits = [];
  let active = -1;
  const close = () => {
    list.hidden = true;
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
    active = -1;
  };
  const mark = (next) => {
    const options = [...list.querySelectorAll("[role=option]")];
    options[active]?.setAttribute("aria-selected", "false");
    active = (next + options.length) % options.length;
    options[active].setAttribute("aria-selected", "true");
    options[active].scrollIntoView({ block: "nearest" });
    input.setAttribute("aria-activedescendant", options[active].id);
  };
  const choose = (hit) => {
    close();
    input.blur();
    go(hit.href);
  };
  const show = () => {
    hits = search(input.value);
    list.replaceChildren(
      ...hits.flatMap((hit, i) => [
        hit.kind === hits[i - 1]?.kind ? "" : h("div", { class: "kind" }, hit.kind),
        h(
          "div",
          // The box keeps the focus.
          { id: `hit-${i}`, class: "hit", role: "option", "aria-selected": "false", onpointerdown: (event) => event.preventDefault(), onclick: () => choose(hit) },
          h("span", { class: "label" }, hit.label),
          h("span", { class: "note" }, hit.note),
        ),
      ]),
    );
    if (input.value.trim() && !hits.length) list.append(h("div", { class: "nothing" }, "Nothing on this page has that."));
    list.hidden = !input.value.trim();
    input.setAttribute("aria-expanded", String(!list.hidden));
    active = -1;
    if (hits.length) mark(0);
  };
  input.addEventListener("input", show);
  input.addEventListener("focus", () => input.value && show());
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && hits.length) mark(active + 1);
    else if (event.key === "ArrowUp" && hits.length) mark(active - 1);
    else if (event.key === "Enter" && hits[active]) choose(hits[active]);
    else if (event.key === "Escape") {
      input.value = "";
      close();
      input.blur();
    } else return;
    event.preventDefault();
  });
  document.addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, select");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    input.focus();
    input.select();
  });
}
