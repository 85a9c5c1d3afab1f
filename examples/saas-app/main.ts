import { once } from 'node:events'
import { mkdirSync, rmSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { createSaasApp, type SaasApp } from './app.ts'
import { serveFetch } from './serve-fetch.ts'
import { startVendors } from './vendors.ts'

const folder = process.env['SAAS_APP_FOLDER'] ?? join(import.meta.dirname, '.tidemark')
rmSync(folder, { recursive: true, force: true })
mkdirSync(folder, { recursive: true })

let app: SaasApp | null = null
const server = serveFetch((request) => app?.fetch(request) ?? new Response('The app starts.', { status: 503 }))
server.listen(Number(process.env['PORT'] ?? 3000), '127.0.0.1')
await once(server, 'listening')
const origin = `http://localhost:${(server.address() as AddressInfo).port}`
const vendors = await startVendors((provider) => `${origin}/tidemark/connect/callback/${provider}`)
app = createSaasApp({ store: `sqlite:${join(folder, 'copy.db')}`, origin, vendors })
await app.tidemark.start()
// The accounts at the vendors change while you look.
const churn = setInterval(() => vendors.change(), 3_000)
console.log(`Open ${origin} and sign in.`)

const stop = async (): Promise<void> => {
  clearInterval(churn)
  server.closeAllConnections()
  server.close()
  await app?.tidemark.stop()
  await vendors.close()
}
process.once('SIGINT', () => void stop())
process.once('SIGTERM', () => void stop())
