import { accessible, Api, expect, newPerson, signIn, tab, test } from './support';

const space = `people${Date.now().toString(36)}`;
const csv = ['order_id,city', ...Array.from({ length: 57 }, (_, row) => `${1000 + row},${['Vienna', 'Graz', 'Linz'][row % 3]}`)].join('\n');

test('two people: sharing and revoking take effect at the next click, and an open answer is withheld', async ({ page, browser, guard }) => {
  await (await Api.as('ada')).dataset(space, 'orders', csv);
  const bob = await newPerson(browser, guard);
  await signIn(bob, 'bob', '/data?show=shared');
  const name = `${space} / orders`;
  const shown = bob.getByRole('link', { name });
  await expect(bob.getByRole('heading', { name: 'Datasets', exact: true })).toBeVisible();
  await expect(shown).toHaveCount(0);

  await signIn(page, 'ada', `/data/ada/${space}/orders`);
  await page.getByRole('button', { name: 'Share' }).click();
  const dialog = page.getByRole('dialog');
  const share = async () => {
    await dialog.getByLabel('Person or @group').fill('bob');
    await dialog.getByRole('button', { name: 'Share' }).click();
    await expect(dialog.getByRole('button', { name: 'Remove the access of bob' })).toBeVisible();
  };
  const revoke = async () => {
    await dialog.getByRole('button', { name: 'Remove the access of bob' }).click();
    await expect(dialog.getByRole('button', { name: 'Remove the access of bob' })).toHaveCount(0);
  };

  await test.step('shared: one click on the same screen shows it', async () => {
    await share();
    await bob.getByRole('button', { name: 'All', exact: true }).click();
    await expect(shown).toBeVisible();
  });

  await test.step('the other person reads it and asks about it', async () => {
    await shown.click();
    await tab(bob, 'Rows').click();
    await expect(bob.getByRole('grid')).toContainText('Vienna');
    await tab(bob, 'Columns').click();
    await expect(bob.getByRole('button', { name: /^city/ })).toBeVisible();
  });

  await test.step('revoked: rows that were read before are not shown again', async () => {
    guard.allow(/404 /);
    await revoke();
    await tab(bob, 'Rows').click();
    await expect(bob.getByRole('alert')).toContainText('it is not shared with you');
    await expect(bob.getByRole('grid')).toHaveCount(0);
    await bob.getByRole('link', { name: 'Datasets', exact: true }).first().click();
    await expect(bob.getByRole('heading', { name: 'Datasets', exact: true })).toBeVisible();
    await expect(shown).toHaveCount(0);
  });

  await test.step('shared again: an answer', async () => {
    await share();
    await bob.goto(`/?about=${encodeURIComponent(`ada/${space}`)}`);
    await expect(bob.getByText('All datasets')).toBeVisible();
    await bob.getByRole('textbox', { name: 'Your question' }).fill('How many orders are there?');
    await bob.keyboard.press('Enter');
    await expect(bob.getByText('57', { exact: true })).toBeVisible();
  });

  await test.step('revoked: the open answer is withheld when it is loaded again', async () => {
    await revoke();
    await bob.reload();
    await expect(bob.getByRole('heading', { name: 'This answer is withheld' })).toBeVisible();
    await expect(bob.getByText('57', { exact: true })).toHaveCount(0);
    await accessible(bob, 'withheld');
    await bob.getByRole('link', { name: 'Datasets', exact: true }).first().click();
    await expect(shown).toHaveCount(0);
  });
  await bob.context().close();
});
