import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { expect, onTestFinished, test } from 'vitest'
import { runCycle } from '../../src/worker/run-cycle.ts'
import { buildWorker } from '../../src/config/manifest/manifest.ts'
import { withEnvFile } from '../../src/config/settings.ts'
import { SyncError, type Store } from '../../src/contract/index.ts'
import { classifyError } from '../../src/engine/classify-error.ts'
import { createLog } from '../../src/platform/log.ts'
import { createSecrets } from '../../src/platform/secrets.ts'
import { guardStrayRejections } from '../../src/platform/stray-rejections.ts'
import { maskSecrets, registerSecret } from '../../src/redaction/known-secrets.ts'
import { Secret } from '../../src/redaction/secret.ts'
import { parseKeyRing } from '../../src/registry/key-ring.ts'
import type { ToolContext } from '../../src/mcp/tool-context.ts'
import { applyStateTransition } from '../../src/runner/state-transition.ts'
import { HttpError } from '../../src/server/http-error.ts'
import { refreshToken } from '../../src/sources/kit/oauth.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { parseActiveSecrets, serializeSecrets } from '../../src/webhooks/secrets.ts'
import { createSender } from '../../src/webhooks/send.ts'
import { contextOf, json, serve } from '../sources/kit/loopback.ts'

/** Each test has its own secret, unknown until registered. */
function fresh(): string {
  return `canary-${randomBytes(6).toString('hex')}`
}

// ── how a value becomes known ──

test('XF16 known are: looked-up secrets, the environment of a program, and every value wrapped in a Secret', () => {
  // Not one that is recognized by its form.
  const [looked, given, made] = [fresh().replaceAll(/\d/g, 'x'), fresh(), fresh()]
  createSecrets({ ODD: looked, GIVEN_TOKEN: given }).get('ODD')
  new Secret(`Bearer ${made}`)
  for (const value of [looked, given, made]) expect(maskSecrets(`it is ${value}.`)).toBe('it is [secret].')
})

test('XF16 known are: the values of .env that a manifest puts into its config, the keys of the registry, and the secrets of webhooks', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'tidemark-redaction-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const [inFile, inManifest, hook] = [fresh(), 'correct horse battery', fresh()]
  writeFileSync(join(folder, '.env'), `SHOP_KEY=${inFile}\nVERSION="${inManifest}"\n`)
  withEnvFile({}, folder)
  expect(maskSecrets(inFile)).toBe('[secret]')
  writeFileSync(
    join(folder, 'tidemark.yaml'),
    'connector: rest\nconfig: { base_url: "http://127.0.0.1:1/${VERSION}" }\nstreams: []\n',
  )
  await expect(buildWorker(join(folder, 'tidemark.yaml'), 'tidemark.yaml', {})).rejects.toThrow('streams')
  expect(maskSecrets(`no ${inManifest}`)).toBe('no [secret]')
  const key = randomBytes(32).toString('base64')
  parseKeyRing(`${key}, ${randomBytes(32).toString('base64')}`, 'a test')
  expect(maskSecrets(`TIDEMARK_KEY=${key}`)).toBe('TIDEMARK_KEY=[secret]')
  parseActiveSecrets(serializeSecrets([{ secret: hook, endsAt: null }]), 0)
  expect(maskSecrets(hook)).toBe('[secret]')
})

test('XF16 known are: renewed tokens, also the one that is never sent as a header', async () => {
  const [access, refresh] = [fresh(), fresh()]
  const url = await serve((_, response) => json(response, { access_token: access, refresh_token: refresh }))
  await refreshToken({
    tokenUrl: `${url}/token`,
    clientId: new Secret('id'),
    refreshToken: new Secret('seed'),
  }).credentials(contextOf({}))
  expect(maskSecrets(`${access} ${refresh}`)).toBe('[secret] [secret]')
})

// ── outputs that are masked ──

test('XF16 any error of a connector, and thrown values that are not errors', () => {
  const secret = fresh()
  registerSecret(secret)
  const kinds = [
    new Error(`bad key ${secret}`),
    new SyncError('AUTH_REJECTED', `bad key ${secret}`),
    { code: 'AUTH_REJECTED', message: `bad key ${secret}` },
    `bad key ${secret}`,
    Object.assign(new Error(`bad key ${secret}`), { name: 'RateLimitError' }),
    Object.assign(new Error(`bad key ${secret}`), { code: 'ECONNRESET' }),
  ]
  for (const kind of kinds) {
    expect(classifyError(kind).message).not.toContain(secret)
    expect(classifyError(kind).message).toContain('bad key [secret]')
  }
  const known = new SyncError('RATE_LIMITED', `wait, ${secret}`, { retryAfterMs: 7 })
  expect(classifyError(known)).toMatchObject({ code: 'RATE_LIMITED', retryAfterMs: 7, message: 'wait, [secret]' })
  const plain = new SyncError('RATE_LIMITED', 'wait')
  expect(classifyError(plain)).toBe(plain)
})

