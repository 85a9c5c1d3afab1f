import { existsSync } from 'node:fs'
import { afterEach, describe, expect, test } from 'vitest'
import type { Page, SyncContext } from '../../../src/contract/index.ts'
import { systemRandom } from '../../../src/platform/random.ts'
import { discover, singer, type SingerState } from '../../../src/sources/singer/source.ts'
import { systemClock } from '../../../src/platform/clock.ts'
import { describeRealTap } from './real-tap.ts'
import { isAlive, KEY, people, TAP, TapFixture, until } from './tap-fixture.ts'

const SILENT = { debug() {}, info() {}, warn() {}, error() {} }
let world: TapFixture
afterEach(() => world?.close())

const truth = (rows: Array<Record<string, unknown>>, key = 'id'): Record<string, unknown> =>
  Object.fromEntries(rows.map((row) => [String(row[key]), row]))

describe('a tap', () => {
  test('R50 R5 a full incremental cycle: all of it, then what changed, from the state the tap left', async () => {
    world = await TapFixture.open({ pageSize: 10 })
    const rows = people(95)
    world.serve({ streams: { people: { rows }, teams: { rows: [{ id: 1, updated_at: 'x' }] } }, every: 7 })
    expect(await world.run()).toMatchObject({
      stopReason: 'complete',
      error: null,
      counts: { created: 95, quarantined: 0 },
    })
    expect(await world.rows()).toEqual(truth(rows))
    const left = { bookmarks: { people: { updated_at: rows.at(-1)!['updated_at'] } } }
    expect(await world.state()).toEqual({ tap: left })

    const later = [...rows.slice(0, -1), { ...rows.at(-1)!, name: 'Renamed' }, ...people(5, 96)]
    world.serve({ streams: { people: { rows: later } }, every: 7 })
    // The tap repeats the bookmark's own timestamp, which changes nothing.
    expect(await world.run()).toMatchObject({ stopReason: 'complete', counts: { created: 5, updated: 1 } })
    expect(await world.rows()).toEqual(truth(later))
    expect(
      world
        .seen()
        .filter(({ args }) => !args.includes('--discover'))
        .map(({ state }) => JSON.parse(state ?? 'null') as unknown),
    ).toEqual([null, left])
    expect(await world.logCount()).toBe(101)
  })

  test('R36 a state is kept with the page that holds what it covers, and a page without one leaves it where it was', async () => {
    world = await TapFixture.open({ pageSize: 4 })
    // Pages end at the first STATE after 4 records: that of the 6th, the 12th …
    const rows = people(30)
    world.serve({ streams: { people: { rows } }, every: 6, hangAt: 20 })
    const stop = new AbortController()
    const inflight: Array<Promise<unknown>> = []
    await world.run({
      signal: stop.signal,
      onLanded(page) {
        inflight.push(world.inflight())
        if (page === 3) stop.abort()
      },
    })
    expect(
      (await Promise.all(inflight)).map(
        (state) =>
          (state as { tap: { bookmarks: { people: { updated_at: string } } } }).tap.bookmarks.people.updated_at,
      ),
    ).toEqual([5, 11, 17].map((index) => rows[index]!['updated_at']))

    await world.close()
    world = await TapFixture.open({ pageSize: 2 })
    // No STATE at all before the end: 20 records make a page, and the state stays none.
    world.serve({ streams: { people: { rows } }, crashAt: 25 })
    expect(await world.run()).toMatchObject({
      stopReason: 'error',
      error: { code: 'CONNECTOR_FAILED' },
      counts: { created: 25 },
      pages: 2,
    })
    expect(await world.inflight()).not.toHaveProperty('tap')
    world.serve({ streams: { people: { rows } } })
    expect(await world.run()).toMatchObject({ stopReason: 'complete', counts: { created: 5, unchanged: 25 } })
    expect(await world.logCount()).toBe(30)
  })

  test('R17 R34 one that fails leaves what has landed with its state, and the retry goes on from there', async () => {
    world = await TapFixture.open({ pageSize: 5 })
    const rows = people(40)
    world.serve({ streams: { people: { rows } }, every: 4, crashAt: 22 })
    const failed = await world.run()
    expect(failed).toMatchObject({
      stopReason: 'error',
      retries: 0,
      error: { code: 'CONNECTOR_FAILED' },
      counts: { created: 22, quarantined: 0 },
    })
    expect(failed.error!.message).toMatch(/exited with code 3: CRITICAL no route to host for \[secret\] at /)
    expect(failed.error!.message).not.toContain(KEY)
    expect(await world.state()).toBeNull()
    expect((await world.inflight()).tap).toEqual({ bookmarks: { people: { updated_at: rows[19]!['updated_at'] } } })
    world.serve({ streams: { people: { rows } }, every: 4 })
    expect(await world.run()).toMatchObject({ stopReason: 'complete', resumed: true, counts: { created: 18 } })
    expect(await world.rows()).toEqual(truth(rows))
    expect(await world.logCount()).toBe(40)
    expect(world.seen().at(-1)!.state).toContain(rows[19]!['updated_at'])
  })

  test('a page that is asked for again is that page, though the tap has gone on since', async () => {
    world = await TapFixture.open({ catalog: 'none', pageSize: 2 })
    world.serve({
      streams: { people: { rows: people(8).map((row, n) => ({ ...row, updated_at: `2026-01-0${n + 1}` })) } },
      every: 2,
    })
    const ending = new AbortController()
    const { execute } = singer({
      command: [process.execPath, TAP],
      config: { world: world.file, api_key: KEY },
      catalog: 'none',
      pageSize: 2,
    }).stream('people')
    const ask = (state: SingerState | undefined, page: number) =>
      execute(state, {
        clock: systemClock,
        random: systemRandom,
        log: SILENT,
        signal: ending.signal,
        secrets: { get: (name: string) => name },
        cycle: { id: 1, mode: 'incremental', startedAt: 0, page },
      } as Partial<SyncContext> as SyncContext)
    const keys = ({ changes }: Page<SingerState>): string[] => changes.map(({ key }) => key!)
    const first = await ask(undefined, 1)
    const second = await ask(first.nextState, 2)
    expect([keys(first), keys(second)]).toEqual([
      ['1', '2'],
      ['3', '4'],
    ])
    // The tap repeats the record of its bookmark.
    expect(keys(await ask(first.nextState, 2))).toEqual(['2', '3'])
    ending.abort()
    await until(() => world.seen().every(({ pid }) => !isAlive(pid)))
  })

  test('a listing that is swept: missing rows are deleted, and an interrupted listing starts again and sweeps nothing early', async () => {
    world = (await TapFixture.open({ pageSize: 5 })).use((source) => source.listing('people'))
    const rows = people(20)
    world.serve({ streams: { people: { rows } }, every: 5 })
    expect(await world.run()).toMatchObject({ stopReason: 'complete', counts: { created: 20 } })
    expect(await world.state()).toBeNull()
    const fewer = rows.filter(({ id }) => Number(id) % 4 !== 0)
    world.serve({ streams: { people: { rows: fewer } }, every: 5, crashAt: 12 })
    expect(await world.run()).toMatchObject({ stopReason: 'error', counts: { swept: 0 } })
    expect(Object.keys(await world.rows())).toHaveLength(20)
    world.serve({ streams: { people: { rows: fewer } }, every: 5 })
    expect(await world.run()).toMatchObject({ stopReason: 'complete', resumed: true, counts: { swept: 5, created: 0 } })
    expect(await world.rows()).toEqual(truth(fewer))
    expect(world.seen().every(({ state }) => state === null)).toBe(true)
  })

  test('several streams of one run land in a database each, and a stream that was not selected in none', async () => {
    world = (await TapFixture.open()).use((source) =>
      source.streams({ people: 'people', notes: { database: 'notes', key: ['person', 'at'] } }),
    )
    world.serve({
      streams: {
        people: { rows: people(3) },
        notes: {
          key: [],
          rows: [
            { person: 1, at: 'a,b', updated_at: '1' },
            { person: 1, at: 'a', updated_at: '2' },
          ],
        },
        teams: { rows: people(2) },
      },
    })
    expect(await world.run()).toMatchObject({ stopReason: 'complete', counts: { created: 5 } })
    expect(Object.keys(await world.rows('notes')).toSorted()).toEqual(['["1","a"]', '["1","a,b"]'])
    expect(await world.rows('teams')).toEqual({})
  })

  test('R28 its key: several members, a whole record, or none and then it says so', async () => {
    world = await TapFixture.open()
    const rows = [
      { a: 1, b: 'x', updated_at: '1' },
      { a: 1, b: 'y', updated_at: '2' },
      { a: null, b: 'z', updated_at: '3' },
    ]
    world.serve({ streams: { people: { key: ['a', 'b'], rows } } })
    expect(await world.run()).toMatchObject({ counts: { created: 2, quarantined: 1 } })
    expect(Object.keys(await world.rows())).toEqual(['["1","x"]', '["1","y"]'])
    expect(await world.quarantined()).toMatchObject([{ code: 'KEY_INVALID', key: null }])

    world.serve({ streams: { people: { key: [], rows } } })
    expect(await world.run()).toMatchObject({
      stopReason: 'error',
      error: { code: 'SYNC_INVALID', message: expect.stringMatching(/declares no key for "people".*`hash`/) as string },
    })
    await world.close()
    world = (await TapFixture.open()).use((source) => source.listing('people', { key: 'hash' }))
    world.serve({ streams: { people: { key: [], rows } } })
    expect(await world.run()).toMatchObject({ counts: { created: 3 } })
    world.serve({ streams: { people: { key: [], rows: [{ b: 'x', updated_at: '1', a: 1 }, ...rows.slice(1)] } } })
    expect(await world.run()).toMatchObject({ counts: { created: 0, swept: 0, unchanged: 3 } })
  })

  test('a record that it calls deleted is deleted', async () => {
    world = await TapFixture.open()
    world.serve({ streams: { people: { rows: people(3) } } })
    await world.run()
    world.serve({
      streams: {
        people: { rows: [...people(2), { id: 3, updated_at: '2026-01-02', _sdc_deleted_at: '2026-01-02T00:00:00Z' }] },
      },
    })
    expect(await world.run()).toMatchObject({ counts: { deleted: 1 } })
    expect(Object.keys(await world.rows())).toEqual(['1', '2'])
  })

  test('numbers are exact, in records and in the state it is given back', async () => {
    world = await TapFixture.open()
    const raw = '{"type":"RECORD","stream":"people","record":{"id":9007199254740993,"price":0.1,"updated_at":"1"}}\n'
    world.serve({
      streams: { people: { rows: [{ raw, updated_at: '1', big: '9007199254740995' }] } },
      every: 1,
      noState: true,
    })
    expect(await world.run()).toMatchObject({ stopReason: 'complete', counts: { created: 1 } })
    expect(await world.rows()).toEqual({ '9007199254740993': { id: 9007199254740993n, price: 0.1, updated_at: '1' } })
    await world.run()
    expect(world.seen().at(-1)!.state).toContain('"since_id":9007199254740995')
  })

  test('RX7 a record that does not match its schema is reported once, and lands', async () => {
    world = await TapFixture.open()
    const schema = {
      $schema: 'http://json-schema.org/draft-04/schema#',
      type: 'object',
      properties: {
        id: { type: 'integer', maximum: 1e62, exclusiveMaximum: true },
        name: { type: 'string' },
        price: { type: 'number', multipleOf: 0.01 },
      },
    }
    world.serve({
      streams: {
        people: {
          schema,
          rows: [
            { id: 1, name: 'a', price: 0.07, updated_at: '1' },
            { id: 2, name: 7, updated_at: '2' },
            { id: 3, name: 8, updated_at: '3' },
          ],
        },
      },
    })
    expect(await world.run()).toMatchObject({ counts: { created: 3, quarantined: 0 } })
    expect(world.logged.filter((line) => line.startsWith('a record does not'))).toEqual([
      expect.stringContaining('"stream":"people","field":"/name","reason":"must be string"'),
    ])
  })
})

