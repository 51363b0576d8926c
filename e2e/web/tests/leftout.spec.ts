import { accessible, Api, expect, signIn, test } from './support';

const customers = ['id,name,region', ...Array.from({ length: 50 }, (_, row) => `${row},Customer ${row},${['north', 'south', 'west'][row % 3]}`)].join('\n');
/** Every fiftieth order has no customer. */
const orders = ['id,customer_id,status,amount', ...Array.from({ length: 200 }, (_, row) => `${row},${row % 50 === 7 ? '' : row % 50},${['late', 'sent'][row % 2]},${row}.5`)].join('\n');

test('an answer says which rows it does not count', async ({ page }) => {
  const space = `leftout${Date.now().toString(36)}`;
  const ada = await Api.as('ada');
  await ada.dataset(space, 'customers', customers);
  await ada.dataset(space, 'orders', orders);

  await signIn(page, 'ada');
  const ask = async (question: string) => {
    await page.goto(`/?about=${encodeURIComponent(`ada/${space}`)}`);
    await expect(page.getByText('All datasets')).toBeVisible();
    await page.getByRole('textbox', { name: 'Your question' }).fill(question);
    await page.keyboard.press('Enter');
    await expect(page.getByText('Answered by rules')).toBeVisible();
  };

  await ask('Total amount of orders by region of the customer');
  await expect(page.getByRole('heading', { name: 'Rows that are not counted' })).toBeVisible();
  await expect(page.getByText('4 of 200 rows of orders have no customer and are not counted; their total amount is 330.')).toHaveCount(1);
  await expect(page.getByText('What may not fit')).toHaveCount(0);
  await accessible(page, 'an answer with rows that are not counted');

  await ask('Total amount of orders by status');
  await expect(page.getByText('Rows that are not counted')).toHaveCount(0);
});
