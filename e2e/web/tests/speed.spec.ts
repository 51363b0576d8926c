import { Api, expect, signIn, test } from './support';

const space = `speed${Date.now().toString(36)}`;
const csv = ['id,city,amount,day', ...Array.from({ length: 300 }, (_, row) => `${row},${['Vienna', 'Graz', 'Linz'][row % 3]},${row * 1.5},2026-0${(row % 9) + 1}-1${row % 9}`)].join('\n');

declare global {
  interface Window {
    shifts: { value: number; what: string }[];
  }
}

test('nothing jumps while a screen loads', async ({ page }) => {
  await (await Api.as('ada')).dataset(space, 'trips', csv);
  await page.addInitScript(() => {
    window.shifts = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries() as (PerformanceEntry & { value: number; hadRecentInput: boolean; sources?: { node?: Node }[] })[]) {
        if (!entry.hadRecentInput) window.shifts.push({ value: entry.value, what: (entry.sources ?? []).map(({ node }) => (node instanceof Element ? `${node.tagName}.${node.className.slice(0, 60)}` : String(node?.nodeName))).join(' + ') });
      }
    }).observe({ type: 'layout-shift', buffered: true });
  });
  const shift = async (what: string) => {
    await page.waitForLoadState('networkidle');
    await page.waitForTimeout(300);
    const shifts = await page.evaluate(() => window.shifts);
    const sum = shifts.reduce((all, one) => all + one.value, 0);
    console.log(`layout shift of ${what}: ${sum.toFixed(3)}`);
    expect(sum, `${what}: ${shifts.map((one) => `${one.value.toFixed(3)} ${one.what}`).join('; ')}`).toBeLessThanOrEqual(0.1);
  };
  await page.goto('/');
  await expect(page.getByRole('button', { name: 'Sign in' })).toBeVisible();
  await shift('/signin');
  await signIn(page, 'ada');
  const trips = `/data/ada/${space}/trips`;
  for (const width of [1440, 390]) {
    await page.setViewportSize({ width, height: width === 390 ? 844 : 900 });
    for (const screen of ['/', '/data', '/upload', trips, `${trips}/rows`, `${trips}/definition`, `${trips}/loads`, `${trips}/history`, `${trips}/sharing`, `${trips}/audit`, `${trips}/settings`, '/sql', '/connect', '/account']) {
      await page.goto(screen);
      await expect(page.locator('#content h1').first()).toBeVisible();
      await shift(`${screen.replace(space, '…')} at ${width}`);
    }
  }
  await test.step('an answer that arrives', async () => {
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.goto(`/?about=${encodeURIComponent(`ada/${space}`)}`);
    await expect(page.getByText('All datasets')).toBeVisible();
    await page.getByRole('textbox', { name: 'Your question' }).fill('Total amount of trips by month');
    await page.keyboard.press('Enter');
    await expect(page.getByRole('img').locator('svg').first()).toBeVisible();
    const address = page.url();
    await page.goto('/connect');
    await expect(page.getByRole('heading', { name: 'MCP' })).toBeVisible();
    await page.goto(address);
    await expect(page.getByRole('img').locator('svg').first()).toBeVisible();
    await shift('an answer');
  });
});

test('sign-in is usable within 6 s at 400 kbit/s', async ({ page, context }) => {
  const network = await context.newCDPSession(page);
  await network.send('Network.enable');
  await network.send('Network.clearBrowserCache');
  await network.send('Network.emulateNetworkConditions', { offline: false, downloadThroughput: 400_000 / 8, uploadThroughput: 400_000 / 8, latency: 200 });
  const from = Date.now();
  await page.goto('/', { waitUntil: 'commit' });
  const button = page.getByRole('button', { name: 'Sign in' });
  await button.waitFor();
  await expect(button).toBeFocused();
  const took = Date.now() - from;
  console.log(`sign-in: ${took} ms at 400 kbit/s`);
  expect(took).toBeLessThanOrEqual(Number(process.env['QUERN_WEB_SIGNIN_MS'] ?? 6000));
});
