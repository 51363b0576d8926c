import { mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Browser, Page, Route } from '@playwright/test';
import { Api, expect, type Guard, newPerson, service, signIn, store, test } from './support';

// Pictures for the eye, `make screenshots`: SCREEN-STATE-THEME-WIDTH.png and a sheet of each screen, in SHOTS_DIR. They are not committed.
// With SHOTS_TOUR=yes the pictures of docs/tour.md are taken instead, into docs/images.
const folder = resolve(process.env['SHOTS_DIR'] ?? 'test-results/shots');
const tour = process.env['SHOTS_TOUR'] ? resolve('../../docs/images') : undefined;
const sample = (name: string) => readFileSync(resolve(`../../internal/dev/sample/${name}.csv`), 'utf8');

const themes = ['light', 'dark'] as const;
const widths = [1440, 834, 390] as const;
const states = ['empty', 'loading', 'error', 'full'] as const;
type State = (typeof states)[number];

/** A page on a screen of this width: a desk at 1440, a phone at 390. The window of the desk is made narrower for the pictures at 834. */
type View = { page: Page; width: 1440 | 390 };

/** The page of the test, and the same on a phone. A narrow window is not one: fingers need larger targets, and the browser lays out otherwise. */
async function viewsOf(page: Page, browser: Browser, guard: Guard): Promise<[View, View]> {
  const phone = await browser.newContext({ baseURL: service.origin, viewport: { width: 390, height: 844 }, hasTouch: true, isMobile: true });
  await guard.watch(phone);
  return [
    { page, width: 1440 },
    { page: await phone.newPage(), width: 390 },
  ];
}

async function shoot(views: readonly View[], screen: string, state: State): Promise<void> {
  for (const view of views) {
    const { page } = view;
    const size = page.viewportSize();
    for (const width of view.width === 1440 ? [1440, 834] : [390]) {
      if (size && size.width !== width) await page.setViewportSize({ width, height: 1112 });
      for (const colorScheme of themes) {
        await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
        await page.waitForTimeout(250);
        await page.screenshot({ path: join(folder, `${screen}-${state}-${colorScheme}-${width}.png`) });
      }
    }
    if (size) await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme: 'light', reducedMotion: 'reduce' });
  }
}

/** Does the same on both, and takes its picture. */
async function both(views: readonly View[], screen: string, state: State, act: (page: Page) => Promise<unknown>): Promise<void> {
  for (const { page } of views) await act(page);
  await shoot(views, screen, state);
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
    sources: '/sources',
    connect: '/connect',
    account: '/account',
  };
}

