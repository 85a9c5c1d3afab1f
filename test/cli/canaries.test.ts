import { createServer } from 'node:http'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test, vi } from 'vitest'
import { Project } from './project.ts'

/** A separate canary for each, so that a finding shows which one leaked. */
const CANARIES = {
  secret: 'canary-secret-5c1f',
  password: 'canary-password-90ab',
  state: 'canary-state-77d2',
  cursor: 'canary-cursor-3e08',
  record: 'canary-record-b6a4',
  answer: 'canary-answer-1d93',
  query: 'canary-query-e2f7',
  webhook: 'canary-webhook-48c0',
  /** A secret that the worker's own errors quote, in every form; it never looks it up. */
  quoted: 'canary-"quoted"/6b2e+é',
} as const
type Canary = keyof typeof CANARIES

/** Also as it looks in an address, in JSON, and in base64 behind a user's name. */
function formsOf(canary: string): string[] {
  return [
    canary,
    encodeURIComponent(canary),
    JSON.stringify(canary).slice(1, -1),
    Buffer.from(canary).toString('base64').slice(0, -4),
    Buffer.from(`me:${canary}`).toString('base64').slice(8, -4),
  ]
}

/** These show records: that is what they are for. */
const SHOWS_RECORDS = /^(?:preview|query|export|why|why-not|quarantine|start|mcp|types)\b/

const WORKER = `
import { readFileSync } from 'node:fs'
import { Worker } from 'tidemark'
const worker = new Worker({ name: 'office' })
const people = worker.database('people', { schema: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } } })
/** Lands, with a cursor, a state, and a record that cannot be landed. */
worker.sync('good', { database: people, mode: 'incremental', schedule: 'manual', limits: { retriesMax: 0 }, async execute(state, { secrets, fetch }) {
  await fetch(process.env.SIMULATED + '/ok?token=${CANARIES.query}', { headers: { authorization: 'Bearer ' + secrets.get('API_TOKEN') } })
  const n = (state?.n ?? 0) + 1
  return { changes: [
    { type: 'upsert', key: 'p' + n, record: { id: 'p' + n, text: '${CANARIES.record}' }, cursor: '${CANARIES.cursor}-' + n },
    { type: 'upsert', key: 'bad', record: { id: 7, text: '${CANARIES.record}' } },
    { type: 'upsert', key: '${CANARIES.record}\\0', record: { id: 'x' } },
  ], hasMore: false, nextState: { n, place: '${CANARIES.state}' } }
} })
/** Is refused, with the token in what the server says. */
worker.sync('refused', { database: people, mode: 'incremental', schedule: 'manual', limits: { retriesMax: 0 }, async execute(state, { secrets, fetch }) {
  const answer = await fetch(process.env.SIMULATED + '/refused?token=${CANARIES.query}', { headers: { authorization: 'Bearer ' + secrets.get('API_TOKEN') } })
  if (!answer.ok) throw Object.assign(new Error('the office answered ' + answer.status), { body: await answer.text(), headers: { authorization: secrets.get('API_TOKEN') }, state })
} })
/** Quotes a secret that it was given and never read, and the response of the vendor: in its error, a refused record, its log, and an unhandled rejection. After the error of a timer, its page ends with the deadline. */
const KEY = /STRIPE_KEY='(.*)'/.exec(readFileSync(new URL('.env', import.meta.url), 'utf8'))[1]
const quoting = (what) => what + ' ' + KEY + ' ?key=' + encodeURIComponent(KEY) + ' ' + JSON.stringify({ key: KEY }) + ' Basic ' + Buffer.from('me:' + KEY).toString('base64') + ' '.repeat(50)
worker.sync('quoting', { database: people, mode: 'incremental', schedule: 'manual', limits: { retriesMax: 0, deadlineMs: 2_000 }, async execute(state, { log, secrets }) {
  log.warn(quoting('says'), { [quoting('field')]: 1, reason: quoting('because') })
  if (process.env.STRAY === 'promise') Promise.reject(new Error(quoting('stray')))
  if (process.env.STRAY === 'timer') await new Promise(() => setTimeout(() => { throw new Error(quoting('thrown')) }))
  if (process.env.STRAY !== undefined) console.error(quoting('printed'))
  throw new Error(quoting('bad key') + secrets.get('API_TOKEN'), { cause: new Error(quoting('cause')) })
} })
worker.sync('vendor', { database: people, mode: 'incremental', schedule: 'manual', limits: { retriesMax: 1 }, async execute(state, { secrets, fetch }) {
  const answer = await fetch(process.env.SIMULATED + '/refused', { headers: { authorization: 'Bearer ' + secrets.get('API_TOKEN') } })
  throw Object.assign(new Error('refused: ' + (JSON.parse(await answer.text())).sent), { code: 'SOURCE_UNAVAILABLE' })
} })
worker.sync('faulty', { database: people, mode: 'incremental', schedule: 'manual', limits: { retriesMax: 0 }, execute: async () => ({
  changes: [{ type: 'upsert', key: 'q', record: new Error(quoting('unreadable')) }], hasMore: false, nextState: {},
}) })
/** Cannot be reached; its state does not move on. */
worker.sync('unreachable', { database: people, mode: 'incremental', schedule: 'manual', limits: { retriesMax: 0 }, execute: async (state, { fetch, secrets }) => fetch('http://127.0.0.1:1/?token=${CANARIES.query}', { headers: { authorization: secrets.get('API_TOKEN') } }) })
const follow = async (state) => ({ changes: [{ type: 'upsert', key: 'moved', record: { id: 'moved', text: '${CANARIES.record}' } }], hasMore: false, nextState: state ?? {} })
worker.sync('moved', { database: people, mode: 'incremental', schedule: 'manual', execute: Object.assign(follow, { range: () => follow, importState: { singer: (document) => ({ state: { place: document.place } }) } }) })
worker.sync('stuck', { database: people, mode: 'incremental', schedule: 'manual', limits: { retriesMax: 0 }, execute: async () => ({ changes: [], hasMore: true, nextState: { place: '${CANARIES.state}' } }) })
worker.sync('odd', { database: people, mode: 'incremental', schedule: 'manual', limits: { retriesMax: 0 }, execute: async () => ({ changes: [], hasMore: false, nextState: { place: '${CANARIES.state}', at: new Map([['${CANARIES.state}', 1]]) } }) })
export default worker
`

