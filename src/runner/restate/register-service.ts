import { SyncError } from '../../contract/index.ts'

export interface Registration {
  readonly deployment: string
  readonly services: readonly string[]
}

const REGISTER_TIMEOUT_MS = 30_000

/**
 * Registers the address of a service with Restate, which then discovers its handlers. Registering the same address
 * again replaces the earlier registration, so a restarted worker needs nothing else.
 */
export async function registerService(admin: string, serviceUrl: string): Promise<Registration> {
  const { id, services } = (await callAdmin(admin, '/deployments', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ uri: serviceUrl, force: true }),
  })) as { id: string; services: Array<{ name: string }> }
  return { deployment: id, services: services.map(({ name }) => name) }
}

async function callAdmin(admin: string, path: string, request: RequestInit): Promise<unknown> {
  let response: Response
  let text: string
  try {
    response = await fetch(new URL(path, admin), { ...request, signal: AbortSignal.timeout(REGISTER_TIMEOUT_MS) })
    text = await response.text()
  } catch (error) {
    throw new SyncError('RESTATE_UNAVAILABLE', `The Restate admin API at ${admin} does not respond.`, { cause: error })
  }
  if (response.ok) return JSON.parse(text)
  throw new SyncError(
    'RESTATE_REFUSED',
    `Restate at ${admin} refused the registration (${response.status}): ${extractMessage(text)}`,
  )
}

function extractMessage(text: string): string {
  try {
    return String((JSON.parse(text) as { message: unknown }).message)
  } catch {
    return text.slice(0, 200)
  }
}
