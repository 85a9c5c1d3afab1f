import { createServer } from 'node:http'
import { symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { ROOT } from '../cli/package.ts'
import { Project, Running } from '../cli/project.ts'
import { Receiver } from '../webhooks/receiver.ts'

/** Commits two pages with an invalid record, is refused repeatedly, and is paced. One destination follows, one fails. */
const WORKER = `
import { SyncError, Worker } from 'tidemark'
const worker = new Worker({ name: 'office' })
const people = worker.database('people', { schema: { type: 'object', required: ['id'], properties: { id: { type: 'string' } } } })
const api = worker.pacer('api', { allowedRequests: 10, intervalMs: 1_000 })
worker.sync('good', { database: people, mode: 'incremental', schedule: '1d', pacer: api, async execute(state = 1, { fetch, log }) {
  await fetch(process.env.SIMULATED + '/people?token=heron')
  await fetch('http://127.0.0.1:1/?token=heron').catch(() => 'nobody is there')
  log.info('the connector speaks', { tenant: 'forged' })
  return { changes: [{ type: 'upsert', key: 'p' + state, record: { id: 'p' + state } }, { type: 'upsert', key: 'bad', record: { id: 7 } }], hasMore: state < 2, nextState: state + 1 }
} })
worker.sync('refused', { database: people, mode: 'incremental', schedule: '1d', limits: { retriesMax: 1 }, async execute(state, { fetch }) {
  const answer = await fetch(process.env.SIMULATED + '/down?token=heron')
  throw new SyncError('SOURCE_UNAVAILABLE', 'the office answered ' + answer.status, { retryAfterMs: 10 })
} })
const rooms = worker.database('rooms')
worker.sync('rooms', { database: rooms, schedule: '1d', execute: async () => ({ changes: [{ type: 'upsert', key: 'r1', record: { id: 'r1' } }], hasMore: false }) })
worker.verify(rooms)
let position = { live: null, loading: null }
worker.destination('copy', {
  kind: 'memory',
  location: 'this process',
  supports: { modes: ['mirror'], commit: 'transaction', mergeByKey: true, addColumn: true, swap: true, types: [] },
  open: async () => ({
    position: async () => position,
    prepare: async () => {},
    apply: async ({ changes }, { next }) => {
      position = next.after === null ? { live: next, loading: null } : { ...position, loading: next }
      if (changes.some(({ key }) => key === 'p2')) console.error('the destination has p2')
      return 'applied'
    },
    remove: async () => {},
    close: async () => {},
  }),
})
worker.destination('closed', {
  kind: 'memory',
  location: 'this process',
  supports: { modes: ['mirror'], commit: 'transaction', mergeByKey: true, addColumn: true, swap: true, types: [] },
  open: async () => { throw new SyncError('DESTINATION_REFUSED', 'The password is wrong.') },
})
export default worker
`

export interface LogLine extends Record<string, unknown> {
  readonly message: string
}

/** A real `tidemark start` that has produced everything a dashboard shows. */
export class Service {
  readonly project: Project
  readonly running: Running
  readonly url: string

  private constructor(project: Project, running: Running, url: string) {
    this.project = project
    this.running = running
    this.url = url
  }

  /** `files` are written beside the worker, where the packages of this repository can be imported. */
  static async start({
    files = {},
    env = {},
  }: { files?: Record<string, string>; env?: Record<string, string> } = {}): Promise<Service> {
    const project = new Project()
    project.write('worker.mjs', WORKER)
    symlinkSync(join(ROOT, 'node_modules'), join(project.folder, 'node_modules'))
    for (const [file, text] of Object.entries(files)) project.write(file, text)
    const receiver = await Receiver.open(
      (_message, response) => void response.writeHead(receiver.received.length === 1 ? 503 : 204).end(),
    )
    await project.json('webhooks', 'add', `${receiver.url}?token=heron`, '--allow', 'http,private,port')
    const running = new Running(project, ['start', '--port', '0'], {
      env: { TIDEMARK_LOG: 'debug', SIMULATED: await createProject(), ...env },
    })
    for (const words of [
      'Feed: http',
      '"message":"cycle ended"',
      '"message":"cycle failed"',
      '"message":"webhook message delivered"',
      '"message":"webhook message not delivered"',
      'the destination has p2',
      '"message":"destination failed"',
      '"message":"a database was verified"',
    ])
      await running.says(words)
    return new Service(project, running, /http:\/\/[\d.:]+/.exec(running.stdout)![0])
  }

  async metrics(): Promise<string> {
    // The second response includes the first request.
    for (const path of ['/metrics', '/agents/v1/people']) await (await fetch(this.url + path)).text()
    const answer = await fetch(`${this.url}/metrics`)
    expect(answer.status).toBe(200)
    return await answer.text()
  }

  /** All output, after a graceful shutdown. */
  async stop(): Promise<{ lines: LogLine[]; stderr: string }> {
    this.running.process.kill('SIGTERM')
    const { code, stderr } = await this.running.ended
    expect(code).toBe(0)
    return {
      stderr,
      lines: stderr
        .split('\n')
        .filter((line) => line.startsWith('{"time"'))
        .map((line) => JSON.parse(line) as LogLine),
    }
  }
}

async function createProject(): Promise<string> {
  const server = createServer(
    (request, response) =>
      void response.writeHead(request.url!.startsWith('/down') ? 503 : 200, { 'x-request-id': 'office-1' }).end('{}'),
  )
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return `http://127.0.0.1:${(server.address() as { port: number }).port}`
}
