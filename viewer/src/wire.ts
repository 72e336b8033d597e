// The answers of `pt2kit.viewing.answers`, as types. The columns are those of `pt2kit/viewing/columns.py`.

export const MODULE = 0, REPEAT = 1, SUBGRAPH = 2, CALL = 3, PLUMBING = 4; // the last one is put in by `structure`
export const OPERATION = 0, INPUT = 1, OUTPUT = 2;
export const SAME = 0, ADDED = 1, REMOVED = 2, MODIFIED = 3;

export interface Index {
  file: string; old: string; bytes: number; programs: string[]; chunk: number; live: boolean; data: boolean; watch: boolean; error: string; notes: string[];
}
export interface Pairs { source: number[]; target: number[] }
export interface Picture {
  texts: string[];
  boxes: { parent: number[]; name: number[]; type: number[]; path: number[]; kind: number[]; repeat: number[]; node: number[]; note: string[] };
  nodes: { kind: number[]; name: number[]; target: number[]; source: number[]; box: number[]; status: number[]; note: number[]; plumbing: number[] };
  values: { node: number[]; name: number[]; type: number[] };
  weights: {
    name: number[]; kind: number[]; type: number[]; bytes: number[]; elements: number[]; box: number[]; first: number[]; status: number[];
  };
  edges: Pairs;
  carries: Pairs;
  chips: Pairs;
  guessed: boolean;
}
export interface ValueDetail {
  name: string; type: string; strides: string; offset: string; device: string; layout: string; requires_grad: boolean;
}
export interface NodeDetail {
  arguments: { name: string; text: string; values: ValueDetail[] }[];
  results: ValueDetail[];
  frames: { file: string; line: number; function: string; source: string }[];
  modules: [string, string][];
  metadata: [string, string[]][];
}
export interface Facts {
  about: [string, string][]; call: string[]; tree: [number, string, string][];
  inputs: string[][]; outputs: string[][]; symbols: [string, string][]; guards: string[]; problems: string[];
}
export interface Finding { kind: string; rule: string; place: string; message: string; node: number }
export interface Change {
  kind: string; area: string; name: string; module: string; node: number; weight: number; drift: number | null; lines: [string, string | null, string][];
}
export interface TensorSample {
  statistics: {
    numel: number; min: number | string | null; max: number | string | null; mean: number | string | null; std: number | string | null;
    zeros: number; non_finite: number;
  };
  sizes: number[]; strides: number[]; record: string; counts: number[]; counted: number;
  heat: { index: number[]; rows: number; columns: number; cells: (number | null)[][] } | null;
}
