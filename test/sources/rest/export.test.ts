import { gzipSync } from 'node:zlib'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { CycleResult } from '../../../src/engine/cycle-options.ts'
import { rest, type ExportPaging, type ListedStream, type RestStream } from '../../../src/sources/rest/source.ts'
import { EngineFixture, MINUTE, planOf } from '../../engine/engine-fixture.ts'
import { BASE } from './api.ts'

let scene: EngineFixture
beforeEach(async () => {
  scene = await EngineFixture.open()
})
afterEach(() => scene.close())

/** A source that exports rows as compressed CSV files of three rows. */
class Exporter {
  rows = Array.from({ length: 8 }, (_, n) => `r${n}`)
  pollsUntilDone = 3
  jobs = 0
  readonly asked: string[] = []
  status: (job: number, polls: number) => string | number = (_, polls) =>
    polls > this.pollsUntilDone ? 'done' : 'busy'
  /** The rows of a job, as it was created. */
  readonly #snapshots = new Map<number, string[]>()
  readonly #polls = new Map<number, number>()
  cut = (rows: string[]): string[] => rows
  isExpired: (job: number) => boolean = () => false

  readonly fetch = async (input: string | URL, init?: RequestInit): Promise<Response> => {
    const { pathname, searchParams } = new URL(input)
    this.asked.push(`${init?.method} ${pathname}`)
    if (pathname === '/exports') {
      this.#snapshots.set(++this.jobs, [...this.rows])
      return Response.json({ export: { id: this.jobs } })
    }
    const job = Number(/^\/exports\/(\d+)/.exec(pathname)?.[1])
    const rows = this.cut(this.#snapshots.get(job) ?? [])
    if (pathname.endsWith('/rows')) {
      if (this.isExpired(job)) return Response.json({}, { status: 410 })
      const part = Number(searchParams.get('part') ?? 0)
      const text = ['id', ...rows.slice(part * 3, part * 3 + 3)].join('\n')
      const headers = {
        'content-type': 'application/gzip',
        'x-next': (part + 1) * 3 < rows.length ? String(part + 1) : '',
      }
      return new Response(new Uint8Array(gzipSync(text)), { headers })
    }
    const polls = (this.#polls.get(job) ?? 0) + 1
    this.#polls.set(job, polls)
    const status = this.status(job, polls)
    if (typeof status === 'number') return Response.json({}, { status })
    const files = rows.flatMap((_, n) => (n % 3 === 0 ? [`${BASE}/exports/${job}/rows?part=${n / 3}`] : []))
    return Response.json({ status, count: (this.#snapshots.get(job) ?? []).length, files })
  }
}

const DOWNLOAD = { path: '/exports/{job}/rows', next: { header: 'x-next', parameter: 'part' } } as const
const POLL = { path: '/exports/{job}', status: 'status', done: ['done'], failed: ['failed'] } as const

function open(download: ExportPaging['download'] = DOWNLOAD, poll: Partial<ExportPaging['poll']> = {}): ListedStream {
  const page = { kind: 'export', job: 'export.id', poll: { ...POLL, ...poll }, download } as const
  const stream: RestStream = {
    name: 'rows',
    path: '/exports',
    body: { json: { format: 'csv' } },
    key: 'id',
    decode: 'csv',
    page,
  }
  return rest({ baseUrl: BASE, streams: [stream] })['rows'] as ListedStream
}

const run = (
  source: Exporter,
  { execute }: ListedStream,
  pagesMax = 1_000,
  allowDeletes = false,
): Promise<CycleResult> =>
  scene.run(planOf({ mode: 'replace', execute, limits: { retriesMax: 0, pagesMax } }), {
    fetch: source.fetch,
    allowDeletes,
  })

describe('an export job', () => {
  test.each([
    ['in parts', DOWNLOAD],
    ['in the files that its status names', { urls: 'files' }],
  ] as const)('is created, polled and downloaded %s', async (_, download) => {
    const source = new Exporter()
    expect(await run(source, open(download))).toMatchObject({ stopReason: 'complete', counts: { created: 8 } })
    expect(source.jobs).toBe(1)
    source.rows = source.rows.slice(1)
    expect(await run(source, open(download))).toMatchObject({ stopReason: 'complete', counts: { swept: 1 } })
  })

  test('continues after every page, with the job in the state', async () => {
    const source = new Exporter()
    for (let runs = 0; runs < 20; runs++) if ((await run(source, open(), 1)).stopReason === 'complete') break
    expect(await scene.keys()).toHaveLength(8)
    expect(source.jobs).toBe(1)
  })

  test('that takes hours is polled without an end of the cycle', async () => {
    const source = new Exporter()
    const end = scene.clock.now() + 3 * 60 * MINUTE
    source.status = () => (scene.clock.now() > end ? 'done' : 'busy')
    expect(await run(source, open())).toMatchObject({ stopReason: 'complete', error: null })
    expect(source.jobs).toBe(1)
    expect(source.asked.length).toBeLessThan(1_000)
  })

  test.each([
    ['fails', (job: number) => (job < 3 ? 'failed' : 'done')],
    ['expires while it is polled', (job: number) => (job < 3 ? 404 : 'done')],
  ])('that %s is created again', async (_, status) => {
    const source = new Exporter()
    source.status = status
    expect(await run(source, open())).toMatchObject({ stopReason: 'complete', error: null })
    expect(source.jobs).toBe(3)
    expect(await scene.keys()).toHaveLength(8)
  })

  test('that expires before its download ends is created again', async () => {
    const source = new Exporter()
    source.isExpired = (job) => job === 1
    expect(await run(source, open())).toMatchObject({ stopReason: 'complete' })
    expect(source.jobs).toBe(2)
  })

  test('that always fails ends the cycle with an error, and lands and deletes nothing', async () => {
    const source = new Exporter()
    await run(source, open())
    source.status = () => 'failed'
    const { error, stopReason } = await run(source, open(), 1_000, true)
    expect(stopReason).not.toBe('complete')
    expect(error?.message).toContain('3 export jobs were created, and the last one failed')
    expect(await scene.keys()).toHaveLength(8)
  })

  test('that is shorter than its count deletes nothing', async () => {
    const source = new Exporter()
    const stream = open(DOWNLOAD, { total: 'count' })
    await run(source, stream)
    source.cut = (rows) => rows.slice(0, 4)
    const { error } = await run(source, stream, 1_000, true)
    expect(error?.message).toContain('has 4 records, but the source counts 8')
    expect(await scene.keys()).toHaveLength(8)
  })

  test('that is empty once is confirmed by a second one', async () => {
    const source = new Exporter()
    await run(source, open())
    const { rows } = source
    source.cut = (found) => (source.jobs === 2 ? [] : found)
    expect(await run(source, open(), 1_000, true)).toMatchObject({ stopReason: 'complete', counts: { swept: 0 } })
    expect(source.jobs).toBe(3)
    source.cut = () => []
    expect(await run(source, open(), 1_000, true)).toMatchObject({ counts: { swept: rows.length } })
  })

  test('sends no credentials to another server of its files, and none without `base_url`', async () => {
    const headers: Array<string | null> = []
    const source = new Exporter()
    const download = { urls: 'files', baseUrl: 'https://files.example.com/' } as const
    const page = { kind: 'export', job: 'export.id', poll: POLL, download } as const
    const { rows } = rest({
      baseUrl: BASE,
      headers: { 'x-key': 'secret' },
      streams: [{ name: 'rows', path: '/exports', method: 'POST', key: 'id', decode: 'csv', page }],
    })
    source.status = () => 'done'
    const fetch = async (input: string | URL, init?: RequestInit): Promise<Response> => {
      if (new URL(input).hostname === 'files.example.com') {
        headers.push(new Headers(init?.headers).get('x-key'))
        return new Response('id\na\n')
      }
      const response = await source.fetch(input, init)
      const body = (await response.json()) as { files?: string[] }
      return Response.json(body.files === undefined ? body : { ...body, files: ['https://files.example.com/1'] })
    }
    const result = await scene.run(planOf({ mode: 'replace', execute: rows.execute }), { fetch })
    expect(result).toMatchObject({ stopReason: 'complete', counts: { created: 1 } })
    expect(headers).toEqual([null])
    const other = await scene.run(
      planOf({ mode: 'replace', sync: 'other', execute: open({ urls: 'files' }).execute, limits: { retriesMax: 0 } }),
      { fetch },
    )
    expect(other.error?.message).toContain('The link was not followed')
  })

  test('needs one place for its download, and cannot be followed by its own request', () => {
    expect(() => open({})).toThrow('set `path` or `urls`')
    const stream = { name: 'a', path: '/exports', key: 'id', updatedAt: 'at', deletes: 'ignore' } as const
    const page = { kind: 'export', job: 'id', poll: POLL, download: DOWNLOAD } as const
    const follow = { kind: 'window', since: 'since', page: { kind: 'none' } } as const
    expect(() => rest({ baseUrl: BASE, streams: [{ ...stream, page, follow }] })).toThrow('creates an export job')
  })
})
