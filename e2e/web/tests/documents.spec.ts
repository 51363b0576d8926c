import { createServer, type Server } from 'node:http';
import type { Browser, Page } from '@playwright/test';
import { accessible, Api, expect, type Guard, modelled, signIn, test } from './support';

// The service with a model; this file is the model.
test.use({ baseURL: modelled.origin });

const space = `papers${Date.now().toString(36)}`;
const offers = `/data/ada/${space}/offers`;

/** The text is text, whatever it contains. An emoji is one character for the service and two units for the page. */
const hostile = '<img src="https://evil.example/x.png" onerror="window.hacked=1"><script>window.hacked=1</script>';
const first = ['🔩🔩 Our prices 👩‍🏭', '', 'Bolt M6 costs 1.20 EUR, 40 in stock', 'Bolt M8 costs 1.50 EUR, 12 in stock', `Note ${hostile} costs 9.00 EUR, 1 in stock`].join('\n');
/** A page that is longer than what the console shows at once. */
const filler = (from: number) => Array.from({ length: 400 }, (_, line) => `🔧 ${from + line}: nothing is offered in this line of the list.`).join('\n');
const second = `${filler(0)}\nGear 🦷 costs 7.00 EUR, 3 in stock\nNut M6 costs 0.10 EUR, 7 in stock\n${filler(400)}`;

type Said = { model: string; messages: { content: string }[] };

/** Reads the offers of a part of the document, with a wrong price, a page that is wrong, and words that are nowhere. */
function reply({ messages }: Said): string {
  const records: unknown[] = [];
  let page = 0;
  for (const line of (messages.at(-1)?.content ?? '').split('\n')) {
    page = Number(/^=====\S* page (\d+)$/.exec(line)?.[1] ?? page);
    const [quote, item = '', price = '', stock] = /(.+) costs (\S+ EUR), (\d+) in stock/.exec(line) ?? [];
    if (quote === undefined) continue;
    const claim = (value: string | undefined, more: object = {}) => ({ value, quote, page, ...more });
    records.push({
      item: claim(item),
      price: item === 'Bolt M8' ? claim('1.80 EUR') : claim(price),
      stock: item === 'Nut M6' ? claim('70', { quote: '70 pieces in the store' }) : claim(stock, item.startsWith('Gear') ? { page: 1 } : {}),
      colour: null,
    });
  }
  return JSON.stringify({ records });
}

let server: Server;
let load = '';

/** Loads a file as somebody, and waits for the end. */
async function loaded(api: Api, dataset: string, name: string, text: string, options: object): Promise<string> {
  const content = Buffer.from(text);
  type Prepared = { sessionId: string; files: { fileId: string; uploadId: string; key: string; presignedUrls: { url: string }[] }[] };
  const { sessionId, files } = (await api.call('POST', '/file-upload/prepare', { filesToUpload: [{ filename: name, size: content.length }] })) as Prepared;
  const file = files[0];
  if (!file) throw new Error('no file was prepared');
  const sent = await fetch(file.presignedUrls[0]?.url ?? '', { method: 'PUT', body: content });
  await api.call('POST', `/file-upload/${sessionId}/files/${file.fileId}/finish`, { uploadId: file.uploadId, key: file.key, parts: [{ partNumber: 1, etag: sent.headers.get('ETag') }] });
  const { id } = (await api.call('POST', `/data/ada/${space}/${dataset}/ingestions`, { sessionId, options })) as { id: string };
  await expect.poll(async () => ((await api.call('GET', `/data/ada/${space}/${dataset}/ingestions/${id}`)) as { status: string }).status, { timeout: 60_000 }).toBe('completed');
  return id;
}

