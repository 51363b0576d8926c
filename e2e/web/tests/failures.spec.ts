import type { Page, Route } from '@playwright/test';
import { Api, expect, service, signIn, test } from './support';

const space = `fail${Date.now().toString(36)}`;
const trips = `/data/ada/${space}/trips`;
const requestId = '0199c0de-0000-7000-8000-00000000000f';
let talk = '';

test.beforeAll(async () => {
  const ada = await Api.as('ada');
  await ada.dataset(space, 'trips', 'id,city\n1,Vienna\n2,Graz\n');
  const run = (await ada.call('POST', '/query/ask', { username: 'ada', namespace: space, agent: 'assistant', query: 'How many trips are there?' }, 'application/json', { Prefer: 'respond-async', Accept: 'application/json' })) as { conversationId: string };
  talk = run.conversationId;
});

type Fault = { what: string; status: number; code: string; message: string; next: string };

const faults: readonly Fault[] = [
  { what: 'down', status: 0, code: '', message: 'The service could not be reached.', next: 'Check your connection and try again.' },
  { what: '403', status: 403, code: 'FORBIDDEN', message: 'Your role does not allow this.', next: 'Ask the owner for a higher role.' },
  { what: '404', status: 404, code: 'NOT_FOUND', message: 'There is no such thing.', next: 'It may have been renamed or deleted, or it is not shared with you.' },
  { what: '429', status: 429, code: 'RATE_LIMITED', message: 'Too many requests.', next: 'Too much at once. Wait a moment and try again.' },
  { what: '500', status: 500, code: 'INTERNAL', message: 'Something failed here.', next: 'send the request id to the operator' },
];

function fail(route: Route, { status, code, message }: Fault): Promise<void> {
  if (status === 0) return route.abort('connectionrefused');
  return route.fulfill({ status, headers: { 'X-Request-Id': requestId, ...(status === 429 && { 'Retry-After': '1' }) }, json: { error_code: code, message, error_message: '' } });
}

const drop = (page: Page) => page.locator('input[type=file]').first().setInputFiles({ name: 'a.csv', mimeType: 'text/csv', buffer: Buffer.from('a,b\n1,2\n') });

/** What a screen reads first, and what it shows when it has read it. `does` is needed where a person must do something before. */
type Screen = { name: string; path: () => string; request: RegExp; shows: (page: Page) => Promise<void>; does?: (page: Page) => Promise<void>; method?: string; /** How it is tried again, if not by the button of the failure. */ again?: (page: Page) => Promise<unknown>; not?: readonly number[] };

const heading = (name: string | RegExp) => (page: Page) => expect(page.locator('#content').getByRole('heading', { name }).first()).toBeVisible();
const text = (words: string | RegExp) => (page: Page) => expect(page.locator('#content').getByText(words).first()).toBeVisible();

