import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Page, Route } from '@playwright/test';
import { Api, expect, signIn, store, test } from './support';

// Pictures for the eye, `make screenshots`: SCREEN-STATE-THEME-WIDTH.png and a sheet of each screen, in SHOTS_DIR. They are not committed.
// With SHOTS_TOUR=yes the pictures of docs/tour.md are taken instead, into docs/images.
const folder = resolve(process.env['SHOTS_DIR'] ?? 'test-results/shots');
const tour = process.env['SHOTS_TOUR'] ? resolve('../../docs/images') : undefined;
const sample = (name: string) => readFileSync(resolve(`../../internal/dev/sample/${name}.csv`), 'utf8');

const themes = ['light', 'dark'] as const;
const widths = [1440, 390] as const;
const states = ['empty', 'loading', 'error', 'full'] as const;
type State = (typeof states)[number];

async function shoot(page: Page, screen: string, state: State): Promise<void> {
  for (const width of widths) {
    await page.setViewportSize({ width, height: width < 640 ? 844 : 900 });
    for (const colorScheme of themes) {
      await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
      await page.waitForTimeout(250);
      await page.screenshot({ path: join(folder, `${screen}-${state}-${colorScheme}-${width}.png`) });
    }
  }
  await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  await page.setViewportSize({ width: 1440, height: 900 });
}

/** What the frame around a screen needs: who is there, and which dataset it is. All other requests are those of the screen. */
const frame = ['/api/v1/user/me', '/api/v1/data/eve/roastery/orders', '/api/v1/schema/eve/roastery/datasets'];
const inner = (url: URL) => url.pathname.startsWith('/api/v1/') && !frame.includes(url.pathname);
const refuse = (route: Route) =>
  route.fulfill({
    status: 500,
    contentType: 'application/json',
    headers: { 'X-Request-Id': '01a1eae2-0000-7000-8000-000000000001' },
    body: JSON.stringify({ error_code: 'INTERNAL', message: 'The request failed in the service.', error_message: '' }),
  });

async function settled(page: Page): Promise<void> {
  await expect(page.locator('#content')).toBeVisible();
  await page.waitForLoadState('networkidle');
  await page.waitForTimeout(400);
}

/** The screens that are reached by an address alone, with what `owner/namespace/dataset` is for each state. */
function addresses(dataset: string, conversation: string): Record<string, string> {
  const parts = ['columns', 'rows', 'definition', 'loads', 'history', 'sharing', 'audit', 'settings'];
  return {
    ask: '/',
    ...(conversation && { conversation: `/ask/${conversation}` }),
    data: '/data',
    ...(dataset && Object.fromEntries(parts.map((part) => [`dataset-${part}`, `/data/${dataset}/${part}`]))),
    sql: '/sql',
    connect: '/connect',
    account: '/account',
  };
}

/** Asks on the start page and returns the id of the conversation. */
async function ask(page: Page, question: string, about = 'eve/roastery'): Promise<string> {
  await page.goto(`/?about=${encodeURIComponent(about)}`);
  await page.getByRole('textbox', { name: 'Your question' }).fill(question);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/ask\/[0-9a-f-]{36}/);
  await expect(page.getByRole('button', { name: 'Helpful', exact: true }).last()).toBeVisible({ timeout: 60_000 });
  return new URL(page.url()).pathname.split('/').at(-1) ?? '';
}

async function roastery(api: Api, names: readonly string[]): Promise<void> {
  for (const name of names) await api.dataset('roastery', name, sample(name));
  await api.call('PUT', '/data/self/roastery/orders/inferDefinition', {
    dataDescription: 'One row for each order of a customer of the roastery. Amounts are in euro and include tax. Cancelled orders stay in the table.',
    schemaDefinition: { amount: 'Price of the whole order in euro', channel: 'Where the customer ordered', ordered_on: 'Day of the order', status: 'delivered, returned or cancelled' },
  });
}