test.beforeAll(async () => {
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (some: Buffer) => (body += some.toString()));
    request.on('end', () => {
      const said = JSON.parse(body) as Said;
      const message = { role: 'assistant', content: reply(said) };
      response.setHeader('Content-Type', 'application/json');
      response.end(JSON.stringify({ id: '1', object: 'chat.completion', created: 1, model: said.model, choices: [{ index: 0, finish_reason: 'stop', message }], usage: { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 } }));
    });
  });
  await new Promise<void>((resolve) => server.listen(Number(process.env['WEB_MODEL_PORT']), '127.0.0.1', resolve));
  const ada = await Api.as('ada', modelled.origin);
  await ada.call('POST', `/ingest/new/${space}/offers`, { dataDescription: 'Offers', schemaDefinition: { item: 'what is offered', price: 'for one, in EUR', stock: 'how many', colour: 'of the item' } });
  load = await loaded(ada, 'offers', 'offers.txt', `${first}\f${second}`, { extract: 'model', types: { price: 'double', stock: 'bigint' } });
});

test.afterAll(() => {
  server.closeAllConnections();
  server.close();
});

const list = (page: Page) => page.getByRole('region', { name: 'With doubted fields' }).or(page.getByRole('region', { name: 'Without doubt' }));
const field = (page: Page, name: string) => page.getByRole('list', { name: 'Fields of the record' }).getByRole('button', { name: new RegExp(`^${name}\\b`) });
const mark = (page: Page) => page.locator('mark');

/** The quote is marked, and the part of the text that can be seen has it. */
async function shows(page: Page, quote: string, number: number): Promise<void> {
  await expect(mark(page)).toHaveText(quote);
  await expect(page.getByRole('region', { name: `Text of page ${number}` })).toBeVisible();
  await expect(mark(page)).toBeInViewport();
}

