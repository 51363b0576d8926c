import { readFile } from 'node:fs/promises';
import { type Page } from '@playwright/test';
import { accessible, Api, expect, signIn, test } from './support';

const space = `sql${Date.now().toString(36)}`;
const csv = ['id,city,amount,day', ...Array.from({ length: 300 }, (_, row) => `${row},${['Vienna', 'Graz', 'Linz'][row % 3]},${row * 1.5},2026-0${(row % 9) + 1}-1${row % 9}`)].join('\n');
const hostile = ['"<img src=x onerror=alert(1)>",formula,long', `"<script>alert(1)</script>","=HYPERLINK(""http://evil"")",${'x'.repeat(100_000)}`].join('\n');

test.beforeAll(async () => {
  const ada = await Api.as('ada');
  await ada.dataset(space, 'trips', csv);
  await ada.dataset(space, 'odd', hostile);
});

const editor = (page: Page) => page.getByRole('textbox', { name: 'SQL statement' });
const rows = (page: Page) => page.getByRole('grid', { name: 'Rows of the statement' });

async function open(page: Page, statement = ''): Promise<void> {
  await signIn(page, 'ada', `/sql?${new URLSearchParams({ namespace: space, ...(statement && { q: statement }) }).toString()}`);
  await expect(editor(page)).toBeVisible();
}

async function write(page: Page, statement: string): Promise<void> {
  await editor(page).click();
  await page.keyboard.press('Control+a');
  await page.keyboard.insertText(statement);
  await page.keyboard.press('Escape');
}

/** Takes a suggestion. The editor ignores the key for 75 ms, so that a list that has just opened takes no Enter that was meant for the text. */
async function accept(page: Page, name: RegExp, key: 'Enter' | 'Tab'): Promise<void> {
  await expect(page.getByRole('option', { name })).toBeVisible();
  await page.waitForTimeout(100);
  await page.keyboard.press(key);
  await expect(page.getByRole('listbox')).toHaveCount(0);
}

test('a statement is completed, run and exported', async ({ page }) => {
  await open(page, 'SELECT 1');
  await expect(page.getByText('has not run')).toBeVisible();
  await expect(rows(page)).toHaveCount(0);
  await write(page, '');
  await page.keyboard.type('SELECT ci');
  await page.keyboard.press('Escape');
  await page.keyboard.type('ty, count(*) AS trips FROM tri');
  await accept(page, /^trips/, 'Enter');
  await expect(editor(page)).toContainText('FROM trips');
  await page.keyboard.type(' GROUP BY cit');
  await accept(page, /^city/, 'Tab');
  await page.keyboard.type(' ORDER BY city');
  await page.keyboard.press('Control+Enter');
  await expect(rows(page).getByRole('gridcell', { name: 'Graz' })).toBeVisible();
  await expect(page.getByText('3 rows')).toBeVisible();
  // The address would have said something else.
  await expect(page).toHaveURL(/\/sql$/);
  await accessible(page, 'sql rows');

  await page.getByRole('button', { name: 'Chart' }).click();
  await expect(page.getByRole('img').locator('svg')).toBeVisible();

  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Export' }).click();
  await page.getByRole('menuitem', { name: 'CSV', exact: true }).click();
  expect((await download).suggestedFilename()).toMatch(/^result-\d{14}\.csv$/);
  await expect(page.getByText('The file has 3 rows')).toBeVisible();

  // A reload keeps the statement and does not run it.
  await page.reload();
  await expect(editor(page)).toContainText('GROUP BY city');
  await expect(rows(page)).toHaveCount(0);
  await page.getByRole('button', { name: 'History' }).click();
  await expect(page.getByRole('dialog').getByRole('button', { name: /GROUP BY city.*3 rows/s })).toBeVisible();
  await accessible(page, 'sql history');
});

