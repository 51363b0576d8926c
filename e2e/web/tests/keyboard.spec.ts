import type { Locator, Page } from '@playwright/test';
import { Api, expect, signIn, test } from './support';

const space = `keys${Date.now().toString(36)}`;
const csv = ['order_id,city,amount', ...Array.from({ length: 60 }, (_, row) => `${1000 + row},${['Vienna', 'Graz', 'Linz'][row % 3]},${row}.5`)].join('\n');

/** What has the focus, and whether one can see that. */
function stop(page: Page): Promise<{ what: string; marked: boolean }> {
  return page.evaluate(() => {
    let at = document.activeElement;
    while (at?.shadowRoot?.activeElement) at = at.shadowRoot.activeElement;
    if (!at || at === document.body) return { what: 'nothing', marked: true };
    const outlined = (style: CSSStyleDeclaration) => style.outlineStyle !== 'none' && Number.parseFloat(style.outlineWidth) > 0;
    // Some parts mark the frame around them, or the line that they lie under.
    let marked = outlined(getComputedStyle(at, '::before')) || outlined(getComputedStyle(at, '::after'));
    for (let box: Element | null = at, up = 0; box && up < 4 && !marked; box = box.parentElement, up += 1) marked = outlined(getComputedStyle(box));
    const box = at.getBoundingClientRect();
    const seen = box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight;
    return { what: `${at.tagName} ${at.getAttribute('aria-label') ?? at.textContent?.trim().slice(0, 40) ?? ''}`, marked: marked && seen };
  });
}

/** Goes to a part with Tab alone. Each stop on the way shows where the focus is, and none keeps it. */
async function tabTo(page: Page, part: Locator, key: 'Tab' | 'Shift+Tab' = 'Tab'): Promise<void> {
  await expect(part).toBeVisible();
  const stops: string[] = [];
  for (let step = 0; step < 80; step += 1) {
    if (await part.evaluate((element) => element.matches(':focus'))) return;
    await page.keyboard.press(key);
    const { what, marked } = await stop(page);
    expect(marked, `the focus can be seen on ${what}`).toBe(true);
    stops.push(what);
  }
  throw new Error(`Tab does not get to ${String(part)}: ${stops.join(' → ')}`);
}

