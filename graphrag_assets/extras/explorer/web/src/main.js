// Puts the page together and follows the address.

import { aboutDetails, candidateDetails, claimDetails, communityDetails, documentDetails, entityDetails, relationshipDetails } from "./details.js";
import { h, plural } from "./dom.js";
import { candidateList, claimList, communityTree, documentList, entityList } from "./lists.js";
import { canDraw, GraphMap, sceneOf, scopeOf } from "./map.js";
import { buildModel, leftOut, readContent } from "./model.js";
import { readRoute } from "./route.js";
import { buildSearch, mountSearch } from "./search.js";
import "./style.css";

const LISTS = { entities: "Entities", communities: "Communities", claims: "Claims", documents: "Documents", candidates: "Candidates" };

class Explorer {
  constructor(model, root) {
    this.model = model;
    this.build(root);
    this.map = this.makeMap();
    this.showList("entities");
    mountSearch(this.input, this.hits, buildSearch(model), (href) => this.go(href));
    addEventListener("hashchange", () => this.follow());
    this.follow();
  }

  build(root) {
    const { publication } = this.model.content;
    this.input = h("input", {
      type: "search",
      id: "search",
      placeholder: "Search",
      "aria-label": "Search entities, communities, documents, claims and texts",
      role: "combobox",
      "aria-autocomplete": "list",
      "aria-expanded": "false",
      "aria-controls": "hits",
      autocomplete: "off",
      spellcheck: "false",
    });
    this.hits = h("div", { id: "hits", role: "listbox", "aria-label": "Search results", hidden: true });
    this.tabs = h(
      "div",
      { class: "tabs", role: "tablist", "aria-label": "Lists" },
      Object.entries(LISTS).map(([name, label]) =>
        h("button", { type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "list", onclick: () => this.showList(name), onkeydown: (event) => this.stepTab(event) }, label),
      ),
    );
    this.list = h("div", { id: "list", role: "tabpanel", tabindex: "0" });
    this.stage = h("div", { id: "graph", role: "img", "aria-label": "Map of the graph; the lists beside it hold the same entities" });
    this.place = h("nav", { class: "place", "aria-label": "Place on the map" });
    this.legend = h("div", { class: "legend" });
    this.controls = h("div", { class: "controls" });
    this.panel = h("aside", { id: "panel", tabindex: "-1", "aria-label": "Details", "aria-live": "polite" });
    const missing = leftOut(this.model.content);
    root.replaceChildren(
      h(
        "header",
        { class: "top" },
        h("a", { class: "brand", href: "#" }, h("span", { class: "mark", "aria-hidden": "true" }), "Explorer"),
        h("div", { class: "search" }, this.input, h("kbd", { "aria-hidden": "true" }, "/"), this.hits),
        h("a", { class: missing.length ? "about partial" : "about", href: "#" }, `Publication ${publication.number ?? "–"}`, missing.length ? h("span", null, "part of the index") : null),
      ),
      h("nav", { class: "side", "aria-label": "Lists" }, this.tabs, this.list),
      h("main", null, this.stage, this.place, this.controls, this.legend),
      this.panel,
    );
  }

  makeMap() {
    if (!canDraw()) {
      this.stage.replaceChildren(h("p", { class: "loading" }, "This browser has no WebGL, so there is no map. Search, lists and texts work without it."));
      return null;
    }
    const map = new GraphMap(this.stage, this.model, {
      onEntity: (number) => this.go(`#entity=${number}`),
      onCommunity: (number) => this.go(`#community=${number}`),
      onOpen: (number) => this.go(`#community=${number}&open`),
      onNothing: () => location.hash.length > 1 && this.go("#"),
    });
    const button = (label, text, action) => h("button", { type: "button", "aria-label": label, title: label, onclick: action }, text);
    this.level = h("select", { id: "level", onchange: (event) => this.setLevel(Number(event.target.value)) }, Array.from({ length: this.model.levels }, (_, level) => h("option", { value: level }, `level ${level}`)));
    this.controls.replaceChildren(
      this.model.levels > 1 ? h("label", null, "Colors: ", this.level) : "",
      button("Zoom in", "+", () => map.zoom(1 / 1.6)),
      button("Zoom out", "−", () => map.zoom(1.6)),
      button("Whole map", "⤢", () => map.fit()),
    );
    return map;
  }

