import { QueryClient, QueryClientProvider } from '@tanstack/react-query';
import { act, type ReactNode, useState } from 'react';
import { createRoot } from 'react-dom/client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Fields } from './Fields';
import { PageText } from './PageText';
import type { DocumentField, DocumentRecord } from './place';
import { textOf } from './queries';
import { RecordList } from './RecordList';

const at = { owner: 'ada', namespace: 'shop', dataset: 'offers' };
const hostile = '🔩 <img src=x onerror="window.hacked=1"> <b>Bolt</b> costs 1 € \u202e';
const quote = '<b>Bolt</b> costs 1 €';
const from = [...hostile.slice(0, hostile.indexOf(quote))].length;
const read: DocumentField = { value: '<b>Bolt</b>', quote, page: 2, from, to: from + [...quote].length };
const record: DocumentRecord = {
  id: '0-1',
  file: 'offers.txt',
  page: 1,
  fields: { item: read, price: { quote: '2 €', flag: 'quoteNotFound', said: '2 €' }, stock: { quote: '', value: '3', corrected: true, pending: true } },
};

let host: HTMLElement;
let queries: QueryClient;

beforeEach(() => {
  vi.stubGlobal('IS_REACT_ACT_ENVIRONMENT', true);
  host = document.body.appendChild(document.createElement('div'));
  queries = new QueryClient();
});
afterEach(() => {
  host.remove();
  vi.unstubAllGlobals();
});

const show = (what: ReactNode) => act(() => createRoot(host).render(<QueryClientProvider client={queries}>{what}</QueryClientProvider>));
const know = (pages: { page: number; text: string }[]) => queries.setQueryData(textOf(at, 'load', record.id).queryKey, { pages });

test('the quote is marked in the text of its page, and a document is nothing but text', async () => {
  know([
    { page: 1, text: 'The first page' },
    { page: 2, text: hostile },
  ]);
  await show(<PageText at={at} load="load" record={record} field={read} />);
  expect(host.querySelector('mark')?.textContent).toBe(quote);
  expect(host.querySelector('[role=region]')?.textContent).toBe(hostile);
  expect(host.querySelector('[role=region]')?.getAttribute('aria-label')).toBe('Text of page 2');
  expect(host.querySelector('img, b')).toBeNull();
});

test('without a place the page of the record is shown, and the others can be', async () => {
  know([
    { page: 1, text: 'The first page' },
    { page: 2, text: hostile },
  ]);
  await show(<PageText at={at} load="load" record={record} field={record.fields['price']} />);
  expect(host.querySelector('mark')).toBeNull();
  expect(host.querySelector('[role=region]')?.textContent).toBe('The first page');
  await act(() => [...host.querySelectorAll('button')].find((one) => one.textContent === '2')?.click());
  expect(host.querySelector('[role=region]')?.textContent).toBe(hostile);
});

test('a long page is shown in parts', async () => {
  const line = '🔩 Bolt costs 1 €\n';
  know([{ page: 2, text: line.repeat(5000) }]);
  await show(<PageText at={at} load="load" record={record} field={{ ...read, from: 2500 * [...line].length, to: 2500 * [...line].length + 6 }} />);
  const text = () => host.querySelector('[role=region] .mono')?.textContent ?? '';
  expect(host.querySelector('mark')?.textContent).toBe('🔩 Bolt');
  const shown = text().length;
  expect(shown).toBeLessThan(21_000);
  await act(() => [...host.querySelectorAll('button')].find((one) => one.textContent === 'Show what comes before')?.click());
  expect(text().length).toBeGreaterThan(shown + 9000);
  expect(host.querySelector('mark')?.textContent).toBe('🔩 Bolt');
});

test('a text that was not kept is said', async () => {
  know([]);
  await show(<PageText at={at} load="load" record={record} field={read} />);
  expect(host.textContent).toContain('An earlier release loaded these documents');
});

function Chooser({ editable }: { editable: boolean }) {
  const [chosen, setChosen] = useState<string | undefined>('item');
  return <Fields fields={Object.entries(record.fields)} chosen={chosen} onChoose={setChosen} onChange={() => undefined} at={at} load="load" record={record} editable={editable} below={<i>{chosen}</i>} />;
}
const choices = () => [...host.querySelectorAll<HTMLElement>('[data-choice]')];
const press = (key: string) => act(() => document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true })));
const chosen = () => choices().findIndex((one) => one.getAttribute('aria-pressed') === 'true');

test('arrow keys go through the fields', async () => {
  await show(<Chooser editable={false} />);
  choices()[0]?.focus();
  await press('ArrowDown');
  expect([document.activeElement, chosen()]).toEqual([choices()[1], 1]);
  await press('End');
  expect(chosen()).toBe(2);
  await press('ArrowDown');
  expect(chosen()).toBe(2);
  await press('Home');
  expect([document.activeElement, chosen()]).toEqual([choices()[0], 0]);
  expect(host.querySelector('i')?.textContent).toBe('item');
});

test('a field says why it is doubted, in words', async () => {
  await show(<Chooser editable={false} />);
  const [item, price, stock] = choices().map((one) => one.textContent ?? '');
  expect(item).toBe(`item<b>Bolt</b>Page 2: ${quote}`);
  expect(price).toContain('in doubt');
  expect(price).toContain('No valueThe quote does not occur in the text that the model saw.The model said “2 €”Not found: 2 €');
  expect(stock).toBe('stockcorrectednot loaded yet3The model found nothing for this field.');
  expect(host.querySelector('b')).toBeNull();
  expect(host.textContent).not.toContain('Correct');
});

test('only who may change them gets what corrects a field, at the chosen one', async () => {
  await show(<Chooser editable />);
  const buttons = () => [...host.querySelectorAll('button:not([data-choice])')].map((one) => one.textContent);
  expect(buttons()).toEqual(['Correct', 'No value']);
  await act(() => choices()[2]?.click());
  expect(buttons()).toEqual(['Correct', 'No value', 'Undo the correction']);
  await act(() => [...host.querySelectorAll('button')].find((one) => one.textContent === 'Correct')?.click());
  expect(host.querySelector('input')?.value).toBe('3');
  expect(buttons()).toEqual(['Save', 'Cancel']);
  await act(() => host.querySelector('input')?.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true })));
  expect(document.activeElement).toBe(choices()[2]);
});

test('the list names records by their values, and Tab gets to the chosen one', async () => {
  const other: DocumentRecord = { id: '1-1', file: 'more.txt', page: 3, row: 1204, fields: {} };
  const onChoose = vi.fn();
  await show(
    <RecordList
      groups={[
        { title: 'With doubted fields', records: [record] },
        { title: 'Without doubt', records: [other] },
      ]}
      columns={['stock', 'item']}
      chosen="1-1"
      onChoose={onChoose}
      more={undefined}
    />,
  );
  expect(choices().map((one) => one.textContent)).toEqual(['3 · <b>Bolt</b>offers.txtPage 11 field in doubt', 'No valuemore.txtPage 3Row 1,204']);
  expect(choices().map((one) => one.tabIndex)).toEqual([-1, 0]);
  choices()[1]?.focus();
  await press('ArrowUp');
  expect(onChoose).toHaveBeenCalledWith('0-1');
});