describe('what a tap may do wrong', () => {
  test('a line that is no message is set apart with the reason; in a listing the cycle ends, and nothing is swept', async () => {
    world = await TapFixture.open()
    const rows = [
      ...people(2),
      { raw: 'Loading…\n', updated_at: '3' },
      { raw: '{"type":"RECORD","stream":"people","record":{"id":NaN}}\n', updated_at: '4' },
      { raw: '{"type":"TIDE","stream":"people"}\n', updated_at: '5' },
    ]
    world.serve({ streams: { people: { rows } }, tail: '{"type":"RECORD","stream":"people","record":{"id":' })
    expect(await world.run()).toMatchObject({ stopReason: 'complete', counts: { created: 2, quarantined: 4 } })
    const set = await world.quarantined()
    expect(set.map(({ code, message }) => `${code} ${message}`)).toEqual(
      Array(4).fill(`RECORD_INVALID ${process.execPath} wrote a line that is not a Singer message`),
    )
    expect(set.some(({ text }) => text.includes('Loading…'))).toBe(true)
    world.use((source) => source.listing('people'))
    expect(await world.run()).toMatchObject({
      stopReason: 'error',
      error: { code: 'CONNECTOR_FAILED' },
      counts: { swept: 0 },
    })
  })

  test('CONNECTOR_FAILED one line that is no message is enough for a listing to sweep nothing', async () => {
    world = await TapFixture.open()
    world.use((source) => source.listing('people')).serve({ streams: { people: { rows: people(3) } } })
    await world.run()
    world.serve({
      streams: {
        people: {
          rows: [...people(2), { raw: '{"type":"RECORD","stream":"people","record":{"id":3,\n', updated_at: '3' }],
        },
      },
    })
    expect(await world.run()).toMatchObject({
      stopReason: 'error',
      error: { code: 'CONNECTOR_FAILED' },
      counts: { swept: 0 },
    })
  })

  test('too many such lines, a record before its schema and batches end the cycle in words', async () => {
    world = await TapFixture.open()
    world.serve({
      streams: {
        people: { rows: Array.from({ length: 101 }, (_, index) => ({ raw: `line ${index}\n`, updated_at: 'x' })) },
      },
    })
    expect((await world.run()).error).toMatchObject({
      code: 'CONNECTOR_FAILED',
      message: expect.stringContaining('more than 100 lines') as string,
    })
    world.serve({ streams: { people: { rows: people(1) } }, noSchema: true })
    expect((await world.run()).error!.message).toMatch(/sent a record of "people" before its schema/)
    world.serve({ streams: { people: { rows: people(1) } }, batch: true })
    expect((await world.run()).error!.message).toMatch(/sends BATCH messages for "people".*`batch_config`/)
    expect(await world.logCount()).toBe(0)
  })

  test('a program that is not there, a stream that is not there and a discovery that fails say so', async () => {
    world = await TapFixture.open({ command: '/nowhere/tap-nothing' })
    expect((await world.run()).error).toMatchObject({
      code: 'CONNECTOR_FAILED',
      message: expect.stringContaining(
        '/nowhere/tap-nothing was asked to list its streams and was not found',
      ) as string,
    })
    await world.close()
    world = (await TapFixture.open()).use((source) => source.stream('persons'))
    world.serve({ streams: { people: { rows: [] }, teams: { rows: [] } } })
    expect((await world.run()).error).toMatchObject({
      code: 'SOURCE_NOT_FOUND',
      message: expect.stringContaining('Available: people, teams') as string,
    })
    world.serve({ streams: {}, discover: 'fails' })
    expect((await world.run()).error).toMatchObject({
      code: 'CONNECTOR_FAILED',
      message: expect.stringContaining('exited with code 7') as string,
    })
  })

  test('a tap that hangs is killed although it ignores signals, and its output has landed', async () => {
    world = await TapFixture.open({ quietMaxMs: 500, catalog: 'none' })
    const rows = people(9)
    world.serve({ streams: { people: { rows } }, hangAt: 5, deaf: true })
    const failed = await world.run({ limits: { retriesMax: 0 } })
    expect(failed).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_TIMEOUT' }, counts: { created: 5 } })
    const { pid, folder } = world.seen()[0]!
    await until(() => !isAlive(pid) && !existsSync(folder))
    expect(world.seen()[1]).toEqual({ asked: 'SIGTERM' })
  })

  test('it does not run ahead of the commits: a reader that does not read blocks it', async () => {
    world = await TapFixture.open({ pageSize: 1, catalog: 'none' })
    const rows = people(3_000).map((row) => ({ ...row, note: 'x'.repeat(1_000) }))
    world.serve({ streams: { people: { rows } }, every: 1 })
    const stop = new AbortController()
    await world.run({ signal: stop.signal, onLanded: () => stop.abort() })
    const { pid } = world.seen()[0]!
    await until(() => !isAlive(pid))
    // At most two pipes and a page or two of the three megabytes.
    expect(await world.logCount()).toBeLessThan(5)
  })
})

