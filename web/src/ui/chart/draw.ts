import * as vega from 'vega';
import { expressionInterpreter } from 'vega-interpreter';
import { compile } from 'vega-lite';
import type { TopLevelSpec } from 'vega-lite';

const quiet = { level: () => quiet, error: () => quiet, warn: () => quiet, info: () => quiet, debug: () => quiet };

/** Nothing is loaded: a chart consists of the values that it was given. */
const loader = { load: refuse, sanitize: refuse, http: refuse, file: refuse };
function refuse(): Promise<never> {
  return Promise.reject(new Error('a chart loads nothing'));
}

export type Tip = { x: number; y: number; lines: [string, string][] };

/** Draws a chart without evaluating code: the policy of the page forbids that. */
export async function draw(box: HTMLElement, spec: TopLevelSpec, width: number, onTip: (tip: Tip | null) => void): Promise<vega.View> {
  const compiled = compile(spec, { logger: quiet as never }).spec;
  const view = new vega.View(vega.parse(compiled, undefined, { ast: true }), {
    container: box,
    renderer: 'svg',
    hover: true,
    expr: expressionInterpreter,
    loader: loader as never,
    logLevel: vega.Error,
  } as vega.ViewOptions);
  view.tooltip((_handler: unknown, event: MouseEvent, _item: unknown, value: unknown) => {
    if (typeof value !== 'object' || value === null) {
      onTip(null);
      return;
    }
    onTip({ x: event.clientX, y: event.clientY, lines: Object.entries(value).map(([name, text]) => [name, String(text)]) });
  });
  view.width(width);
  await view.runAsync();
  return view;
}

export async function png(view: vega.View): Promise<Blob> {
  const canvas = (await view.toCanvas(2)) as unknown as HTMLCanvasElement;
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('no image'))), 'image/png'));
}

export async function svg(view: vega.View): Promise<Blob> {
  return new Blob([await view.toSVG()], { type: 'image/svg+xml' });
}
