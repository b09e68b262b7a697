// Search over everything on the page: titles first, then what claims, reports and texts say.

const folded = (text) => (text ?? "").normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

const PER_KIND = 8;
const TEXTS = 6;

export function buildSearch(model) {
  let index = null;
  const build = () => {
    const names = new Map(); // other names of entities
    for (const one of model.entities) {
      const said = new Set(model.mentionsOf(one.number).flatMap((mention) => mention.names ?? []));
      said.delete(one.title);
      names.set(one.number, [...said]);
    }
    return {
      entities: model.entities.map((one) => ({ row: one, title: folded(one.title), others: names.get(one.number).map(folded), names: names.get(one.number) })),
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
    const hits = [
      ...ranked(index.entities).slice(0, PER_KIND).map(({ row, others, names }) => ({
        kind: "Entities",
        href: `#entity=${row.number}`,
        label: row.title,
        note: [row.type, aliasNote(row, others, names, wanted)].filter(Boolean).join(" · "),
      })),
      ...ranked(index.communities).slice(0, 4).map(({ row }) => ({
        kind: "Communities",
        href: `#community=${row.number}`,
        label: model.title(row),
        note: `${row.size} entities`,
      })),
      ...ranked(index.documents).slice(0, 4).map(({ row }) => ({ kind: "Documents", href: `#document=${row.number}`, label: row.title, note: row.source })),
      ...ranked(index.claims).slice(0, 4).map(({ row }) => ({ kind: "Claims", href: `#claim=${row.number}`, label: row.description, note: row.subject_name })),
    ];
    for (const text of index.texts) {
      if (hits.filter((hit) => hit.kind === "Texts").length >= TEXTS) break;
      text.title ??= folded(text.row.text).replace(/\s+/g, " ");
      const at = text.title.indexOf(wanted);
      if (at < 0) continue;
      const start = Math.max(0, at - 18);
      hits.push({
        kind: "Texts",
        href: `#unit=${text.row.number}&words=${encodeURIComponent(question.trim())}`,
        label: `…${text.row.text.replace(/\s+/g, " ").slice(start, start + 110)}…`,
        note: model.document.get(text.row.document)?.title ?? "",
      });
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
    list.replaceChildren();
    let kind = null;
    hits.forEach((hit, i) => {
      if (hit.kind !== kind) list.append(Object.assign(document.createElement("div"), { className: "kind", textContent: hit.kind }));
      kind = hit.kind;
      const option = document.createElement("div");
      option.id = `hit-${i}`;
      option.className = "hit";
      option.setAttribute("role", "option");
      option.setAttribute("aria-selected", "false");
      option.append(
        Object.assign(document.createElement("span"), { className: "label", textContent: hit.label }),
        Object.assign(document.createElement("span"), { className: "note", textContent: hit.note }),
      );
      option.addEventListener("pointerdown", (event) => event.preventDefault()); // the box keeps the focus
      option.addEventListener("click", () => choose(hit));
      list.append(option);
    });
    if (input.value.trim() && !hits.length) {
      list.append(Object.assign(document.createElement("div"), { className: "nothing", textContent: "Nothing on this page has that." }));
    }
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
