import { accessible, Api, expect, signIn, test } from './support';

// Eve has no data. She gets back to that, because other tests need it.
test.afterEach(async () => {
  const api = await Api.as('eve');
  const { data } = (await api.call('GET', '/schema/datasets/all')) as { data: { username: string; namespace: string; name: string }[] };
  for (const one of data.filter((dataset) => dataset.username === 'eve')) await api.call('DELETE', `/data/self/${one.namespace}/${one.name}`);
});

test('a person without data loads the sample and gets an answer', async ({ page }) => {
  await signIn(page, 'eve', '/');
  await expect(page.getByRole('heading', { name: 'Ask your data anything' })).toBeVisible();
  await expect(page.getByText('Drop files or folders here')).toBeVisible();
  await accessible(page, 'start');
  await page.getByRole('button', { name: 'Load the sample' }).click();
  await expect(page.getByLabel('Your question')).toHaveValue('What is the total amount of orders by country?', { timeout: 60_000 });
  await expect(page.getByRole('button', { name: 'Remove orders' })).toBeVisible();
  await page.getByRole('button', { name: 'Ask', exact: true }).click();
  await expect(page.getByRole('grid').or(page.getByRole('img')).first()).toBeVisible({ timeout: 60_000 });
  await expect(page.getByText('Austria').first()).toBeVisible();

  await page.goto('/data/eve/sample/orders');
  await expect(page.getByText('360 rows')).toBeVisible();
});

test('a person without data chooses a file in the list of datasets', async ({ page }) => {
  await signIn(page, 'eve', '/data');
  await expect(page.getByRole('heading', { name: 'No datasets yet' })).toBeVisible();
  await accessible(page, 'no datasets');
  await page.locator('input[type=file]').setInputFiles([
    { name: 'first.csv', mimeType: 'text/csv', buffer: Buffer.from('city,visits\nGraz,1\n') },
    { name: 'nothing.csv', mimeType: 'text/csv', buffer: Buffer.from('') },
  ]);
  await expect(page.getByText('nothing.csv is empty and was left out.')).toBeVisible();
  await page.getByRole('button', { name: /^Load into files \/ first$/ }).click();
  await expect(page.getByText('1 row loaded into files / first')).toBeVisible();
});
