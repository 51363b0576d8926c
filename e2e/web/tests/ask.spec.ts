import type { Page } from '@playwright/test';
import { accessible, Api, expect, signIn, test } from './support';

const cities = ['Vienna', 'Graz', 'Linz'];
const orders = [
  'order_id,ordered_on,city,status,amount',
  ...Array.from({ length: 90 }, (_, row) => `${1000 + row},2026-0${(row % 6) + 1}-1${row % 9},${cities[row % 3]},${row % 5 === 0 ? 'cancelled' : 'delivered'},${(row % 10) + 0.5}`),
].join('\n');

const space = `ask${Date.now().toString(36)}`;
const start = `/?about=${encodeURIComponent(`ada/${space}`)}`;

test.beforeAll(async () => {
  const ada = await Api.as('ada');
  await ada.dataset(space, 'orders', orders);
});

const box = (page: Page) => page.getByRole('textbox', { name: 'Your question' });

async function ask(page: Page, question: string): Promise<void> {
  await page.goto(start);
  await expect(page.getByText('All datasets')).toBeVisible();
  await box(page).fill(question);
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/ask\/[0-9a-f-]{36}\?run=[0-9a-f-]{36}/);
}

test('a question is answered, followed up, rated and kept, by keyboard', async ({ page }) => {
  test.setTimeout(150_000);
  await signIn(page, 'ada');
  await page.goto(start);
  await expect(box(page)).toBeFocused();

  await test.step('a dataset is named with @', async () => {
    await box(page).pressSequentially('How many @ord');
    await expect(page.getByRole('option', { name: /orders/ }).first()).toBeVisible();
    await page.keyboard.press('Enter');
    await expect(box(page)).toHaveValue('How many orders ');
    await expect(page.getByRole('button', { name: 'Remove orders' })).toBeVisible();
    await box(page).pressSequentially('are cancelled?');
    await page.keyboard.press('Enter');
  });

  await test.step('the answer comes first, with its query', async () => {
    await expect(page.getByRole('heading', { name: 'How many orders are cancelled?', level: 2 })).toBeVisible();
    await expect(page.getByText('18', { exact: true })).toBeVisible();
    await expect(page.getByText('Answered by rules')).toBeVisible();
    await expect(page.getByText(/^1 step, /)).toBeVisible();
    await expect(page.locator('pre')).toContainText(`WHERE "status" = 'cancelled'`);
    await page.getByRole('heading', { level: 2 }).getByText('cancelled').focus();
    await expect(page.getByRole('tooltip')).toHaveText('a value of status of orders');
  });

  await test.step('a follow-up gets a chart and rows', async () => {
    const next = page.getByRole('textbox', { name: 'Ask a follow-up' });
    // It is about the same dataset, and says so.
    await expect(page.getByRole('button', { name: 'Remove orders' })).toBeVisible();
    await expect(page.getByText('All datasets')).toHaveCount(0);
    await next.fill('by city?');
    await next.press('Enter');
    await expect(page.getByRole('img', { name: 'Bars: count by city' }).locator('svg')).toBeVisible();
    await page.getByRole('article').last().getByRole('button', { name: 'Rows', exact: true }).press('Enter');
    await expect(page.getByRole('grid')).toContainText('Vienna');
  });

  await test.step('the conversation survives a reload', async () => {
    await page.reload();
    await expect(page.getByRole('article')).toHaveCount(2);
    await expect(page.getByText('18', { exact: true })).toBeVisible();
    await expect(page.getByRole('button', { name: 'Remove orders' })).toBeVisible();
  });

  await test.step('a rating is given, commented and withdrawn', async () => {
    const last = page.getByRole('article').last();
    const down = last.getByRole('button', { name: 'Not helpful' });
    await down.click();
    await last.getByRole('textbox', { name: 'What was wrong?' }).fill('I asked for something else.');
    await last.getByRole('button', { name: 'Send' }).click();
    await expect(page.getByText('Thank you for the rating')).toBeVisible();
    await page.reload();
    await expect(down).toHaveAttribute('aria-pressed', 'true');
    await down.click();
    await expect(page.getByText('The rating is withdrawn')).toBeVisible();
    await expect(down).toHaveAttribute('aria-pressed', 'false');
  });

  await test.step('the answer is kept, and answers the next time', async () => {
    await page.getByRole('article').first().getByRole('button', { name: 'Keep as verified' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Keep as verified' }).click();
    await expect(page.getByText('The question is kept as verified')).toBeVisible();
    await page.reload();
    await expect(page.getByRole('article').first().getByText('Kept as verified')).toBeVisible();
    await expect(page.getByRole('article').last().getByRole('button', { name: 'Keep as verified' })).toBeVisible();
    await page.goto(start);
    await page.getByRole('button', { name: 'How many orders are cancelled?' }).click();
    await expect(page.getByText(/^Verified by ada on /)).toBeVisible();
  });

  await test.step('the conversation is renamed and deleted', async () => {
    await page.getByRole('button', { name: 'Actions of the conversation' }).click();
    await page.getByRole('menuitem', { name: 'Rename' }).click();
    await page.getByRole('textbox', { name: 'Name' }).fill('Cancelled orders');
    await page.keyboard.press('Enter');
    await expect(page.getByRole('heading', { level: 1 })).toContainText('Cancelled orders');
    await page.getByRole('button', { name: 'Actions of the conversation' }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await expect(page.getByText('The conversation is deleted')).toBeVisible();
    await expect(page.getByRole('link', { name: 'Cancelled orders' })).toHaveCount(0);
  });
});

test('a query is edited and run again, and a link runs it with the rights of its reader', async ({ page, browser, guard }) => {
  await signIn(page, 'ada');
  await ask(page, 'Total amount of orders by month');
  await expect(page.getByRole('img', { name: 'Line: total amount by month' }).locator('svg')).toBeVisible();
  const image = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Download' }).click();
  await page.getByRole('menuitem', { name: 'PNG image' }).click();
  expect((await image).suggestedFilename()).toBe('chart.png');

  await page.getByRole('button', { name: 'Query' }).click();
  await page.getByRole('button', { name: 'Edit and run again' }).click();
  const statement = page.getByRole('textbox', { name: 'SQL statement' });
  guard.allow(/422 .*\/query\)/);
  await statement.fill('SELECT cty FROM orders');
  await statement.press('Control+Enter');
  await expect(page.getByRole('alert')).toContainText('cty');
  await statement.fill('SELECT city, count(*) AS n FROM orders GROUP BY city');
  await statement.press('Control+Enter');
  await expect(page.getByText(/^3 rows in /)).toBeVisible();

  await page.getByRole('button', { name: 'Copy link' }).click();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  expect(new URL(link).search).toBe('');
  // Wait for a complete page first: a page that is being redirected to the issuer ignores goto.
  await page.goto('/data');
  await expect(page.getByRole('heading', { name: 'Datasets', exact: true })).toBeVisible();
  await page.goto(link);
  await page.getByRole('button', { name: 'Run the query' }).click();
  await expect(page.getByText(/^6 rows in /)).toBeVisible();

  const other = await browser.newContext({ baseURL: process.env['QUERN_WEB_URL'] ?? '' });
  guard.allow(/404 .*\/query\)/);
  guard.allow(/422 .*\/query\)/);
  await guard.watch(other);
  const bob = await other.newPage();
  await signIn(bob, 'bob');
  await bob.goto(link);
  await bob.getByRole('button', { name: 'Run the query' }).click();
  await expect(bob.getByRole('alert')).toBeVisible();
  await expect(bob.getByRole('grid')).toHaveCount(0);
  await other.close();
});

