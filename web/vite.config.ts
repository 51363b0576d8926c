import tailwindcss from '@tailwindcss/vite';
import react from '@vitejs/plugin-react';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vite';

// The service that `npm run dev` talks to.
const service = process.env['QUERN_URL'] ?? 'http://127.0.0.1:8080';

export default defineConfig({
  // Absolute, because the page is served at addresses of any depth and the policy forbids a base element.
  base: '/',
  plugins: [react(), tailwindcss()],
  resolve: { alias: { '~': fileURLToPath(new URL('./src', import.meta.url)) } },
  build: {
    manifest: true,
    // An inlined asset would be a data: address, which the policy allows for images only.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 1000,
  },
  server: {
    // The sample is a file of the service.
    fs: { allow: ['..'] },
    proxy: { '/api': service, '/console.json': service, '/.well-known': service },
  },
  test: { environment: 'happy-dom', include: ['src/**/*.test.{ts,tsx}'] },
} as Parameters<typeof defineConfig>[0]);