/** Quotes a secret in its error. */
const DESTINATION_WORKER = `
import { Worker } from 'tidemark'
const worker = new Worker({ name: 'office' })
worker.database('people')
worker.destination('copy', {
  kind: 'canary',
  location: 'this machine',
  supports: { modes: ['mirror'], commit: 'transaction', mergeByKey: true, addColumn: true, swap: true, types: [] },
  open: async () => { throw Object.assign(new Error('refused: ' + process.env.API_TOKEN), { code: 'AUTH_REJECTED' }) },
})
export default worker
`

test(
  'XF16 Z16 canaries in secrets, states, cursors, queries, answers and records that fail: no command, log, response or file leaks one',
  { timeout: 900_000 },
  async () => {
    const simulated = await office()
    const project = new Project()
    project.write('worker.mjs', WORKER)
    project.write('.env', `API_TOKEN=${CANARIES.secret}\nSTRIPE_KEY='${CANARIES.quoted}'\n`)
    const leaks: string[] = []
    const done = new Set<string>()
    const look = (
      where: string,
      text: string,
      canaries: readonly Canary[] = Object.keys(CANARIES) as Canary[],
    ): void => {
      for (const canary of canaries) {
        const form = formsOf(CANARIES[canary]).find((one) => text.includes(one))
        if (form !== undefined) leaks.push(`${canary} in ${where}: ${excerpt(text, form)}`)
      }
    }
    const env = { TIDEMARK_LOG: 'debug', SIMULATED: simulated }
    const hidden = (args: readonly string[]): Canary[] =>
      (Object.keys(CANARIES) as Canary[]).filter((canary) => {
        // Z37: a little of what a receiver answered is shown, without what it repeats of its address.
        if (canary === 'answer') return args[0] !== 'webhooks'
        return canary !== 'record' || !SHOWS_RECORDS.test(args.join(' '))
      })
    vi.stubEnv('SIMULATED', simulated)
    const command = async (args: readonly string[]): Promise<string> => {
      const { stdout, stderr } = await project.ask(...args, { env })
      return stdout + stderr
    }
    /** The document it answered with. */
    const say = async (...args: readonly string[]): Promise<Record<string, any>> => {
      let said = ''
      for (const json of [[], ['--json']]) {
        said = await command([...args, ...json])
        look(`tidemark ${[...args.slice(0, 2), ...json].join(' ')}`, said, hidden(args))
      }
      done.add(args.slice(0, 2).join(' '))
      done.add(args[0]!)
      const document = said.split('\n').findLast((line) => line.startsWith('{') && !line.startsWith('{"time"'))
      return JSON.parse(document ?? '{}') as Record<string, any>
    }

    // ── before there is anything, and what fails ──
    await say('doctor')
    await say('init', 'another')
    await say('advise', '--api', 'stripe')
    await say('discover', '--url', `postgres://u:${CANARIES.password}@127.0.0.1:1/x`)
    await say('status', '--store', `postgres://u:${CANARIES.password}@127.0.0.1:1/x`)
    await say('check', 'good')
    for (const sync of ['good', 'refused', 'unreachable', 'stuck', 'odd', 'quoting', 'vendor', 'faulty']) {
      await say('preview', sync)
      await say('probe', sync)
      await say('run', sync)
    }
    await say('preview', 'good', '--state', `{"n":1,"place":"${CANARIES.state}"}`)
    await say('run', CANARIES.state.slice(0, 4))

    // ── what there is ──
    for (const args of [
      ['status'],
      ['status', '--all'],
      ['query'],
      ['query', 'select 1 as one'],
      ['cycles'],
      ['cycles', 'quoting'],
      ['verify', 'people'],
      ['completion', 'bash'],
      ['docs', 'exactly', 'once'],
      ['types'],
      ['why', 'people', 'p1'],
      ['why-not', 'people', 'bad'],
      ['quarantine', 'list'],
      ['quarantine', 'show', '1'],
      ['quarantine', 'replay', '1'],
    ])
      await say(...args)
    for (const args of [
      ['show', 'people'],
      ['plan', 'people'],
      ['plan', 'people', '--widen', 'name=json'],
      ['apply', 'people'],
      ['apply', 'people', '--widen', 'name=json', '--yes', '--reason', `because of ${CANARIES.quoted}`],
    ])
      await say('schema', ...args)
    for (const args of [
      ['plan', 'people'],
      ['apply', 'people'],
      ['apply', 'people', '--yes'],
    ])
      await say('columns', ...args)
    await say('export', 'people', '--to', 'out/people.ndjson')
    for (const args of [
      ['get', 'good'],
      ['log', 'good'],
      ['diff', 'good', '1', '2'],
      ['verify'],
      ['copy', 'good', 'odd'],
      ['copy', 'good', 'odd', '--yes'],
      ['rewind', 'good', '--to', '1'],
      ['rewind', 'good', '--to', '1', '--yes'],
      ['set', 'good', `{"place":"${CANARIES.state}"}`, '--reason', 'x'],
      ['set', 'good', `{"place":"${CANARIES.state}"}`, '--reason', 'x', '--yes'],
      ['set', 'good', `{"place":"${CANARIES.state}"`, '--reason', 'x', '--yes'],
      ['reset', 'good', '--reason', 'x'],
      ['reset', 'odd', '--reason', `because of ${CANARIES.quoted}`, '--yes'],
      ['log', 'odd'],
      ['get', 'refused'],
      ['get', 'stuck'],
      ['log', 'quoting'],
    ])
      await say('state', ...args)
    for (const verb of ['pause', 'resume', 'trigger']) await say(verb, 'good')
    project.write('singer.json', JSON.stringify({ place: CANARIES.state }))
    project.write('broken.json', `{"place": "${CANARIES.state}"`)
    for (const file of ['singer.json', 'broken.json'])
      for (const more of [[], ['--yes']])
        await say('state', 'import', 'moved', '--singer', file, '--reason', 'x', ...more)
    expect(await command(['state', 'get', 'moved', '--reveal'])).toContain(CANARIES.state)
    for (const args of [[], ['--from', '2020-01-01', '--yes'], ['--from', 'yesterday']])
      await say('backfill', 'moved', ...args)

    // ── the served side ──
    const {
      webhook: { id: hook, secret },
    } = await say('webhooks', 'add', `${simulated}/hook?token=${CANARIES.webhook}`, '--allow', 'http,private,port')
    await say(
      'webhooks',
      'edit',
      hook,
      '--databases',
      'people',
      '--url',
      `${simulated}/other?token=${CANARIES.webhook}`,
      '--allow',
      'http,private,port',
    )
    for (const verb of ['list', 'test', 'pause', 'resume', 'replay', 'failed', 'rotate', 'remove'])
      await say('webhooks', verb, ...(verb === 'list' ? [] : [hook]))
    const refusing = ['--name', 'office', '--setting', `base_url=${simulated}/refused`] as const
    for (const args of [
      ['add', 'api-key', ...refusing, '--secret', `api_key=${CANARIES.quoted}`],
      ['add', 'api-key', ...refusing, '--secret', 'api_key=env:API_TOKEN'],
      ['add', 'api-key', ...refusing, '--secret', 'api_key=env:API_TOKEN', '--no-test'],
      ['list'],
      ['show', 'office'],
      ['test', 'office'],
      ['reauthorize', 'office', '--secret', 'api_key=env:STRIPE_KEY'],
      ['reauthorize', 'office', '--secret', 'api_key=env:STRIPE_KEY', '--no-test'],
      ['disable', 'office', '--reason', `because of ${CANARIES.quoted}`],
      ['enable', 'office'],
      ['revoke', 'office', '--yes', '--reason', `because of ${CANARIES.quoted}`],
      ['remove', 'office', '--yes', '--reason', `because of ${CANARIES.quoted}`],
    ])
      await say('connections', ...args)
    project.write('copy.mjs', DESTINATION_WORKER)
    for (const verb of ['run', 'list', 'pause', 'resume', 'resync', 'remove'])
      await say('destinations', verb, ...(verb === 'list' ? [] : ['copy']), '--file', 'copy.mjs')
    expect(await command(['destinations', 'list', '--file', 'copy.mjs'])).toContain('AUTH_REJECTED')
    const unreachable = `url=postgres://u:${CANARIES.password}@127.0.0.1:1/x`
    await say('destinations', 'add', 'postgres', 'other', '--set', unreachable, '--file', 'copy.mjs')
    const {
      key: { id: keyId, text: key },
    } = await say('keys', 'create', 'reader')
    await say('keys', 'list')
    await say('keys', 'rotate', '--all-tenants')
    await say('keys', 'revoke', keyId)
    await say('keys', 'retire', 'k00000000')
    await say('keys', 'new')
    await say('tenants', 'list')
    await say('tenants', 'delete', 'default')
    // In separate processes: an unhandled rejection ends the process, or would.
    for (const [stray, words] of [
      ['promise', ['stray', 'printed']],
      ['timer', ['thrown']],
    ] as const) {
      for (const verb of ['run', 'preview']) {
        const said = await project.run(verb, 'quoting', { env: { ...env, STRAY: stray } })
        look(`${verb} with a stray ${stray}`, said.stdout + said.stderr)
        for (const word of words)
          if (verb === 'run' || stray === 'timer') expect(said.stderr).toContain(`${word} [secret]`)
      }
    }
    const { stdout, stderr } = await project.run('mcp', { env, stdin: '' })
    look('mcp', stdout + stderr)
    done.add('mcp')
    await say('sim', '--seeds', '1')
    // Plays vendors of its own.
    done.add('demo')

    const service = project.start('start', '--port', '0', '--file', 'worker.mjs', { env })
    await service.says('Feed: http')
    const [url] = /http:\/\/[\d.:]+/.exec(service.stdout)!
    for (const path of [
      '/agents/v1/changes',
      '/agents/v1/people',
      `/agents/v1/people?cursor=${CANARIES.cursor}`,
      '/agents/v1/nowhere',
      '/metrics',
      '/api/syncs',
      '/api/syncs/office/good/audit',
      '/api/syncs/office/quoting/audit',
      '/console/api/overview',
      '/console/api/audit',
      '/console/api/syncs/office/quoting',
      '/healthz',
      '/openapi.json',
      `/agents/v1/people?limit=${encodeURIComponent(CANARIES.quoted)}`,
    ]) {
      for (const authorization of [`Bearer ${key}`, `Bearer ${CANARIES.secret}`, '']) {
        const answer = await fetch(url + path, authorization === '' ? {} : { headers: { authorization } })
        look(
          `${path} (${answer.status})`,
          (await answer.text()) + JSON.stringify([...answer.headers]),
          (Object.keys(CANARIES) as Canary[]).filter((canary) => canary !== 'record'),
        )
      }
    }
    for (const sync of ['refused', 'quoting', 'vendor'])
      await fetch(`${url}/api/syncs/office/${sync}/trigger`, { method: 'POST' })
    await service.says('bad key')
    await service.says('refused: ')
    service.process.kill('SIGTERM')
    await service.ended
    look('the log of start', service.stdout + service.stderr)
    expect(service.stdout + service.stderr).not.toContain(secret)
    done.add('start')

    await say('restate', 'register', 'http://127.0.0.1:1', '--admin', 'http://127.0.0.1:1')
    const up = project.start(
      'restate',
      'up',
      '--json',
      '--file',
      'worker.mjs',
      ...['--port', '--worker-port', '--ingress-port', '--admin-port'].flatMap((port) => [port, '0']),
      { env },
    )
    await up.says('"event":"registered"')
    await command(['trigger', 'quoting'])
    await up.says(/"event":"ended".*"sync":"quoting"/)
    up.process.kill('SIGTERM')
    await up.ended
    look('restate up', up.stdout + up.stderr)
    done.add('restate up')

    // ── everything on the disk: records are in the database and in what was exported, and nowhere else ──
    for (const file of readdirSync(join(project.folder, '.tidemark'), { recursive: true, encoding: 'utf8' })) {
      if (statSync(join(project.folder, '.tidemark', file)).isDirectory()) continue
      const inDatabase: Canary[] = ['secret', 'quoted', 'password', 'state', 'cursor', 'query', 'answer', 'webhook']
      // A cursor is a column of the log, and the address of a webhook is needed to call it.
      look(
        `.tidemark/${file}`,
        readFileSync(join(project.folder, '.tidemark', file), 'latin1'),
        file.includes('.db') && !file.endsWith('.key')
          ? inDatabase.filter((canary) => canary !== 'cursor' && canary !== 'webhook')
          : inDatabase,
      )
    }
    expect(leaks).toEqual([])

    // The search is able to find: what was asked to be revealed is there.
    look('revealed', await command(['state', 'get', 'good', '--reveal']))
    expect(leaks).toEqual([expect.stringContaining('state in revealed'), expect.stringContaining('cursor in revealed')])
    expect(SHOWN.filter((command) => !done.has(command))).toEqual([])
  },
)

/** Every command of the reference; a new one has to be tried here. */
const SHOWN = [
  ...readFileSync(join(import.meta.dirname, '../../docs/reference/cli.md'), 'utf8').matchAll(/^## tidemark (.+)$/gm),
].map((match) => match[1]!)

/** Repeats in its refusal what it was sent, as many do. */
async function office(): Promise<string> {
  const server = createServer((request, response) => {
    const refused = !request.url!.startsWith('/ok')
    response.writeHead(refused ? 401 : 200, { 'x-said': CANARIES.answer })
    response.end(
      refused
        ? JSON.stringify({ error: CANARIES.answer, sent: request.headers.authorization, url: request.url })
        : '{}',
    )
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`
}

function excerpt(text: string, canary: string): string {
  const at = text.indexOf(canary)
  return text.slice(Math.max(0, at - 120), at + canary.length + 20).replaceAll('\n', ' ')
}
