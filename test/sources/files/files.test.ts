import { appendFileSync, symlinkSync, truncateSync, utimesSync } from 'node:fs'
import { hash } from 'node:crypto'
import { join } from 'node:path'
import { deflateRawSync, gzipSync } from 'node:zlib'
import { afterEach, describe, expect, test } from 'vitest'
import { SyncError } from '../../../src/contract/index.ts'
import type { Folder, OpenFile } from '../../../src/sources/files/folder.ts'
import { LocalFolder } from '../../../src/sources/files/local-folder.ts'
import { files, type FilesOptions } from '../../../src/sources/files/source.ts'
import { packManifest, unpackManifest } from '../../../src/sources/files/state.ts'
import { contextOf } from '../sql/cases.ts'
import { FilesFixture } from './files-fixture.ts'

let box: FilesFixture
const open = async (options: Partial<FilesOptions> = {}): Promise<FilesFixture> =>
  (box = await FilesFixture.open(options))
afterEach(() => box.close())

const lines = (...records: unknown[]): string => records.map((record) => `${JSON.stringify(record)}\n`).join('')
const numbers = (count: number, from = 1): string =>
  lines(...Array.from({ length: count }, (_, index) => ({ n: from + index })))

describe('a folder is followed', () => {
  test('R41 RX4 RX8 new files are read once; the checkpoint is the path and the checksum of the last', async () => {
    await open()
    box.put('2026/b.csv', 'id,name\n1,Ann\n2,"Bo, the ""second"""\n')
    box.put('2026/a.ndjson', lines({ id: 1 }))
    expect(await box.counts()).toEqual({ created: 3 })
    expect(await box.rows()).toEqual({
      '2026/a.ndjson#1': { id: 1 },
      '2026/b.csv#1': { id: '1', name: 'Ann' },
      '2026/b.csv#2': { id: '2', name: 'Bo, the "second"' },
    })
    const sha256 = hash('sha256', 'id,name\n1,Ann\n2,"Bo, the ""second"""\n')
    expect(await box.stage.state('rows')).toMatchObject({
      cursorField: '_file_checkpoint',
      cursorValue: `2026/b.csv#sha256=${sha256}`,
    })
    expect(await box.counts()).toEqual({})
    box.put('2026/c.ndjson', lines({ id: 3 }))
    expect(await box.counts()).toEqual({ created: 1 })
  })

  test('R41 a file that arrives late under an earlier name is not missed', async () => {
    await open()
    box.put('m.ndjson', numbers(2))
    await box.counts()
    box.put('a.ndjson', numbers(2))
    // Also with a time from before the last cycle, as a copy that keeps times has it.
    utimesSync(join(box.folder, 'a.ndjson'), 1, 1)
    expect(await box.counts()).toEqual({ created: 2 })
  })

  test.each([1, 2, 3, 100])(
    'R41 a replaced file is read again and its vanished rows are deleted, in pages of %i',
    async (pageSize) => {
      await open({ pageSize })
      box.put('a.ndjson', numbers(7))
      box.put('b.ndjson', numbers(2))
      await box.counts()
      box.put('a.ndjson', lines({ n: 1 }, { n: 'other' }))
      expect(await box.counts()).toEqual({ updated: 1, deleted: 5, unchanged: 1 })
      expect(Object.keys(await box.rows())).toEqual(['a.ndjson#1', 'a.ndjson#2', 'b.ndjson#1', 'b.ndjson#2'])
      box.put('a.ndjson', numbers(3))
      expect(await box.counts()).toEqual({ created: 1, updated: 1, unchanged: 1 })
      box.put('a.ndjson', '')
      expect(await box.counts()).toEqual({ deleted: 3 })
      expect(await box.counts()).toEqual({})
    },
  )

  test('a file that was only touched, or written again as it was, is not landed again', async () => {
    await open()
    box.put('a.ndjson', numbers(3))
    await box.counts()
    const { manifest } = await box.stage.state('rows')
    box.put('a.ndjson', numbers(3))
    expect(await box.counts()).toEqual({})
    expect((await box.stage.state('rows')).manifest).not.toBe(manifest)
  })

  test('a replacement of the same size and with the same time is seen', async () => {
    await open()
    for (const n of [1, 2]) {
      box.put('a.ndjson', lines({ n }))
      utimesSync(join(box.folder, 'a.ndjson'), 1, 1)
      await box.counts()
      expect(await box.rows()).toEqual({ 'a.ndjson#1': { n } })
    }
  })

  test('a file that is still being written is left alone, and one with the name of something unfinished always', async () => {
    await open()
    const { execute } = files({ folder: box.folder, settleMs: 10_000 })
    const at = (ms: number): any => ({ ...contextOf(), cycle: { ...contextOf().cycle, startedAt: Date.now() + ms } })
    box.put('a.ndjson', numbers(1))
    for (const name of ['b.csv.tmp', '.c.csv', '_temporary/d.csv', 'e.csv~', 'f.csv.part', 'g.txt'])
      box.put(name, 'id\n1\n')
    symlinkSync('/etc/hostname', join(box.folder, 'link.csv'))
    expect((await execute(undefined, at(5_000))).changes).toEqual([])
    const { changes, nextState } = await execute(undefined, at(11_000))
    expect(changes.map(({ key }) => key)).toEqual(['a.ndjson#1'])
    // Written on: the rows known so far stay, and the new ones wait until it rests.
    appendFileSync(join(box.folder, 'a.ndjson'), numbers(1))
    expect((await execute(nextState, at(5_000))).changes).toEqual([])
    expect((await execute(nextState, at(11_000))).changes).toHaveLength(2)
  })

  test('a file that changes between two pages is begun again with the new content, and leaves nothing of the old', async () => {
    await open()
    box.put('a.ndjson', numbers(6))
    const stream = files({ folder: box.folder, settleMs: 0, pageSize: 4 })
    box.stage.sync(
      'torn',
      'incremental',
      async (state: any, context) => {
        if (context.cycle.page === 2) box.put('a.ndjson', numbers(2, 50))
        return await stream.execute(state, context)
      },
      stream.limits,
    )
    await box.stage.complete('torn')
    await box.stage.complete('torn')
    expect(await box.stage.rows('torn')).toEqual({ 'a.ndjson#1': { n: 50 }, 'a.ndjson#2': { n: 51 } })
  })

  test('what was read while the file changed never lands', async () => {
    await open()
    box.put('a.ndjson', numbers(5))
    const local = new LocalFolder(box.folder)
    let reads = 0
    const folder: Folder = {
      name: 'torn',
      list: (signal) => local.list(signal),
      async open(path) {
        const file = (await local.open(path))!
        const read: OpenFile['read'] = async (start, end) => {
          const bytes = await file.read(start, end)
          // The first is for the checksum; the second for the rows.
          if (++reads === 2) appendFileSync(join(box.folder, 'a.ndjson'), numbers(1))
          return bytes
        }
        return {
          size: file.size,
          version: () => file.version(),
          read,
          [Symbol.asyncDispose]: () => file[Symbol.asyncDispose](),
        }
      },
    }
    const page = await files({ folder, settleMs: 0 }).execute(undefined, contextOf())
    expect(page).toMatchObject({ changes: [], hasMore: false, nextState: { cursorValue: null } })
    expect(unpackManifest(page.nextState!.manifest).get('a.ndjson')).toEqual({ tag: '', sum: '', rows: 0 })
    expect((await files({ folder, settleMs: 0 }).execute(page.nextState, contextOf())).changes).toHaveLength(6)
  })

  test('the rows of deleted files are kept, or deleted when asked for; an empty folder is not believed', async () => {
    await open({ deletedFiles: 'delete', pageSize: 2 })
    box.put('a.ndjson', numbers(5))
    box.put('b.ndjson', numbers(1))
    await box.counts()
    const kept = files({ folder: box.folder, settleMs: 0 })
    const { nextState } = await kept.execute(undefined, contextOf())
    box.remove('a.ndjson')
    expect((await kept.execute(nextState, contextOf())).changes).toEqual([])
    expect(await box.counts()).toEqual({ deleted: 5 })
    expect([...unpackManifest((await box.stage.state('rows')).manifest).keys()]).toEqual(['b.ndjson'])
    expect(await box.counts()).toEqual({})
    expect(Object.keys(await box.rows())).toEqual(['b.ndjson#1'])
    box.remove('b.ndjson')
    expect(await box.stage.run('rows')).toMatchObject({ stopReason: 'error', error: { code: 'SOURCE_UNAVAILABLE' } })
    box.put('README', '')
    expect(await box.counts()).toEqual({ deleted: 1 })
    box.put('a.ndjson', numbers(2))
    expect(await box.counts()).toEqual({ created: 2 })
  })

  test('rows may be known by a key of their own, and the newer one stays whatever its file is called', async () => {
    await open({ key: 'id', updatedAt: 'at' })
    box.put('b.csv', 'id,at\n1,2026-01-02T00:00:00Z\n2,2026-01-01T00:00:00Z\n')
    await box.counts()
    box.put('a.csv', 'id,at\n1,2026-01-01T00:00:00Z\n2,2026-01-03T00:00:00Z\n,2026-01-03T00:00:00Z\n')
    expect(await box.counts()).toEqual({ updated: 1, stale: 1, quarantined: 1 })
    expect(await box.rows()).toEqual({
      1: { id: '1', at: '2026-01-02T00:00:00Z' },
      2: { id: '2', at: '2026-01-03T00:00:00Z' },
    })
    expect(() => files({ folder: box.folder, removedRows: 'keep', deletedFiles: 'delete' })).toThrow(SyncError)
  })

  test.each([100, 2])(
    'R41 a row with a key of its own that its file has no more is deleted, unless another file has it (pages of %i)',
    async (pageSize) => {
      await open({ key: 'id', pageSize })
      const put = (file: string, ...ids: number[]): void =>
        box.put(file, `id,of\n${ids.map((id) => `${id},${file}\n`).join('')}`)
      const keys = async (): Promise<string[]> => Object.keys(await box.rows()).toSorted()
      put('a.csv', 1, 2, 3, 4, 5)
      put('b.csv', 5, 6)
      await box.counts()
      put('a.csv', 2, 7)
      expect(await box.counts()).toMatchObject({ created: 1, deleted: 3 })
      expect(await keys()).toEqual(['2', '5', '6', '7'])
      // It moves from one file to the other, either way.
      put('a.csv', 2)
      put('b.csv', 5, 6, 7)
      await box.counts()
      put('a.csv', 2, 6)
      put('b.csv', 5, 7)
      await box.counts()
      expect(await keys()).toEqual(['2', '5', '6', '7'])
      put('b.csv')
      expect(await box.counts()).toMatchObject({ deleted: 2 })
      expect(await keys()).toEqual(['2', '6'])
      expect(await box.counts()).toEqual({})
    },
  )

  test('R41 rows with keys of their own go with their file where that is asked for; they stay where it is not, and where rows are kept', async () => {
    await open({ key: 'id', deletedFiles: 'delete' })
    box.put('a.csv', 'id\n1\n2\n')
    box.put('b.csv', 'id\n2\n3\n')
    await box.counts()
    box.remove('a.csv')
    expect(await box.counts()).toEqual({ deleted: 1 })
    expect(Object.keys(await box.rows()).toSorted()).toEqual(['2', '3'])
    await box.close()
    await open({ key: 'id', removedRows: 'keep' })
    box.put('a.csv', 'id\n1\n2\n')
    await box.counts()
    box.put('a.csv', 'id\n2\n')
    expect(await box.counts()).toEqual({ unchanged: 1 })
    expect(await box.stage.state('rows')).not.toHaveProperty('keys')
  })

  test('R41 rows of a damaged file that could not be read are not deleted; once the file can be read, its rows decide', async () => {
    await open({ key: 'id' })
    box.put('a.ndjson', lines({ id: 1 }, { id: 2 }, { id: 3 }))
    await box.counts()
    box.put('a.ndjson.gz', gzipSync(lines({ id: 8 }, { id: 9 })))
    box.put('b.csv', 'id\n4\n5\n')
    await box.counts()
    box.put('a.ndjson.gz', gzipSync(lines({ id: 8 })).subarray(0, 12))
    await box.counts()
    expect(Object.keys(await box.rows()).toSorted()).toEqual(['1', '2', '3', '4', '5', '8', '9'])
    box.put('a.ndjson.gz', gzipSync(lines({ id: 8 })))
    expect(await box.counts()).toMatchObject({ deleted: 1 })
    expect(Object.keys(await box.rows()).toSorted()).toEqual(['1', '2', '3', '4', '5', '8'])
  })
})

