import { accessible, expect, signIn, test } from './support';

test('an operator sees health and users, and sets a limit', async ({ page }) => {
  await signIn(page, 'eve', '/operation');
  await expect(page.getByRole('heading', { level: 1, name: 'Operation' })).toBeVisible();
  const health = page.getByRole('region', { name: 'Health' });
  await expect(health.getByRole('listitem').filter({ hasText: 'PostgreSQL' })).toContainText('works');
  await expect(health.getByText('Waiting work')).toBeVisible();

  const self = page.getByRole('region', { name: 'Users' }).getByRole('listitem').filter({ hasText: 'eve@quern.test' });
  await expect(self).toBeVisible();
  await self.getByRole('button', { name: 'Actions for eve' }).click();
  await expect(page.getByRole('menuitem', { name: 'Disable' })).toHaveCount(0);
  await page.getByRole('menuitem', { name: 'Show usage' }).click();
  await expect(page.getByRole('dialog', { name: 'Usage of eve today' })).toBeVisible();
  await page.getByRole('dialog').getByRole('button', { name: 'Close' }).last().click();

  const limits = page.getByRole('region', { name: 'Limits' });
  await limits.getByRole('button', { name: 'Set a limit' }).click();
  const dialog = page.getByRole('dialog', { name: 'Set a limit' });
  await dialog.getByRole('button', { name: 'Set' }).click();
  await expect(dialog.getByText('Fill this in.')).toBeVisible();
  await dialog.getByLabel('For').selectOption('the members of a group');
  await dialog.getByLabel('Group').fill('night-shift');
  await dialog.getByLabel('Of').selectOption('Model tokens');
  await dialog.getByLabel('Amount').fill('many');
  await dialog.getByRole('button', { name: 'Set' }).click();
  await expect(dialog.getByText('Write a whole number.')).toBeVisible();
  await accessible(page, 'new limit');
  await dialog.getByLabel('Amount').fill('50000');
  await dialog.getByRole('button', { name: 'Set' }).click();

  const line = limits.getByRole('listitem').filter({ hasText: '@night-shift' });
  await expect(line).toContainText('50,000 a day');
  await accessible(page, 'operation');
  await line.getByRole('button', { name: 'Remove the limit of @night-shift for Model tokens' }).click();
  await expect(line).toHaveCount(0);
});

test('somebody else has no page for operators', async ({ page, guard }) => {
  guard.allow(/403/);
  await signIn(page, 'bob', '/');
  await expect(page.getByRole('link', { name: 'Datasets' }).first()).toBeVisible();
  await expect(page.getByRole('link', { name: 'Operation' })).toHaveCount(0);
  await page.goto('/operation');
  await expect(page.getByText('Only operators of this service may do this.').first()).toBeVisible();
});