test.describe('for the eye', () => {
  test.skip(tour !== undefined, 'SHOTS_TOUR takes the pictures of the tour alone');
  test.describe.configure({ mode: 'serial', retries: 0, timeout: 900_000 });
  test.beforeAll(() => {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
  });

  test('nothing there yet', async ({ page, guard }) => {
    guard.allow(/Failed to load resource/);
    const bob = await Api.as('bob');
    await signIn(page, 'bob', '/');
    for (const [screen, path] of Object.entries(addresses('', ''))) {
      if (screen === 'connect') continue;
      await page.goto(path);
      await settled(page);
      await shoot(page, screen, 'empty');
    }
    await page.goto('/upload');
    await settled(page);
    await shoot(page, 'upload', 'empty');
    await bob.call('POST', '/ingest/new/roastery/returns', {});
    for (const [screen, path] of Object.entries(addresses('bob/roastery/returns', ''))) {
      if (!screen.startsWith('dataset-')) continue;
      await page.goto(path);
      await settled(page);
      await shoot(page, screen, 'empty');
    }
  });

  test('full, slow and failing', async ({ page, guard }) => {
    guard.allow(/Failed to load resource|ERR_FAILED/);
    await page.goto('/signin');
    await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
    await shoot(page, 'signin', 'full');
    await page.goto('/signin?reason=ended');
    await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
    await shoot(page, 'signin', 'error');

    const eve = await Api.as('eve');
    await roastery(eve, ['orders', 'customers', 'products', 'deliveries']);
    for (const [username, role] of [['bob', 'editor'], ['carol', 'viewer']]) await eve.call('POST', '/permissions/datasets/self/roastery/orders/shares', { username, role });
    await eve.call('POST', '/data/self/roastery/orders/rows', `${sample('orders').split('\n')[0]}\n1361,2026-09-29,C004,Switzerland,Morning Roast,beans,2,19.60,web,delivered\n`, 'text/csv');
    await eve.call('POST', '/user/tokens', { name: 'laptop' });
    await signIn(page, 'eve', '/');
    const conversation = await ask(page, 'What is the total amount by category?');
    const screens = Object.entries(addresses('eve/roastery/orders', conversation));
    for (const [screen, path] of screens) {
      await page.goto(path);
      await settled(page);
      if (screen === 'sql') {
        await page.goto(`/sql?${new URLSearchParams({ namespace: 'roastery', q: 'SELECT country, count(*) AS orders, sum(amount) AS amount\nFROM orders\nGROUP BY country\nORDER BY amount DESC' }).toString()}`);
        await page.getByRole('textbox', { name: 'SQL statement' }).click();
        await page.keyboard.press('Control+Enter');
        await expect(page.getByRole('grid')).toBeVisible();
      }
      await shoot(page, screen, 'full');
    }

    // The page for agents asks for nothing.
    const asking = screens.filter(([screen]) => screen !== 'connect');
    await page.route(inner, () => undefined);
    for (const [screen, path] of asking) {
      await page.goto(path);
      await expect(page.locator('#content')).toBeVisible();
      await page.waitForTimeout(800);
      await shoot(page, screen, 'loading');
    }
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.route(inner, refuse);
    for (const [screen, path] of asking) {
      await page.goto(path);
      await expect(page.locator('#content')).toBeVisible();
      await page.waitForTimeout(1000);
      await shoot(page, screen, 'error');
    }
    await page.unrouteAll({ behavior: 'ignoreErrors' });
  });

  test('upload, dialogs and faults of statements', async ({ page, guard }) => {
    guard.allow(/Failed to load resource|ERR_FAILED/);
    const file = { name: 'deliveries.csv', mimeType: 'text/csv', buffer: Buffer.from('day;carrier;weight\n03/04/2026;North Post;1,5\n05/04/2026;Swift;2,25\n') };
    await signIn(page, 'eve', '/upload');
    const picker = page.locator('input[type=file]').first();
    await page.route(`${store.origin}/**`, () => undefined);
    await picker.setInputFiles(file);
    await expect(page.getByRole('progressbar').first()).toBeVisible();
    await page.waitForTimeout(600);
    await shoot(page, 'upload', 'loading');
    page.on('dialog', (dialog) => void dialog.accept());
    await page.getByRole('button', { name: 'Cancel' }).click();
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.route(`${store.origin}/**`, (route) => (route.request().method() === 'PUT' ? route.fulfill({ status: 403, headers: { 'Access-Control-Allow-Origin': '*' } }) : route.continue()));
    await picker.setInputFiles(file);
    await expect(page.getByRole('alert')).toBeVisible({ timeout: 60_000 });
    await shoot(page, 'upload', 'error');
    await page.unrouteAll({ behavior: 'ignoreErrors' });
    await page.getByRole('button', { name: 'Try again' }).click();
    await expect(page.getByRole('heading', { name: 'First rows' })).toBeVisible();
    await shoot(page, 'upload', 'full');
    await page.getByRole('button', { name: /^Load into/ }).click();
    await expect(page.getByText(/rows loaded into/)).toBeVisible();
    await shoot(page, 'upload-done', 'full');
    // The other datasets were not loaded from files.
    await page.goto('/data/eve/roastery/deliveries/loads');
    await settled(page);
    await shoot(page, 'dataset-loads', 'full');

    await page.goto('/data/eve/roastery/orders');
    await page.getByRole('button', { name: /^amount/ }).click();
    await shoot(page, 'dataset-column', 'full');
    await page.getByRole('button', { name: 'Share' }).click();
    await expect(page.getByText('Who has access')).toBeVisible();
    await shoot(page, 'share', 'full');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+k');
    await expect(page.getByRole('dialog').getByRole('option').first()).toBeVisible();
    await shoot(page, 'palette', 'full');
    await page.keyboard.press('Escape');

    const statement = 'SELECT o.contry, count(*)\nFROM orders o\nGROUP BY 1';
    await page.goto(`/sql?${new URLSearchParams({ namespace: 'roastery', q: statement }).toString()}`);
    await page.getByRole('textbox', { name: 'SQL statement' }).click();
    await page.keyboard.press('Control+Enter');
    await expect(page.getByRole('alert')).toBeVisible();
    await shoot(page, 'sql-fault', 'error');
    await ask(page, 'Which carrier will be late next week?').catch(() => undefined);
    await page.waitForTimeout(500);
    await shoot(page, 'conversation-refused', 'error');
  });

  test('the sheets', async ({ page }) => {
    const taken = readdirSync(folder).filter((name) => /-(light|dark)-\d+\.png$/.test(name));
    const screens = new Set(taken.map((name) => name.replace(/-(empty|loading|error|full)-(light|dark)-\d+\.png$/, '')));
    for (const screen of screens) {
      const rows = states.filter((state) => taken.includes(`${screen}-${state}-light-1440.png`));
      const images = rows.flatMap((state) => [`<h2>${screen}: ${state}</h2>`, ...widths.flatMap((width) => themes.map((theme) => `<img class="w${width}" src="${screen}-${state}-${theme}-${width}.png">`))]);
      const style = 'body{font:14px sans-serif;margin:12px;width:1620px;display:grid;grid-template-columns:600px 600px 173px 173px;gap:8px 14px;background:#888}h2{grid-column:1/-1;margin:4px 0 0;font-size:16px}.w1440{width:600px}.w390{width:173px}';
      writeFileSync(join(folder, `${screen}.html`), `<!doctype html><meta charset="utf-8"><style>${style}</style>${images.join('')}`);
      await page.goto(`file://${join(folder, `${screen}.html`)}`);
      await page.setViewportSize({ width: 1650, height: 420 * rows.length });
      await page.screenshot({ path: join(folder, `sheet-${screen}.png`), fullPage: true });
      rmSync(join(folder, `${screen}.html`));
    }
    expect(screens.size).toBeGreaterThanOrEqual(20);
  });
});

