import { accessible, Api, expect, signIn, test } from './support';

const csv = ['id,city,amount,day', ...Array.from({ length: 300 }, (_, row) => `${row},${['Vienna', 'Graz', 'Linz'][row % 3]},${row * 1.5},2026-0${(row % 9) + 1}-1${row % 9}`)].join('\n');

const space = `screens${Date.now().toString(36)}`;

test.beforeAll(async () => {
  const ada = await Api.as('ada');
  await ada.dataset(space, 'trips', csv);
  await ada.call('POST', `/permissions/datasets/self/${space}/trips/shares`, { username: 'bob', role: 'viewer' });
});

test('every screen is accessible in both themes and fits a phone', async ({ page }) => {
  test.setTimeout(480_000);
  await page.goto('/signin');
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
  await accessible(page, 'signin');
  await signIn(page, 'ada');
  const trips = `/data/ada/${space}/trips`;
  const screens = ['/data', '/upload', trips, `${trips}/rows`, `${trips}/definition`, `${trips}/loads`, `${trips}/history`, `${trips}/sharing`, `${trips}/audit`, `${trips}/settings`, '/sources'];
  for (const screen of screens) {
    await page.goto(screen);
    await expect(page.locator('#content h1')).toBeVisible();
    await page.waitForLoadState('networkidle');
    await accessible(page, screen);
    await page.setViewportSize({ width: 390, height: 844 });
    const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
    expect(wider, `${screen} is wider than a phone`).toBeLessThanOrEqual(0);
    await page.setViewportSize({ width: 1440, height: 900 });
  }
});

test('what is typed before the palette is loaded counts', async ({ page }) => {
  let release = () => undefined as void;
  const held = new Promise<void>((resolve) => (release = resolve));
  await page.route(/\/assets\/PaletteList-[^/]+\.js$/, async (route) => {
    await held;
    await route.continue();
  });
  await signIn(page, 'ada', '/connect');
  await expect(page.getByRole('heading', { level: 1 })).toBeVisible();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('trips');
  await expect(page.getByPlaceholder('Search or type a command')).toHaveValue('trips');
  const options = page.getByRole('dialog').getByRole('option');
  await expect(options).toHaveCount(0);
  release();
  await expect(options.first()).toContainText('trips');
});

test('overlays are accessible and work by keyboard', async ({ page }) => {
  await signIn(page, 'ada', `/data/ada/${space}/trips`);
  await page.keyboard.press('Control+k');
  await page.getByPlaceholder('Search or type a command').fill('trips');
  await expect(page.getByRole('dialog').getByRole('option').first()).toBeVisible();
  await accessible(page, 'palette');
  await page.keyboard.press('Escape');
  await expect(page.getByRole('dialog')).toHaveCount(0);
  await page.keyboard.press('?');
  await expect(page.getByRole('dialog', { name: 'Keyboard shortcuts' })).toBeVisible();
  await accessible(page, 'keys');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Export' }).press('ArrowDown');
  await expect(page.getByRole('menuitem', { name: 'CSV', exact: true })).toBeFocused();
  await accessible(page, 'menu');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Share' }).click();
  await expect(page.getByText('Who has access')).toBeVisible();
  await accessible(page, 'sharing');
  await page.keyboard.press('Escape');
  await page.keyboard.press('g');
  await page.keyboard.press('d');
  await expect(page).toHaveURL(/\/data$/);
  await expect(page.getByRole('searchbox')).toBeVisible();
  await page.keyboard.press('/');
  await expect(page.getByRole('searchbox')).toBeFocused();
});

test('the list searches while one types', async ({ page }) => {
  await signIn(page, 'ada');
  await page.getByRole('searchbox').fill('Vienna');
  await expect(page.getByText('found in values').first()).toBeVisible();
  await expect(page).toHaveURL(/q=Vienna/);
  await page.getByRole('searchbox').fill('nothinglikethis');
  await expect(page.getByText('Nothing matches “nothinglikethis”')).toBeVisible();
});

test('a dataset is exported', async ({ page }) => {
  await signIn(page, 'ada', `/data/ada/${space}/trips`);
  await page.getByRole('button', { name: 'Export' }).click();
  const file = page.waitForEvent('download');
  await page.getByRole('menuitem', { name: 'CSV', exact: true }).click();
  expect((await file).suggestedFilename()).toBe('trips.csv');
});