describe('what cannot be read', () => {
  test('RX7 a damaged file is an error record in quarantine, and the rest goes on', async () => {
    await open({ pageSize: 3 })
    box.put('a.csv', 'id,name\n1,"never closed\n2,b\n')
    box.put('b.ndjson.gz', gzipSync(numbers(50)).subarray(0, 40))
    box.put('c.parquet', 'PAR1 not at all')
    box.put('d.csv', 'id,id\n1,2\n')
    box.put('e.ndjson', numbers(2))
    const { quarantined, created } = (await box.stage.complete('rows')).counts
    expect(quarantined).toBe(4)
    expect(created).toBeGreaterThanOrEqual(2)
    expect(Object.keys(await box.rows())).toEqual(expect.arrayContaining(['e.ndjson#1', 'e.ndjson#2']))
    const faults = await box.stage.store.quarantineEntries()
    expect(Object.fromEntries(faults.map(({ key, message }) => [key, message]))).toEqual({
      'a.csv': 'a.csv: the file is not valid CSV (CSV_QUOTE_NOT_CLOSED); no row was read',
      'b.ndjson.gz': expect.stringContaining('b.ndjson.gz: the compressed file is truncated'),
      'c.parquet': 'c.parquet: the file is not readable Parquet; no row was read',
      'd.csv': 'd.csv: the first line names a column twice; no row was read',
    })
    // Reported once, until the file changes.
    expect(await box.counts()).toEqual({})
    box.put('a.csv', 'id,name\n1,closed\n')
    expect(await box.counts()).toEqual({ created: 1 })
  })

  test('RX7 a damaged new content deletes nothing', async () => {
    await open()
    box.put('a.ndjson.gz', gzipSync(numbers(5_000)))
    await box.counts()
    box.put('a.ndjson.gz', gzipSync(numbers(5_000)).subarray(0, 300))
    expect(await box.counts()).not.toHaveProperty('deleted')
    expect(Object.keys(await box.rows())).toHaveLength(5_000)
    box.put('a.ndjson.gz', gzipSync(numbers(4_000)))
    expect(await box.counts()).toMatchObject({ deleted: 1_000 })
  })

  test('RX7 a row that cannot be read is set apart by itself', async () => {
    await open()
    box.put(
      'a.csv',
      Buffer.concat([Buffer.from('id,name\n1,a\n2\n3,c\n4,'), Buffer.from([0xff]), Buffer.from('\n5,e')]),
    )
    box.put('b.ndjson', '{"n":1}\nnot json\n[1]\n\n{"n":4}')
    expect(await box.counts()).toEqual({ created: 5, quarantined: 4 })
    expect(Object.keys(await box.rows())).toEqual(['a.csv#1', 'a.csv#3', 'a.csv#5', 'b.ndjson#1', 'b.ndjson#4'])
    expect((await box.stage.store.quarantineEntries()).map(({ message }) => message).toSorted()).toEqual([
      'a.csv: row 2 has 1 fields, but there are 2 columns',
      'a.csv: row 4 is not UTF-8',
      'b.ndjson: row 2 is not valid JSON',
      'b.ndjson: row 3 is not a JSON object',
    ])
  })

  test('an unreadable file is reported once; a missing folder stops the sync', async () => {
    await open()
    box.put('a.ndjson', numbers(1))
    box.put('b.ndjson', numbers(1))
    const local = new LocalFolder(box.folder)
    const folder: Folder = {
      name: 'guarded',
      list: (signal) => local.list(signal),
      open: async (path) => {
        if (path === 'a.ndjson') throw new SyncError('SOURCE_FORBIDDEN', 'a.ndjson may not be read')
        return await local.open(path)
      },
    }
    const first = await files({ folder, settleMs: 0 }).execute(undefined, contextOf())
    expect(first.changes.map(({ key }) => key)).toEqual(['a.ndjson', 'b.ndjson#1'])
    expect((await files({ folder, settleMs: 0 }).execute(first.nextState, contextOf())).changes).toEqual([])
    await expect(files({ folder: '/nowhere/at/all' }).execute(undefined, contextOf())).rejects.toMatchObject({
      code: 'SOURCE_NOT_FOUND',
    })
  })

  test('CURSOR_REJECTED a state whose manifest is cut off or damaged is refused', async () => {
    await open()
    const whole = packManifest(new Map([['a.csv', { tag: 't', sum: 's', rows: 3 }]]))
    const cut = ['a.csv', 'a.csv\0t\0s', 'a.csv\0t\0s\0three', 'a.csv\0t\0s\x003\0b.csv'].map((text) =>
      deflateRawSync(text).toString('base64'),
    )
    for (const manifest of [...cut, whole.slice(0, 8)]) {
      const state = { cursorField: '_file_checkpoint', cursorValue: null, manifest } as const
      await expect(files({ folder: box.folder }).execute(state, contextOf()), manifest).rejects.toMatchObject({
        code: 'CURSOR_REJECTED',
      })
    }
  })

  test('XD26 a state that names a file outside the folder is refused', async () => {
    await open()
    const state = { cursorField: '_file_checkpoint', cursorValue: null, manifest: '' } as const
    const reading = { path: 'a.csv', sha256: '0'.repeat(64), tag: '', before: 0, row: 0, offset: 0 }
    for (const bad of [
      { ...state, reading: { ...reading, path: '../secret.csv' } },
      { ...state, reading: { ...reading, path: '/etc/passwd' } },
      { ...state, removing: { path: 'a/../../b', keep: 0 } },
      { ...state, reading: { ...reading, row: -1 } },
      { ...state, manifest: 'AAAA' },
      { ...state, cursorField: 'updated_at' as never },
    ])
      await expect(files({ folder: box.folder }).execute(bad, contextOf()), JSON.stringify(bad)).rejects.toMatchObject({
        code: 'CURSOR_REJECTED',
      })
  })
})

