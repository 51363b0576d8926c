import type { RefObject } from 'react';
import { t } from '~/texts';
import type { MenuItem } from '~/ui/Menu';

/** What a screen does with a chart that is drawn. */
export type ChartHandle = { save: (format: 'png' | 'svg') => void };

/** The pictures of a chart, for the menu of the screen that it is on. */
export function imagesOf(chart: RefObject<ChartHandle | null>): MenuItem[] {
  return [
    { label: t.ask.chart.png, onSelect: () => chart.current?.save('png') },
    { label: t.ask.chart.svg, onSelect: () => chart.current?.save('svg') },
  ];
}
