import { accessible, Api, expect, signIn, test } from './support';

test('roles, synonyms and named figures are changed, and faults and conflicts are shown', async ({ page, browser, guard }) => {
  guard.allow(/(412|422) .*\/semantics\)/);
  const space = `meaning${Date.now().toString(36)}`;
  const api = await Api.as('ada');
  await api.dataset(space, 'lines', 'product,pieces,price\ntea,2,4.5\ncoffee,5,9.5\ntea,1,4.5\n');
  await signIn(page, 'ada', `/data/ada/${space}/lines/definition`);

  await page.getByLabel('One row is').fill('order line');
  await page.getByLabel('Role of pieces').selectOption('count');
  await page.getByLabel('Unit price').fill('EUR');
  await page.getByLabel('Synonyms product').fill('article, item');
  await page.getByRole('button', { name: 'Add a figure' }).click();
  await page.getByLabel('Name', { exact: true }).last().fill('revenue');
  await page.getByLabel('Calculation').last().fill('pieces * prise');
  const save = page.getByRole('button', { name: 'Save', exact: true });
  await save.click();
  await expect(page.getByText('Nothing is saved: correct what is marked.')).toBeVisible();
  await expect(page.getByText(/has no column prise; did you mean price/)).toBeVisible();
  await expect(page.getByLabel('Calculation').last()).toHaveAttribute('aria-invalid', 'true');
  await accessible(page, 'meaning with a fault');

  await page.getByLabel('Calculation').last().fill('pieces * price');
  await save.click();
  await expect(page.getByText('The meaning is saved')).toBeVisible();
  await page.reload();
  await expect(page.getByLabel('Synonyms product')).toHaveValue('article, item');
  await expect(page.getByLabel('Unit price')).toHaveValue('EUR');

  await test.step('somebody else changes it in the meantime', async () => {
    await page.getByLabel('One row is').fill('sale');
    await api.call('PUT', `/data/self/${space}/lines/semantics`, { row: 'basket' });
    await save.click();
    await expect(page.getByText('Somebody else changed the meaning in the meantime.')).toBeVisible();
    await page.getByRole('button', { name: 'Load their version' }).click();
    await expect(page.getByLabel('One row is')).toHaveValue('basket');
    await page.getByLabel('One row is').fill('sale');
    await api.call('PUT', `/data/self/${space}/lines/semantics`, { row: 'parcel' });
    await save.click();
    await page.getByRole('button', { name: 'Save mine over it' }).click();
    await expect(page.getByText('The meaning is saved').last()).toBeVisible();
    await expect.poll(async () => ((await api.call('GET', `/data/self/${space}/lines/semantics`)) as { row: string }).row).toBe('sale');
  });

  await test.step('a viewer reads it', async () => {
    await api.call('POST', `/permissions/datasets/self/${space}/lines/shares`, { username: 'bob', role: 'viewer' });
    const bob = await (await browser.newContext()).newPage();
    await signIn(bob, 'bob', `/data/ada/${space}/lines/definition`);
    await expect(bob.getByLabel('One row is')).toHaveValue('sale');
    await expect(bob.getByLabel('One row is')).not.toBeEditable();
    await expect(bob.getByRole('button', { name: 'Add a figure' })).toHaveCount(0);
    await bob.context().close();
  });
});

type Run = { runId: string; status: string; result?: { clarification?: { options: { interpretation: string }[] } } };

test('a meaning that somebody chose becomes a synonym, and own choices are forgotten', async ({ page, browser }) => {
  const space = `chosen${Date.now().toString(36)}`;
  const api = await Api.as('ada');
  const rows = Array.from({ length: 40 }, (_, row) => `${row % 2 ? 'north' : 'south'},${1000 + row}.5,${2000 + row}.5`);
  await api.dataset(space, 'budgets', ['region,planned_cost,actual_cost', ...rows].join('\n'));
  await api.call('POST', `/permissions/namespaces/self/${space}/shares`, { username: 'bob', role: 'viewer' });
  const bobs = await Api.as('bob');
  const run = (await bobs.call('POST', '/query/ask', { username: 'ada', namespace: space, agent: 'nl2ql', query: 'What is the highest cost?' })) as Run;
  const options = run.result?.clarification?.options ?? [];
  await bobs.call('POST', `/query/runs/${run.runId}/choose`, { option: options.findIndex((one) => one.interpretation.includes('actual_cost')) + 1 });

  await signIn(page, 'ada', `/data/ada/${space}/budgets/definition`);
  await expect(page.getByText('chosen by 1 person')).toBeVisible();
  await page.getByRole('button', { name: 'Add as a synonym' }).click();
  await expect(page.getByLabel('Synonyms actual_cost')).toHaveValue('cost');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await expect(page.getByText('The meaning is saved')).toBeVisible();
  await accessible(page, 'meaning');

  const bob = await (await browser.newContext()).newPage();
  await signIn(bob, 'bob', `/data/ada/${space}/budgets/definition`);
  await bob.getByRole('button', { name: 'Forget my choices' }).click();
  await expect(bob.getByText('Your choices are forgotten')).toBeVisible();
  await expect(bob.getByText('your choice', { exact: true })).toHaveCount(0);
  await bob.context().close();
});
