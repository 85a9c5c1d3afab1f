import { HubspotSimulator, LinearSimulator, type Simulator } from '@tidemark/simulators'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { startOAuthVendor, type OAuthVendor } from './oauth-vendor.ts'

/** Two accounts at each vendor: the portals of HubSpot, and the workspaces of Linear. */
const HUBSPOT_ACCOUNTS = { '4100': 'northwind.example', '4200': 'contoso.example' }
const LINEAR_ACCOUNTS = { 'ws-north': 'Northwind', 'ws-contoso': 'Contoso' }

export const CLIENT = { clientId: 'saas-app', clientSecret: 'a secret of the example' }

export interface Vendors {
  readonly hubspot: OAuthVendor
  readonly linear: OAuthVendor
  /** Changes a record of every account. */
  change(): void
  close(): Promise<void>
}

/** HubSpot and Linear, simulated, each with OAuth by a certified server. */
export async function startVendors(redirectUri: (provider: string) => string): Promise<Vendors> {
  const ports = { clock: { now: Date.now, sleep }, random: { next: Math.random } }
  const portals = Object.fromEntries(
    Object.entries(HUBSPOT_ACCOUNTS).map(([id, name]) => {
      const portal = new HubspotSimulator(ports)
      for (let n = 1; n <= 5; n++)
        portal.create('contacts', { firstname: `Contact ${n}`, email: `contact-${n}@${name}` })
      return [id, portal]
    }),
  )
  const workspaces = Object.fromEntries(
    Object.entries(LINEAR_ACCOUNTS).map(([id, name]) => {
      const workspace = new LinearSimulator(ports)
      const team = workspace.create('team', { key: 'APP', name })
      for (let n = 1; n <= 4; n++) workspace.create('issue', { team, title: `${name} task ${n}` })
      return [id, workspace]
    }),
  )
  const hubspot = await startOAuthVendor({
    ...CLIENT,
    redirectUris: [redirectUri('hubspot')],
    accounts: HUBSPOT_ACCOUNTS,
    quirks: { authorizePath: '/oauth/authorize', tokenPath: '/oauth/v3/token' },
    api: async (request, response, account) => {
      const { pathname } = new URL(request.url ?? '/', 'http://vendor')
      if (pathname === '/account-info/v3/details')
        return account === null
          ? sendJson(response, 401, {})
          : sendJson(response, 200, { portalId: account, uiDomain: HUBSPOT_ACCOUNTS[account as '4100'] })
      return answerWith(account === null ? undefined : portals[account], request, response)
    },
  })
  const linear = await startOAuthVendor({
    ...CLIENT,
    redirectUris: [redirectUri('linear')],
    accounts: LINEAR_ACCOUNTS,
    quirks: {
      authorizePath: '/oauth/authorize',
      tokenPath: '/oauth/token',
      revokePath: '/oauth/revoke',
      scopeSeparator: ',',
      // Linear answers 201 to a token request, and so does this one.
      rewriteTokens: (tokens) => ({ status: 201, body: JSON.stringify(tokens) }),
    },
    api: async (request, response, account) => {
      const body = await readText(request)
      if (account !== null && body.includes('viewer'))
        return sendJson(response, 200, {
          data: {
            viewer: {
              id: `user-${account}`,
              organization: { id: account, name: LINEAR_ACCOUNTS[account as 'ws-north'] },
            },
          },
        })
      return answerWith(account === null ? undefined : workspaces[account], request, response, body)
    },
  })
  let changes = 0
  return {
    hubspot,
    linear,
    change() {
      changes++
      for (const portal of Object.values(portals))
        portal.create('contacts', { firstname: `New contact ${changes}`, email: `new-${changes}@live.example` })
      for (const workspace of Object.values(workspaces)) {
        const [issue] = workspace.records.current('issue')
        if (issue !== undefined) workspace.update('issue', issue.id, { title: `Changed ${changes} times` })
      }
    },
    async close() {
      await Promise.all([hubspot.close(), linear.close()])
    },
  }
}

/** Passes a request to the simulator of the account. */
async function answerWith(
  simulator: Simulator | undefined,
  request: IncomingMessage,
  response: ServerResponse,
  body?: string,
): Promise<void> {
  if (simulator === undefined) return sendJson(response, 401, { message: 'The token is invalid.' })
  const text = body ?? (await readText(request))
  const { method = 'GET' } = request
  const answer = await simulator.handle(
    new Request(`http://${request.headers.host ?? 'vendor'}${request.url ?? '/'}`, {
      method,
      headers: request.headers as Record<string, string>,
      ...(method !== 'GET' && method !== 'HEAD' && { body: text }),
    }),
  )
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  response.end(Buffer.from(await answer.arrayBuffer()))
}

function sendJson(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body))
}

async function readText(request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString('utf8')
}

function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, ms)
    signal?.addEventListener('abort', () => {
      clearTimeout(timer)
      reject(signal.reason as Error)
    })
  })
}