describe('the input of a tap', () => {
  test('R45 is in files that only the tap can read, which are deleted when it ends; no secret in arguments, logs or errors', async () => {
    world = await TapFixture.open({ environment: { TAP_SETTING: '${TAP_KEY}', PLAIN: 'yes' } })
    world.serve({ streams: { people: { rows: people(3) } }, every: 1 })
    await world.run()
    await world.run()
    const runs = world.seen()
    expect(runs.map(({ args }) => args)).toEqual([
      ['--config', 'config.json', '--discover'],
      ['--config', 'config.json', '--catalog', 'catalog.json'],
      ['--config', 'config.json', '--discover'],
      ['--config', 'config.json', '--state', 'state.json', '--catalog', 'catalog.json'],
    ])
    for (const { folder, folderMode, modes, config, environment } of runs) {
      expect({ folderMode, modes: [...new Set(modes)] }).toEqual({ folderMode: '700', modes: ['600'] })
      expect(existsSync(folder)).toBe(false)
      expect(config['api_key']).toBe(KEY)
      expect(
        environment.filter(
          (name) => !['PATH', 'HOME', 'LANG', 'LC_ALL', 'TZ', 'PWD', 'OLDPWD', 'SHLVL', '_'].includes(name),
        ),
      ).toEqual(['PLAIN', 'TAP_SETTING'])
    }
    expect(world.logged.filter((line) => line.includes('tap output'))).toHaveLength(4)
    expect(world.logged.join('\n')).toContain('INFO starting with [secret]')
    expect(world.logged.join('\n')).not.toContain('sk_live')
  })

  test('RX2 its streams can be listed, with their keys and cursors', async () => {
    world = await TapFixture.open()
    world.serve({
      streams: {
        people: { rows: [], schema: { type: 'object', properties: { id: {}, name: {} } } },
        notes: { key: [], rows: [] },
      },
    })
    const found = await discover(
      { command: [process.execPath, TAP], config: { world: world.file, api_key: 'x' } },
      { clock: systemClock, log: SILENT, signal: new AbortController().signal, secrets: { get: (name) => name } },
    )
    expect(found).toEqual([
      { id: 'people', key: ['id'], cursor: 'updated_at', candidates: ['updated_at'], columns: ['id', 'name'] },
      { id: 'notes', key: [], cursor: 'updated_at', candidates: ['updated_at'], columns: [] },
    ])
  })

  test('a new version of a stream that is followed is reported, because rows that are missing from it stay', async () => {
    world = await TapFixture.open()
    for (const version of [7, 7, 8]) {
      world.serve({ streams: { people: { rows: people(1) } }, version })
      await world.run()
    }
    expect(await world.state()).toMatchObject({ versions: { people: '8' } })
    expect(world.logged.filter((line) => line.includes('new version'))).toHaveLength(1)
  })
})

// Not one of npm or Debian: `python3 -m venv tap && tap/bin/pip install pipelinewise-tap-postgres`, then TIDEMARK_SINGER_TAP=tap/bin/tap-postgres.
if (process.env['TIDEMARK_SINGER_TAP'] !== undefined) describeRealTap(process.env['TIDEMARK_SINGER_TAP'])
