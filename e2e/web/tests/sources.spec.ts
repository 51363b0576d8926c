import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from '@playwright/test';
import { accessible, Api, expect, newPerson, signIn, store, test } from './support';

const setting = (name: string) => process.env[name] ?? '';
const bucket = setting('QUERN_S3_BUCKET');
const database = new URL(setting('QUERN_TEST_DATABASE_URL'));
const own = `console-${Date.now().toString(36)}`;

/** Writes a file of another system. */
function put(path: string, content: string): void {
  const hash = createHash('sha256').update(content).digest('hex');
  const args = ['-sSf', '--noproxy', '*', '--max-time', '10', '-K', '-', '--aws-sigv4', 'aws:amz:us-east-1:s3', '-H', `x-amz-content-sha256: ${hash}`, '-X', 'PUT', '--data-binary', content];
  execFileSync('curl', [...args, `${store.origin}/${bucket}/${own}/${path}`], {
    input: `user = ${setting('QUERN_S3_ACCESS_KEY')}:${setting('QUERN_S3_SECRET_KEY')}\n`,
  });
}

function sql(statement: string): void {
  execFileSync('psql', ['-qX', '-v', 'ON_ERROR_STOP=1', database.href, '-c', statement]);
}

async function fill(page: Page, values: Record<string, string>): Promise<void> {
  for (const [label, value] of Object.entries(values)) await page.getByRole('dialog').getByLabel(label, { exact: true }).fill(value);
}

/** Makes a connection to the bucket, from the page of sources. */
async function connect(page: Page, name: string, secret = setting('QUERN_S3_SECRET_KEY')): Promise<void> {
  await fill(page, { Name: name, Endpoint: store.origin, Region: 'us-east-1', Bucket: bucket, Prefix: own, 'Access key ID': setting('QUERN_S3_ACCESS_KEY'), 'Secret access key': secret });
  const path = page.getByLabel('Put the bucket into the path');
  if (!(await path.isChecked())) await path.check();
  await page.getByRole('button', { name: 'Test and save' }).click();
}

/** A test that is run again begins with nothing, as the first time. */
async function clear(username: string): Promise<void> {
  const api = await Api.as(username);
  for (const kind of ['sources', 'connections']) {
    const { data } = (await api.call('GET', `/${kind}`)) as { data: { id: string }[] };
    for (const { id } of data) await api.call('DELETE', `/${kind}/${id}`);
  }
}

const about = (page: Page) => page.locator('#content dl');
const runs = (page: Page) => page.getByRole('region', { name: 'Runs' }).getByRole('listitem');

