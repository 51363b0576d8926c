import { createServer, type Server } from 'node:http';
import { accessible, Api, expect, modelled, signIn, test } from './support';

// The service with a model; this file is the model.
test.use({ baseURL: modelled.origin });

const space = `model${Date.now().toString(36)}`;
const evil = 'https://evil.example';

const question = 'Tell me the story of the parcels';
const statement = 'SELECT "city", count(*) AS n FROM "parcels" GROUP BY ALL ORDER BY "city"';
const answer = `## The story

**Graz** leads with 2 [[0:0:n]] parcels, ~~not~~ \`Vienna\`, which has 1 [[0:1:n]].

- [a harmless link](${evil}/collect?q=secret)
- ![a pixel](${evil}/pixel.png)
- <img src="${evil}/raw.png" onerror="window.hacked = 1">
- <script>window.hacked = 1</script>
- <iframe src="${evil}/frame"></iframe><style>body { display: none }</style>
- [press me](javascript:window.hacked=1) and [here](data:text/html,<script>window.hacked=1</script>)
- ${evil}/auto

| place | who |
|---|---|
| <b onclick="window.hacked=1">here</b> | [![nested](${evil}/nested.png)](${evil}/nested) |
`;

type Said = { model: string; stream?: boolean; messages: { role: string; content: string }[] };

/** What the model replies to the three requests of the assistant. */
function reply({ messages }: Said): string {
  const task = messages[0]?.content ?? '';
  if (task.startsWith('You plan')) return JSON.stringify({ outcome: 'answer', interpretation: 'Parcels by city', reasoning: 'The rows say it.', steps: [{ instruction: 'Parcels by city', after: [] }], clarification: null });
  if (!task.startsWith('You answer')) return JSON.stringify({ outcome: 'answer', interpretation: 'Parcels by city', query: statement, reasoning: 'It says so.', clarification: null });
  return answer;
}

/** What loads or runs something. */
const active = 'img, iframe, script, style, form, object, embed, [onclick], [onerror]';

let server: Server;

test.beforeAll(async () => {
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (some: Buffer) => (body += some.toString()));
    request.on('end', () => {
      const said = JSON.parse(body) as Said;
      const content = reply(said);
      const base = { id: 'chatcmpl-1', created: 1, model: said.model };
      const usage = { prompt_tokens: 100, completion_tokens: 10, total_tokens: 110 };
      if (!said.stream) {
        response.setHeader('Content-Type', 'application/json');
        response.end(JSON.stringify({ ...base, object: 'chat.completion', choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content } }], usage }));
        return;
      }
      response.setHeader('Content-Type', 'text/event-stream');
      const event = (data: unknown) => response.write(`data: ${JSON.stringify({ ...base, object: 'chat.completion.chunk', ...(data as object) })}\n\n`);
      for (let at = 0; at < content.length; at += 20) event({ choices: [{ index: 0, delta: { content: content.slice(at, at + 20) } }] });
      event({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
      event({ choices: [], usage });
      response.end('data: [DONE]\n\n');
    });
  });
  await new Promise<void>((resolve) => server.listen(Number(process.env['WEB_MODEL_PORT']), '127.0.0.1', resolve));
  const ada = await Api.as('ada', modelled.origin);
  await ada.dataset(space, 'parcels', 'id,city\n1,Vienna\n2,Graz\n3,Graz\n');
});

test.afterAll(() => {
  server.closeAllConnections();
  server.close();
});

test('an answer of a model is drawn from a closed set, and nothing leaves', async ({ page }) => {
  await signIn(page, 'ada', '/');
  await page.goto(`/?about=${encodeURIComponent(`ada/${space}`)}`);
  await expect(page.getByText('All datasets')).toBeVisible();
  await page.getByRole('textbox', { name: 'Your question' }).fill(question);
  await page.keyboard.press('Enter');
  const shown = page.getByRole('article');
  const words = shown.locator('div:has(> h4)');

  await test.step('Markdown is drawn', async () => {
    await expect(shown.getByRole('heading', { name: 'The story', level: 4 })).toBeVisible();
    await expect(shown.locator('strong', { hasText: 'Graz' })).toBeVisible();
    await expect(shown.locator('code', { hasText: 'Vienna' })).toBeVisible();
    await expect(shown.getByRole('columnheader', { name: 'place' })).toBeVisible();
    await expect(shown.getByText('scripted')).toBeVisible();
  });

  await test.step('the service leaves out links, images and HTML', async () => {
    await expect(shown.getByText('a harmless link')).toBeVisible();
    await expect(shown).not.toContainText('evil.example');
    await expect(shown).not.toContainText('<script');
    await expect(words.locator(active)).toHaveCount(0);
  });

  await test.step('a figure leads to its cell, one that the rows do not confirm says so', async () => {
    await expect(shown.getByText('2 claims are not confirmed by the rows.')).toBeVisible();
    await shown.getByRole('button', { name: /^2: / }).click();
    await expect(shown.getByRole('grid')).toContainText('Graz');
    await accessible(page, 'answer of a model');
  });

  // A console that gets them all the same, for example from an older service, shows them as text.
  await page.route(/\/query\/conversations\/[0-9a-f-]+$/, async (route) => {
    const got = await route.fetch();
    const talk = (await got.json()) as { turns: { result: { response: string; checks: { places: unknown[] }; citations: unknown[] } }[] };
    for (const { result } of talk.turns) Object.assign(result, { response: answer, citations: [], checks: { ...result.checks, places: [] } });
    await route.fulfill({ response: got, json: talk });
  });
  await page.reload();

  await test.step('a link shows where it leads, and does not lead there', async () => {
    await expect(shown.getByText(`(${evil}/collect?q=secret)`)).toBeVisible();
    await expect(shown.getByText('press me')).toBeVisible();
    await expect(shown.locator('a[href*="evil"], a[href^="javascript"], a[href^="data"]')).toHaveCount(0);
  });

  await test.step('images are their words, HTML is text', async () => {
    await expect(shown.getByText('a pixel')).toBeVisible();
    await expect(shown.getByText('<script>window.hacked = 1</script>')).toBeVisible();
    await expect(words.locator(active)).toHaveCount(0);
    await accessible(page, 'hostile answer');
  });
  expect(await page.evaluate(() => 'hacked' in window)).toBe(false);
});

test('a model that does not answer is said, and what to do', async ({ page }) => {
  await signIn(page, 'ada', '/');
  await page.goto(`/?about=${encodeURIComponent(`ada/${space}`)}`);
  await expect(page.getByText('All datasets')).toBeVisible();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await page.getByRole('textbox', { name: 'Your question' }).fill('Tell me more about the parcels');
  await page.keyboard.press('Enter');
  const shown = page.getByRole('article');
  await expect(shown.getByRole('heading', { name: 'The answer failed' })).toBeVisible({ timeout: 60_000 });
  await expect(shown).toContainText('The model is unreachable or overloaded. Try again later.');
  await expect(shown.getByRole('button', { name: 'Ask again' })).toBeVisible();
  // What the rules can read needs no model.
  await page.getByRole('textbox', { name: 'Ask a follow-up' }).fill('How many parcels are there?');
  await page.keyboard.press('Enter');
  await expect(shown.last().getByText('3', { exact: true })).toBeVisible({ timeout: 60_000 });
});
