import { accessible, Api, expect, service, signIn, test } from './support';

test('a token is created, works, and is revoked', async ({ page }) => {
  await signIn(page, 'ada', '/account');
  const name = `report ${Date.now().toString(36)}`;
  await page.getByRole('button', { name: 'Create a token' }).click();
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await expect(page.getByText('Give it a name')).toBeVisible();
  await page.getByRole('textbox', { name: 'Name' }).fill(name);
  await accessible(page, 'new token');
  await page.keyboard.press('Enter');
  const value = (await page.getByTestId('token').textContent()) ?? '';
  expect(value).toMatch(/^quern_/);
  await accessible(page, 'token');

  const me = () => fetch(`${service.origin}/api/v1/user/me`, { headers: { Authorization: `Bearer ${value}` } }).then((answer) => answer.status);
  expect(await me()).toBe(200);

  // It closes only on purpose as long as nobody has the value.
  await page.keyboard.press('Escape');
  await expect(page.getByText('You have not copied it.')).toBeVisible();
  await page.getByRole('button', { name: 'Copy', exact: true }).first().click();
  expect(await page.evaluate(() => navigator.clipboard.readText())).toBe(value);
  await page.getByRole('button', { name: 'Done' }).click();
  await expect(page.getByTestId('token')).toHaveCount(0);
  expect(await page.content()).not.toContain(value);

  await accessible(page, 'account');
  await page.getByRole('button', { name: `Revoke ${name}` }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke' }).click();
  await expect(page.getByText(`${name} is revoked`)).toBeVisible();
  await expect(page.getByRole('button', { name: `Revoke ${name}` })).toHaveCount(0);
  expect(await me()).toBe(401);
});

test('a token is limited to what was chosen', async ({ page }) => {
  const ada = await Api.as('ada');
  const space = `limited${Date.now().toString(36)}`;
  await ada.call('POST', `/ingest/new/${space}/open`, {});
  await ada.call('POST', `/ingest/new/${space}/closed`, {});
  await signIn(page, 'ada', '/connect');
  await page.getByRole('button', { name: 'Create a token' }).click();
  await page.getByRole('textbox', { name: 'Name' }).fill(space);
  await page.getByText('Only some datasets').click();
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  await expect(page.getByText('Add at least one')).toBeVisible();
  await page.getByLabel('Add a namespace or a dataset').selectOption(`${space}/open`);
  await page.getByRole('button', { name: 'Create', exact: true }).click();
  const value = (await page.getByTestId('token').textContent()) ?? '';
  const read = (dataset: string) => fetch(`${service.origin}/api/v1/data/ada/${space}/${dataset}`, { headers: { Authorization: `Bearer ${value}` } }).then((answer) => answer.status);
  expect(await read('open')).toBe(200);
  expect(await read('closed')).toBe(404);
});

test('a list of tokens that fails can be read again', async ({ page, guard }) => {
  guard.allow(/503/);
  let broken = true;
  await page.route('**/api/v1/user/tokens?*', (route) =>
    broken ? route.fulfill({ status: 503, json: { error_code: 'UNAVAILABLE', message: 'The database cannot be reached.', error_message: '' } }) : route.continue(),
  );
  await signIn(page, 'ada', '/account');
  await expect(page.getByRole('alert')).toContainText('The database cannot be reached.');
  broken = false;
  await page.getByRole('button', { name: 'Try again' }).click();
  await expect(page.getByRole('alert')).toHaveCount(0);
});

test('snippets have the address of the service', async ({ page }) => {
  await signIn(page, 'ada', '/connect');
  const mcp = page.getByRole('region', { name: 'MCP' });
  await expect(mcp).toContainText(`${service.origin}/api/v1/mcp`);
  await mcp.getByRole('tab', { name: 'Claude Code' }).focus();
  await page.keyboard.press('ArrowRight');
  await expect(mcp.getByRole('tab', { name: 'VS Code' })).toHaveAttribute('aria-selected', 'true');
  await mcp.getByRole('button', { name: 'Copy: VS Code' }).click();
  const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText())) as { servers: { quern: { url: string } } };
  expect(copied.servers.quern.url).toBe(`${service.origin}/api/v1/mcp`);
  await expect(page.getByRole('region', { name: 'Command line' })).toContainText(`quern login ${service.origin}`);
  await accessible(page, 'connect');
  await page.setViewportSize({ width: 390, height: 844 });
  expect(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)).toBeLessThanOrEqual(0);
});
