import { createWriteStream } from 'node:fs';
import { rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { finished } from 'node:stream/promises';
import type { Page, Request } from '@playwright/test';
import { Api, expect, service, signIn, store, test } from './support';

// What takes minutes or needs a quiet machine: `e2e/web/run --project=heavy`. Traces are off here, because recording a page draws it twice.

/** Scrolls a box from its top to its end within ten seconds and returns the time of each frame in milliseconds. */
function scroll(box: Element): Promise<number[]> {
  return new Promise((resolve) => {
    const times: number[] = [];
    const start = performance.now();
    let last = start;
    const step = (now: number) => {
      times.push(now - last);
      last = now;
      box.scrollTop = ((now - start) / 10_000) * (box.scrollHeight - box.clientHeight);
      if (now - start < 10_000) requestAnimationFrame(step);
      else resolve(times.slice(1));
    };
    requestAnimationFrame(step);
  });
}

function describeFrames(what: string, frames: readonly number[]): number {
  const sorted = frames.toSorted((a, b) => a - b);
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.POSITIVE_INFINITY;
  console.log(`${what}: ${frames.length} frames, median ${at(0.5).toFixed(1)} ms, p95 ${at(0.95).toFixed(1)} ms, longest ${at(1).toFixed(1)} ms`);
  return at(0.95);
}

/** A page with nothing but a box of the same size and height: what the browser needs on this machine for a frame, whatever is drawn. */
async function bare(page: Page, size: { width: number; height: number; scroll: number }): Promise<number> {
  const twin = await page.context().newPage();
  await twin.setContent(`<div id="box" style="overflow:auto;width:${size.width}px;height:${size.height}px"><div style="height:${size.scroll}px"></div></div>`);
  const frames = await twin.locator('#box').evaluate(scroll);
  await twin.close();
  return describeFrames('empty box', frames);
}

test('a result of 100,000 rows scrolls', async ({ page }) => {
  test.setTimeout(180_000);
  const statement = 'SELECT range AS i, range * 2 AS twice, md5(range::varchar) AS digest, range % 97 AS rest, range / 3.0 AS third FROM range(100000) LIMIT 100000';
  await signIn(page, 'ada', `/sql?${new URLSearchParams({ q: statement }).toString()}`);
  await page.getByRole('textbox', { name: 'SQL statement' }).click();
  await page.keyboard.press('Control+Enter');
  await expect(page.getByText('100,000 rows').first()).toBeVisible({ timeout: 60_000 });
  const rows = page.getByRole('grid', { name: 'Rows of the statement' });
  const size = await rows.evaluate((box) => ({ width: box.clientWidth, height: box.clientHeight, scroll: box.scrollHeight }));
  await bare(page, size);
  const p95 = describeFrames('100,000 rows', await rows.evaluate(scroll));
  await expect(rows.getByRole('rowheader', { name: '100000', exact: true })).toBeVisible();
  await bare(page, size);
  expect(p95).toBeLessThanOrEqual(Number(process.env['QUERN_WEB_FRAME_MS'] ?? 33));
});

/** The parts that the page noted as confirmed, all of full size: the last one is not among them at 40 %. */
function notedParts(session: string): Promise<number[]> {
  return new Promise((resolve, reject) => {
    const open = indexedDB.open('quern');
    open.onerror = () => reject(open.error ?? new Error('the browser keeps no data'));
    open.onsuccess = () => {
      const all = open.result.transaction('parts').objectStore('parts').getAll(IDBKeyRange.bound([session], [session, []])) as IDBRequest<{ partNumber: number }[]>;
      all.onsuccess = () => {
        open.result.close();
        resolve(all.result.map((part) => part.partNumber));
      };
    };
  });
}

const gigabyte = 1024 ** 3;

/** Writes a CSV of exactly this many bytes and returns its number of rows. */
async function writeCsv(path: string, size: number): Promise<number> {
  const out = createWriteStream(path);
  const cities = ['Vienna', 'Graz', 'Linz', 'Salzburg', 'Innsbruck'];
  let written = 0;
  let row = 0;
  const write = async (text: string) => {
    written += text.length;
    if (!out.write(text)) await new Promise<void>((resolve) => out.once('drain', () => resolve()));
  };
  const note = 'delivered to the door and signed for by the recipient'.padEnd(180, '.');
  await write('id,day,city,amount,note\n');
  while (written < size) {
    const lines: string[] = [];
    let length = 0;
    while (length < 4_000_000 && written + length < size) {
      let line = `${row},2026-${String((row % 12) + 1).padStart(2, '0')}-${String((row % 28) + 1).padStart(2, '0')},${cities[row % 5]},${(row % 10_000) / 100},${note}`;
      // The note of the last row takes up what is left, so that the size is exact.
      const left = size - written - length - 1;
      if (left < line.length * 2) line = line.length > left ? line.slice(0, left) : line.padEnd(left, '.');
      lines.push(line, '\n');
      length += line.length + 1;
      row += 1;
    }
    await write(lines.join(''));
  }
  out.end();
  await finished(out);
  return row;
}

test('1 GiB is sent, the page is loaded again at 40 %, and only the missing parts go', async ({ page }) => {
  test.setTimeout(20 * 60_000);
  const size = Number(process.env['QUERN_WEB_UPLOAD_BYTES'] ?? gigabyte);
  const path = join(tmpdir(), `quern-heavy-${process.pid}.csv`);
  try {
    const rows = await writeCsv(path, size);
    expect((await stat(path)).size).toBe(size);

    await signIn(page, 'ada', '/upload');
    const devtools = await page.context().newCDPSession(page);
    await devtools.send('Performance.enable');
    const heap = async (): Promise<number> => {
      await devtools.send('HeapProfiler.collectGarbage');
      const { metrics } = await devtools.send('Performance.getMetrics');
      return metrics.find((one) => one.name === 'JSHeapUsedSize')?.value ?? Number.POSITIVE_INFINITY;
    };
    const part = 8 * 1024 * 1024;
    let sent = new Map<number, number>();
    let bytes = 0;
    const begun = new Set<number>();
    const partOf = (request: Request) =>
      request.method() === 'PUT' && request.url().startsWith(store.origin) ? Number(new URL(request.url()).searchParams.get('partNumber')) : undefined;
    page.on('request', (request) => {
      const number = partOf(request);
      if (number !== undefined) begun.add(number);
    });
    page.on('requestfinished', (request) => {
      const number = partOf(request);
      if (number === undefined) return;
      void request.allHeaders().then((headers) => {
        sent.set(number, (sent.get(number) ?? 0) + 1);
        bytes += Number(headers['content-length'] ?? Number.NaN);
      });
    });
    const before = await heap();
    const started = Date.now();
    await page.locator('input[type=file]').first().setInputFiles(path);
    const share = page.getByRole('progressbar').first();
    await share.evaluate((bar) => new Promise<void>((resolve) => {
      const look = () => (Number(bar.getAttribute('aria-valuenow')) >= 40 ? resolve() : void setTimeout(look, 20));
      look();
    }));
    const middle = await heap();
    const seconds = (Date.now() - started) / 1000;

    page.on('dialog', (dialog) => void dialog.accept());
    const first = { parts: new Map(sent), bytes };
    await page.reload();
    const session = new URL(page.url()).searchParams.get('session') ?? '';
    await expect(page.getByRole('heading', { name: 'Interrupted uploads' })).toBeVisible({ timeout: 60_000 });
    const ada = await Api.as('ada');
    const { files } = (await ada.call('GET', `/file-upload/${session}`)) as { files: { parts: { partNumber: number; size: number }[] }[] };
    const stored = files[0]?.parts ?? [];
    const kept = stored.reduce((sum, part) => sum + part.size, 0);
    expect(kept).toBeGreaterThan(0.25 * size);
    expect(kept).toBeLessThan(0.75 * size);
    const noted = await page.evaluate(notedParts, session);
    const earlier = new Set(begun);
    sent = new Map();
    bytes = 0;
    const resumed = Date.now();
    await page.locator('li input[type=file]').setInputFiles(path);
    await expect(page.getByRole('heading', { name: 'First rows' })).toBeVisible({ timeout: 600_000 });
    const end = await heap();
    const megabytes = (value: number) => (value / 1e6).toFixed(1);
    console.log(`upload: ${size} bytes, before the reload ${first.parts.size} parts with ${first.bytes} bytes in ${seconds.toFixed(1)} s`);
    console.log(`upload: the store kept ${stored.length} parts with ${kept} bytes; after the reload ${sent.size} parts with ${bytes} bytes, reviewed after ${((Date.now() - resumed) / 1000).toFixed(1)} s`);
    console.log(`heap: ${megabytes(before)} MB before, ${megabytes(middle)} MB at 40 %, ${megabytes(end)} MB at the end`);
    // The page notes each part that the store confirmed before the next one takes its turn. So all parts are sent exactly once that are not
    // noted, and of those that had begun before the reload only the four whose turn it was.
    expect([...sent.values()].every((times) => times === 1)).toBe(true);
    expect(noted.filter((number) => sent.has(number))).toEqual([]);
    expect(sent.size + noted.length).toBe(Math.ceil(size / part));
    expect([...earlier].filter((number) => sent.has(number)).length).toBeLessThanOrEqual(4);
    expect(bytes).toBe(size - noted.length * part);
    expect(middle - before).toBeLessThanOrEqual(50e6);
    expect(end - before).toBeLessThanOrEqual(50e6);

    const loading = Date.now();
    await page.getByRole('button', { name: /^Load into/ }).click();
    await expect(page.getByText(`${rows.toLocaleString('en')} rows loaded into`)).toBeVisible({ timeout: 600_000 });
    console.log(`load: ${rows} rows in ${((Date.now() - loading) / 1000).toFixed(1)} s, heap ${megabytes(await heap())} MB (${service.host})`);
  } finally {
    await rm(path, { force: true });
  }
});
