import { accessible, Api, expect, signIn, test } from './support';

test('a whole namespace is shared, changed and revoked, and left by the other', async ({ page, browser }) => {
  const space = `team${Date.now().toString(36)}`;
  const api = await Api.as('ada');
  await api.dataset(space, 'visits', 'city,visits\nGraz,3\nLinz,5\n');
  await api.dataset(space, 'cities', 'city\nGraz\n');
  const bob = await (await browser.newContext()).newPage();
  await signIn(bob, 'bob');
  await expect(bob.getByRole('heading', { name: `ada / ${space}` })).toHaveCount(0);

  await signIn(page, 'ada');
  await page.getByRole('link', { name: `Share the namespace ${space}` }).click();
  const dialog = page.getByRole('dialog', { name: `Share the namespace ${space}` });
  await expect(dialog.getByText('Nobody else has access to the whole namespace.')).toBeVisible();
  await accessible(page, 'sharing of a namespace');
  for (const [who, role] of [['bob', 'viewer'], ['@analysts', 'editor'], ['newcomer', 'viewer']] as const) {
    await dialog.getByLabel('Person or @group').fill(who);
    await dialog.getByLabel('Role', { exact: true }).selectOption(role);
    await dialog.getByRole('button', { name: 'Share', exact: true }).click();
    await expect(dialog.getByLabel(`Role ${who}`)).toHaveValue(role);
  }
  await expect(dialog.getByText('pending', { exact: true })).toBeVisible();
  await dialog.getByRole('button', { name: 'Remove the access of @analysts' }).click();
  await expect(dialog.getByLabel('Role @analysts')).toHaveCount(0);
  await dialog.getByLabel('Role bob').selectOption('editor');
  await expect.poll(async () => JSON.stringify(await api.call('GET', `/permissions/namespaces/self/${space}/shares`))).toContain('{"role":"editor","username":"bob"}');
  await page.keyboard.press('Escape');
  await expect(dialog).toHaveCount(0);

  await test.step('the sharing of a dataset leads to that of its namespace', async () => {
    await page.goto(`/data/ada/${space}/visits/sharing`);
    await page.getByRole('link', { name: 'by the namespace' }).first().click();
    await expect(page.getByRole('dialog', { name: `Share the namespace ${space}` })).toBeVisible();
    await expect(page.getByLabel('Role bob')).toHaveValue('editor');
  });

  await test.step('the other sees both datasets and leaves', async () => {
    await bob.reload();
    await expect(bob.getByRole('heading', { name: `ada / ${space}` })).toBeVisible();
    await expect(bob.getByRole('link', { name: `${space} / visits` })).toBeVisible();
    await expect(bob.getByRole('link', { name: `${space} / cities` })).toBeVisible();
    await accessible(bob, 'list of datasets');
    await bob.getByRole('button', { name: `Leave the namespace ${space}` }).click();
    await bob.getByRole('dialog').getByRole('button', { name: 'Leave', exact: true }).click();
    await expect(bob.getByRole('heading', { name: `ada / ${space}` })).toHaveCount(0);
  });
  await bob.context().close();
});