test('a mistake is underlined, and one click mends it', async ({ page, guard }) => {
  guard.allow(/422 .*\/query\)/);
  await open(page, 'SELECT t.citty\nFROM trips t');
  await editor(page).click();
  await page.keyboard.press('Control+Enter');
  await expect(page.getByRole('alert')).toContainText('There is no column "citty" in t.');
  await expect(page.locator('.cm-fault')).toHaveText('t.citty');
  await accessible(page, 'sql fault');
  await page.getByRole('button', { name: 'city' }).click();
  await expect(page.getByText('300 rows')).toBeVisible();
  await expect(editor(page)).toContainText('SELECT t.city');
  await expect(page.locator('.cm-fault')).toHaveCount(0);
});

test('parameters are values, and their faults stand at their fields', async ({ page, guard }) => {
  guard.allow(/422 .*\/query\)/);
  await open(page, 'SELECT count(*) AS trips FROM trips WHERE day >= $since AND city = $city');
  await page.getByLabel('Type of $since').selectOption('date');
  await page.getByLabel('Value of $since').fill('soon');
  await page.getByLabel('Value of $city').fill("Vienna'; DROP");
  await page.keyboard.press('Control+Enter');
  await expect(page.getByLabel('Value of $since')).toHaveAttribute('aria-invalid', 'true');
  await page.getByLabel('Value of $since').fill('2026-01-01');
  await page.keyboard.press('Control+Enter');
  await expect(rows(page).getByRole('gridcell', { name: '0', exact: true })).toBeVisible();
  await page.getByLabel('Value of $city').fill('Vienna');
  await page.keyboard.press('Control+Enter');
  await expect(rows(page).getByRole('gridcell', { name: '100', exact: true })).toBeVisible();
});

test('a long statement is cancelled, and its late rows replace nothing', async ({ page, guard }) => {
  guard.allow(/ERR_ABORTED|net::/);
  const slow = 'SELECT count(*) FROM range(100000) a, range(1000000) b WHERE (a.range * b.range) % 7 = 3';
  await open(page, slow);
  await editor(page).click();
  await page.keyboard.press('Control+Enter');
  await page.getByRole('button', { name: 'Cancel' }).first().click();
  await expect(page.getByText('The statement was stopped.')).toBeVisible();
  await page.getByRole('button', { name: 'Run again' }).click();
  await expect(page.getByRole('button', { name: 'Cancel' }).first()).toBeVisible();
  await write(page, 'SELECT 42 AS answer');
  await page.keyboard.press('Control+Enter');
  await expect(rows(page).getByRole('gridcell', { name: '42' })).toBeVisible();
  await page.waitForTimeout(1000);
  await expect(rows(page).getByRole('gridcell', { name: '42' })).toBeVisible();
});

test('names and cells are text, whatever they contain', async ({ page }) => {
  await open(page, 'SELECT * FROM odd');
  await page.getByRole('button', { name: /^odd/ }).click();
  await expect(page.getByRole('button', { name: '<img src=x onerror=alert(1)>' })).toBeVisible();
  await editor(page).click();
  await page.keyboard.press('Control+Enter');
  await expect(rows(page).getByText('<script>alert(1)</script>')).toBeVisible();
  await expect(page.locator('#content img')).toHaveCount(0);
});

test('a result that is cut is read further', async ({ page }) => {
  await open(page, 'SELECT range AS i FROM range(150000)');
  await editor(page).click();
  await page.keyboard.press('Control+Enter');
  await expect(page.getByText('Only the first 10,000 rows.')).toBeVisible();
  await page.getByRole('button', { name: 'Run with LIMIT 100000' }).click();
  await expect(page.getByText('100,000 rows').first()).toBeVisible({ timeout: 60_000 });
});

