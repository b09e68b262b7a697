// The side bar: entities, the tree of communities with their reports, claims by date, documents by batch.

import { count, h, longList, plural } from "./dom.js";

const STEP = { first: 60, more: 200 };

export function entityList(model) {
  const kinds = new Map();
  for (const one of model.entities) kinds.set(one.type || "UNKNOWN", (kinds.get(one.type || "UNKNOWN") ?? 0) + 1);
  const holder = h("div");
  const fill = (kind) => {
    const chosen = kind ? model.entities.filter((one) => (one.type || "UNKNOWN") === kind) : model.entities;
    holder.replaceChildren(longList(chosen, (one) => h("li", null, entityRow(one)), STEP));
  };
  const select = h(
    "select",
    { "aria-label": "Type of entity", onchange: (event) => fill(event.target.value) },
    h("option", { value: "" }, `All types (${count(model.entities.length)})`),
    [...kinds].sort((a, b) => b[1] - a[1]).map(([kind, n]) => h("option", { value: kind }, `${kind} (${count(n)})`)),
  );
  fill("");
  return h("div", null, h("div", { class: "filter" }, select), holder);
}

const entityRow = (one) =>
  h("a", { class: "row", href: `#entity=${one.number}` }, h("span", { class: "name" }, one.title), h("span", { class: "figure", title: "Neighbors" }, count(one.degree ?? 0)));

export function communityTree(model, colorOf) {
  const level = (communities) => longList(communities, (one) => h("li", null, branch(one)), { ...STEP, name: "tree" });
  const branch = (one) => {
    const row = h(
      "a",
      { class: "row", href: `#community=${one.number}` },
      h("span", { class: "dot", swatch: colorOf(one.number) }),
      h("span", { class: "name" }, model.title(one)),
      h("span", { class: "figure", title: "Entities" }, count(one.size)),
    );
    const children = model.children(one.number);
    if (!children.length) return h("div", { class: "leaf" }, row);
    const details = h("details", { "data-community": one.number }, h("summary", { "aria-label": `Parts of ${model.title(one)}` }));
    details.addEventListener("toggle", () => details.open && details.children.length === 1 && details.append(level(children)));
    return h("div", { class: "branch" }, details, row);
  };
  return level(model.roots);
}

const tallRow = (href, name, ...note) =>
  h("li", null, h("a", { class: "row tall", href }, h("span", { class: "name" }, name), h("span", { class: "note" }, note)));

export function claimList(model) {
  const byDate = [...model.claims].sort((a, b) => (a.start_date ?? "~").localeCompare(b.start_date ?? "~") || a.number - b.number);
  if (!byDate.length) return h("p", { class: "nothing" }, "This index has no claims.");
  return longList(byDate, (claim) => tallRow(`#claim=${claim.number}`, claim.description, [claim.start_date, claim.subject_name].filter(Boolean).join(" · ")), STEP);
}

const DECISIONS = { accept: "one thing", reject: "two things", unsure: "not sure" };

// The evidence that two names are one thing, and what has been decided.
export const candidateFacts = (one) => [one.score === null ? null : `score ${one.score.toFixed(2)}`, one.evidence, one.decision ? `${DECISIONS[one.decision]} (${one.decided_by})` : null].filter(Boolean);

export const candidateRow = (one) => tallRow(`#candidate=${one.number}`, `${one.name_title} – ${one.other_title}`, candidateFacts(one).join(" · "));

export function candidateList(model) {
  if (!model.candidates.length) return h("p", { class: "nothing" }, "No two names of this index may be one thing.");
  return longList(model.candidates, candidateRow, STEP);
}

export function documentList(model) {
  return longList(model.documents, (one) => tallRow(`#document=${one.number}`, one.title, one.source, " · ", plural(model.unitsOf(one.number).length, "text unit")), STEP);
}
