// The graph's map: entities, or communities in their place where there are too many entities.

import Graph from "graphology";
import Sigma from "sigma";
import { EdgeLineProgram, NodePointProgram } from "sigma/rendering";

import { mixed, palette, withAlpha } from "./color.js";

const LABEL_FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';
const LABELLED_NEIGHBORS = 15;
// From so many entities on, they are drawn as points, and relationships as lines of one pixel: without a graphics card
// that takes a quarter of the time.
const MANY = 1_200;
const SLOW_FRAME = 45; // milliseconds
const SLOW_FRAMES = 3; // so many in a row, and edges are hidden while the map moves

const nodeOf = (kind, number) => `${kind}${number}`;

export function canDraw() {
  const canvas = document.createElement("canvas");
  return Boolean(canvas.getContext("webgl2") || canvas.getContext("webgl"));
}

// What is on the map of the whole graph (`scope` null) or of one community.
export function sceneOf(model, scope) {
  const most = model.content.max_nodes;
  const total = scope === null ? model.content.rows.entities[1] : model.community.get(scope).size;
  const inside = scope === null ? model.entities : model.members(scope);
  const parts = scope === null ? model.roots : model.children(scope);
  if (total > most && parts.length) {
    return { kind: "communities", shown: parts.slice(0, most), total: parts.length };
  }
  return { kind: "entities", shown: inside.slice(0, most), total };
}

// The community whose own map shows this entity; null where the whole graph's does.
export function scopeOf(model, entity) {
  if (sceneOf(model, null).kind === "entities") return null;
  const chain = [...new Set(entity.communities)].filter((number) => number !== undefined && number !== null);
  return chain.find((number) => sceneOf(model, number).kind === "entities") ?? null;
}

export class GraphMap {
  constructor(container, model, { onEntity, onCommunity, onOpen, onNothing }) {
    this.model = model;
    this.container = container;
    this.level = 0;
    this.scope = null;
    this.focus = null; // the nodes in the light; null: all
    this.selected = null;
    this.hovered = null;
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.still = matchMedia("(prefers-reduced-motion: reduce)");
    this.graph = new Graph({ type: "undirected", multi: false, allowSelfLoops: false });
    this.labels = [];
    this.nodeColors = new Map();
    this.edgeColors = new Map();
    this.rankAtLevel();
    this.renderer = new Sigma(this.graph, container, {
      labelFont: LABEL_FONT,
      labelWeight: "500",
      labelDensity: 1,
      labelGridCellSize: 70,
      labelRenderedSizeThreshold: 3.5,
      nodeProgramClasses: { point: NodePointProgram },
      edgeProgramClasses: { thin: EdgeLineProgram },
      zIndex: true,
      minCameraRatio: 0.02,
      maxCameraRatio: 2.2,
      stagePadding: 44,
      minEdgeThickness: 0.7,
      allowInvalidContainer: true,
      defaultDrawNodeLabel: (context, data) => {
        if (!data.label) return;
        const { x, y, size: radius, forceLabel: forced = false } = data;
        this.labels.push({ context, text: shortened(data.label, this.scene.kind === "communities" ? 30 : 44), size: labelSize(data), x, y, radius, forced });
      },
      defaultDrawNodeHover: (context, data) => this.drawHover(context, data),
      nodeReducer: (node, data) => this.reducedNode(node, data),
      edgeReducer: (edge, data) => this.reducedEdge(edge, data),
    });
    this.renderer.on("afterRender", () => {
      this.drawLabels();
      this.keepFluid();
    });
    this.renderer.on("clickNode", ({ node }) => (node[0] === "e" ? onEntity : onCommunity)(Number(node.slice(1))));
    this.renderer.on("doubleClickNode", ({ node, preventSigmaDefault }) => {
      preventSigmaDefault();
      if (node[0] === "c") onOpen(Number(node.slice(1)));
    });
    this.renderer.on("clickStage", onNothing);
    this.renderer.on("enterNode", ({ node }) => this.hover(node));
    this.renderer.on("leaveNode", () => this.hover(null));
    this.dark.addEventListener("change", () => this.paint());
    new ResizeObserver(() => {
      this.renderer.resize();
      this.renderer.refresh({ skipIndexation: true });
    }).observe(container);
    this.show(null);
  }

