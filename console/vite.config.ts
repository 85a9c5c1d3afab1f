import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  base: '/console/',
  plugins: [react()],
  build: {
    outDir: '../dist/console',
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
  },
  // While it is worked on: `npm run dev -w console` beside a `tidemark start`.
  server: { proxy: { '/api': 'http://127.0.0.1:4680', '/console/api': 'http://127.0.0.1:4680' } },
})