test('the main path by keyboard alone', async ({ page }) => {
  // A mouse that moves would hide what only it can do.
  const press = (key: string) => page.keyboard.press(key);

  await test.step('sign-in', async () => {
    await page.goto('/upload');
    await expect(page.getByRole('button', { name: 'Sign in' })).toBeFocused();
    await press('Enter');
    await expect(page.locator('#username')).toBeFocused();
    await page.keyboard.type('ada');
    await press('Tab');
    await page.keyboard.type('ada-pw');
    await press('Enter');
    await expect(page.getByRole('heading', { name: 'Upload', level: 1 })).toBeVisible();
  });

  await test.step('upload: the first Tab skips the navigation', async () => {
    await press('Tab');
    await expect(page.getByRole('link', { name: 'Skip to the content' })).toBeFocused();
    await press('Enter');
    await tabTo(page, page.getByRole('button', { name: 'Choose files' }));
    const chooser = page.waitForEvent('filechooser');
    await press('Enter');
    await (await chooser).setFiles({ name: 'orders.csv', mimeType: 'text/csv', buffer: Buffer.from(csv) });
  });

  await test.step('review: a name, a type, and the load', async () => {
    await expect(page.getByRole('heading', { name: 'First rows' })).toBeVisible();
    await tabTo(page, page.getByLabel('Namespace'));
    await press('Control+a');
    await page.keyboard.type(space);
    await tabTo(page, page.getByLabel('Dataset', { exact: true }));
    await tabTo(page, page.getByLabel('Type order_id'));
    await page.keyboard.type('text');
    await expect(page.getByLabel('Type order_id')).toHaveValue('varchar');
    await expect(page.locator('[aria-busy=true]')).toHaveCount(0);
    await tabTo(page, page.getByRole('button', { name: `Load into ${space} / orders` }));
    await press('Enter');
    await expect(page.getByText(`60 rows loaded into ${space} / orders`)).toBeVisible();
  });

  await test.step('ask', async () => {
    await tabTo(page, page.getByRole('link', { name: /^Ask about/ }));
    await press('Enter');
    await expect(page.getByRole('textbox', { name: 'Your question' })).toBeFocused();
    await page.keyboard.type('How many orders by city?');
    await press('Enter');
    await expect(page.getByRole('heading', { name: 'How many orders by city?', level: 2 })).toBeVisible();
    await expect(page.getByRole('img', { name: /^Bars: / }).locator('svg')).toBeVisible();
  });

  await test.step('rate: the focus stays on the thumb', async () => {
    const up = page.getByRole('button', { name: 'Helpful', exact: true });
    await tabTo(page, up);
    await press('Enter');
    await expect(page.getByText('Thank you for the rating')).toBeVisible();
    await expect(up).toHaveAttribute('aria-pressed', 'true');
    await expect(up).toBeFocused();
  });

  await test.step('open the query', async () => {
    await tabTo(page, page.getByRole('button', { name: 'Query', exact: true }));
    await press('Enter');
    await expect(page.locator('pre')).toContainText('GROUP BY');
    await tabTo(page, page.getByRole('button', { name: 'Edit and run again' }));
    await press('Enter');
    await expect(page.getByRole('textbox', { name: 'SQL statement' })).toBeFocused();
    await press('Control+Enter');
    await expect(page.getByText(/^3 rows in /)).toBeVisible();
  });

  await test.step('share: the dialog keeps the focus and gives it back', async () => {
    await press('Control+k');
    await expect(page.getByPlaceholder('Search or type a command')).toBeFocused();
    await page.keyboard.type('orders');
    await expect(page.getByRole('option', { name: new RegExp(`${space}.*orders|orders.*${space}`) }).first()).toBeVisible();
    for (let step = 0; step < 20 && !(await page.locator('[role=option][aria-selected=true]').filter({ hasText: space }).count()); step += 1) await press('ArrowDown');
    await press('Enter');
    const button = page.getByRole('button', { name: 'Share' });
    await tabTo(page, button);
    await press('Enter');
    const dialog = page.getByRole('dialog');
    await tabTo(page, dialog.getByLabel('Person or @group'));
    await page.keyboard.type('bob');
    await press('Enter');
    await expect(dialog.getByRole('button', { name: 'Remove the access of bob' })).toBeVisible();
    for (let step = 0; step < 12; step += 1) {
      await press('Tab');
      expect(await page.evaluate(() => document.activeElement === document.body || document.activeElement?.closest('dialog') !== null)).toBe(true);
    }
    await press('Escape');
    await expect(dialog).toHaveCount(0);
    await expect(button).toBeFocused();
  });
});

test('Enter in the palette waits for the list and for what was searched', async ({ page }) => {
  const name = `early${Date.now().toString(36)}`;
  await (await Api.as('ada')).dataset('palette', name, 'id,city\n1,Vienna\n2,Graz\n');
  await page.route(/\/assets\/PaletteList-.*\.js$/, async (route) => {
    await new Promise((done) => setTimeout(done, 1500));
    await route.continue();
  });
  await signIn(page, 'ada', '/connect');
  await page.keyboard.press('Control+k');
  await expect(page.getByPlaceholder('Search or type a command')).toBeFocused();
  await page.keyboard.type(name);
  await page.keyboard.press('Enter');
  await expect(page.getByRole('heading', { name, level: 1 })).toBeVisible();
  expect(new URL(page.url()).pathname).toBe(`/data/ada/palette/${name}`);

  await page.keyboard.press('Control+k');
  await expect(page.getByRole('dialog').getByRole('option').first()).toBeVisible();
  await page.keyboard.type('account');
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(/\/account$/);

  // A dataset by the path that people see in lists.
  await page.keyboard.press('Control+k');
  await expect(page.getByRole('dialog').getByRole('option').first()).toBeVisible();
  await page.keyboard.type(`palette/${name}`);
  await expect(page.getByRole('option', { name: `palette / ${name}` })).toBeVisible();
  await page.keyboard.press('Enter');
  await expect(page).toHaveURL(new RegExp(`/data/ada/palette/${name}$`));
});
