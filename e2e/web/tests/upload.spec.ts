import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, signIn, store, test } from './support';

const part = 8 * 1024 * 1024;

/** A CSV of three parts and a half. */
function large(): Buffer {
  const line = `2026-01-01,Vienna,${'x'.repeat(180)}\n`;
  return Buffer.from(`day,city,note\n${line.repeat(Math.ceil((3.5 * part) / line.length))}`);
}

test('an upload is paused, the page is loaded again, and only the missing parts go', async ({ page }) => {
  test.setTimeout(180_000);
  await signIn(page, 'ada', '/upload');
  // The file is on disk, because the console resumes an upload only with a file of the same date.
  const folder = await mkdtemp(join(tmpdir(), 'quern-upload-'));
  const file = join(folder, 'large.csv');
  await writeFile(file, large());
  const sent: string[] = [];
  let hold = true;
  await page.route(`${store.origin}/**`, async (route) => {
    const number = new URL(route.request().url()).searchParams.get('partNumber') ?? '';
    // The first two parts go through; the others are held until the page is loaded again.
    if (hold && Number(number) > 2) return;
    await route.continue();
  });
  page.on('requestfinished', (request) => {
    if (request.method() === 'PUT' && request.url().startsWith(store.origin)) sent.push(new URL(request.url()).searchParams.get('partNumber') ?? '');
  });
  await page.locator('input[type=file]').first().setInputFiles(file);
  await expect.poll(() => sent.toSorted().join()).toBe('1,2');
  await page.getByRole('button', { name: 'Pause' }).click();
  await expect(page.getByRole('heading', { name: 'Paused' })).toBeVisible();

  page.on('dialog', (dialog) => void dialog.accept());
  await page.reload();
  hold = false;
  await expect(page.getByRole('heading', { name: 'Interrupted uploads' })).toBeVisible();
  await expect(page.getByText(/16.8 MB of 29.4 MB|17 MB of 29 MB/)).toBeVisible();
  sent.length = 0;
  const again = page.locator('li input[type=file]');
  await again.setInputFiles({ name: 'other.csv', mimeType: 'text/csv', buffer: large() });
  await expect(page.getByText('These are other files.')).toBeVisible();
  await again.setInputFiles(file);
  await expect(page.getByRole('heading', { name: 'First rows' })).toBeVisible({ timeout: 60_000 });
  expect(sent.toSorted().join()).toBe('3,4');
  await rm(folder, { recursive: true });
});

test('a part that the store refuses is tried again, and the upload can be continued', async ({ page, guard }) => {
  guard.allow(/Failed to load resource|ERR_FAILED/);
  test.setTimeout(120_000);
  await signIn(page, 'ada', '/upload');
  let refuse = true;
  let tries = 0;
  await page.route(`${store.origin}/**`, async (route) => {
    if (route.request().method() !== 'PUT') return route.continue();
    tries += 1;
    return refuse ? route.fulfill({ status: 500, headers: { 'Access-Control-Allow-Origin': '*' } }) : route.continue();
  });
  await page.locator('input[type=file]').first().setInputFiles({ name: 'small.csv', mimeType: 'text/csv', buffer: Buffer.from('a,b\n1,2\n') });
  await expect(page.getByRole('alert')).toContainText('The storage did not take the file. It answered with status 500.', { timeout: 60_000 });
  expect(tries).toBe(5);
  refuse = false;
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(page.getByRole('heading', { name: 'First rows' })).toBeVisible();
});

test('rows that do not fit are shown before and after the load', async ({ page }) => {
  const space = `aside${Date.now().toString(36)}`;
  await signIn(page, 'ada', '/upload');
  const rows = ['id,amount', ...Array.from({ length: 200 }, (_, row) => `${row},${row === 150 ? 'oops' : row}`)].join('\n');
  await page.locator('input[type=file]').first().setInputFiles({ name: '<img src=x onerror=alert(1)>.csv', mimeType: 'text/csv', buffer: Buffer.from(rows) });
  await expect(page.getByText('<img src=x onerror=alert(1)>.csv')).toBeVisible();
  await expect(page.getByRole('heading', { name: 'First rows' })).toBeVisible();
  await page.getByLabel('Namespace').fill(space);
  await page.getByLabel('Dataset', { exact: true }).fill('bad name!');
  await expect(page.getByText('Letters, digits, dots, dashes and underscores')).toBeVisible();
  await expect(page.getByRole('button', { name: /^Load into/ })).toBeDisabled();
  await page.getByLabel('Dataset', { exact: true }).fill('amounts');
  await page.getByLabel('Dataset', { exact: true }).blur();
  await page.getByLabel('Type amount').first().selectOption('bigint');
  await page.getByRole('button', { name: `Load into ${space} / amounts` }).click();
  await expect(page.getByText(`199 rows loaded into ${space} / amounts`)).toBeVisible();
  await page.getByRole('button', { name: '1 row set aside' }).click();
  await expect(page.getByRole('dialog')).toContainText('oops');
  await page.keyboard.press('Escape');

  await test.step('the same file again is doubted', async () => {
    await page.goto(`/upload?into=ada/${space}/amounts`);
    await page.locator('input[type=file]').first().setInputFiles({ name: 'again.csv', mimeType: 'text/csv', buffer: Buffer.from(rows) });
    await expect(page.getByText('Settle what is marked first.')).toBeVisible();
    await page.getByLabel('I know, load it anyway').first().check();
  });
});

test('a file of a spreadsheet on Windows, dropped anywhere, is mended in the review', async ({ page }) => {
  const rows = Array.from({ length: 120 }, (_, row) => `A-${row};${String((row % 28) + 1).padStart(2, '0')}.03.2026;${['Möbel', 'Küche'][row % 2]};${row === 60 ? 'auf Anfrage' : `1.${100 + row},5${row % 10}`}`);
  const text = ['Auftrag Nr;Datum;Warengruppe;Umsatz', ...rows, ''].join('\r\n');
  await signIn(page, 'ada', '/connect');
  await page.evaluate((bytes) => {
    const data = new DataTransfer();
    data.items.add(new File([new Uint8Array(bytes)], 'Umsatz 2026 (final).csv', { type: 'text/csv' }));
    const over = new DragEvent('dragover', { dataTransfer: data, bubbles: true, cancelable: true });
    document.body.dispatchEvent(over);
    document.body.dispatchEvent(new DragEvent('drop', { dataTransfer: data, bubbles: true, cancelable: true }));
  }, [...Buffer.from(text, 'latin1')]);
  await expect(page.getByLabel('Dataset', { exact: true })).toHaveValue('umsatz');
  const alert = page.getByRole('alert');
  await expect(alert).toContainText('not in UTF-8');
  await alert.getByRole('button', { name: 'Windows-1252' }).click();
  await expect(page.getByText('"auf Anfrage" in row 61')).toBeVisible();
  await expect(page.getByRole('gridcell', { name: 'Möbel' }).first()).toBeVisible();
  await page.getByRole('button', { name: 'Load as number' }).click();
  await expect(page.getByText('1 of the first 120 rows would be set aside')).toBeVisible();
  const space = `mended${Date.now().toString(36)}`;
  await page.getByLabel('Namespace').fill(space);
  await page.getByLabel('Namespace').blur();
  await page.getByRole('button', { name: `Load into ${space} / umsatz` }).click();
  await expect(page.getByText(`119 rows loaded into ${space} / umsatz`)).toBeVisible();
  await page.getByRole('button', { name: '1 row set aside' }).click();
  await expect(page.getByRole('dialog')).toContainText('auf Anfrage');
});
