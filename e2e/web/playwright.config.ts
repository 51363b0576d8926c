import { defineConfig } from '@playwright/test';

// `run` starts the service and sets these.
const url = process.env['QUERN_WEB_URL'];
if (!url) throw new Error('QUERN_WEB_URL is not set: run e2e/web/run');

export default defineConfig({
  testDir: 'tests',
  fullyParallel: false,
  workers: 1,
  // As for other black-box tests: what fails is run once more, and is reported as flaky if it passes then.
  retries: 1,
  timeout: 180_000,
  expect: { timeout: 20_000 },
  reporter: [['list']],
  use: {
    baseURL: url,
    viewport: { width: 1440, height: 900 },
    launchOptions: { executablePath: process.env['CHROMIUM'] ?? '/usr/bin/chromium' },
    trace: 'retain-on-failure',
    permissions: ['clipboard-read', 'clipboard-write'],
  },
  projects: [
    { name: 'main', testMatch: 'main.spec.ts' },
    { name: 'more', testIgnore: ['main.spec.ts', 'screenshots.spec.ts', 'heavy.spec.ts'] },
    { name: 'screenshots', testMatch: 'screenshots.spec.ts' },
    // These tests take minutes and measure time, so CI does not run them. Traces are off, because recording a page slows it down.
    { name: 'heavy', testMatch: 'heavy.spec.ts', retries: 0, use: { trace: 'off' } },
  ],
});
