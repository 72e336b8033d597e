// Layout libraries and the viewer's own layout on one program: seconds to lay out everything unfolded.
//
// Usage: node layouts.mjs PICTURE.json (own|dagre|elk). PICTURE.json is `pt2kit.viewing.Answers(FILE).answer("program/0")`.
// elkjs and @dagrejs/dagre are installed beside this file, and the own layout is bundled to own.mjs
// (npx --prefix viewer rolldown viewer/src/scene.ts --file own.mjs --platform node).

import { readFileSync } from 'node:fs';
import { performance } from 'node:perf_hooks';

const picture = JSON.parse(readFileSync(process.argv[2], 'utf8')), which = process.argv[3];
const { boxes, nodes, edges, values } = picture, used = new Set();
for (const box of nodes.box) for (let at = box; at >= 0; at = boxes.parent[at]) used.add(at);
const pairs = [...new Set(edges.source.map((value, i) => `${values.node[value]} ${edges.target[i]}`))].map(pair => pair.split(' '));
const cpu = process.cpuUsage();
const report = start => {
  const used = process.cpuUsage(cpu), seconds = ((used.user + used.system) / 1e6).toFixed(2);
  console.log(`${which}: ${nodes.kind.length} nodes, ${((performance.now() - start) / 1000).toFixed(2)} s, ${seconds} s of processor time`);
};

if (which === 'own') {
  const { Stage } = await import(`${process.cwd()}/own.mjs`);
  const stage = new Stage(picture), start = performance.now();
  stage.scene(new Set(boxes.parent.keys()));
  report(start);
} else if (which === 'dagre') {
  const dagre = (await import('@dagrejs/dagre')).default, graph = new dagre.graphlib.Graph({ compound: true });
  graph.setGraph({});
  graph.setDefaultEdgeLabel(() => ({}));
  for (const box of used) if (box) graph.setNode(`b${box}`, {});
  nodes.box.forEach((_, node) => graph.setNode(`${node}`, { width: 90, height: 24 }));
  for (const box of used) if (boxes.parent[box] > 0) graph.setParent(`b${box}`, `b${boxes.parent[box]}`);
  nodes.box.forEach((box, node) => { if (box) graph.setParent(`${node}`, `b${box}`); });
  for (const [from, to] of pairs) graph.setEdge(from, to);
  const start = performance.now();
  dagre.layout(graph);
  report(start);
} else {
  const Elk = (await import('elkjs')).default, children = new Map([...used].map(box => [box, []]));
  const made = new Map([...used].map(box => [box, { id: `b${box}`, children: children.get(box), edges: [] }]));
  for (const box of used) if (boxes.parent[box] >= 0) children.get(boxes.parent[box]).push(made.get(box));
  nodes.box.forEach((box, node) => children.get(box).push({ id: `${node}`, width: 90, height: 24 }));
  const root = made.get(0);
  root.edges = pairs.map(([from, to], i) => ({ id: `e${i}`, sources: [from], targets: [to] }));
  root.layoutOptions = { 'elk.algorithm': 'layered', 'elk.hierarchyHandling': 'INCLUDE_CHILDREN', 'elk.direction': 'DOWN', 'elk.edgeRouting': 'ORTHOGONAL' };
  const start = performance.now();
  await new Elk().layout(root);
  report(start);
}
