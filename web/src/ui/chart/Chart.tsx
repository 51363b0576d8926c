import type { View } from 'vega';
import { type Ref, useEffect, useImperativeHandle, useMemo, useRef, useState } from 'react';
import { save } from '~/api/download';
import { retried } from '~/lazy';
import { t } from '~/texts';
import { Failure } from '~/ui/Failure';
import { Select } from '~/ui/Field';
import { Segments } from '~/ui/Segments';
import { useTheme } from '~/ui/theme';
import type { Chart as Choice, Kind, Row } from './choose';
import type { Tip } from './draw';
import type { ChartHandle } from './images';
import { type Look, specOf } from './spec';

const load = () => retried(() => import('./draw'));

/** A chart that was chosen from the columns. The rows beside it are its twin for those who cannot see it. */
export default function Chart({
  ref,
  choice,
  rows,
  ordered,
  cut,
  name,
}: {
  ref?: Ref<ChartHandle>;
  choice: Choice;
  rows: readonly Row[];
  /** Whether the statement says in which order the rows are. */
  ordered: boolean;
  cut: boolean;
  name: string;
}) {
  const box = useRef<HTMLDivElement>(null);
  const view = useRef<View | null>(null);
  const [kind, setKind] = useState<Kind>(choice.kind);
  const [measure, setMeasure] = useState(0);
  const [tip, setTip] = useState<Tip | null>(null);
  const [failed, setFailed] = useState(false);
  const look = useLook();
  const column = choice.measures[measure] ?? choice.y;
  const { spec, notes, height } = useMemo(() => specOf(choice, kind, column, rows, look, ordered), [choice, kind, column, rows, look, ordered]);

  useEffect(() => {
    const place = box.current;
    if (!place) return;
    let gone = false;
    let drawn: View | undefined;
    let width = place.clientWidth;
    setFailed(false);
    load()
      .then(async (draw) => {
        if (gone) return;
        place.replaceChildren();
        drawn = await draw.draw(place, spec, width, setTip);
        if (gone) {
          drawn.finalize();
          return;
        }
        view.current = drawn;
        fit();
      })
      .catch(() => setFailed(true));
    const fit = () => {
      if (!drawn || place.clientWidth === width || place.clientWidth === 0) return;
      width = place.clientWidth;
      void drawn.width(width).runAsync();
    };
    const watch = new ResizeObserver(fit);
    watch.observe(place);
    return () => {
      gone = true;
      watch.disconnect();
      drawn?.finalize();
      view.current = null;
      setTip(null);
    };
  }, [spec]);

  useImperativeHandle(ref, () => ({
    save: (format) => {
      const drawn = view.current;
      if (drawn) void load().then(async (draw) => save(await draw[format](drawn), `${name}.${format}`));
    },
  }));
  const all = [...notes, ...(cut ? [t.ask.chart.cut(rows.length.toLocaleString('en'))] : [])];
  const choosing = choice.measures.length > 1 && !(choice.together && kind === 'line') && kind !== 'point';
  return (
    <figure className="rounded-md border border-line bg-surface p-3">
      {(choice.kinds.length > 1 || choosing) && (
        <div className="mb-2 flex flex-wrap items-center gap-2">
          {choice.kinds.length > 1 && <Segments label={t.ask.chart.type} value={kind} options={choice.kinds.map((one) => [one, t.ask.chart.kinds[one]] as const)} onChange={setKind} />}
          {choosing && (
            <Select aria-label={t.ask.chart.measure} value={measure} onChange={(event) => setMeasure(Number(event.target.value))} className="w-auto max-w-50">
              {choice.measures.map((one, index) => (
                <option key={one.name} value={index}>
                  {one.name}
                </option>
              ))}
            </Select>
          )}
        </div>
      )}
      {failed ? (
        <Failure error={new Error()} />
      ) : (
        <div role="img" aria-label={t.ask.chart.label(t.ask.chart.kinds[kind], kind === 'point' ? choice.y.name : column.name, choice.x.name)} style={{ minHeight: height }}>
          <div ref={box} className="w-full overflow-hidden [&_svg]:block" />
        </div>
      )}
      {all.length > 0 && <figcaption className="mt-2 text-xs text-text-3">{all.join(' ')}</figcaption>}
      {tip && <Tooltip tip={tip} />}
    </figure>
  );
}

/** Values of the data are text in it, whatever they contain. */
function Tooltip({ tip }: { tip: Tip }) {
  const right = tip.x > innerWidth - 260;
  return (
    <div
      aria-hidden
      className="pointer-events-none fixed z-30 max-w-64 rounded-sm border border-line bg-raised px-2 py-1 text-xs shadow-lift"
      style={{ top: Math.min(tip.y + 12, innerHeight - 80), ...(right ? { right: innerWidth - tip.x + 12 } : { left: tip.x + 12 }) }}
    >
      {tip.lines.map(([name, text]) => (
        <p key={name} className="flex justify-between gap-4">
          <span className="text-text-3">{name}</span>
          <span className="figure font-medium [overflow-wrap:anywhere]">{text}</span>
        </p>
      ))}
    </div>
  );
}

/** The colours in force, resolved by the browser; they change with the theme. */
function useLook(): Look {
  const theme = useTheme();
  const [dark, setDark] = useState(() => matchMedia('(prefers-color-scheme: dark)').matches);
  useEffect(() => {
    const media = matchMedia('(prefers-color-scheme: dark)');
    const changed = () => setDark(media.matches);
    media.addEventListener('change', changed);
    return () => media.removeEventListener('change', changed);
  }, []);
  return useMemo(() => {
    // A new element for each: one that changes its colour begins a transition, and still has the old colour when it is read.
    const color = (name: string) => {
      const probe = document.createElement('span');
      probe.style.color = `var(--${name})`;
      document.body.append(probe);
      const { color: resolved } = getComputedStyle(probe);
      probe.remove();
      return resolved;
    };
    return { text: color('text'), quiet: color('text-2'), line: color('line'), ground: color('surface'), series: [1, 2, 3, 4, 5, 6].map((number) => color(`chart-${number}`)), font: 'Inter, ui-sans-serif, system-ui, sans-serif' };
  }, [theme, dark]);
}