test('a record stands beside its document, and a field shows its place', async ({ page, guard }) => {
  await signIn(page, 'ada', `${offers}/loads`);
  await page.getByRole('link', { name: 'Records and their places' }).click();
  await expect(page).toHaveURL(new RegExp(`${offers}/loads/${load}$`));

  await test.step('doubted records come first, and the first doubt is shown', async () => {
    await expect(list(page)).toHaveCount(2);
    const names = list(page).getByRole('button');
    await expect(names).toHaveText([/Bolt M8.*1 field in doubt/, /Gear 🦷.*1 field in doubt/, /Nut M6.*1 field in doubt/, /Bolt M6/, /Note/]);
    await expect(names.first()).toHaveAttribute('aria-current', 'true');
    await expect(field(page, 'price')).toHaveAttribute('aria-pressed', 'true');
    await expect(field(page, 'price')).toContainText('The quote does not have the value.');
    await expect(field(page, 'price')).toContainText('1.80 EUR');
    await expect(field(page, 'colour')).toContainText('The model found nothing for this field.');
    await shows(page, 'Bolt M8 costs 1.50 EUR, 12 in stock', 1);
    await accessible(page, 'records');
  });

  await test.step('a long page is shown around the quote, after characters of two units', async () => {
    await list(page).getByRole('button', { name: /Gear/ }).click();
    await expect(page).toHaveURL(/record=/);
    await expect(field(page, 'stock')).toContainText('The quote is on another page than the model said.');
    await shows(page, 'Gear 🦷 costs 7.00 EUR, 3 in stock', 2);
    const text = page.getByRole('region', { name: 'Text of page 2' });
    await expect(text).not.toContainText('🔧 0:');
    await text.getByRole('button', { name: 'Show what comes before' }).click();
    await text.getByRole('button', { name: 'Show what comes before' }).click();
    await expect(text).toContainText('🔧 0:');
    await expect(mark(page)).toHaveText('Gear 🦷 costs 7.00 EUR, 3 in stock');
  });

  await test.step('words that are nowhere', async () => {
    await list(page).getByRole('button', { name: /Nut M6/ }).click();
    await expect(field(page, 'stock')).toContainText('Not found: 70 pieces in the store');
    await expect(mark(page)).toHaveCount(0);
    await expect(page.getByRole('status').filter({ hasText: 'The quote was not found' })).toHaveCount(1);
    await field(page, 'item').click();
    await shows(page, 'Nut M6 costs 0.10 EUR, 7 in stock', 2);
  });

  await test.step('a hostile document is text', async () => {
    await list(page).getByRole('button', { name: /Note/ }).click();
    await shows(page, `Note ${hostile} costs 9.00 EUR, 1 in stock`, 1);
    await expect(page.locator('#content').locator('img, script, iframe')).toHaveCount(0);
    expect(await page.evaluate(() => 'hacked' in window)).toBe(false);
  });

  await test.step('only doubted fields, also after a reload of the page', async () => {
    await page.getByRole('checkbox', { name: 'Only doubted fields' }).check();
    await expect(list(page).getByRole('button')).toHaveCount(3);
    await page.reload();
    await expect(page.getByRole('checkbox', { name: 'Only doubted fields' })).toBeChecked();
    await expect(list(page).getByRole('button')).toHaveCount(3);
  });

  await test.step('by keyboard alone', async () => {
    await list(page).getByRole('button').first().focus();
    await page.keyboard.press('ArrowDown');
    await expect(list(page).getByRole('button', { name: /Gear/ })).toBeFocused();
    await shows(page, 'Gear 🦷 costs 7.00 EUR, 3 in stock', 2);
    await page.keyboard.press('Tab');
    await expect(field(page, 'item')).toBeFocused();
    await expect(field(page, 'item')).toHaveAttribute('aria-pressed', 'true');
    await page.keyboard.press('ArrowDown');
    await expect(field(page, 'price')).toBeFocused();
    await expect(page.getByRole('status').filter({ hasText: 'Page 2: Gear 🦷 costs 7.00 EUR' })).toHaveCount(1);
    expect(await field(page, 'price').evaluate((element) => getComputedStyle(element).outlineStyle)).not.toBe('none');
  });

  await test.step('in a narrow window the text stands under the field', async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await field(page, 'stock').click();
    await expect(page.locator('li mark')).toBeInViewport();
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
    await accessible(page, 'records on a phone');
    await page.setViewportSize({ width: 1440, height: 900 });
  });

  await test.step('a text that cannot be loaded, and one that was not kept', async () => {
    guard.allow(/500/);
    const text = '**/records/*/text';
    await page.route(text, (route) => route.fulfill({ status: 500, json: { error_code: 'INTERNAL', message: 'The request failed in the service.', error_message: '' } }));
    await page.reload();
    await expect(page.getByRole('alert')).toContainText('The text of the document could not be loaded.');
    await expect(field(page, 'item')).toBeVisible();
    await page.unroute(text);
    await page.route(text, (route) => route.fulfill({ json: { pages: [] } }));
    await page.getByRole('button', { name: 'Try again' }).click();
    await expect(page.getByText('An earlier release loaded these documents')).toBeVisible();
    await page.unroute(text);
  });
});