test('XF16 a log line, its fields and their names, even if the text is truncated in the middle of a secret', () => {
  const secret = fresh()
  registerSecret(secret)
  const lines: string[] = []
  const log = createLog({ level: 'debug', write: (line) => lines.push(line) })
  log.error(`says ${secret}`, { reason: secret, [secret]: 1 })
  log.error(`${'x'.repeat(1_990)}${secret}`)
  expect(lines.join('')).not.toContain(secret.slice(0, 9))
})

test('XF16 the record of a cycle, of a quarantined record, and of an operator’s action', async () => {
  const secret = fresh()
  const store = await openSqliteStore({ file: ':memory:' })
  onTestFinished(() => store.close())
  const sync = (name: string, execute: () => Promise<never>) => ({
    store,
    secrets: { API_TOKEN: secret },
    sync: { name, database: 'd', mode: 'incremental' as const, limits: { retriesMax: 0 }, execute },
  })
  const failed = await runCycle(
    sync('failing', async () => {
      throw new Error(`bad key ${secret}`)
    }),
  )
  expect(failed.error?.message).toMatch(/^bad key \[secret\] \(at doors\.test\.ts:\d+\)$/)
  await runCycle(
    sync(
      'aside',
      async () =>
        ({
          changes: [{ type: 'invalid', key: 'k', reason: `unreadable ${secret}`, raw: null }],
          hasMore: false,
          nextState: {},
        }) as never,
    ),
  )
  await applyStateTransition(
    store,
    { worker: 'worker', sync: 'aside' },
    { state: null, reason: `because of ${secret}`, owner: 'worker/aside', version: 1 },
    { clock: { now: Date.now, sleep: async () => {} }, actor: 'me', holder: 'h', isDead: () => false },
  )
  const told = JSON.stringify(await everything(store))
  expect(told).toContain('bad key [secret]')
  expect(told).toContain('unreadable [secret]')
  expect(told).toContain('because of [secret]')
  expect(told).not.toContain(secret)
})

test('XF16 an HTTP response, a tool result for an agent, and an unhandled rejection', async () => {
  const secret = fresh()
  registerSecret(secret)
  expect(new HttpError('INVALID_REQUEST', `what is ${secret}?`).body('r1')).toContain('what is [secret]?')
  expect(await agentIsTold(`There is no ${secret}.`)).toBe(
    'DATABASE_UNKNOWN: There is no [secret]. Declare the database with `worker.database(name)` first.',
  )
  const heard = new Promise<string>((resolve) => {
    const guard = guardStrayRejections(resolve)
    onTestFinished(() => guard.remove())
  })
  process.emit('unhandledRejection', new Error(`stray ${secret}`), Promise.resolve())
  expect(await heard).toBe('Error: stray [secret]')
})

test('XF16 the response of a webhook receiver, even if it is truncated', async () => {
  const secret = fresh()
  registerSecret(secret)
  const url = await serve(
    (request, response) =>
      void response.writeHead(500).end(request.url === '/long' ? `${'x '.repeat(120)}${secret}` : `you sent ${secret}`),
  )
  const send = createSender()
  onTestFinished(() => send.close())
  const answered = async (path: string): Promise<string | null> =>
    (await send({ url: url + path, allow: ['http', 'private', 'port'], headers: {}, body: '{}' })).response
  expect(await answered('/')).toBe('you sent [secret]')
  expect(await answered('/long')).not.toContain(secret.slice(0, 9))
})

async function everything(store: Store): Promise<unknown> {
  const syncs = await store.syncs()
  return [
    await store.cycles(null),
    await store.quarantineEntries(),
    await Promise.all(syncs.map((ref) => store.audit(ref))),
    await Promise.all(syncs.map((ref) => store.readCheckpoint(ref))),
  ]
}

/** The text that an agent receives when the store fails with this message. */
async function agentIsTold(words: string): Promise<string> {
  const { serveMcp } = await import('../../src/mcp/serve-mcp.ts')
  const [stdin, stdout] = [new PassThrough(), new PassThrough()]
  const ending = new AbortController()
  const failing = () => Promise.reject(new SyncError('DATABASE_UNKNOWN', words))
  const served = serveMcp({
    context: { tenant: 'default', openExistingStore: failing } as unknown as ToolContext,
    version: '0',
    allowWrites: false,
    stdin,
    stdout,
    signal: ending.signal,
  })
  onTestFinished(() => ending.abort())
  stdin.write(
    `${JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'list_databases', arguments: {} } })}\n`,
  )
  const [line] = (await once(stdout, 'data')) as [Buffer]
  ending.abort()
  await served
  return (JSON.parse(line.toString()) as { result: { content: { text: string }[] } }).result.content[0]!.text
}