test('new files of a bucket are loaded, and a doubt stops the source until somebody decides', async ({ page, guard }) => {
  guard.allow(/422/);
  await clear('bob');
  put('orders/2026-11-01.csv', 'id,city\n1,Vienna\n2,Graz\n');
  put('orders/2026-11-02.csv', 'id,city\n3,Linz\n');
  put('orders/readme.txt', 'nothing');
  await signIn(page, 'bob', '/sources');
  await accessible(page, 'no sources');
  await page.getByRole('button', { name: 'Add a connection' }).click();
  await page.getByRole('button', { name: 'Test and save' }).click();
  await expect(page.getByText('Fill this in.')).toHaveCount(6);
  await accessible(page, 'new connection');
  await connect(page, `${own}-bucket`, 'wrong');
  await expect(page.getByRole('dialog').getByRole('alert')).toContainText('refused the access key');
  await connect(page, `${own}-bucket`);

  // The next step is a source, with the files that it would load.
  await expect(page.getByRole('dialog', { name: 'Add a source' })).toBeVisible();
  await expect(page.getByText('3 files match now.')).toBeVisible();
  await fill(page, { Prefix: 'orders/', Pattern: '*.csv' });
  await expect(page.getByText('2 files match now.')).toBeVisible();
  await expect(page.getByText('orders/2026-11-02.csv')).toBeVisible();
  await fill(page, { Namespace: own, Dataset: 'orders' });
  await page.getByLabel('Run', { exact: true }).selectOption('Every day');
  await page.getByLabel('Time zone').selectOption('Europe/Vienna');
  await accessible(page, 'new source');
  await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click();

  await expect(page.getByRole('heading', { level: 1, name: 'orders' })).toBeVisible();
  await expect(runs(page).first()).toContainText('Completed');
  await expect(runs(page).first()).toContainText('2 files');
  await expect(runs(page).first()).toContainText('3 rows');
  await expect(about(page)).toContainText('every day at 03:00 (Europe/Vienna)');
  await expect(about(page)).toContainText('next run');
  await accessible(page, 'source');

  // A file that was loaded before under another name is in doubt.
  put('orders/2026-11-03.csv', 'id,city\n3,Linz\n');
  await page.getByRole('button', { name: 'Run now' }).click();
  await expect(page.getByRole('alert')).toContainText('orders/2026-11-03.csv');
  await expect(runs(page)).toHaveCount(2);
  await accessible(page, 'stopped source');
  await page.getByRole('link', { name: 'See the loads of the dataset' }).click();
  await page.getByRole('button', { name: 'Cancel the load' }).click();
  await expect(page.getByText('Cancelled')).toBeVisible();
  await page.getByRole('link', { name: 'Sources', exact: true }).first().click();
  await expect(page.getByText('Stopped')).toBeVisible();
  await page.getByRole('link', { name: 'orders', exact: true }).click();
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('button', { name: 'Run now' }).click();
  await expect(runs(page)).toHaveCount(3);
  await expect(runs(page).first()).toContainText('nothing new');

  // The dataset says how fresh it is.
  await page.getByRole('link', { name: `${own}/orders` }).click();
  await expect(page.getByText('refreshed')).toBeVisible();
  await page.goBack();

  // The schedule changes, and the source can be paused and deleted.
  const more = page.getByRole('button', { name: 'More for orders' });
  await more.click();
  await page.getByRole('menuitem', { name: 'Change the schedule' }).click();
  await page.getByLabel('Run', { exact: true }).selectOption('Cron expression');
  await fill(page, { 'Cron expression': '0 99 * * *' });
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(page.getByRole('dialog').getByRole('alert')).toContainText('schedule.cron');
  await fill(page, { 'Cron expression': '*/15 6-22 * * mon-fri' });
  await page.getByRole('button', { name: 'Save' }).click();
  await expect(about(page)).toContainText('*/15 6-22 * * mon-fri (Europe/Vienna)');

  // It can use another connection, where its files are known.
  await page.getByRole('link', { name: 'Sources', exact: true }).first().click();
  await page.getByRole('button', { name: 'Add a connection' }).click();
  await connect(page, `${own}-other`);
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('button', { name: `More for ${own}-bucket` }).click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await expect(page.getByRole('dialog')).toContainText('Yours are: orders.');
  await page.getByRole('dialog').getByRole('button', { name: 'Cancel' }).click();
  await page.getByRole('link', { name: 'orders', exact: true }).click();
  await more.click();
  await page.getByRole('menuitem', { name: 'Change the connection' }).click();
  await expect(page.getByRole('dialog').getByLabel('Connection')).toContainText(`${own}-other`);
  await accessible(page, 'another connection');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await expect(about(page)).toContainText(`${own}-other`);
  await page.getByRole('button', { name: 'Run now' }).click();
  await expect(runs(page)).toHaveCount(4);
  await expect(runs(page).first()).toContainText('nothing new');
  await more.click();
  await page.getByRole('menuitem', { name: 'Pause' }).click();
  await expect(page.getByText('Paused', { exact: true })).toBeVisible();
  await expect(about(page)).not.toContainText('next run');
  await more.click();
  await page.getByRole('menuitem', { name: 'Delete' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await expect(page).toHaveURL(/\/sources$/);
  await expect(page.getByText('No sources yet')).toBeVisible();
});

test('rows of a database are loaded, and a connection is tested, rekeyed and deleted', async ({ page, browser, guard }) => {
  guard.allow(/422/);
  await clear('ada');
  await clear('bob');
  const table = `people_${Date.now().toString(36)}`;
  sql(`CREATE TABLE ${table} (id bigint PRIMARY KEY, name text NOT NULL, born date); INSERT INTO ${table} VALUES (1, 'Grace', '1906-12-09'), (2, 'Alan', NULL)`);
  try {
    await signIn(page, 'ada', '/sources');
    await page.getByRole('button', { name: 'Add a connection' }).click();
    await page.getByRole('button', { name: 'PostgreSQL' }).click();
    const password = decodeURIComponent(database.password) || 'none';
    await fill(page, { Name: `${own}-erp`, Host: database.hostname, Port: database.port, Database: database.pathname.slice(1), User: decodeURIComponent(database.username), Password: password });
    await page.getByLabel('Connect without TLS').check();
    await page.getByRole('button', { name: 'Test and save' }).click();
    await expect(page.getByRole('dialog', { name: 'Add a source' })).toBeVisible();
    await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click();
    await expect(page.getByText('Fill this in.')).toHaveCount(3);
    await fill(page, { Table: table, Namespace: own, Dataset: 'people' });
    await page.getByLabel('Each run').selectOption('Loads rows that are new or changed');
    await fill(page, { 'Column that grows': 'id', Key: 'id' });
    await accessible(page, 'new source of rows');
    await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click();
    await expect(runs(page).first()).toContainText('2 rows');
    await expect(about(page)).toContainText(`public.${table}`);
    sql(`INSERT INTO ${table} VALUES (3, 'Barbara', '1939-11-07')`);
    await page.getByRole('button', { name: 'Run now' }).click();
    await expect(runs(page)).toHaveCount(2);
    await expect(about(page)).toContainText('loaded up to 3');
    const rows = (await (await Api.as('ada')).call('GET', `/data/self/${own}/people/rows`)) as { data: unknown[] };
    expect(rows.data).toHaveLength(3);

    await page.goto('/sources');
    await page.getByRole('button', { name: `Test ${own}-erp` }).click();
    await expect(page.getByText(`${own}-erp works`)).toBeVisible();
    await accessible(page, 'sources');
    await page.setViewportSize({ width: 390, height: 844 });
    expect(await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth)).toBeLessThanOrEqual(0);
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.getByRole('button', { name: `More for ${own}-erp` }).click();
    await page.getByRole('menuitem', { name: 'New credentials' }).click();
    await fill(page, { Password: password });
    await page.getByRole('button', { name: 'Replace' }).click();
    await expect(page.getByText(`${own}-erp has new credentials`)).toBeVisible();

    // Nobody else sees any of it, until it is shared.
    const other = await newPerson(browser, guard);
    await signIn(other, 'bob', '/sources');
    await expect(other.getByText('No sources yet')).toBeVisible();
    await expect(other.getByText(own)).toHaveCount(0);
    await page.getByRole('button', { name: `More for ${own}-erp` }).click();
    await page.getByRole('menuitem', { name: 'Share' }).click();
    await expect(page.getByText('Nobody else may use it.')).toBeVisible();
    await fill(page, { 'Person or @group': 'bob' });
    await page.getByRole('dialog').getByRole('button', { name: 'Share', exact: true }).click();
    await expect(page.getByRole('dialog').getByRole('listitem')).toContainText('bob');
    await accessible(page, 'shares of a connection');
    await other.reload();
    await expect(other.getByText('shared by ada')).toBeVisible();
    await expect(other.getByRole('button', { name: `More for ${own}-erp` })).toHaveCount(0);
    await page.getByRole('button', { name: 'Remove the access of bob' }).click();
    await expect(page.getByText('Nobody else may use it.')).toBeVisible();
    await page.getByRole('dialog').getByText('Close', { exact: true }).click();
    await other.reload();
    await expect(other.getByText(own)).toHaveCount(0);

    await page.getByRole('button', { name: `More for ${own}-erp` }).click();
    await page.getByRole('menuitem', { name: 'Delete' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await expect(page.getByText(`${own}-erp is deleted`)).toBeVisible();
    await page.getByRole('link', { name: 'people', exact: true }).click();
    await page.getByRole('button', { name: 'Run now' }).click();
    await expect(page.getByRole('alert')).toContainText('The connection is deleted');
  } finally {
    sql(`DROP TABLE ${table}`);
  }
});

/** Answers at the port that the service may reach, with a certificate of its own. */
async function serve(answer: (request: IncomingMessage, answer: ServerResponse) => void) {
  const folder = mkdtempSync(join(tmpdir(), 'files-'));
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const subject = ['-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'];
  execFileSync('openssl', ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '2', '-keyout', key, '-out', cert, ...subject], { stdio: 'ignore' });
  const ca = readFileSync(cert, 'utf8');
  const server = createServer({ key: readFileSync(key), cert: ca }, answer);
  rmSync(folder, { recursive: true });
  const port = Number(setting('WEB_FILES_PORT'));
  await new Promise<void>((listening) => server.listen(port, '127.0.0.1', listening));
  const close = async () => {
    server.closeAllConnections();
    await new Promise((closed) => server.close(closed));
  };
  return { ca, origin: `https://127.0.0.1:${port}`, close };
}

/** Serves files to whoever has the token. */
async function serveFiles(token: string, files: Record<string, string>) {
  const server = await serve((request, answer) => {
    const content = files[(request.url ?? '').replace('/data/', '')];
    const status = request.headers.authorization !== `Bearer ${token}` ? 401 : content === undefined ? 404 : 200;
    answer.writeHead(status, { 'Content-Type': 'text/csv' }).end(status === 200 ? content : '');
  });
  return { ...server, base: `${server.origin}/data/` };
}

test('files behind an address are loaded, from a server with a certificate of its own', async ({ page, guard }) => {
  guard.allow(/422/);
  await clear('bob');
  const files: Record<string, string> = { 'prices.csv': 'id,price\n1,5\n2,7\n', '2026/list.csv': 'id,price\n3,9\n' };
  const server = await serveFiles('open-sesame', files);
  try {
    await signIn(page, 'bob', '/sources');
    await page.getByRole('button', { name: 'Add a connection' }).click();
    await page.getByRole('button', { name: 'HTTPS address' }).click();
    await page.getByRole('button', { name: 'Test and save' }).click();
    await expect(page.getByText('Fill this in.')).toHaveCount(2);
    await fill(page, { Name: `${own}-partner`, Address: server.base });
    await page.getByLabel('Credentials').selectOption('Token');
    await fill(page, { Token: 'wrong', 'Certificate authority': server.ca });
    await accessible(page, 'new connection to an address');
    await page.getByRole('button', { name: 'Test and save' }).click();
    await expect(page.getByRole('dialog').getByRole('alert')).toBeVisible();
    await fill(page, { Token: 'open-sesame' });
    await page.getByRole('button', { name: 'Test and save' }).click();

    await expect(page.getByRole('dialog', { name: 'Add a source' })).toBeVisible();
    await fill(page, { Files: 'prices.csv\n../secret.csv', Namespace: own, Dataset: 'prices' });
    await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click();
    await expect(page.getByRole('dialog')).toContainText('../secret.csv: ');
    await fill(page, { Files: 'prices.csv\n2026/list.csv' });
    await accessible(page, 'new source of addresses');
    await page.getByRole('dialog').getByRole('button', { name: 'Add', exact: true }).click();
    await expect(runs(page).first()).toContainText('2 files');
    await expect(runs(page).first()).toContainText('3 rows');
    await expect(about(page)).toContainText('prices.csv, 2026/list.csv');

    // Only what has changed is told, because the rows stay.
    files['prices.csv'] = 'id,price\n1,6\n';
    await page.getByRole('button', { name: 'Run now' }).click();
    await expect(runs(page)).toHaveCount(2);
    await expect(runs(page).first()).toContainText('prices.csv');
  } finally {
    await server.close();
  }
});

/** An Iceberg catalog whose tables PyIceberg writes as the test tells it. */
async function serveCatalog() {
  const python = execFileSync('../peers/install', ['pyiceberg'], { encoding: 'utf8' }).trim();
  const program = spawn(join(python, 'bin', 'python'), ['../peers/pyiceberg/catalog.py'], {
    stdio: ['pipe', 'pipe', 'inherit'],
    env: {
      ...process.env,
      NO_PROXY: '127.0.0.1',
      AWS_REQUEST_CHECKSUM_CALCULATION: 'when_required',
      WAREHOUSE: `s3://${bucket}/${own}/lake`,
      TOKEN: 'open-sesame',
      CLIENT_ID: 'reader',
      CLIENT_SECRET: 'not-told',
      S3_ENDPOINT: store.origin,
      S3_REGION: 'us-east-1',
      S3_ACCESS_KEY: setting('QUERN_S3_ACCESS_KEY'),
      S3_SECRET_KEY: setting('QUERN_S3_SECRET_KEY'),
    },
  });
  const port = await new Promise<string>((said) => program.stdout.once('data', (line) => said(String(line).trim())));
  const state = { down: false };
  const forward = async (request: IncomingMessage, answer: ServerResponse) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const body = request.method === 'POST' ? Buffer.concat(parts).toString() : undefined;
    const got = await fetch(`http://127.0.0.1:${port}${request.url}`, { method: request.method ?? 'GET', headers: { authorization: request.headers.authorization ?? '' }, ...(body !== undefined && { body }) });
    answer.writeHead(got.status, { 'Content-Type': 'application/json' }).end(await got.text());
  };
  const server = await serve((request, answer) => {
    if (state.down) answer.writeHead(503).end();
    else void forward(request, answer).catch(() => answer.writeHead(502).end());
  });
  const tell = async (command: string, body: object) => {
    const answer = await fetch(`http://127.0.0.1:${port}/do/${command}`, { method: 'POST', body: JSON.stringify(body) });
    if (!answer.ok) throw new Error(`${command}: ${await answer.text()}`);
  };
  const close = async () => {
    program.stdin.end();
    await server.close();
  };
  return { ...server, state, tell, close };
}

test('a table of a catalog is attached, and a catalog that is down is told', async ({ page, guard }) => {
  test.setTimeout(400_000);
  guard.allow(/422/);
  await clear('bob');
  const catalog = await serveCatalog();
  try {
    await catalog.tell('create', { table: 'sales.orders', columns: [['id', 'long'], ['city', 'string']] });
    await catalog.tell('append', { table: 'sales.orders', rows: [{ id: 1, city: 'Vienna' }, { id: 2, city: 'Graz' }] });
    await signIn(page, 'bob', '/sources');
    await page.getByRole('button', { name: 'Add a connection' }).click();
    await page.getByRole('button', { name: 'Iceberg catalog' }).click();
    await page.getByRole('button', { name: 'Test and save' }).click();
    await expect(page.getByText('Fill this in.')).toHaveCount(9);
    await fill(page, { 'Address of the catalog': catalog.origin, Warehouse: 'main', 'Client ID': 'reader', 'Client secret': 'wrong', 'Certificate authority': catalog.ca });
    await accessible(page, 'new connection to a catalog');
    await connect(page, `${own}-lake`);
    const problem = page.getByRole('dialog').getByRole('alert');
    await expect(problem).toContainText('The catalog refused the credentials');
    await fill(page, { 'Client secret': 'not-told' });
    catalog.state.down = true;
    await page.getByRole('button', { name: 'Test and save' }).click();
    await expect(problem).toContainText('did not answer as an Iceberg REST catalog');
    catalog.state.down = false;
    await page.getByRole('button', { name: 'Test and save' }).click();

    // The next step is a source. The service reads the table first.
    const dialog = page.getByRole('dialog', { name: 'Add a source' });
    await expect(dialog).toBeVisible();
    const add = dialog.getByRole('button', { name: 'Add', exact: true });
    await add.click();
    await expect(page.getByText('Fill this in.')).toHaveCount(3);
    await fill(page, { Table: 'sales.nothing', Namespace: own, Dataset: 'attached' });
    await add.click();
    await expect(dialog).toContainText('no such warehouse, namespace or table');
    catalog.state.down = true;
    await fill(page, { Table: 'sales.orders' });
    await add.click();
    await expect(dialog).toContainText('did not answer as an Iceberg REST catalog');
    await accessible(page, 'new source of a catalog that is down');
    catalog.state.down = false;
    await add.click();

    await expect(page.getByRole('heading', { level: 1, name: 'attached' })).toBeVisible();
    await expect(runs(page).first()).toContainText('Completed');
    await expect(runs(page).first()).toContainText('2 rows');
    await expect(about(page)).toContainText('sales.orders');
    await expect(about(page)).toContainText('The table is attached');
    const told = /each run shows its current snapshot; now \d+\./;
    await expect(about(page)).toContainText(told);
    const first = told.exec((await about(page).textContent()) ?? '')?.[0] ?? '';
    await accessible(page, 'source that attaches a table');

    // The dataset has the rows.
    await page.getByRole('link', { name: `${own}/attached` }).click();
    await expect(page.getByText('refreshed')).toBeVisible();
    await expect(page.getByText('Vienna').first()).toBeVisible();
    // What the service refuses is not offered.
    await expect(page.getByRole('link', { name: 'Add rows' })).toHaveCount(0);
    await expect(page.getByRole('button', { name: 'Declare a key' })).toHaveCount(0);
    await accessible(page, 'attached dataset');
    await page.goBack();

    // A run tries three times before it fails. The dataset stays as it was, and the next run follows the table.
    await catalog.tell('append', { table: 'sales.orders', rows: [{ id: 3, city: 'Linz' }] });
    catalog.state.down = true;
    await page.getByRole('button', { name: 'Run now' }).click();
    await expect(runs(page)).toHaveCount(2);
    await expect(runs(page).first()).toContainText('Failed', { timeout: 90_000 });
    await expect(runs(page).first()).toContainText('did not answer as an Iceberg REST catalog');
    await expect(about(page)).toContainText(first);
    await accessible(page, 'run that failed');
    catalog.state.down = false;
    await page.getByRole('button', { name: 'Run now' }).click();
    await expect(runs(page)).toHaveCount(3);
    await expect(runs(page).first()).toContainText('3 rows');
    await expect(about(page)).toContainText(told);
    await expect(about(page)).not.toContainText(first);
  } finally {
    await catalog.close();
  }
});
