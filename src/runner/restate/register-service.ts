import { SyncError } from '../../contract/index.ts'

/** What Restate knows of a served worker. */
export interface Registration {
  readonly deployment: string
  readonly services: readonly string[]
}

const REGISTER_TIMEOUT_MS = 30_000

/**
 * Tells Restate where a worker is served; it asks there at once what is offered. Told again of the same place it looks anew
 * and replaces what it knew: a worker that is started again needs nothing else.
 */
export async function registerService(admin: string, serviceUrl: string): Promise<Registration> {
  const { id, services } = await callAdmin(admin, '/deployments', { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify({ uri: serviceUrl, force: true }) }) as { id: string; services: Array<{ name: string }> }
  return { deployment: id, services: services.map(({ name }) => name) }
}

async function callAdmin(admin: string, path: string, request: RequestInit): Promise<unknown> {
  let answer: Response
  let text: string
  try {
    answer = await fetch(new URL(path, admin), { ...request, signal: AbortSignal.timeout(REGISTER_TIMEOUT_MS) })
    text = await answer.text()
  } catch (error) {
    throw new SyncError('RESTATE_UNAVAILABLE', `Nobody answers at ${admin}, where Restate registers services.`, { cause: error })
  }
  if (answer.ok) return JSON.parse(text)
  throw new SyncError('RESTATE_REFUSED', `Restate at ${admin} refused (${answer.status}): ${extractMessage(text)}`)
}

function extractMessage(text: string): string {
  try {
    return String((JSON.parse(text) as { message: unknown }).message)
  } catch {
    return text.slice(0, 200)
  }
}
