import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { Project } from './project.ts'

const PAUSE_S = 600

/** Two syncs of one pacer and one without, at a vendor that announces a pause with its first refusal. */
export function describePauses(environment: () => Promise<Record<string, string>>): void {
  test('XD1 no command of any process sends requests during a pause, and each reports its end', async () => {
    const { project, vendor, env } = await openPauseFixture(environment)
    vendor.headers = { 'retry-after': String(PAUSE_S) }
    const earliest = Date.now() + (PAUSE_S - 5) * 1_000
    // Two processes at the same time: the second may have sent its request before the first was refused.
    const [first, second] = await Promise.all([
      project.run('run', 'one', '--json', env),
      project.run('run', 'two', '--json', env),
    ])
    const asked = vendor.requests
    expect(asked).toBeLessThanOrEqual(2)
    for (const answer of [first, second]) {
      expect(answer.code).toBe(1)
      const {
        syncs: [result],
      } = JSON.parse(answer.stdout.trim().split('\n').at(-1)!) as {
        syncs: [{ error: { code: string; message: string }; retry_at: string }]
      }
      expect(result.error).toMatchObject({
        code: 'RATE_LIMITED',
        message: expect.stringMatching(/until \d{4}-\d\d-\d\dT[\d:]+Z \(in (?:9m \d+s|10m)\)/),
      })
      expect(Date.parse(result.retry_at)).toBeGreaterThan(earliest)
    }
    vendor.headers = null
    for (const args of [
      ['run'],
      ['run', 'unpaced'],
      ['preview', 'one'],
      ['preview', 'unpaced', '--from-start'],
      ['check', 'worker.mjs'],
    ]) {
      const answer = await project.run(...args, env)
      expect({ args, code: answer.code }).toEqual({ args, code: 1 })
      expect(`${answer.stdout}${answer.stderr}`).toMatch(/asked for a pause until .*Nothing was sent/)
    }
    project.write('tidemark.yaml', `name: shop\nconnector: odata\nconfig: { url: "${vendor.url}" }\n`)
    const discovered = await project.run('discover', '--file', 'tidemark.yaml', env)
    expect(discovered).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/asked for a pause until .*Nothing was sent/),
    })
    const whyNot = await project.run('why-not', 'things', 'nobody', '--json', env)
    expect(JSON.parse(whyNot.stdout)).toMatchObject({
      source: { kind: 'unasked', reason: expect.stringMatching(/asked for a pause until/) },
    })
    expect(vendor.requests).toBe(asked)
    const status = await project.run('status', '--json', env)
    expect(JSON.parse(status.stdout)).toMatchObject({
      pauses: [{ worker: 'shop', pacer: 'api', origin: vendor.url }],
      syncs: [{ sync: 'one', health: 'WARNING', failures: 1 }, {}, {}],
    })
  })

  test('XD1 preview waits for a short pause, and a pause that it receives also applies to run', async () => {
    const { project, vendor, env } = await openPauseFixture(environment)
    vendor.headers = { 'retry-after': '1' }
    vendor.refusals = 1
    expect(await project.run('preview', 'one', env)).toMatchObject({
      code: 0,
      stderr: expect.stringMatching(/waiting 1s \(RATE_LIMITED\)/),
    })
    expect(vendor.requests).toBe(2)
    vendor.headers = { 'retry-after': String(PAUSE_S) }
    vendor.refusals = 1
    const answer = await project.run('preview', 'one', '--json', env)
    expect(answer.code).toBe(1)
    expect(Date.parse((JSON.parse(answer.stdout) as { error: { retry_at: string } }).error.retry_at)).toBeGreaterThan(
      Date.now() + 500_000,
    )
    expect(await project.run('run', 'two', env)).toMatchObject({ code: 1 })
    expect(vendor.requests).toBe(3)
  })
}

/** Every command that asks a source, each in a project of its own without a store. */
const SOURCE_COMMANDS: ReadonlyArray<readonly string[]> = [
  ['run', 'one'],
  ['preview', 'one'],
  ['check', 'worker.mjs'],
  ['discover', '--file', 'tidemark.yaml'],
  ['why-not', 'things', 'nobody'],
]

export function describeFirstPause(): void {
  test.each(SOURCE_COMMANDS.map((args) => [args.join(' '), args]))(
    'XD1 a pause announced to `%s` applies to the next command',
    async (_, args) => {
      const { project, vendor } = await openPauseFixture(async () => ({}))
      project.write('tidemark.yaml', `name: shop\nconnector: odata\nconfig: { url: "${vendor.url}" }\n`)
      vendor.headers = { 'retry-after': String(PAUSE_S) }
      await project.run(...args)
      const asked = vendor.requests
      expect(asked).toBeGreaterThan(0)
      for (const next of [
        ['run', 'one'],
        ['discover', '--file', 'tidemark.yaml'],
      ]) {
        const answer = await project.run(...next)
        expect(`${answer.stdout}${answer.stderr}`).toMatch(/asked for a pause until .*Nothing was sent/)
      }
      expect(vendor.requests).toBe(asked)
    },
  )
}

interface Vendor {
  readonly url: string
  requests: number
  /** The pause of a refusal; null for data. */
  headers: Record<string, string> | null
  refusals: number
}

async function openPauseFixture(
  environment: () => Promise<Record<string, string>>,
): Promise<{ project: Project; vendor: Vendor; env: { env: Record<string, string> } }> {
  const facts = { requests: 0, headers: null as Vendor['headers'], refusals: Infinity }
  const server = createServer((_: IncomingMessage, response: ServerResponse) => {
    facts.requests++
    if (facts.headers !== null && facts.refusals-- > 0) return void response.writeHead(429, facts.headers).end()
    response.writeHead(200, { 'content-type': 'application/json' }).end('[{"id":"a"}]')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const project = new Project()
  project.write('worker.mjs', worker(url))
  return { project, vendor: Object.assign(facts, { url }), env: { env: await environment() } }
}

function worker(url: string): string {
  return `
import { Worker } from 'tidemark'
import { createHttpClient } from 'tidemark/connector'
const client = createHttpClient({ baseUrl: '${url}' })
const read = async (_, context) => {
  const { body } = await client.get('/things', {}, context)
  return { changes: body.map((record) => ({ type: 'upsert', key: record.id, record })), hasMore: false }
}
const lookup = async (key, context) => (await client.get('/things/' + key, {}, context), null)
const worker = new Worker({ name: 'shop' })
const api = worker.pacer('api', { allowedRequests: 100, intervalMs: 1000 })
worker.database('things')
for (const sync of ['one', 'two']) worker.sync(sync, { database: 'things', mode: 'incremental', pacer: api, execute: read, lookup })
worker.sync('unpaced', { database: 'things', mode: 'incremental', execute: read })
export default worker
`
}