test('a question that can be read in several ways asks back', async ({ page }) => {
  await signIn(page, 'ada');
  await ask(page, 'orders in March');
  await expect(page.getByText('Which one do you mean?')).toBeVisible();
  await page.reload();
  await page.getByRole('list', { name: 'Choose an interpretation' }).getByRole('button', { name: /number of orders/ }).click();
  await expect(page.getByText('15', { exact: true })).toBeVisible();
  await expect(page.getByText('Answered by rules')).toBeVisible();
  await page.reload();
  await expect(page.getByText('15', { exact: true })).toBeVisible();
});

test('what cannot be answered says why and what to do', async ({ page, guard }) => {
  await signIn(page, 'ada');
  await ask(page, 'How is the weather in Narnia?');
  await expect(page.getByRole('heading', { name: 'This could not be answered' })).toBeVisible();
  await expect(page.getByText(/Not understood: .*weather/)).toBeVisible();
  await page.getByRole('button', { name: 'How many orders are there?' }).click();
  await expect(page.getByText('90', { exact: true })).toBeVisible();

  await ask(page, 'Delete all orders');
  await expect(page.getByRole('heading', { name: 'Questions only read' })).toBeVisible();

  guard.allow(/503|404/);
  await page.goto(start);
  await page.route('**/api/v1/query/ask', (route) =>
    route.fulfill({ status: 503, contentType: 'application/json', headers: { 'X-Request-Id': 'a1' }, body: JSON.stringify({ error_code: 'UNAVAILABLE', message: 'The server is full.', error_message: '' }) }),
  );
  await box(page).fill('How many orders are there?');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('alert')).toContainText('The server is full.');
  await expect(box(page)).toHaveValue('How many orders are there?');
  await page.unroute('**/api/v1/query/ask');
  await page.getByRole('alert').getByRole('button', { name: 'Try again' }).click();
  await expect(page.getByText('90', { exact: true })).toBeVisible();

  await page.goto('/ask/0199c0ea-d6e8-7192-9ab2-3c4d5e6f7081');
  await expect(page.getByText('There is no such conversation')).toBeVisible();
});

