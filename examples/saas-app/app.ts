import { Hono, type Context } from 'hono'
import { getSignedCookie, setSignedCookie } from 'hono/cookie'
import { html } from 'hono/html'
import { streamSSE } from 'hono/streaming'
import { Worker } from 'tidemark'
import { createTidemark, type Tidemark } from 'tidemark/embed'
import { hubspot } from 'tidemark/sources/hubspot'
import { linear } from 'tidemark/sources/linear'
import { CLIENT, type Vendors } from './vendors.ts'

/** The customers of the app. A real app has accounts and passwords. */
const CUSTOMERS: Readonly<Record<string, string>> = { northwind: 'Northwind Traders', contoso: 'Contoso' }
const PROVIDERS: Readonly<Record<string, { title: string; database: string; field: string }>> = {
  hubspot: { title: 'HubSpot', database: 'contacts', field: 'email' },
  linear: { title: 'Linear', database: 'issues', field: 'title' },
}
const COOKIE_SECRET = 'a secret of the example'
const PREFIX = '/tidemark'

export interface SaasApp {
  readonly fetch: (request: Request) => Response | Promise<Response>
  readonly tidemark: Tidemark
}

/** Each customer is a tenant. The worker names a connection; a tenant that has it gets the sync. */
export function createSaasApp({
  store,
  origin,
  vendors,
}: {
  store: string
  origin: string
  vendors: Vendors
}): SaasApp {
  const worker = new Worker({ name: 'crm' })
  worker.track('contacts', {
    database: worker.database('contacts'),
    source: hubspot({ connection: 'hubspot', baseUrl: vendors.hubspot.url }).contacts,
    schedule: 'continuous',
  })
  worker.sync('issues', {
    database: worker.database('issues'),
    schedule: 'continuous',
    ...linear({ connection: 'linear', baseUrl: vendors.linear.url }).issues,
  })

  const tidemark = createTidemark({
    store,
    workers: [worker],
    tenants: 'all',
    prefix: PREFIX,
    connect: {
      publicUrl: `${origin}${PREFIX}`,
      appName: 'SaaS App',
      returnTo: [`${origin}/`],
      providers: {
        hubspot: { ...CLIENT, baseUrl: vendors.hubspot.url },
        linear: { ...CLIENT, baseUrl: vendors.linear.url },
      },
    },
  })

  const app = new Hono()
  app.all(`${PREFIX}/*`, (context) => tidemark.handler(context.req.raw))

  app.get('/', async (context) => {
    const customer = await findCustomer(context)
    return context.html(customer === null ? renderSignIn() : await renderHome(tidemark, customer))
  })
  app.get('/app.js', (context) => context.body(SCRIPT, 200, { 'content-type': 'text/javascript; charset=utf-8' }))

  app.post('/sign-in', async (context) => {
    const { customer } = await context.req.parseBody()
    if (typeof customer !== 'string' || !Object.hasOwn(CUSTOMERS, customer)) return context.redirect('/', 303)
    await setSignedCookie(context, 'customer', customer, COOKIE_SECRET, { httpOnly: true, sameSite: 'Lax', path: '/' })
    return context.redirect('/', 303)
  })

  app.post('/connect/:provider', async (context) => {
    const tenant = await findCustomer(context)
    const provider = context.req.param('provider')
    if (tenant === null || !Object.hasOwn(PROVIDERS, provider)) return context.notFound()
    const { url, cookie } = await tidemark.connections.createSession({ tenant, provider, returnTo: `${origin}/` })
    // The link works only in the browser that receives this cookie.
    context.header('set-cookie', cookie, { append: true })
    return context.json({ url })
  })

  app.post('/disconnect/:provider', async (context) => {
    const tenant = await findCustomer(context)
    if (tenant !== null) await tidemark.connections.remove(context.req.param('provider'), { tenant })
    return context.redirect('/', 303)
  })

  app.get('/rows', async (context) => {
    const tenant = await findCustomer(context)
    return tenant === null ? context.notFound() : context.html(await renderRows(tidemark, tenant))
  })

  app.get('/changes', async (context) => {
    const tenant = await findCustomer(context)
    if (tenant === null) return context.notFound()
    return streamSSE(context, async (stream) => {
      await new Promise<void>((resolve) => {
        const off = tidemark.on('pageCommitted', (page) => {
          if (page.tenant === tenant) void stream.writeSSE({ event: 'change', data: page.sync })
        })
        stream.onAbort(() => {
          off()
          resolve()
        })
      })
    })
  })
  return { fetch: (request) => app.fetch(request), tidemark }
}

async function findCustomer(context: Context): Promise<string | null> {
  const customer = await getSignedCookie(context, COOKIE_SECRET, 'customer')
  return typeof customer === 'string' && Object.hasOwn(CUSTOMERS, customer) ? customer : null
}

function renderSignIn() {
  return renderPage(
    'Sign in',
    html`<form method="post" action="/sign-in">
      ${Object.entries(CUSTOMERS).map(
        ([id, name]) => html`<p><button name="customer" value="${id}">Sign in as ${name}</button></p>`,
      )}
    </form>`,
  )
}

async function renderHome(tidemark: Tidemark, tenant: string) {
  const connections = await tidemark.connections.list({ tenant })
  return renderPage(
    CUSTOMERS[tenant] ?? tenant,
    html`${Object.entries(PROVIDERS).map(([provider, { title }]) => {
        const found = connections.find(({ name }) => name === provider)
        return found === undefined
          ? html`<p><button data-connect="${provider}">Connect ${title}</button></p>`
          : html`<form method="post" action="/disconnect/${provider}">
              <p>${title}: ${found.account?.label ?? ''} <button>Disconnect ${title}</button></p>
            </form>`
      })}
      <section id="rows" aria-live="polite">${await renderRows(tidemark, tenant)}</section>
      <form method="post" action="/sign-in">
        <p><button name="customer" value="">Switch customer</button></p>
      </form>
      <script src="${PREFIX}/connect/connect.js"></script>
      <script src="/app.js"></script>`,
  )
}

async function renderRows(tidemark: Tidemark, tenant: string) {
  const tables = await Promise.all(
    Object.values(PROVIDERS).map(async ({ title, database, field }) => {
      const rows: string[] = []
      for await (const { record } of tidemark.database(database, { tenant }).rows()) {
        const { properties, ...fields } = record as Record<string, unknown>
        rows.push(String((properties as Record<string, unknown> | undefined)?.[field] ?? fields[field]))
      }
      return { title, database, rows }
    }),
  )
  return html`${tables.map(
    ({ title, database, rows }) =>
      html`<h2>${rows.length} ${database} of ${title}</h2>
        <ul>
          ${rows.map((row) => html`<li>${row}</li>`)}
        </ul>`,
  )}`
}

function renderPage(title: string, content: unknown) {
  return html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title}</title>
      </head>
      <body>
        <main>
          <h1>${title}</h1>
          ${content}
        </main>
      </body>
    </html>`
}

const SCRIPT = `
for (const button of document.querySelectorAll('[data-connect]'))
  button.onclick = async () => {
    const response = await fetch('/connect/' + button.dataset.connect, { method: 'POST' })
    const { url } = await response.json()
    const { status } = await tidemarkConnect(url)
    if (status === 'connected') location.reload()
  }
const rows = document.querySelector('#rows')
new EventSource('/changes').addEventListener('change', async () => {
  rows.innerHTML = await (await fetch('/rows')).text()
})
`