  // Communities of the level by size; those of earlier levels that were not split count where their entities do.
  rankAtLevel() {
    const at = new Map();
    for (const entity of this.model.entities) {
      const number = entity.communities[this.level];
      if (number !== undefined) at.set(number, (at.get(number) ?? 0) + 1);
    }
    const order = [...at].sort((a, b) => b[1] - a[1] || a[0] - b[0]);
    this.ranks = new Map(order.map(([number], i) => [number, i]));
    this.largest = order.map(([number, members]) => ({ number, members }));
  }

  colorOf(community) {
    const colors = this.colors;
    const rank = this.ranks.get(community);
    return rank === undefined ? this.theme.faint : colors[rank % colors.length];
  }

  setLevel(level) {
    this.level = level;
    this.rankAtLevel();
    this.paint();
  }

  show(scope) {
    this.scope = scope;
    this.scene = sceneOf(this.model, scope);
    this.focus = null;
    this.selected = null;
    this.hovered = null;
    this.graph.clear();
    if (this.scene.kind === "entities") this.addEntities(this.scene.shown);
    else this.addCommunities(this.scene.shown);
    this.renderer.setCustomBBox(null);
    this.paint();
    this.renderer.getCamera().setState({ x: 0.5, y: 0.5, ratio: 1, angle: 0 });
  }

  addEntities(entities) {
    const most = Math.max(1, ...entities.map((one) => one.degree ?? 0));
    const [nodeType, edgeType] = entities.length > MANY ? ["point", "thin"] : [undefined, undefined];
    const large = entities.length > MANY ? 11 : entities.length > 400 ? 12 : 13;
    const small = entities.length > MANY ? 1.6 : entities.length > 400 ? 2.2 : 2.8;
    for (const one of entities) {
      const size = small + (large - small) * Math.sqrt((one.degree ?? 0) / most);
      this.graph.addNode(nodeOf("e", one.number), { x: one.x, y: one.y, size, label: one.title, type: nodeType });
    }
    for (const one of entities) {
      for (const edge of this.model.relationshipsOf(one.number)) {
        if (edge.source !== one.number || edge.source === edge.target) continue;
        const size = 0.7 + Math.min(3.5, Math.log2(1 + Math.max(0, edge.weight ?? 1)) * 0.45);
        this.addEdge(nodeOf("e", edge.source), nodeOf("e", edge.target), { size, strength: edgeType ? 0.45 : 1, type: edgeType }, nodeOf("r", edge.number));
      }
    }
  }

  addCommunities(communities) {
    const total = communities.reduce((sum, one) => sum + one.size, 0);
    const scale = Math.sqrt((this.container.clientWidth * this.container.clientHeight * 0.13) / Math.PI / Math.max(total, 1));
    for (const one of communities) {
      const members = this.model.members(one.number);
      if (!members.length) continue; // all its entities are left out of the page
      const mean = (axis) => members.reduce((sum, entity) => sum + entity[axis], 0) / members.length;
      const size = Math.min(46, Math.max(2.5, scale * Math.sqrt(one.size)));
      const title = this.model.title(one);
      this.graph.addNode(nodeOf("c", one.number), { x: mean("x"), y: mean("y"), size, label: title });
    }
    const shown = this.model.links.filter((link) => [link.source, link.target].every((number) => this.graph.hasNode(nodeOf("c", number))));
    const most = shown.reduce((most, link) => Math.max(most, link.weight ?? 1), 0) || 1;
    for (const link of shown) {
      const share = Math.sqrt((link.weight ?? 1) / most);
      this.addEdge(nodeOf("c", link.source), nodeOf("c", link.target), { size: 0.5 + 3.5 * share, strength: share });
    }
  }

