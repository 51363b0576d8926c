import { expect, signIn, tab, test } from './support';

const file = [
  'day;customer;amount;big',
  ...Array.from({ length: 240 }, (_, row) => `0${(row % 9) + 1}/0${(row % 8) + 1}/2026;${['Müller', 'Smith', '<b>bold</b>', '=SUM(A1)'][row % 4]};${row},50;900719925474${String(row).padStart(6, '0')}`),
].join('\n');

test('from a file to a shared dataset', async ({ page, browser, guard }) => {
  test.setTimeout(180_000);
  const space = `main${Date.now().toString(36)}`;

  await test.step('a stranger signs in and comes back to the address', async () => {
    await page.goto('/upload');
    await expect(page.getByRole('heading', { name: 'Files in, answers out.' })).toBeVisible();
    await signIn(page, 'ada', '/upload');
  });

  await test.step('a file goes straight to the store and is reviewed', async () => {
    const part = page.waitForRequest((request) => request.method() === 'PUT');
    await page.locator('input[type=file]').setInputFiles({ name: 'orders 2026.csv', mimeType: 'text/csv', buffer: Buffer.from(file) });
    expect(new URL((await part).url()).host).toBe(new URL(process.env['QUERN_S3_ENDPOINT'] ?? '').host);
    await expect(page.getByRole('heading', { name: 'First rows' })).toBeVisible();
    await expect(page.getByLabel('Dataset', { exact: true })).toHaveValue('orders');
    await page.getByLabel('Namespace').fill(space);
    await page.getByLabel('Namespace').blur();
  });

  await test.step('a doubt is settled by a click', async () => {
    await expect(page.getByText('The dates could be dd/mm/yyyy or mm/dd/yyyy.')).toBeVisible();
    await page.getByRole('button', { name: 'dd/mm/yyyy' }).click();
    await expect(page.getByLabel('Type day')).toHaveValue('date');
    await page.getByLabel('Type amount').selectOption({ label: 'decimal, 2 places' });
    await expect(page.getByLabel('Type amount')).toHaveValue('decimal(18,2)');
  });

  await test.step('a reload in the review comes back to it', async () => {
    await page.reload();
    await expect(page.getByRole('heading', { name: 'First rows' })).toBeVisible();
    await page.getByLabel('Namespace').fill(space);
    await page.getByLabel('Namespace').blur();
    await page.getByRole('button', { name: 'dd/mm/yyyy' }).click();
    await expect(page.getByLabel('Type day')).toHaveValue('date');
  });

  await test.step('it is loaded', async () => {
    await page.getByRole('button', { name: `Load into ${space} / orders` }).click();
    await expect(page.getByText(`240 rows loaded into ${space} / orders`)).toBeVisible();
    await page.getByRole('link', { name: 'Open the dataset' }).click();
  });

  await test.step('columns have types and pictures, cells are text', async () => {
    await expect(page.getByRole('heading', { name: 'orders' })).toBeVisible();
    await expect(page.getByText('240 rows')).toBeVisible();
    const customer = page.getByRole('button', { name: /^customer/ });
    await expect(customer).toContainText('25%', { timeout: 30_000 });
    await customer.click();
    await expect(page.getByText('Most frequent values')).toBeVisible();
    await tab(page, 'Rows').click();
    const grid = page.getByRole('grid');
    await expect(grid).toHaveAttribute('aria-rowcount', '241');
    await expect(grid.getByText('<b>bold</b>').first()).toBeVisible();
    await expect(grid.getByText('900,719,925,474,000,000')).toBeVisible();
    await expect(grid.getByText('2026-01-01').first()).toBeVisible();
    await grid.focus();
    await page.keyboard.press('ArrowDown');
    await page.keyboard.press('ArrowRight');
    await page.keyboard.press('Enter');
    await expect(page.getByRole('dialog')).toContainText('Müller');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Control+End');
    await expect(grid.getByText('900,719,925,474,000,099')).toBeVisible();
  });

  await test.step('the definition is drafted, changed and saved', async () => {
    await tab(page, 'Definition').click();
    await page.getByRole('button', { name: 'Write a draft' }).click();
    await expect(page.getByText('The draft fills what was empty.')).toBeVisible();
    await page.getByLabel('Description').fill('One row per order.');
    await expect(page.getByText('18 of 10,000 characters')).toBeVisible();
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await expect(page.getByText('The definition is saved')).toBeVisible();
  });

  await test.step('it is shared, and the other person sees it at the next click', async () => {
    await page.getByRole('button', { name: 'Share' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('Person or @group').fill('bob');
    await dialog.getByRole('button', { name: 'Share' }).click();
    // Outside of the dialog it would be grey, and a screen reader would not hear it.
    await expect(dialog.getByText('Shared with bob')).toBeVisible();
    await expect(dialog.getByRole('button', { name: 'Remove the access of bob' })).toBeVisible();

    const other = await browser.newContext({ baseURL: process.env['QUERN_WEB_URL'] ?? '' });
    await guard.watch(other);
    const bob = await other.newPage();
    await signIn(bob, 'bob', '/data?show=shared');
    await bob.getByRole('link', { name: `${space} / orders` }).click();
    await expect(bob.getByText('One row per order.')).toBeVisible();
    await expect(bob.getByRole('button', { name: 'Share' })).toHaveCount(0);

    guard.allow(new RegExp(`404 .*${space}/`));
    await dialog.getByRole('button', { name: 'Remove the access of bob' }).click();
    await expect(page.getByText('bob no longer has access')).toBeVisible();
    await page.keyboard.press('Escape');
    await tab(bob, 'Rows').click();
    await expect(bob.getByRole('alert')).toContainText('it is not shared with you');
    await other.close();
  });

  await test.step('everything is found by its name', async () => {
    await page.keyboard.press('Control+k');
    await page.getByPlaceholder('Search or type a command').fill('orders');
    await page.getByRole('option', { name: /orders/ }).first().click();
    await expect(page.getByRole('heading', { name: 'orders' })).toBeVisible();
  });

  await test.step('a reload continues the session without asking', async () => {
    await tab(page, 'History').click();
    await expect(page.getByText(/rows? added/)).toBeVisible();
    const address = page.url();
    await page.reload();
    await expect(page.getByText(/rows? added/)).toBeVisible();
    expect(page.url()).toBe(address);
  });

  await test.step('it is deleted, and can be restored', async () => {
    await tab(page, 'Settings').click();
    await page.getByRole('button', { name: 'Delete the dataset' }).click();
    const dialog = page.getByRole('dialog');
    await expect(dialog.getByRole('button', { name: 'Delete the dataset' })).toBeDisabled();
    await dialog.getByLabel('Type the name “orders” to confirm').fill('orders');
    await dialog.getByRole('button', { name: 'Delete the dataset' }).click();
    await expect(page.getByRole('heading', { name: 'Datasets', exact: true })).toBeVisible();
    await page.getByRole('button', { name: 'Recently deleted' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Restore' }).first().click();
    await expect(page.getByText('orders is restored')).toBeVisible();
  });

  await test.step('signing out ends the session', async () => {
    await page.keyboard.press('Escape');
    await page.getByRole('button', { name: 'Account' }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
    await page.goto('/data');
    await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
  });
});