test('a failure says what to do and can be tried again', async ({ page, guard }) => {
  guard.allow(/console: Failed to load resource/);
  await signIn(page, 'ada');
  await page.route('**/api/v1/schema/datasets/all*', (route) =>
    route.fulfill({
      status: 503,
      contentType: 'application/json',
      headers: { 'X-Request-Id': '0199c0de-0000-7000-8000-000000000001' },
      body: JSON.stringify({ error_code: 'UNAVAILABLE', message: 'The server is full.', error_message: '' }),
    }),
  );
  await page.getByRole('searchbox').fill('x');
  const alert = page.getByRole('alert');
  await expect(alert).toContainText('The server is full.');
  await expect(alert).toContainText('The service is busy or restarting.');
  await expect(alert).toContainText('0199c0de-0000-7000-8000-000000000001');
  await accessible(page, 'failure');
  await page.unroute('**/api/v1/schema/datasets/all*');
  await alert.getByRole('button', { name: 'Try again' }).click();
  await expect(alert).toHaveCount(0);
});

test('what is not there or not shared looks the same', async ({ page, guard }) => {
  guard.allow(/404/);
  await signIn(page, 'bob', '/data/ada/nowhere/nothing');
  await expect(page.getByRole('alert')).toContainText('it is not shared with you');
  await page.goto('/no/such/page');
  await expect(page.getByText('There is nothing at this address')).toBeVisible();
  await accessible(page, 'not found');
});