/** One picture of docs/tour.md: small enough for a repository. */
async function picture(page: Page, name: string, colorScheme: (typeof themes)[number] = 'light'): Promise<void> {
  await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
  // No pointer over an element that would look chosen.
  await page.mouse.move(1439, 899);
  await page.waitForTimeout(500);
  const path = join(tour ?? folder, `console-${name}.png`);
  await page.screenshot({ path });
  expect(statSync(path).size).toBeLessThanOrEqual(120_000);
}

// The steps of docs/tour.md. The sample is what `quernd dev` loads for ada.
test('the tour', async ({ page, browser, guard }) => {
  test.skip(tour === undefined, 'SHOTS_TOUR is not set');
  test.setTimeout(300_000);
  await page.setViewportSize({ width: 1440, height: 800 });
  const ada = await Api.as('ada');
  await roastery(ada, ['customers', 'products', 'orders']);
  await signIn(page, 'ada', '/');
  await settled(page);
  await picture(page, 'start');

  await test.step('a file is loaded', async () => {
    await page.getByRole('link', { name: 'Upload', exact: true }).first().click();
    await page.locator('input[type=file]').first().setInputFiles(resolve('../../internal/dev/sample/deliveries.csv'));
    await expect(page.getByRole('heading', { name: 'First rows' })).toBeVisible();
    await page.getByLabel('Namespace').fill('roastery');
    await page.getByLabel('Namespace').blur();
    await settled(page);
    await expect(page.getByRole('heading', { name: 'First rows' })).toBeVisible();
    await picture(page, 'review');
    await page.getByRole('button', { name: 'Load into roastery / deliveries' }).click();
    await expect(page.getByText('269 rows loaded into roastery / deliveries')).toBeVisible();
    await page.getByRole('link', { name: 'Open the dataset' }).click();
    await expect(page.getByRole('button', { name: /^carrier/ })).toContainText('%', { timeout: 30_000 });
    await settled(page);
    await picture(page, 'columns');
  });

  await test.step('a question is answered', async () => {
    await page.goto('/');
    await page.getByRole('textbox', { name: 'Your question' }).fill('How many deliveries by carrier?');
    await page.keyboard.press('Enter');
    await expect(page.getByRole('img', { name: /^Bars/ }).locator('svg')).toBeVisible({ timeout: 60_000 });
    await settled(page);
    await picture(page, 'answer');
  });

  await test.step('it is kept', async () => {
    await page.getByRole('button', { name: /^Keep/ }).last().click();
    await expect(page.getByRole('dialog')).toBeVisible();
    await page.getByRole('dialog').getByRole('textbox').nth(1).fill('deliveries per carrier');
    await picture(page, 'keep');
    await page.getByRole('dialog').getByRole('button', { name: /^Keep/ }).click();
    await expect(page.getByRole('dialog')).toHaveCount(0);
  });

  await test.step('the dataset is shared', async () => {
    await page.goto('/data/ada/roastery/deliveries');
    await page.getByRole('button', { name: 'Share' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Person or @group').fill('bob');
    await dialog.getByRole('button', { name: 'Share' }).click();
    await expect(dialog.getByRole('button', { name: 'Remove the access of bob' })).toBeVisible();
    await expect(page.getByText(/has access/).first()).toBeVisible();
    await picture(page, 'share');
  });

  await test.step('somebody else asks', async () => {
    const other = await browser.newContext({ baseURL: process.env['QUERN_WEB_URL'] ?? '', viewport: { width: 1440, height: 800 } });
    await guard.watch(other);
    const bob = await other.newPage();
    await signIn(bob, 'bob', '/');
    await bob.getByRole('textbox', { name: 'Your question' }).fill('deliveries per carrier');
    await bob.keyboard.press('Enter');
    await expect(bob.getByText(/^Verified by ada/)).toBeVisible({ timeout: 60_000 });
    await settled(bob);
    await picture(bob, 'verified', 'dark');
    await other.close();
  });

  await test.step('a statement', async () => {
    await page.goto(`/sql?${new URLSearchParams({ namespace: 'roastery', q: 'SELECT carrier, outcome, count(*) AS deliveries, round(avg(days), 1) AS days\nFROM deliveries\nGROUP BY ALL\nORDER BY carrier, deliveries DESC' }).toString()}`);
    await page.getByRole('textbox', { name: 'SQL statement' }).click();
    await page.keyboard.press('Control+Enter');
    await expect(page.getByRole('grid')).toBeVisible();
    await picture(page, 'sql', 'dark');
  });
});