  go(href) {
    if (location.hash === href || (href === "#" && !location.hash)) this.follow();
    else location.hash = href;
  }

  setLevel(level) {
    this.level.value = level;
    this.map.setLevel(level);
    this.showLegend();
    if (this.shown === "communities") this.showList("communities");
  }

  // The list `name` beside the map.
  showList(name) {
    this.shown = name;
    for (const tab of this.tabs.children) {
      const chosen = tab.id === `tab-${name}`;
      tab.setAttribute("aria-selected", chosen);
      tab.tabIndex = chosen ? 0 : -1;
    }
    this.list.setAttribute("aria-labelledby", `tab-${name}`);
    const make = {
      entities: () => entityList(this.model),
      communities: () => communityTree(this.model, (number) => (this.map ? this.map.colorOf(this.map.communityOfNode(`c${number}`)) : "gray")),
      claims: () => claimList(this.model),
      documents: () => documentList(this.model),
      candidates: () => candidateList(this.model),
    };
    this.list.replaceChildren(make[name]());
    this.list.scrollTop = 0;
    this.markCurrent();
  }

  stepTab(event) {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    const names = Object.keys(LISTS);
    const next = names[(names.indexOf(this.shown) + step + names.length) % names.length];
    this.showList(next);
    document.getElementById(`tab-${next}`).focus();
  }

  // Shows what the address names.
  follow() {
    const route = readRoute(location.hash);
    const { model } = this;
    const row = { entity: model.entity, relationship: model.relationship, community: model.community, claim: model.claim, candidate: model.candidate, document: model.document, unit: model.unit }[route.kind]?.get(route.number);
    if (route.kind !== "about" && !row) this.showPanel([h("p", { class: "notice" }, `This page has no ${route.kind} ${route.number}. It may be of another publication, or left out here.`), aboutDetails(model)]);
    else this[`show_${route.kind}`](row, route);
    this.showPlace();
    this.showLegend();
    this.markCurrent();
  }

  show_about() {
    this.showPanel(aboutDetails(this.model));
    if (!this.map) return;
    if (this.map.scope !== null) this.map.show(null);
    else this.map.light([]);
  }

  show_entity(entity) {
    this.showPanel(entityDetails(this.model, entity));
    this.goTo(entity);
    this.map?.light([`e${entity.number}`], { selected: `e${entity.number}`, neighbors: true });
  }

  show_relationship(one) {
    const ends = [one.source, one.target].map((number) => this.model.entity.get(number));
    this.showPanel(relationshipDetails(this.model, one));
    this.goTo(ends[0]);
    this.map?.light(ends.map((end) => `e${end.number}`));
  }

  show_community(community, { open }) {
    const crowded = sceneOf(this.model, null).kind === "communities";
    this.showPanel(communityDetails(this.model, community, crowded && !open));
    if (!this.map) return;
    if (crowded && open) this.openScope(community.number);
    else if (crowded) {
      const scope = community.parent === -1 ? null : community.parent;
      if (this.map.scope !== scope && this.map.scope !== community.number) this.openScope(scope);
      this.map.light([`c${community.number}`], { selected: `c${community.number}`, neighbors: true, move: false });
    } else this.map.light(this.model.members(community.number).map((one) => `e${one.number}`));
  }

  show_claim(claim) {
    this.showPanel(claimDetails(this.model, claim));
    const ends = [claim.subject, claim.object].filter((number) => this.model.entity.has(number));
    if (ends.length) this.goTo(this.model.entity.get(ends[0]));
    this.map?.light(ends.map((number) => `e${number}`));
  }

  show_candidate(candidate) {
    const ends = [candidate.name, candidate.other].filter((number) => this.model.entity.has(number));
    this.showPanel(candidateDetails(this.model, candidate));
    if (ends.length) this.goTo(this.model.entity.get(ends[0]));
    this.map?.light(ends.map((number) => `e${number}`));
  }

  show_document(document) {
    this.showPanel(documentDetails(this.model, document));
    this.lightUnits(this.model.unitsOf(document.number));
  }

  show_unit(unit, route) {
    const document = this.model.document.get(unit.document) ?? { number: unit.document, title: "Document", source: "" };
    const { names, back } = this.purpose(unit, route);
    this.showPanel(documentDetails(this.model, document, unit, names, back));
    const block = this.panel.querySelector(".unit.here");
    (block?.querySelector("mark") ?? block)?.scrollIntoView({ block: "center" });
    this.lightUnits([unit]);
  }