  addEdge(source, target, attributes, key = `${source}-${target}`) {
    if (!this.graph.hasNode(source) || !this.graph.hasNode(target) || this.graph.hasEdge(source, target)) return;
    this.graph.addEdgeWithKey(key, source, target, attributes);
  }

  // Colors of everything, for the present theme and level.
  paint() {
    this.theme = readTheme();
    this.colors = palette(this.dark.matches);
    const crowd = Math.min(1, (this.scene.kind === "communities" ? 1500 : 900) / Math.max(this.graph.size, 1));
    const inner = 0.16 + 0.3 * crowd;
    const outer = 0.07 + 0.28 * crowd;
    this.litEdge = withAlpha(this.theme.strong, 0.55);
    this.dimEdge = withAlpha(this.theme.edge, 0.05);
    this.nodeColors = new Map(this.graph.mapNodes((node) => [node, this.colorOf(this.communityOfNode(node))]));
    const used = [...new Set(this.nodeColors.values())];
    this.dimmed = new Map(used.map((color) => [color, mixed(color, this.theme.background, 0.2)]));
    this.edgeColors = new Map(
      this.graph.mapEdges((edge, { strength }, source, target) => {
        const [a, b] = [this.communityOfNode(source), this.communityOfNode(target)];
        return [edge, a === b ? withAlpha(this.colorOf(a), inner * strength) : withAlpha(this.theme.edge, outer * strength)];
      }),
    );
    this.renderer.refresh();
  }

  communityOfNode(node) {
    const number = Number(node.slice(1));
    if (node[0] === "e") return this.model.entity.get(number).communities[this.level];
    const community = this.model.community.get(number);
    if (community.level >= this.level) {
      let at = community;
      while (at && at.level > this.level) at = this.model.community.get(at.parent);
      return at?.number;
    }
    return number;
  }

  // Puts `entities` (and what is next to the first of them, if `neighbors`) in the light and brings them into view.
  light(nodes, { selected = null, neighbors = false, move = true } = {}) {
    const there = nodes.filter((node) => this.graph.hasNode(node));
    this.selected = selected && this.graph.hasNode(selected) ? selected : null;
    if (!there.length) {
      this.focus = null;
      this.labelled = new Set();
      this.renderer.refresh({ skipIndexation: true });
      return;
    }
    this.focus = new Set(there);
    if (neighbors) for (const node of there) for (const next of this.graph.neighbors(node)) this.focus.add(next);
    const bySize = [...this.focus].sort((a, b) => this.graph.getNodeAttribute(b, "size") - this.graph.getNodeAttribute(a, "size"));
    this.labelled = new Set([...bySize.slice(0, LABELLED_NEIGHBORS), ...(neighbors ? there : [])]);
    this.renderer.refresh({ skipIndexation: true });
    if (move) this.bringIntoView([...this.focus]);
  }

  bringIntoView(nodes) {
    const places = nodes.map((node) => this.renderer.getNodeDisplayData(node)).filter(Boolean);
    const [xs, ys] = [places.map((place) => place.x), places.map((place) => place.y)];
    const [left, right, bottom, top] = [Math.min(...xs), Math.max(...xs), Math.min(...ys), Math.max(...ys)];
    const ratio = Math.min(1.1, Math.max(0.18, 1.35 * Math.max(right - left, top - bottom)));
    this.animate({ x: (left + right) / 2, y: (bottom + top) / 2, ratio });
  }

  animate(state) {
    const camera = this.renderer.getCamera();
    if (this.still.matches) camera.setState({ ...camera.getState(), ...state });
    else camera.animate(state, { duration: 350 });
  }

  fit() {
    this.animate({ x: 0.5, y: 0.5, ratio: 1, angle: 0 });
  }

  zoom(factor) {
    this.animate({ ratio: this.renderer.getCamera().getBoundedRatio(this.renderer.getCamera().ratio * factor) });
  }

