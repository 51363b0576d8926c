import { accessible, Api, expect, newPerson, signIn, test } from './support';

const space = `keys${Date.now().toString(36)}`;
const stock = `/data/ada/${space}/stock`;

test('the key of a dataset is declared, kept by loads, changed and removed', async ({ page, browser, guard }) => {
  // Declaring a key that rows violate is refused.
  guard.allow(/409/);
  const ada = await Api.as('ada');
  await ada.dataset(space, 'stock', 'sku,shelf,weight\ncam,A,1.5\nnut,A,0.1\nrod,B,2.25\n');
  await ada.call('POST', `/permissions/datasets/self/${space}/stock/shares`, { username: 'bob', role: 'viewer' });
  const load = (sku: string) => ada.call('POST', `/data/self/${space}/stock/rows`, `sku,shelf,weight\n${sku},C,1.0\nx${sku},C,1.0\n`, 'text/csv') as Promise<{ indexed: number; rowsSetAside?: number }>;

  await signIn(page, 'ada', stock);
  await page.getByRole('button', { name: 'Declare a key' }).click();
  const dialog = page.getByRole('dialog', { name: 'Key of the dataset' });
  await expect(dialog.getByRole('checkbox', { name: 'weight' })).toBeDisabled();
  await expect(dialog.getByRole('button', { name: 'Declare a key' })).toBeDisabled();
  await accessible(page, 'key');

  await test.step('rows violate it', async () => {
    await dialog.getByRole('checkbox', { name: 'shelf' }).check();
    await dialog.getByRole('button', { name: 'Declare a key' }).click();
    await expect(dialog.getByRole('alert')).toContainText('shelf cannot be the key');
    await expect(dialog.getByRole('alert')).toContainText('choose other columns');
  });

  await test.step('it is declared', async () => {
    await dialog.getByRole('checkbox', { name: 'shelf' }).uncheck();
    await dialog.getByRole('checkbox', { name: 'sku' }).check();
    await dialog.getByRole('button', { name: 'Declare a key' }).click();
    await expect(dialog).toHaveCount(0);
    await expect(page.getByText('The key is declared')).toBeVisible();
    await expect(page.getByRole('button', { name: 'Key: sku' })).toBeVisible();
    await expect(page.getByTitle('Part of the key of the dataset')).toHaveCount(1);
    expect(await load('cam')).toMatchObject({ indexed: 1, rowsSetAside: 1 });
  });

  await test.step('a viewer sees it and cannot change it', async () => {
    const bob = await newPerson(browser, guard);
    await signIn(bob, 'bob', stock);
    await expect(bob.getByText('Key: sku')).toBeVisible();
    await expect(bob.getByRole('button', { name: /^Key:|Declare a key/ })).toHaveCount(0);
    await bob.context().close();
  });

  await test.step('loads are refused from now on', async () => {
    await page.reload();
    await page.getByRole('button', { name: 'Key: sku' }).click();
    await expect(dialog.getByRole('checkbox', { name: 'sku' })).toBeChecked();
    await expect(dialog.getByRole('radio', { name: 'Set it aside' })).toBeChecked();
    await dialog.getByRole('radio', { name: 'Refuse the load' }).check();
    await dialog.getByRole('button', { name: 'Save the key' }).click();
    await expect(dialog).toHaveCount(0);
    await expect(load('nut')).rejects.toThrow(/409/);
  });

  await test.step('it is removed', async () => {
    await page.getByRole('button', { name: 'Key: sku' }).click();
    await expect(dialog.getByRole('radio', { name: 'Refuse the load' })).toBeChecked();
    await dialog.getByRole('button', { name: 'Remove the key' }).click();
    await expect(dialog).toHaveCount(0);
    await expect(page.getByRole('button', { name: 'Declare a key' })).toBeVisible();
    expect(await load('nut')).toMatchObject({ indexed: 2 });
  });
});

test('a key is declared before the first rows', async ({ page }) => {
  const ada = await Api.as('ada');
  await ada.call('POST', `/ingest/new/${space}/later`, {});
  await signIn(page, 'ada', `/data/ada/${space}/later`);
  await page.getByRole('button', { name: 'Declare a key' }).click();
  const dialog = page.getByRole('dialog', { name: 'Key of the dataset' });
  await dialog.getByLabel('Columns of the key').fill('day, shelf');
  await page.keyboard.press('Enter');
  await expect(page.getByRole('button', { name: 'Key: day, shelf' })).toBeVisible();
  await expect(ada.call('POST', `/data/self/${space}/later/rows`, 'n\n1\n', 'text/csv')).rejects.toThrow(/day/);
});
