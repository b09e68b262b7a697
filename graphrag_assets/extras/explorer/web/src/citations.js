// References `[Data: Entities (5, 7); Sources (3)]` in reports, as links.

import { h, prose } from "./dom.js";

const BLOCK = /\s*\[Data:\s*([^\]]*)\]/gi;
const GROUP = /([A-Za-z][A-Za-z ]*?)\s*\(([^()]*)\)/g;
const KINDS = [
  [/sources?$|text units?$/i, "unit"],
  [/entit(y|ies)$/i, "entity"],
  [/relationships?$/i, "relationship"],
  [/claims?$|covariates?$/i, "claim"],
  [/reports?$/i, "report"],
];

export function cited(text, model) {
  const nodes = [];
  let end = 0;
  for (const block of (text ?? "").matchAll(BLOCK)) {
    nodes.push(prose(text.slice(end, block.index)), " ", reference(block[1], model));
    end = block.index + block[0].length;
  }
  nodes.push(prose((text ?? "").slice(end)));
  return nodes;
}

function reference(block, model) {
  const groups = [...block.matchAll(GROUP)].map(([, name, numbers]) => {
    const kind = KINDS.find(([pattern]) => pattern.test(name.trim()))?.[1];
    const links = numbers.split(",").map((part) => link(kind, part.trim(), model));
    return h("span", { class: "cited" }, name.trim(), " ", links.flatMap((one, i) => (i ? [", ", one] : [one])));
  });
  return h("span", { class: "reference" }, groups.length ? groups.flatMap((one, i) => (i ? [" · ", one] : [one])) : block);
}

function link(kind, part, model) {
  const number = /^\d+$/.test(part) ? Number(part) : null;
  if (number === null) return part;
  const target = {
    unit: () => model.unit.has(number) && [`#unit=${number}`, model.document.get(model.unit.get(number).document)?.title],
    entity: () => model.entity.has(number) && [`#entity=${number}`, model.entity.get(number).title],
    relationship: () => model.relationship.has(number) && [`#relationship=${number}`, relationshipTitle(model, number)],
    claim: () => model.claim.has(number) && [`#claim=${number}`, model.claim.get(number).description],
    report: () => model.communityOfReport.has(number) && [`#community=${model.communityOfReport.get(number)}`, reportTitle(model, number)],
  }[kind]?.();
  if (!target) return h("span", { title: "Not on this page" }, part);
  return h("a", { href: target[0], title: target[1] }, part);
}

function relationshipTitle(model, number) {
  const { source, target } = model.relationship.get(number);
  return `${model.entity.get(source).title} – ${model.entity.get(target).title}`;
}

const reportTitle = (model, number) => model.report.get(model.communityOfReport.get(number)).title;
