import { expect, signIn, test } from './support';

test('what was chosen in the review of an upload survives a reload', async ({ page }) => {
  const space = `kept${Date.now().toString(36)}`;
  await signIn(page, 'ada', '/upload');
  const rows = ['id,amount,day', ...Array.from({ length: 50 }, (_, row) => `${row},${row},0${(row % 9) + 1}/0${(row % 8) + 1}/2026`)].join('\n');
  await page.locator('input[type=file]').first().setInputFiles({ name: 'days.csv', mimeType: 'text/csv', buffer: Buffer.from(rows) });
  await expect(page.getByRole('heading', { name: 'First rows' })).toBeVisible();
  await page.getByLabel('Namespace').fill(space);
  await page.getByLabel('Namespace').blur();
  await page.getByLabel('Type amount').first().selectOption('varchar');
  // Day or month first: nobody can tell from the file.
  await page.getByRole('button', { name: 'dd/mm/yyyy' }).click();
  await expect(page.getByRole('button', { name: `Load into ${space} / days` })).toBeEnabled();

  await page.reload();
  await expect(page.getByRole('heading', { name: 'First rows' })).toBeVisible();
  await expect(page.getByLabel('Namespace')).toHaveValue(space);
  await expect(page.getByLabel('Type amount').first()).toHaveValue('varchar');
  await expect(page.getByRole('heading', { name: 'Settled' })).toBeVisible();
  await expect(page.getByRole('button', { name: 'dd/mm/yyyy' })).toHaveAttribute('aria-pressed', 'true');
  await page.getByRole('button', { name: `Load into ${space} / days` }).click();
  await expect(page.getByText(`50 rows loaded into ${space} / days`)).toBeVisible();

  await test.step('and so does the load', async () => {
    await page.reload();
    await expect(page.getByText(`50 rows loaded into ${space} / days`)).toBeVisible();
    await page.getByRole('link', { name: 'Open the dataset' }).click();
    await expect(page.getByText('50 rows').first()).toBeVisible();
  });
});