describe('in the middle of a file', () => {
  const text = `id,note\r\n${Array.from({ length: 23 }, (_, index) => `${index + 1},"ünï ${index}\r\nand a second line, ${'x'.repeat(index * 40)}"`).join('\r\n')}\r\n`
  const json = `\uFEFF${Array.from({ length: 23 }, (_, index) => `{"id":${index + 1},"note":"ünï ${'x'.repeat(index * 40)}"}`).join('\n\n')}`
  test.each([
    ['a.csv', text],
    ['a.csv.gz', gzipSync(text)],
    ['a.ndjson', json],
    ['a.ndjson.gz', gzipSync(json)],
  ] as const)('%s is gone on with at the next row, whatever the size of the pages', async (name, content) => {
    await open()
    box.put(name, content)
    const whole = await files({ folder: box.folder, settleMs: 0 }).execute(undefined, contextOf())
    expect(whole.changes.map(({ key }) => key)).toEqual(
      Array.from({ length: 23 }, (_, index) => `${name}#${index + 1}`),
    )
    for (const pageSize of [1, 5, 22, 23]) {
      const { execute } = files({ folder: box.folder, settleMs: 0, pageSize })
      const changes = []
      let page = await execute(undefined, contextOf())
      for (changes.push(...page.changes); page.hasMore; changes.push(...page.changes))
        page = await execute(JSON.parse(JSON.stringify(page.nextState)), contextOf())
      expect(changes, String(pageSize)).toEqual(whole.changes)
    }
  })

  test('a file that shrinks in place while it is read is left to the next cycle', async () => {
    await open()
    box.put('a.ndjson', numbers(10))
    const { execute } = files({ folder: box.folder, settleMs: 0, pageSize: 4 })
    const first = await execute(undefined, contextOf())
    truncateSync(join(box.folder, 'a.ndjson'), 8)
    const second = await execute(first.nextState, { ...contextOf(), cycle: { ...contextOf().cycle, startedAt: 0 } })
    expect(second).toMatchObject({ changes: [], hasMore: false })
    const third = await execute(second.nextState, contextOf())
    expect(third.changes.map(({ type, key }) => `${type} ${key}`)).toEqual([
      'upsert a.ndjson#1',
      'delete a.ndjson#4',
      'delete a.ndjson#3',
      'delete a.ndjson#2',
    ])
  })
})