test('fields are corrected, and the rows have it after the next load', async ({ page, browser, guard }) => {
  const ada = await Api.as('ada', modelled.origin);
  const rows = async () => {
    const { data } = (await ada.call('GET', `/data/ada/${space}/offers/rows`)) as { data: Record<string, unknown>[] };
    return Object.fromEntries(data.map((row) => [row['item'], [row['price'], row['stock']]]));
  };
  expect(await rows()).toMatchObject({ 'Bolt M8': [null, 12], 'Nut M6': [0.1, null] });
  await signIn(page, 'ada', `${offers}/loads/${load}`);

  await test.step('a value that does not fit is refused where it was entered', async () => {
    guard.allow(/422/);
    await page.getByRole('button', { name: 'Correct', exact: true }).click();
    const box = page.getByLabel('Value of price');
    await expect(box).toBeFocused();
    await box.fill('cheap');
    await page.keyboard.press('Enter');
    await expect(page.getByRole('alert')).toContainText('The correction was not kept.');
    await accessible(page, 'a correction that is refused');
    await box.fill('1.50');
    await page.keyboard.press('Enter');
    await expect(field(page, 'price')).toBeFocused();
    await expect(field(page, 'price')).toContainText(/corrected.*not loaded yet.*1\.5/);
  });

  await test.step('no value, a field that the model left out, and undo', async () => {
    await list(page).getByRole('button', { name: /Nut M6/ }).click();
    await page.getByRole('button', { name: 'No value', exact: true }).click();
    await expect(field(page, 'stock')).toContainText(/corrected.*No value/);
    await field(page, 'colour').click();
    await page.getByRole('button', { name: 'Correct', exact: true }).click();
    await page.getByLabel('Value of colour').fill('grey 🩶');
    await page.getByRole('button', { name: 'Save' }).click();
    await expect(field(page, 'colour')).toContainText('grey 🩶');
    await field(page, 'item').click();
    await page.getByRole('button', { name: 'No value', exact: true }).click();
    await expect(field(page, 'item')).toContainText('No value');
    await page.getByRole('button', { name: 'Undo the correction' }).click();
    await expect(field(page, 'item')).not.toContainText('corrected');
    await expect(field(page, 'item')).toContainText('Nut M6');
    await accessible(page, 'corrected records');
  });

  await test.step('a viewer sees it and changes nothing', async () => {
    await ada.call('POST', `/permissions/datasets/self/${space}/offers/shares`, { username: 'bob', role: 'viewer' });
    const bob = await somebody(browser, guard);
    await signIn(bob, 'bob', `${offers}/loads/${load}`);
    await shows(bob, 'Gear 🦷 costs 7.00 EUR, 3 in stock', 2);
    await expect(bob.getByRole('button', { name: /Correct|Load again|No value$/ })).toHaveCount(0);
    await bob.context().close();
  });

  await test.step('the documents are loaded again', async () => {
    await page.getByRole('button', { name: 'Load again with corrections' }).click();
    await expect(page).not.toHaveURL(new RegExp(load));
    await expect(page).toHaveURL(new RegExp(`${offers}/loads/[0-9a-f-]{36}$`));
    await expect(list(page).getByRole('button').first()).toContainText('Gear', { timeout: 60_000 });
    await list(page).getByRole('button', { name: /Bolt M8/ }).click();
    await expect(field(page, 'price')).toContainText('corrected');
    await expect(field(page, 'price')).not.toContainText('not loaded yet');
    expect(await rows()).toMatchObject({ 'Bolt M8': [1.5, 12], 'Nut M6': [0.1, null], 'Bolt M6': [1.2, 40] });
    expect(Object.keys(await rows())).toHaveLength(5);
  });

  await test.step('the load whose rows were replaced is not loaded again', async () => {
    guard.allow(/409/);
    await page.goto(`${offers}/loads/${load}`);
    await page.getByRole('button', { name: 'Load again with corrections' }).click();
    await expect(page.getByRole('alert')).toContainText('The documents were not loaded again.');
  });
});

test('a load without records says so', async ({ page, guard }) => {
  const ada = await Api.as('ada', modelled.origin);
  const plain = await loaded(ada, 'plain', 'plain.csv', 'id,city\n1,Graz\n', {});
  await signIn(page, 'ada', `/data/ada/${space}/plain/loads`);
  await expect(page.getByText('plain.csv')).toBeVisible();
  await expect(page.getByRole('link', { name: 'Records and their places' })).toHaveCount(0);
  await page.goto(`/data/ada/${space}/plain/loads/${plain}`);
  await expect(page.getByRole('heading', { name: 'No records' })).toBeVisible();
  await accessible(page, 'no records');
  guard.allow(/404/);
  await page.goto(`/data/ada/${space}/plain/loads/01a1eae2-0000-7000-8000-000000000001`);
  await expect(page.getByRole('alert')).toContainText('The load could not be read.');
});

/** A page of somebody else at the service with a model. */
async function somebody(browser: Browser, guard: Guard): Promise<Page> {
  const context = await browser.newContext({ baseURL: modelled.origin, viewport: { width: 1440, height: 900 } });
  await guard.watch(context);
  return context.newPage();
}
