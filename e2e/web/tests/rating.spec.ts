import { Api, expect, signIn, test } from './support';

test('a rating is there again in another browser, and no request ends with 404', async ({ page, browser }) => {
  const space = `rated${Date.now().toString(36)}`;
  const api = await Api.as('ada');
  await api.dataset(space, 'visits', 'city,visits\nGraz,3\nLinz,5\n');
  await signIn(page, 'ada', `/?about=${encodeURIComponent(`ada/${space}/visits`)}`);
  const missing: string[] = [];
  const watch = (url: string, status: number) => status === 404 && missing.push(url);
  page.on('response', (response) => watch(response.url(), response.status()));
  await page.getByLabel('Your question').fill('What is the total visits by city?');
  await page.getByRole('button', { name: 'Ask', exact: true }).click();
  await expect(page.getByRole('button', { name: 'Helpful', exact: true })).toHaveAttribute('aria-pressed', 'false', { timeout: 60_000 });
  await page.getByRole('button', { name: 'Not helpful' }).click();
  await page.getByLabel('What was wrong?').fill('I meant the average.');
  await page.getByRole('button', { name: 'Send', exact: true }).click();
  await expect(page.getByText('Thank you for the rating')).toBeVisible();

  const other = await (await browser.newContext()).newPage();
  other.on('response', (response) => watch(response.url(), response.status()));
  await signIn(other, 'ada', new URL(page.url()).pathname);
  await expect(other.getByRole('button', { name: 'Not helpful' })).toHaveAttribute('aria-pressed', 'true');
  await other.getByRole('button', { name: 'Not helpful' }).click();
  await expect(other.getByText('The rating is withdrawn')).toBeVisible();
  await other.context().close();
  await page.reload();
  await expect(page.getByRole('button', { name: 'Not helpful' })).toHaveAttribute('aria-pressed', 'false');
  expect(missing).toEqual([]);
});
