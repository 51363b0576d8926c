import { mkdirSync } from 'node:fs';
import type { Page } from '@playwright/test';
import { Api, expect, signIn, test } from './support';

// Pictures of all screens for the eye: `e2e/web/run --project=screenshots`. They are written to SHOTS_DIR and are not committed.
const folder = process.env['SHOTS_DIR'] ?? 'test-results/shots';
const csv = ['id,city,amount,day,note', ...Array.from({ length: 900 }, (_, row) => `${row},${['Vienna', 'Vienna', 'Graz', 'Linz'][row % 4]},${((row * 7919) % 1000) / 10},2026-0${(row % 9) + 1}-1${row % 9},${row % 3 ? '' : 'checked'}`)].join('\n');

async function shoot(page: Page, name: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    for (const width of [1440, 390]) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await page.setViewportSize({ width, height: width < 640 ? 844 : 900 });
      await page.waitForTimeout(150);
      await page.screenshot({ path: `${folder}/${name}-${width}-${colorScheme}.png` });
    }
  }
  await page.setViewportSize({ width: 1440, height: 900 });
}

test('pictures of all screens', async ({ page, guard }) => {
  test.setTimeout(600_000);
  guard.allow(/Failed to load resource/);
  mkdirSync(folder, { recursive: true });
  await page.goto('/signin?reason=ended');
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
  await shoot(page, 'signin');

  await signIn(page, 'eve');
  await expect(page.getByText('No datasets yet')).toBeVisible();
  await shoot(page, 'data-empty');

  const eve = await Api.as('eve');
  await eve.dataset('travel', 'trips', csv);
  await eve.dataset('travel', 'hotels', csv);
  await eve.call('PUT', '/data/self/travel/trips/inferDefinition', { dataDescription: 'One row for each trip of a customer. Amounts are in euro.', schemaDefinition: { amount: 'Price of the trip in euro', city: 'Where the trip began' } });
  await eve.call('POST', '/permissions/datasets/self/travel/trips/shares', { username: 'bob', role: 'editor' });
  await eve.call('POST', '/permissions/datasets/self/travel/trips/shares', { username: 'carol', role: 'viewer' });

  const trips = '/data/eve/travel/trips';
  const full = { data: '/data', columns: trips, rows: `${trips}/rows`, definition: `${trips}/definition`, loads: `${trips}/loads`, history: `${trips}/history`, sharing: `${trips}/sharing`, audit: `${trips}/audit`, settings: `${trips}/settings`, upload: '/upload' };
  for (const [name, path] of Object.entries(full)) {
    await page.goto(path);
    await expect(page.locator('#content h1')).toBeVisible();
    await page.waitForLoadState('networkidle');
    await shoot(page, name);
  }
  await page.goto(trips);
  await page.getByRole('button', { name: /^amount/ }).click();
  await shoot(page, 'columns-open');
  await page.getByRole('button', { name: 'Share' }).click();
  await expect(page.getByText('Who has access')).toBeVisible();
  await shoot(page, 'share-dialog');
  await page.keyboard.press('Escape');
  await page.keyboard.press('Control+k');
  await expect(page.getByRole('dialog').getByRole('option').first()).toBeVisible();
  await shoot(page, 'palette');
  await page.keyboard.press('Escape');

  await page.goto('/upload');
  await page.locator('input[type=file]').first().setInputFiles({ name: 'deliveries.csv', mimeType: 'text/csv', buffer: Buffer.from('day;carrier;weight\n03/04/2026;North Post;1,5\n05/04/2026;Swift;2,25\n') });
  await expect(page.getByRole('heading', { name: 'First rows' })).toBeVisible();
  await shoot(page, 'upload-review');
  await page.getByRole('button', { name: /^Load into/ }).click();
  await expect(page.getByText(/rows loaded into/)).toBeVisible();
  await shoot(page, 'upload-done');

  await page.goto('/data');
  await page.route('**/api/v1/schema/datasets/all*', () => undefined);
  await page.getByRole('searchbox').fill('slow');
  await page.goto(trips);
  await page.route('**/api/v1/data/**', () => undefined);
  await page.getByRole('navigation', { name: 'Parts of the dataset' }).getByRole('link', { name: 'History' }).click();
  await page.waitForTimeout(600);
  await shoot(page, 'history-loading');
  await page.unroute('**/api/v1/data/**');
  await page.route('**/api/v1/data/**', (route) =>
    route.fulfill({ status: 503, contentType: 'application/json', headers: { 'X-Request-Id': '0199c0de-0000-7000-8000-000000000001' }, body: JSON.stringify({ error_code: 'UNAVAILABLE', message: 'The service is full.', error_message: '' }) }),
  );
  await page.goto(`${trips}/rows`);
  await expect(page.getByRole('alert')).toBeVisible({ timeout: 30_000 });
  await shoot(page, 'dataset-error');
});