  // What to mark in a text unit, and the way back to what led there.
  purpose(unit, route) {
    const { model } = this;
    const [kind, id] = (route.for ?? "").split(":");
    const number = Number(id);
    const names = (entity) => [...(model.mentionsOf(entity).find((mention) => mention.unit === unit.number)?.names ?? []), model.entity.get(entity)?.title];
    const link = (title) => h("p", { class: "aliases" }, "Marked: ", h("a", { href: `#${kind}=${number}` }, title));
    if (kind === "entity" && model.entity.has(number)) return { names: names(number), back: link(model.entity.get(number).title) };
    if (kind === "claim" && model.claim.has(number)) return { names: [model.claim.get(number).source_text], back: link(`claim ${number}`) };
    if (kind === "relationship" && model.relationship.has(number)) {
      const { source, target } = model.relationship.get(number);
      return { names: [...names(source), ...names(target)], back: link(`${model.entity.get(source).title} – ${model.entity.get(target).title}`) };
    }
    return { names: route.words ? [route.words] : [], back: null };
  }

  lightUnits(units) {
    if (!this.map) return;
    const numbers = new Set(units.flatMap((unit) => this.model.mentionsIn(unit.number).map((mention) => mention.entity)));
    this.map.light([...numbers].map((number) => `e${number}`), { move: false });
  }

  // The map that shows the entity.
  goTo(entity) {
    if (!this.map) return;
    const scope = scopeOf(this.model, entity);
    if (scope !== this.map.scope) this.openScope(scope);
  }

  openScope(scope) {
    this.map.show(scope);
    const level = scope === null ? 0 : Math.min(this.model.levels - 1, this.model.community.get(scope).level + 1);
    if (level !== this.map.level) this.setLevel(level);
  }

  showPanel(content) {
    this.panel.replaceChildren(...[content].flat(Infinity).filter(Boolean));
    this.panel.scrollTop = 0;
    this.panel.classList.toggle("idle", location.hash.length <= 1);
  }

  // Where on the map one is, when it shows communities or one of them.
  showPlace() {
    if (!this.map) return;
    const { scope, scene } = this.map;
    const { model } = this;
    const chain = [];
    for (let at = model.community.get(scope); at; at = model.community.get(at.parent)) chain.unshift(at);
    const nouns = scene.kind === "communities" ? ["community", "communities"] : ["entity", "entities"];
    const shown = this.map.graph.order;
    const all = shown < scene.total ? `${shown.toLocaleString("en")} of ${plural(scene.total, ...nouns)}` : plural(shown, ...nouns);
    const crumbs = chain.map((one) => h("a", { href: `#community=${one.number}&open` }, model.title(one)));
    this.place.replaceChildren(...(chain.length ? [h("a", { href: "#" }, "All"), ...crumbs.flatMap((crumb) => [" › ", crumb]), " · "] : []), all);
  }

  showLegend() {
    if (!this.map) return;
    const shown = this.map.largest.filter(({ number }) => this.map.scope === null || this.inScope(number)).slice(0, 7);
    this.legend.replaceChildren(
      ...shown.map(({ number }) => {
        const one = this.model.community.get(number);
        return h("a", { href: `#community=${number}` }, h("span", { class: "dot", swatch: this.map.colorOf(number) }), h("span", { class: "name" }, this.model.title(one)));
      }),
    );
  }

  inScope(number) {
    for (let at = this.model.community.get(number); at; at = this.model.community.get(at.parent)) if (at.number === this.map.scope) return true;
    return false;
  }

  markCurrent() {
    const here = location.hash.split("&")[0];
    for (const link of this.list.querySelectorAll("a.row")) {
      if (link.getAttribute("href") === here) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }
}

async function start() {
  const root = document.getElementById("app");
  try {
    const explorer = new Explorer(buildModel(await readContent()), root);
    root.dataset.ready = "true";
    window.explorer = explorer; // for a look from the browser's console
  } catch (error) {
    root.replaceChildren(h("p", { class: "loading", role: "alert" }, `The explorer could not be opened: ${error.message}. It needs a browser of 2023 or later.`));
    throw error;
  }
}

start();