const screens: readonly Screen[] = [
  { name: 'ask', path: () => '/', request: /\/schema\/namespaces\/all/, shows: heading('What would you like to know?') },
  { name: 'recent conversations', path: () => '/', request: /\/query\/conversations\?/, shows: text('How many trips are there?') },
  // A conversation that is not there has a face of its own: ask.spec.ts.
  { name: 'conversation', path: () => `/ask/${talk}`, request: /\/query\/conversations\/[0-9a-f-]+$/, shows: heading('How many trips are there?'), not: [404] },
  { name: 'datasets', path: () => '/data', request: /\/schema\/datasets\/all/, shows: text(`${space} / trips`) },
  { name: 'dataset', path: () => trips, request: new RegExp(`/data/ada/${space}/trips$`), shows: text('2 rows') },
  { name: 'role of a dataset', path: () => trips, request: new RegExp(`/schema/ada/${space}/datasets`), shows: async (page) => expect(page.getByRole('button', { name: 'Share' })).toBeVisible() },
  // Before the first profile there is none, which is no failure.
  { name: 'columns', path: () => trips, request: /\/profile$/, shows: async (page) => expect(page.getByRole('button', { name: /^city/ })).toBeVisible(), not: [404] },
  { name: 'rows', path: () => `${trips}/rows`, request: /\/rows\?/, shows: async (page) => expect(page.getByRole('grid')).toContainText('Vienna') },
  { name: 'definition', path: () => `${trips}/definition`, request: /\/inferDefinition$/, shows: async (page) => expect(page.getByLabel('Description', { exact: true })).toBeVisible() },
  { name: 'loads', path: () => `${trips}/loads`, request: /\/ingestions\?/, shows: async (page) => expect(page.locator('#content')).toContainText(/load/i) },
  { name: 'history', path: () => `${trips}/history`, request: /\/snapshots\?/, shows: text('2 rows added') },
  { name: 'sharing', path: () => `${trips}/sharing`, request: /\/shares$/, shows: text('Who has access') },
  { name: 'audit', path: () => `${trips}/audit`, request: /\/audit\?/, shows: async (page) => expect(page.locator('#content table, #content li').first()).toBeVisible() },
  { name: 'namespaces of the settings', path: () => `${trips}/settings`, request: /\/schema\/namespaces\/all/, shows: async (page) => expect(page.getByLabel('Name', { exact: true })).toBeVisible() },
  {
    name: 'key',
    path: () => trips,
    request: /\/key$/,
    does: async (page) => {
      await page.getByRole('button', { name: 'Declare a key' }).click();
      await page.getByRole('checkbox', { name: 'city' }).check();
      await page.getByRole('dialog').getByRole('button', { name: 'Declare a key' }).click();
    },
    method: 'PUT',
    again: (page) => page.reload(),
    shows: async (page) => expect(page.getByRole('button', { name: 'Declare a key' })).toBeVisible(),
  },
  {
    name: 'settings',
    path: () => `${trips}/settings`,
    request: new RegExp(`/data/ada/${space}/trips$`),
    does: async (page) => {
      await page.getByLabel('Name', { exact: true }).fill('trips2');
      await page.getByRole('button', { name: 'Rename' }).click();
    },
    method: 'PATCH',
    again: (page) => page.reload(),
    shows: heading('trips'),
  },
  {
    name: 'upload',
    path: () => '/upload',
    request: /\/file-upload\/prepare$/,
    does: drop,
    again: drop,
    shows: heading('First rows'),
  },
  {
    name: 'review',
    path: () => '/upload',
    request: /\/ingestions/,
    does: drop,
    shows: heading('First rows'),
  },
  { name: 'sql', path: () => '/sql', request: /\/schema\/datasets\/all/, shows: text(space) },
  {
    name: 'statement',
    path: () => `/sql?${new URLSearchParams({ namespace: space, q: 'SELECT 42 AS answer' }).toString()}`,
    request: /\/api\/v1\/query$/,
    does: async (page) => {
      await page.getByRole('textbox', { name: 'SQL statement' }).click();
      await page.keyboard.press('Control+Enter');
    },
    shows: async (page) => expect(page.getByRole('gridcell', { name: '42' })).toBeVisible(),
  },
  { name: 'connect', path: () => '/connect', request: /\/schema\/datasets\/all/, shows: heading('MCP') },
  { name: 'tokens', path: () => '/account', request: /\/user\/tokens/, shows: text(/No tokens|Revoke/) },
  { name: 'usage', path: () => '/account', request: /\/user\/usage|\/usage/, shows: heading(/usage/i) },
];

for (const screen of screens) {
  test(`${screen.name}: a failure says what to do and which request it was`, async ({ page, guard }) => {
    guard.allow(/Failed to load resource/);
    await signIn(page, 'ada', '/connect');
    for (const fault of faults.filter(({ status }) => !screen.not?.includes(status))) {
      await test.step(fault.what, async () => {
        let broken = screen.does === undefined;
        const pattern = (url: URL) => url.origin === service.origin && url.pathname.startsWith('/api/') && screen.request.test(url.pathname + url.search);
        await page.route(pattern, (route) => (broken && (!screen.method || route.request().method() === screen.method) ? fail(route, fault) : route.fallback()));
        await page.goto(screen.path());
        if (screen.does) {
          await expect(page.locator('#content h1').first()).toBeVisible();
          await page.waitForLoadState('networkidle');
          broken = true;
          await screen.does(page);
        }
        const alert = page.getByRole('alert').first();
        await expect(alert).toContainText(fault.message);
        await expect(alert).toContainText(fault.next);
        if (fault.status !== 0) await expect(alert).toContainText(requestId);
        // The rest of the console stays usable.
        await expect(page.getByRole('navigation', { name: 'Main' }).first()).toBeVisible();
        broken = false;
        if (screen.again) await screen.again(page);
        else await alert.getByRole('button', { name: 'Try again' }).click();
        await expect(page.getByRole('alert')).toHaveCount(0);
        await screen.shows(page);
        await page.unroute(pattern);
      });
    }
  });
}

test('the console itself says when the service is down', async ({ page, guard }) => {
  guard.allow(/Failed to load resource/);
  let down = true;
  await page.route('**/console.json', (route) => (down ? route.abort('connectionrefused') : route.continue()));
  await page.goto('/data');
  await expect(page.getByRole('heading', { name: 'The console could not start.' })).toBeVisible();
  await expect(page.getByText('Check your connection and try again.')).toBeVisible();
  down = false;
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
});

test('sign-in says when the identity provider is down', async ({ page, guard }) => {
  guard.allow(/Failed to load resource/);
  await page.route('**/.well-known/openid-configuration', (route) => route.abort('connectionrefused'));
  await page.goto('/data');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await expect(page.getByRole('alert')).toContainText('cannot be reached');
  await page.unroute('**/.well-known/openid-configuration');
  await signIn(page, 'ada');
});
