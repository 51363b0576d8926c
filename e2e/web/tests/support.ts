import { AxeBuilder } from '@axe-core/playwright';
import { type Browser, type BrowserContext, expect, type Locator, type Page, test as base } from '@playwright/test';

export const service = new URL(process.env['QUERN_WEB_URL'] ?? 'http://127.0.0.1');
/** The service that has a language model. */
export const modelled = new URL(process.env['WEB_MODEL_URL'] ?? service.href);
export const issuer = new URL(process.env['QUERN_OIDC_ISSUER'] ?? 'http://127.0.0.1');
export const store = new URL(process.env['QUERN_S3_ENDPOINT'] ?? 'http://127.0.0.1');

/** Collects what must not happen on any page: errors, foreign requests, violations of the policy. */
export class Guard {
  readonly faults: string[] = [];
  readonly #allowed: RegExp[] = [];

  /**
   * Failures that a test causes on purpose. The browser writes an error for every answer that is not a success. Requests to other hosts and
   * violations of the policy are never allowed.
   */
  allow(pattern: RegExp): void {
    this.#allowed.push(pattern);
  }

  async watch(context: BrowserContext): Promise<void> {
    const hosts = new Set([service.host, modelled.host, issuer.host, store.host]);
    const note = (fault: string) => {
      const never = fault.startsWith('foreign: ') || fault.startsWith('console: policy: ');
      if (never || !this.#allowed.some((pattern) => pattern.test(fault))) this.faults.push(fault);
    };
    await context.addInitScript(() => {
      document.addEventListener('securitypolicyviolation', (event) => console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`));
      window.addEventListener('unhandledrejection', (event) => console.error(`unhandled: ${String(event.reason)}`));
    });
    context.on('console', (message) => {
      // Pages of the issuer are not ours.
      const place = message.location().url;
      if (message.type() === 'error' && !place.startsWith(`${issuer.origin}/`)) note(`console: ${message.text()} (${place})`);
    });
    context.on('weberror', (error) => note(`error: ${error.error().message}`));
    context.on('request', (request) => {
      const url = new URL(request.url());
      if (['http:', 'https:'].includes(url.protocol) && !hosts.has(url.host)) note(`foreign: ${request.url()}`);
    });
  }
}

export const test = base.extend<{ guard: Guard }>({
  guard: [
    async ({ context }, use) => {
      const guard = new Guard();
      // Before the first profile of a dataset there is none.
      guard.allow(/404 .*\/profile\)/);
      await guard.watch(context);
      await use(guard);
      expect(guard.faults).toEqual([]);
    },
    { auto: true },
  ],
});

export { expect };

/** Signs in at Keycloak's own page and comes back to the address that was asked for. */
export async function signIn(page: Page, username: string, path = '/data'): Promise<void> {
  await page.goto(path);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.locator('#username').fill(username);
  await page.locator('#password').fill(`${username}-pw`);
  await page.locator('#kc-login').click();
  await expect(page.locator('#content')).toBeVisible();
  expect(new URL(page.url()).pathname + new URL(page.url()).search).toBe(path);
}

/** A page of somebody else, in a browser of their own. */
export async function newPerson(browser: Browser, guard: Guard): Promise<Page> {
  const context = await browser.newContext({ baseURL: service.origin, viewport: { width: 1440, height: 900 } });
  await guard.watch(context);
  return context.newPage();
}

/** The link to a part of a dataset. */
export function tab(page: Page, name: string): Locator {
  return page.getByRole('navigation', { name: 'Parts of the dataset' }).getByRole('link', { name, exact: true });
}

/** Calls the API as somebody, for what a test needs and does not test. */
export class Api {
  readonly #token: string;
  readonly #origin: string;
  private constructor(token: string, origin: string) {
    this.#token = token;
    this.#origin = origin;
  }

  static async as(username: string, origin = service.origin): Promise<Api> {
    const body = new URLSearchParams({ grant_type: 'password', client_id: 'quern-console', username, password: `${username}-pw`, scope: 'openid profile' });
    const answer = await fetch(`${issuer.href}/protocol/openid-connect/token`, { method: 'POST', body });
    return new Api(((await answer.json()) as { access_token: string }).access_token, origin);
  }

  async call(method: string, path: string, body?: unknown, type = 'application/json', headers: Record<string, string> = {}): Promise<unknown> {
    const answer = await fetch(`${this.#origin}/api/v1${path}`, {
      method,
      headers: { Authorization: `Bearer ${this.#token}`, ...(body !== undefined && { 'Content-Type': type }), ...headers },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`);
    return text ? JSON.parse(text) : undefined;
  }

  /** A dataset with these rows, and its profile. */
  async dataset(namespace: string, name: string, csv: string): Promise<void> {
    await this.call('POST', `/ingest/new/${namespace}/${name}`, {});
    await this.call('POST', `/data/self/${namespace}/${name}/rows`, csv, 'text/csv');
    await expect.poll(() => this.call('GET', `/data/self/${namespace}/${name}/profile`).then(() => true, () => false), { timeout: 30_000 }).toBe(true);
  }
}

/** No serious violation, in both themes. */
export async function accessible(page: Page, what: string): Promise<void> {
  for (const colorScheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme, reducedMotion: 'reduce' });
    await page.waitForTimeout(50);
    const { violations } = await new AxeBuilder({ page }).analyze();
    const serious = violations.filter((one) => one.impact === 'serious' || one.impact === 'critical');
    expect(serious.map((one) => `${what} ${colorScheme}: ${one.id} ${one.nodes.map((node) => node.html.slice(0, 160)).join(' | ')}`)).toEqual([]);
  }
}