test('a stream that breaks off is found again', async ({ page, guard }) => {
  guard.allow(/ERR_|Failed to load/);
  await signIn(page, 'ada');
  let broken = 0;
  await page.route('**/api/v1/query/runs/*/events', async (route) => {
    if (broken < 2) {
      broken += 1;
      await route.abort('connectionreset');
    } else {
      await route.continue();
    }
  });
  await ask(page, 'How many orders are there?');
  await expect(page.getByText('90', { exact: true })).toBeVisible();
  expect(broken).toBe(2);
});

test('an answer is withheld when its data is no longer shared', async ({ page }) => {
  const ada = await Api.as('ada');
  await ada.call('POST', `/permissions/datasets/self/${space}/orders/shares`, { username: 'bob', role: 'viewer' });
  await signIn(page, 'bob');
  await ask(page, 'How many orders are there?');
  await expect(page.getByText('90', { exact: true })).toBeVisible();
  await ada.call('DELETE', `/permissions/datasets/self/${space}/orders/shares`, { username: 'bob' });
  await page.reload();
  await expect(page.getByRole('heading', { name: 'This answer is withheld' })).toBeVisible();
  await expect(page.getByText('90', { exact: true })).toHaveCount(0);
});

test('asking is accessible in both themes and fits a phone', async ({ page }) => {
  test.setTimeout(180_000);
  await signIn(page, 'ada');
  const check = async (what: string) => {
    await accessible(page, what);
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth), what).toBeLessThanOrEqual(0);
    await page.setViewportSize({ width: 1440, height: 900 });
  };
  await page.goto(start);
  await expect(page.getByText('All datasets')).toBeVisible();
  await box(page).fill('Show @');
  await expect(page.getByRole('option').first()).toBeVisible();
  await check('home');
  await ask(page, 'Total amount of orders by month');
  await expect(page.locator('figure svg')).toBeVisible();
  await check('chart');
  await page.getByRole('button', { name: 'Rows', exact: true }).click();
  await check('rows');
  await page.getByRole('button', { name: 'Query' }).click();
  await page.getByRole('button', { name: 'Edit and run again' }).click();
  await page.getByRole('button', { name: 'Not helpful' }).click();
  await expect(page.getByRole('textbox', { name: 'What was wrong?' })).toBeVisible();
  await check('query and rating');
  await page.getByRole('button', { name: 'Keep as verified' }).click();
  await check('keep');
  await ask(page, 'orders in March');
  await expect(page.getByText('Which one do you mean?')).toBeVisible();
  await check('clarification');
  await ask(page, 'How is the weather?');
  await expect(page.getByRole('heading', { name: 'This could not be answered' })).toBeVisible();
  await check('refusal');
});
