import { PassThrough } from 'node:stream'
import { createInterface } from 'node:readline'
import { expect, onTestFinished, test } from 'vitest'
import { SyncError } from '../../src/contract/index.ts'
import type { ToolContext } from '../../src/mcp/tool-context.ts'
import { serveMcp } from '../../src/mcp/serve-mcp.ts'
import { registerSecret } from '../../src/redaction/known-secrets.ts'
import { locateStore } from '../../src/stores/drivers.ts'

const SECRET = 'kestrel-7731-password'

/** A server whose store fails in this way, and the answer to one request of an agent. */
async function ask(method: string, params: object, failure: Error): Promise<any> {
  const fail = (): Promise<never> => Promise.reject(failure)
  const desk: ToolContext = {
    tenant: 'default',
    openExistingStore: fail,
    openOrCreateStore: fail,
    syncs: [],
    select: fail,
    syntax: locateStore('sqlite::memory:', '/').syntax,
    clock: { now: () => 0, sleep: async () => {} },
    actor: 'mcp:test',
  }
  const [stdin, stdout] = [new PassThrough(), new PassThrough()]
  const served = serveMcp({
    context: desk,
    version: '1.0.0',
    allowWrites: false,
    stdin,
    stdout,
    signal: new AbortController().signal,
  })
  onTestFinished(() => served)
  const send = (message: object): void => void stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`)
  const initialize = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'agent', version: '1' } }
  send({ id: 1, method: 'initialize', params: initialize })
  for await (const line of createInterface({ input: stdout })) {
    const { id, result } = JSON.parse(line) as { id: number; result: unknown }
    if (id === 2) {
      stdin.end()
      return result
    }
    send({ method: 'notifications/initialized' })
    send({ id: 2, method, params })
  }
  throw new Error('The server ended without an answer.')
}

test('XF16 an error that an agent is shown has no secret in it', async () => {
  registerSecret(SECRET)
  const failure = new SyncError('STORE_UNAVAILABLE', `Cannot reach postgres://tidemark:${SECRET}@store/copy.`)
  const {
    isError,
    content: [{ text }],
  } = await ask('tools/call', { name: 'status', arguments: {} }, failure)
  expect(isError).toBe(true)
  expect(text).toMatch(/^STORE_UNAVAILABLE: Cannot reach postgres:\/\/tidemark:\[secret\]@store\/copy\. /)
})

test('XF16 for an internal error an agent receives only the advice', async () => {
  const {
    content: [{ text }],
  } = await ask('tools/call', { name: 'status', arguments: {} }, new Error(`row of ${SECRET}`))
  expect(text).toMatch(/^INTERNAL: /)
  expect(text).not.toContain('row of')
})

test('write tools are offered only with --allow-writes', async () => {
  const { tools } = await ask('tools/list', {}, new Error('not asked'))
  expect(tools.map(({ annotations }: { annotations: { readOnlyHint: boolean } }) => annotations.readOnlyHint)).toEqual(
    tools.map(() => true),
  )
  expect(tools.map(({ name }: { name: string }) => name)).not.toContain('pause')
})