test('a result that is too large is written in the background, survives a reload, and is downloaded whole', async ({ page }) => {
  await open(page, 'SELECT range AS i FROM range(1500000)');
  await editor(page).click();
  await page.keyboard.press('Control+Enter');
  await expect(page.getByText('Only the first 10,000 rows.')).toBeVisible();
  await page.getByRole('button', { name: 'Get all rows' }).click();
  await page.getByRole('menuitem', { name: 'NDJSON' }).click();
  await expect(page).toHaveURL(/\/sql\?statement=[0-9a-f-]{36}$/);
  await page.reload();
  await expect(page.getByText('1,500,000 rows')).toBeVisible({ timeout: 90_000 });
  await expect(rows(page).getByRole('gridcell', { name: '3', exact: true })).toBeVisible();
  await expect(rows(page)).toHaveAttribute('aria-rowcount', /^1[,.]?50000[01]$/);
  await accessible(page, 'sql in the background');

  const whole = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download', exact: true }).click();
  const file = await whole;
  expect(file.suggestedFilename()).toMatch(/^result-\d{14}\.ndjson$/);
  const lines = (await readFile(await file.path(), 'utf8')).trimEnd().split('\n');
  expect([lines.length, lines[0], lines.at(-1)]).toEqual([1_500_000, '{"i":0}', '{"i":1499999}']);

  await page.getByRole('button', { name: '2 pieces' }).click();
  const piece = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download piece 2' }).click();
  expect((await readFile(await (await piece).path(), 'utf8')).startsWith('{"i":1000000}')).toBe(true);
  await page.keyboard.press('Escape');

  // The rows of the first run are still there.
  await page.getByRole('button', { name: 'Close this result' }).click();
  await expect(page).toHaveURL(/\/sql$/);
  await page.getByRole('button', { name: 'History' }).click();
  await page.getByRole('button', { name: 'In the background', exact: true }).click();
  await accessible(page, 'sql background list');
  await page.getByRole('dialog').getByRole('button', { name: /range\(1500000\).*1,500,000 rows/s }).click();
  await expect(page.getByText('1,500,000 rows')).toBeVisible();
  await page.getByRole('button', { name: 'History' }).click();
  await page.getByRole('button', { name: 'In the background', exact: true }).click();
  await page.getByRole('button', { name: 'Delete the statement and its result' }).click();
  await expect(page.getByText('No statements in the background')).toBeVisible();
});

test('an export of a result that is too large is no cut file, and what runs in the background is cancelled', async ({ page, guard }) => {
  guard.allow(/422 .*\/query\)/);
  await open(page, 'SELECT range AS i FROM range(20000)');
  await editor(page).click();
  await page.keyboard.press('Control+Enter');
  await expect(page.getByText('Only the first 10,000 rows.')).toBeVisible();
  await page.getByRole('button', { name: 'Export' }).click();
  await page.getByRole('menuitem', { name: 'Parquet' }).click();
  await expect(page.getByText('20,000 rows')).toBeVisible({ timeout: 60_000 });
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download', exact: true }).click();
  expect((await download).suggestedFilename()).toMatch(/\.parquet$/);

  await write(page, 'SELECT count(*) FROM range(100000) a, range(10000000) b WHERE (a.range * b.range) % 7 = 3');
  await page.getByRole('button', { name: 'Background' }).click();
  await page.getByRole('menuitem', { name: 'CSV', exact: true }).click();
  await expect(page.getByRole('progressbar', { name: 'Progress of the statement' })).toBeVisible();
  await page.getByRole('button', { name: 'Cancel' }).click();
  await expect(page.getByText('The statement was stopped.')).toBeVisible();
  // A statement that cannot run is refused at once, at its place.
  await write(page, 'SELECT citty FROM trips');
  await page.getByRole('button', { name: 'Background' }).click();
  await page.getByRole('menuitem', { name: 'CSV', exact: true }).click();
  await expect(page.getByRole('alert')).toContainText('There is no column "citty"');
});

test('the screen fits a phone and is accessible', async ({ page }) => {
  await open(page);
  await accessible(page, 'sql');
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)).toBeLessThanOrEqual(0);
  await page.getByRole('button', { name: 'Datasets' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Insert trips' }).click();
  await expect(editor(page)).toContainText('trips');
});