  hover(node) {
    this.hovered = node;
    this.container.style.cursor = node ? "pointer" : "";
  }

  reducedNode(node, data) {
    const color = this.nodeColors.get(node);
    if (!this.focus) return { ...data, color };
    if (this.focus.has(node)) {
      return { ...data, color, zIndex: 2, forceLabel: this.labelled.has(node), highlighted: node === this.selected };
    }
    return { ...data, color: this.dimmed.get(color), label: null, zIndex: 0 };
  }

  reducedEdge(edge, data) {
    if (!this.focus) return { ...data, color: this.edgeColors.get(edge) };
    const [source, target] = this.graph.extremities(edge);
    const lit = this.selected ? source === this.selected || target === this.selected : this.focus.has(source) && this.focus.has(target);
    if (lit) return { ...data, color: this.litEdge, zIndex: 1 };
    return { ...data, hidden: this.focus.size < 400, color: this.dimEdge };
  }

  // Without a graphics card thousands of edges are slow to draw; then they wait until the map stands still.
  keepFluid() {
    const now = performance.now();
    const milliseconds = now - (this.lastFrame ?? 0);
    this.lastFrame = now;
    this.slowFrames = milliseconds > SLOW_FRAME && milliseconds < 4000 ? (this.slowFrames ?? 0) + 1 : 0;
    if (this.slowFrames >= SLOW_FRAMES) this.renderer.setSetting("hideEdgesOnMove", true);
  }

  // All labels of a frame at its end: the largest first, and none over another.
  drawLabels() {
    const taken = [];
    const order = this.labels.sort((a, b) => b.forced - a.forced || b.size - a.size);
    for (const { context, text, size, x, y, radius } of order) {
      context.font = `500 ${size}px ${LABEL_FONT}`;
      const [left, top, width, height] = [x + radius + 3, y - size * 0.7, context.measureText(text).width, size * 1.4];
      const overlaps = (box) => left < box[0] + box[2] && box[0] < left + width && top < box[1] + box[3] && box[1] < top + height;
      if (taken.some(overlaps)) continue;
      taken.push([left, top, width, height]);
      context.lineJoin = "round";
      context.lineWidth = 3.5;
      context.strokeStyle = this.theme.background;
      context.strokeText(text, left, y + size / 3);
      context.fillStyle = this.theme.text;
      context.fillText(text, left, y + size / 3);
    }
    this.labels = [];
  }

  drawHover(context, data) {
    const size = labelSize(data);
    context.font = `600 ${size}px ${LABEL_FONT}`;
    const [text, pad] = [data.label ? shortened(data.label, 70) : "", 5];
    const width = context.measureText(text).width;
    context.beginPath();
    context.arc(data.x, data.y, data.size + 2.5, 0, Math.PI * 2);
    context.lineWidth = 2;
    context.strokeStyle = this.theme.strong;
    context.stroke();
    if (!text) return;
    context.fillStyle = this.theme.surface;
    context.strokeStyle = this.theme.border;
    context.lineWidth = 1;
    context.beginPath();
    context.roundRect(data.x + data.size + 4, data.y - size / 2 - pad, width + 2 * pad + 2, size + 2 * pad, 5);
    context.fill();
    context.stroke();
    context.fillStyle = this.theme.text;
    context.fillText(text, data.x + data.size + 5 + pad, data.y + size / 3);
  }
}

const labelSize = (data) => Math.min(15, Math.max(11.5, 9.5 + data.size * 0.3));

const shortened = (label, most) => (label.length > most ? `${label.slice(0, most - 1).trimEnd()}…` : label);

function readTheme() {
  const style = getComputedStyle(document.documentElement);
  const value = (name) => style.getPropertyValue(`--${name}`).trim();
  const names = ["surface", "text", "strong", "edge", "faint", "border"];
  return { background: value("map"), ...Object.fromEntries(names.map((name) => [name, value(name)])) };
}