test('a viewer changes nothing and can leave', async ({ page, guard }) => {
  guard.allow(/404/);
  await signIn(page, 'bob', `/data/ada/${space}/trips`);
  await expect(page.getByText('Viewer')).toBeVisible();
  await expect(page.getByRole('link', { name: 'Add rows' })).toHaveCount(0);
  await expect(page.getByRole('link', { name: 'Settings' })).toHaveCount(0);
  await page.getByRole('link', { name: 'Sharing' }).click();
  await page.getByRole('button', { name: 'Leave this dataset' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Leave this dataset' }).click();
  await expect(page.getByText('You left the dataset')).toBeVisible();
});

test('a token that ends is renewed once for all requests, and a session that ends comes back to its address', async ({ page, context, guard }) => {
  guard.allow(/401|400|Failed to load resource/);
  await signIn(page, 'ada', `/data/ada/${space}/trips`);
  const refused = new Set<string>();
  let renewals = 0;
  page.on('request', (request) => {
    if (request.url().endsWith('/token') && request.method() === 'POST') renewals += 1;
  });
  await page.route('**/api/v1/**', async (route) => {
    if (refused.has(route.request().url())) return route.fallback();
    refused.add(route.request().url());
    return route.fulfill({ status: 401, contentType: 'application/json', body: JSON.stringify({ error_code: 'UNAUTHORIZED', message: 'no', error_message: '' }) });
  });
  await page.getByRole('link', { name: 'Datasets', exact: true }).first().click();
  await page.getByRole('searchbox').fill('trips');
  await expect(page.getByText('trips').first()).toBeVisible();
  expect(renewals).toBeGreaterThan(0);
  await page.unroute('**/api/v1/**');

  // The issuer forgets the session, and the service refuses the token.
  await context.clearCookies();
  await page.route('**/protocol/openid-connect/token', (route) => route.fulfill({ status: 400, contentType: 'application/json', headers: { 'Access-Control-Allow-Origin': '*' }, body: '{"error":"invalid_grant"}' }));
  await page.route('**/api/v1/**', (route) => route.fulfill({ status: 401, contentType: 'application/json', body: JSON.stringify({ error_code: 'UNAUTHORIZED', message: 'no', error_message: '' }) }));
  await page.getByRole('searchbox').fill('tripsx');
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
  await page.unroute('**/protocol/openid-connect/token');
  await page.unroute('**/api/v1/**');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.locator('#username').fill('ada');
  await page.locator('#password').fill('ada-pw');
  await page.locator('#kc-login').click();
  await expect(page.getByRole('searchbox')).toHaveValue(/trips/);
});

test('a sign-in that breaks off does not end the session', async ({ page, guard }) => {
  guard.allow(/ERR_CONNECTION_RESET/);
  await signIn(page, 'ada');
  await page.route('**/protocol/openid-connect/token', (route) => route.abort('connectionreset'));
  await page.reload();
  await expect(page.getByText('The sign-in was interrupted')).toBeVisible();
  await page.unroute('**/protocol/openid-connect/token');
  await page.goto(`/data/ada/${space}/trips`);
  await expect(page.getByRole('heading', { name: 'trips' })).toBeVisible();
});

test('names and cells are text on every screen', async ({ page, guard }) => {
  const hostile = ['<img src=x onerror=window.hacked=1>', '=1+cmd()', 'שם <b>מודגש</b>', 'long'];
  const cells = ['<script>window.hacked=1</script>', '=HYPERLINK("http://evil.example","x")', '\u202eשלום <i>עולם</i>', 'x'.repeat(1_000_000)];
  const line = (values: string[]) => values.map((value) => `"${value.replaceAll('"', '""')}"`).join();
  const ada = await Api.as('ada');
  await ada.dataset(space, 'hostile', [line(hostile), line(cells), line(['b', 'c', 'd', 'e'])].join('\n'));
  const inert = async (what: string) => {
    await page.waitForLoadState('networkidle');
    expect(await page.evaluate(() => 'hacked' in window), what).toBe(false);
    // The editor has images without a source beside its placeholder.
    await expect(page.locator('#content').locator('img:not(.cm-widgetBuffer), script, iframe, b, i'), what).toHaveCount(0);
    expect(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth), what).toBeLessThanOrEqual(0);
  };
  const at = `/data/ada/${space}/hostile`;
  await signIn(page, 'ada', at);
  await page.getByRole('button', { name: /^<img src=x/ }).click();
  await expect(page.getByText('<script>window.hacked=1</script>').first()).toBeVisible();
  await page.getByRole('button', { name: /^long/ }).click();
  await inert('columns');

  await page.goto(`${at}/rows`);
  const grid = page.getByRole('grid');
  await expect(grid.getByRole('columnheader', { name: hostile[0] })).toBeVisible();
  await expect(grid.getByText('=HYPERLINK("http://evil.example","x")')).toBeVisible();
  await expect(grid.getByText('<i>עולם</i>')).toBeVisible();
  // A long cell is cut in the grid and whole in its dialog.
  expect((await grid.innerText()).length).toBeLessThan(10_000);
  await inert('rows');
  await grid.focus();
  await page.keyboard.press('Control+Home');
  for (let column = 0; column < 4; column += 1) await page.keyboard.press('ArrowRight');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('dialog')).toContainText('xxxxxxxx');
  await page.keyboard.press('Escape');

  await page.goto(`${at}/definition`);
  await expect(page.locator('#content')).toContainText(hostile[0] ?? '');
  await inert('definition');

  await page.goto(`/sql?namespace=${space}`);
  await page.getByRole('button', { name: /^hostile/ }).click();
  await expect(page.getByRole('button', { name: hostile[0] ?? '' })).toBeVisible();
  await inert('sql');

  await page.goto(`/?about=${encodeURIComponent(`ada/${space}`)}`);
  await page.getByRole('textbox', { name: 'Your question' }).fill('How many hostile by <img src=x onerror=window.hacked=1>?');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { level: 2 }).filter({ hasText: '<img src=x onerror=window.hacked=1>' })).toBeVisible();
  await inert('question');

  await test.step('the service takes no such name of a dataset, and the console shows it as text', async () => {
    guard.allow(/ 404 | 400 | 422 /);
    const name = '<img src=x onerror=window.hacked=1>';
    await expect(ada.call('POST', `/ingest/new/${space}/${encodeURIComponent(name)}`, {})).rejects.toThrow(/: 4\d\d /);
    await page.goto(`/data/ada/${space}/${encodeURIComponent(name)}`);
    await expect(page.getByRole('heading', { name })).toBeVisible();
    await expect(page.getByRole('alert')).toBeVisible();
    await inert('name of a dataset');
  });
});