/** Asks on the start page and returns the id of the conversation. */
async function ask(page: Page, question: string, about = 'eve/roastery', end = page.getByRole('button', { name: 'Helpful', exact: true }).last()): Promise<string> {
  await page.goto(`/?about=${encodeURIComponent(about)}`);
  await page.getByRole('textbox', { name: 'Your question' }).fill(question);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/ask\/[0-9a-f-]{36}/);
  await expect(end).toBeVisible({ timeout: 60_000 });
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

  test('nothing there yet', async ({ page, browser, guard }) => {
    guard.allow(/Failed to load resource/);
    const views = await viewsOf(page, browser, guard);
    const bob = await Api.as('bob');
    const open = (path: string) => async (one: Page) => {
      await one.goto(path);
      await settled(one);
    };
    for (const view of views) await signIn(view.page, 'bob', '/');
    await both(views, 'start', 'empty', (one) => expect(one.getByRole('button', { name: 'Load the sample' })).toBeVisible());
    for (const [screen, path] of Object.entries(addresses('', ''))) if (!['ask', 'connect'].includes(screen)) await both(views, screen, 'empty', open(path));
    await both(views, 'upload', 'empty', open('/upload'));
    await bob.call('POST', '/ingest/new/roastery/returns', {});
    for (const [screen, path] of Object.entries(addresses('bob/roastery/returns', ''))) if (screen === 'ask' || screen.startsWith('dataset-')) await both(views, screen, 'empty', open(path));
    await views[1].page.context().close();
  });

  test('full, slow and failing', async ({ page, browser, guard }) => {
    guard.allow(/Failed to load resource|ERR_FAILED/);
    const views = await viewsOf(page, browser, guard);
    const signin = (path: string) => async (one: Page) => {
      await one.goto(path);
      await expect(one.getByRole('button', { name: 'Sign in' })).toBeVisible();
    };
    await both(views, 'signin', 'full', signin('/signin'));
    await both(views, 'signin', 'error', signin('/signin?reason=ended'));

    const eve = await Api.as('eve');
    await roastery(eve, ['orders', 'customers', 'products', 'deliveries']);
    for (const [username, role] of [['bob', 'editor'], ['carol', 'viewer']]) await eve.call('POST', '/permissions/datasets/self/roastery/orders/shares', { username, role });
    await eve.call('POST', '/data/self/roastery/orders/rows', `${sample('orders').split('\n')[0]}\n1361,2026-09-29,C004,Switzerland,Morning Roast,beans,2,19.60,web,delivered\n`, 'text/csv');
    await eve.call('POST', '/user/tokens', { name: 'laptop' });
    for (const view of views) await signIn(view.page, 'eve', '/');
    const conversation = await ask(page, 'What is the total amount by category?');
    const screens = Object.entries(addresses('eve/roastery/orders', conversation));
    for (const [screen, path] of screens) {
      await both(views, screen, 'full', async (one) => {
        await one.goto(path);
        await settled(one);
        if (screen !== 'sql') return;
        await one.goto(`/sql?${new URLSearchParams({ namespace: 'roastery', q: 'SELECT country, count(*) AS orders, sum(amount) AS amount\nFROM orders\nGROUP BY country\nORDER BY amount DESC' }).toString()}`);
        await one.getByRole('textbox', { name: 'SQL statement' }).click();
        await one.keyboard.press('Control+Enter');
        await expect(one.getByRole('grid')).toBeVisible();
      });
    }
    for (const part of ['Rows', 'Query']) {
      await both(views, `conversation-${part.toLowerCase()}`, 'full', async (one) => {
        await one.goto(`/ask/${conversation}`);
        await one.getByRole('button', { name: part, exact: true }).click();
        await settled(one);
      });
    }
    await both(views, 'conversation-keep', 'full', async (one) => {
      await one.goto(`/ask/${conversation}`);
      await one.getByRole('button', { name: 'Keep as verified' }).click();
      await expect(one.getByRole('dialog')).toBeVisible();
    });
    // One rating at a time: both views are of the same person.
    for (const view of views) {
      await view.page.goto(`/ask/${conversation}`);
      await view.page.getByRole('button', { name: 'Not helpful' }).click();
      await expect(view.page.getByRole('textbox', { name: 'What was wrong?' })).toBeVisible();
      await shoot([view], 'conversation-comment', 'full');
      await view.page.getByRole('button', { name: 'Not helpful' }).click();
      await expect(view.page.getByRole('textbox', { name: 'What was wrong?' })).toHaveCount(0);
    }
    await both(views, 'conversation-month', 'full', (one) => ask(one, 'What is the total amount of orders by month?'));
    await both(views, 'conversation-figure', 'full', (one) => ask(one, 'What is the total amount of orders?'));
    await both(views, 'conversation-clarification', 'full', async (one) => {
      await ask(one, 'orders in March', 'eve/roastery', one.getByText('Which one do you mean?'));
    });
    await both(views, 'account-token', 'full', async (one) => {
      await one.goto('/account');
      await one.getByRole('button', { name: 'Create a token' }).click();
    });
    await both(views, 'dataset-meaning', 'full', async (one) => {
      await one.goto('/data/eve/roastery/orders/definition');
      await settled(one);
      await one.getByRole('heading', { name: 'How questions use the data' }).evaluate((heading) => heading.scrollIntoView({ block: 'start' }));
    });

    // The page for agents asks for nothing.
    const asking = screens.filter(([screen]) => screen !== 'connect');
    const wait = (path: string, time: number) => async (one: Page) => {
      await one.goto(path);
      await expect(one.locator('#content')).toBeVisible();
      await one.waitForTimeout(time);
    };
    for (const view of views) await view.page.route(inner, () => undefined);
    for (const [screen, path] of asking) await both(views, screen, 'loading', wait(path, 800));
    for (const view of views) {
      await view.page.unrouteAll({ behavior: 'ignoreErrors' });
      await view.page.route(inner, refuse);
    }
    for (const [screen, path] of asking) await both(views, screen, 'error', wait(path, 1000));
    for (const view of views) await view.page.unrouteAll({ behavior: 'ignoreErrors' });
    await views[1].page.context().close();
  });

  test('records of documents', async ({ page, browser, guard }) => {
    guard.allow(/Failed to load resource|ERR_FAILED/);
    const views = await viewsOf(page, browser, guard);
    const eve = await Api.as('eve');
    await eve.call('POST', '/ingest/new/roastery/invoices', {
      dataDescription: 'One row for each position of an invoice.',
      schemaDefinition: { item: 'what was sold', quantity: 'how many kilograms', price: 'of one kilogram, in EUR', delivered: 'day of the delivery', origin: 'country of the beans' },
    });
    await eve.call('POST', '/data/self/roastery/invoices/rows', 'item,quantity,price,delivered,origin\nMorning Roast,12,18.5,2026-11-02,Ethiopia\n', 'text/csv');
    // This service has no model, so what one reads is played.
    const id = '01a1eae2-0000-7000-8000-00000000000a';
    const lines = [
      'Invoice 2026-1187', 'Hill & Harbour Coffee Roasters ☕', '', 'Delivered on 2 November 2026 to Café Zeitlos, Graz', '',
      'Pos  Item                          Quantity   Price per kg', ' 1   Morning Roast, Ethiopia         12 kg      18.50 EUR', ' 2   Harbour Espresso, Brazil         8 kg      21.00 EUR', ' 3   Decaf "Moonlight", Peru          4 kg      23.40 USD', '',
      ...Array.from({ length: 60 }, (_, line) => `Terms ${line + 1}: goods remain ours until they are paid, and claims are made within eight days.`),
    ];
    const text = lines.join('\n');
    const quote = (words: string, more: object = {}) => ({ quote: words, page: 1, from: [...text.slice(0, text.indexOf(words))].length, to: [...text.slice(0, text.indexOf(words))].length + [...words].length, ...more });
    const record = (number: number, line: number, item: string, quantity: string, fields: object) => ({
      id: `0-${number}`, file: 'invoice-1187.pdf', row: number, page: 1,
      fields: { item: quote(lines[line] ?? '', { value: item }), quantity: quote(lines[line] ?? '', { value: quantity }), delivered: quote('Delivered on 2 November 2026', { value: '2026-11-02' }), ...fields },
    });
    const doubted = [
      record(3, 8, 'Decaf "Moonlight"', '4', { price: quote(lines[8] ?? '', { flag: 'unit', said: '23.40 USD' }), origin: quote('Peru', { value: 'Peru' }) }),
      record(2, 7, 'Harbour Espresso', '8', { price: quote(lines[7] ?? '', { value: '21.00', corrected: true, pending: true, said: '12.00 EUR' }), origin: { quote: 'from Brasil', flag: 'quoteNotFound', said: 'Brasil' } }),
    ];
    const sure = record(1, 6, 'Morning Roast', '12', { price: quote(lines[6] ?? '', { value: '18.50' }), origin: quote('Ethiopia', { value: 'Ethiopia' }) });
    const load = {
      id, status: 'completed', mode: 'append', dryRun: false, sessionId: id, fileIds: [id], filenames: ['invoice-1187.pdf'], createdAt: '2026-11-15T09:41:00Z',
      documents: [{ file: 'invoice-1187.pdf', pages: 1, inputTokens: 1200, outputTokens: 310 }], progress: { phase: 'done', bytesDone: 1, bytesTotal: 1, rowsDone: 3, rowsSetAside: 0 },
    };
    const play = async (one: Page, records: unknown[], others: unknown[]) => {
      await one.route(/\/ingestions\?/, (route) => route.fulfill({ json: { data: [load] } }));
      await one.route(`**/ingestions/${id}`, (route) => route.fulfill({ json: load }));
      await one.route(/\/records\?/, (route) => route.fulfill({ json: { data: route.request().url().includes('flagged') ? records : [...records, ...others] } }));
      await one.route('**/text', (route) => route.fulfill({ json: { pages: [{ page: 1, text }] } }));
    };
    const address = `/data/eve/roastery/invoices/loads/${id}`;
    for (const view of views) {
      await signIn(view.page, 'eve', '/');
      await play(view.page, [], []);
    }
    const open = (path: string) => async (one: Page) => {
      await one.goto(path);
      await settled(one);
    };
    await both(views, 'records', 'empty', open(address));
    await both(views, 'records-sure', 'empty', open(`${address}?doubted=true`));
    for (const view of views) {
      await view.page.unrouteAll({ behavior: 'ignoreErrors' });
      await play(view.page, doubted, [sure]);
    }
    await both(views, 'dataset-loads-document', 'full', open('/data/eve/roastery/invoices/loads'));
    await both(views, 'records', 'full', open(address));
    await both(views, 'records-correct', 'full', async (one) => {
      await one.getByRole('button', { name: 'Correct', exact: true }).click();
    });
    await both(views, 'records-corrected', 'full', open(`${address}?record=0-2`));
    for (const view of views) await view.page.route('**/text', refuse);
    await both(views, 'records', 'error', open(address));
    for (const view of views) await view.page.unrouteAll({ behavior: 'ignoreErrors' });
    await views[1].page.context().close();
  });

  test('upload, dialogs and faults of statements', async ({ page, browser, guard }) => {
    guard.allow(/Failed to load resource|ERR_FAILED/);
    const views = await viewsOf(page, browser, guard);
    // Both are reviewed before one is loaded, and their rows differ: a load would settle doubts of the other.
    for (const view of views) {
      const { page: one, width } = view;
      const file = { name: 'deliveries.csv', mimeType: 'text/csv', buffer: Buffer.from(`day;carrier;weight\n03/04/2026;North Post;1,5\n05/04/2026;Swift;2,25\n06/04/2026;Swift;${width},75\n`) };
      await signIn(one, 'eve', '/upload');
      const picker = one.locator('input[type=file]').first();
      // One part arrives, the others hang: then there is progress to be seen.
      let arrived = false;
      await one.route(`${store.origin}/**`, (route) => {
        if (arrived) return;
        arrived = route.request().method() === 'PUT';
        return route.continue();
      });
      await picker.setInputFiles({ ...file, buffer: Buffer.alloc(20 * 1024 * 1024, file.buffer) });
      await expect(one.getByRole('progressbar').first()).not.toHaveAttribute('aria-valuenow', '0');
      await one.waitForTimeout(600);
      await shoot([view], 'upload', 'loading');
      one.on('dialog', (dialog) => void dialog.accept());
      await one.getByRole('button', { name: 'Cancel' }).click();
      await one.unrouteAll({ behavior: 'ignoreErrors' });
      await one.route(`${store.origin}/**`, (route) => (route.request().method() === 'PUT' ? route.fulfill({ status: 403, headers: { 'Access-Control-Allow-Origin': '*' } }) : route.continue()));
      await picker.setInputFiles(file);
      await expect(one.getByRole('heading', { name: 'Upload stopped' })).toBeVisible({ timeout: 60_000 });
      await shoot([view], 'upload', 'error');
      await one.unrouteAll({ behavior: 'ignoreErrors' });
      await one.getByRole('button', { name: 'Try again' }).click();
      await expect(one.getByRole('heading', { name: 'First rows' })).toBeVisible();
      await expect(one.getByRole('heading', { name: 'Please check' })).toBeVisible();
      await shoot([view], 'upload', 'full');
      await one.getByRole('button', { name: 'dd/mm/yyyy' }).click();
      await expect(one.getByRole('heading', { name: 'Settled' })).toBeVisible();
      await shoot([view], 'upload-settled', 'full');
    }
    await both(views, 'upload-done', 'full', async (one) => {
      await one.getByRole('button', { name: /^Load into/ }).click();
      await expect(one.getByText(/rows loaded into/)).toBeVisible();
    });
    // The other datasets were not loaded from files.
    await both(views, 'dataset-loads', 'full', async (one) => {
      await one.goto('/data/eve/roastery/deliveries/loads');
      await settled(one);
    });

    await both(views, 'dataset-column', 'full', async (one) => {
      await one.goto('/data/eve/roastery/orders');
      await one.getByRole('button', { name: /^amount/ }).click();
    });
    await both(views, 'dataset-key', 'full', async (one) => {
      await one.goto('/data/eve/roastery/orders');
      await one.getByRole('button', { name: 'Declare a key' }).click();
      await one.getByRole('checkbox', { name: 'order_id' }).check();
    });
    await both(views, 'share', 'full', async (one) => {
      await one.keyboard.press('Escape');
      await one.getByRole('button', { name: 'Share' }).click();
      await expect(one.getByText('Who has access')).toBeVisible();
    });
    await both(views, 'palette', 'full', async (one) => {
      await one.keyboard.press('Escape');
      await one.keyboard.press('Control+k');
      await expect(one.getByRole('dialog').getByRole('option').first()).toBeVisible();
    });

    const statement = 'SELECT o.contry, count(*)\nFROM orders o\nGROUP BY 1';
    await both(views, 'sql-fault', 'error', async (one) => {
      await one.goto(`/sql?${new URLSearchParams({ namespace: 'roastery', q: statement }).toString()}`);
      await one.getByRole('textbox', { name: 'SQL statement' }).click();
      await one.keyboard.press('Control+Enter');
      await expect(one.getByRole('alert')).toBeVisible();
    });
    await both(views, 'conversation-refused', 'error', async (one) => {
      await ask(one, 'Which carrier will be late next week?', 'eve/roastery', one.getByRole('heading', { name: 'This could not be answered' }));
    });
    await both(views, 'sql-chart', 'full', async (one) => {
      await one.goto(`/sql?${new URLSearchParams({ namespace: 'roastery', q: "SELECT date_trunc('month', ordered_on) AS month, sum(amount) AS amount\nFROM orders\nGROUP BY 1\nORDER BY 1" }).toString()}`);
      await one.getByRole('textbox', { name: 'SQL statement' }).click();
      await one.keyboard.press('Control+Enter');
      await expect(one.getByRole('grid')).toBeVisible();
      await one.getByRole('button', { name: 'Chart', exact: true }).click();
      await expect(one.locator('figure svg')).toBeVisible();
    });
    await both(views, 'dataset-delete', 'full', async (one) => {
      await one.goto('/data/eve/roastery/products/settings');
      await one.getByRole('button', { name: 'Delete the dataset' }).click();
      await expect(one.getByRole('dialog')).toBeVisible();
    });

    const eve = await Api.as('eve');
    const others = await viewsOf(await newPerson(browser, guard), browser, guard);
    for (const { page: one } of others) {
      await signIn(one, 'bob', '/');
      await ask(one, 'How many orders are there?');
    }
    await eve.call('DELETE', '/permissions/datasets/self/roastery/orders/shares', { username: 'bob' });
    await both(others, 'conversation-withheld', 'full', async (one) => {
      await one.reload();
      await expect(one.getByRole('heading', { name: 'This answer is withheld' })).toBeVisible();
    });
    for (const view of others) await view.page.context().close();

    // One's own namespaces, and one of somebody else that is shared as a whole.
    await eve.dataset('tastings', 'notes', 'note_id,product,score\n1,Morning Roast,84\n2,Night Shift,88\n');
    const bob = await Api.as('bob');
    await bob.call('POST', '/permissions/namespaces/self/roastery/shares', { username: 'eve', role: 'viewer' });
    await both(views, 'data-namespaces', 'full', async (one) => {
      await one.goto('/data');
      await settled(one);
      await expect(one.getByRole('heading', { level: 2 }).filter({ hasText: 'bob / roastery' })).toBeVisible();
    });
    await views[1].page.context().close();
  });

  test('the sheets', async ({ page }) => {
    const taken = readdirSync(folder).filter((name) => /-(light|dark)-\d+\.png$/.test(name));
    const screens = new Set(taken.map((name) => name.replace(/-(empty|loading|error|full)-(light|dark)-\d+\.png$/, '')));
    for (const screen of screens) {
      const rows = states.filter((state) => taken.includes(`${screen}-${state}-light-1440.png`));
      const images = rows.flatMap((state) => [`<h2>${screen}: ${state}</h2>`, ...widths.flatMap((width) => themes.map((theme) => `<img class="w${width}" src="${screen}-${state}-${theme}-${width}.png">`))]);
      const style = 'body{font:14px sans-serif;margin:12px;width:2220px;display:grid;grid-template-columns:600px 600px 281px 281px 173px 173px;gap:8px 14px;background:#888}h2{grid-column:1/-1;margin:4px 0 0;font-size:16px}.w1440{width:600px}.w834{width:281px}.w390{width:173px}';
      writeFileSync(join(folder, `${screen}.html`), `<!doctype html><meta charset="utf-8"><style>${style}</style>${images.join('')}`);
      await page.goto(`file://${join(folder, `${screen}.html`)}`);
      await page.setViewportSize({ width: 2250, height: 420 * rows.length });
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