test('the state of 10,000 files takes less than 30 bytes for each, and comes back as it was', async () => {
  await open()
  const known = new Map(
    Array.from({ length: 10_000 }, (_, index) => [
      `2026/11/orders_${String(index).padStart(5, '0')}.csv.gz`,
      {
        tag: hash('sha256', `t${index}`, 'base64').slice(0, 8),
        sum: hash('sha256', `s${index}`, 'base64').slice(0, 10),
        rows: index % 977,
      },
    ]),
  )
  const text = packManifest(known)
  expect(unpackManifest(text)).toEqual(known)
  expect(text.length / known.size).toBeLessThan(30)
  expect(files({ folder: '.' }).limits.stateBytesMax).toBeGreaterThan(text.length * 20)
})

test('files that last changed before the start date are not read', async () => {
  const day = (offset: number): string => new Date(Date.now() + offset * 86_400_000).toISOString()
  box = await FilesFixture.open({ since: day(1) })
  box.put('a.ndjson', '{"n":1}\n')
  expect(await box.counts()).toEqual({})
  await box.close()
  box = await FilesFixture.open({ since: day(-1) })
  box.put('a.ndjson', '{"n":1}\n')
  expect(await box.counts()).toEqual({ created: 1 })
  expect(() => files({ folder: box.folder, since: 'soon' })).toThrow('`since` is "soon"')
})

test('a range reads the files that changed between its times again, and deletes nothing', async () => {
  box = await FilesFixture.open()
  for (const name of ['a', 'b', 'c']) box.put(`${name}.ndjson`, '{"n":1}\n{"n":2}\n')
  const folder = new LocalFolder(box.folder)
  const list = folder.list.bind(folder)
  const times = new Map([
    ['a', '2026-01-01'],
    ['b', '2026-01-02'],
    ['c', '2026-01-03'],
  ])
  folder.list = async (signal) =>
    (await list(signal)).map(({ path, version }) => ({
      path,
      version: { ...version, changedAtMs: Date.parse(times.get(path[0]!)!) },
    }))
  const { execute } = files({ folder, settleMs: 0 })
  const range = execute.range!({ from: '2026-01-02T00:00:00.000000Z', to: '2026-01-03T00:00:00.000000Z' })
  box.stage.sync('range', 'incremental', range)
  await box.stage.complete('range')
  expect(Object.keys(await box.stage.rows('range'))).toEqual(['b.ndjson#1', 'b.ndjson#2'])
  const keyed = files({ folder: box.folder, key: 'n' }).execute
  expect([keyed.range, keyed.rangeUnsupported]).toEqual([undefined, expect.stringContaining('`updatedAt`')])
})
