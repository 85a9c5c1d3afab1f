import { mkdirSync, readdirSync, readFileSync, rmSync, statfsSync, utimesSync, writeFileSync } from 'node:fs'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { DuckDBInstance } from '@duckdb/node-api'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import type { JsonObject } from '../../src/contract/index.ts'
import { createLake, lake, type LakeOptions } from '../../src/destinations/lake/destination.ts'
import { LocalStorage } from '../../src/destinations/lake/storage/local-storage.ts'
import { Versions } from '../../src/destinations/lake/versions.ts'
import { DestinationBench } from '../../src/testing/destination-cases/harness.ts'
import { openMounts } from '../process/mount.ts'
import { openLakeHarness, readTable, type LakeHarness } from './lake-harness.ts'
import { readIceberg } from './lake-reader.ts'
import { LakeWriter } from './lake-writer.ts'

const HOUR = 3_600_000

async function open(options?: Omit<LakeOptions, 'folder'>, now?: () => number): Promise<LakeHarness> {
  const harness = await openLakeHarness(options, now)
  onTestFinished(() => harness.close())
  return harness
}

const recordsOf = async (harness: LakeHarness) =>
  Object.fromEntries((await harness.rows('things')).map(({ key, record }) => [key, record]))
const filesIn = (folder: string): string[] =>
  readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
const metadataOf = (folder: string) => {
  const hint = readFileSync(join(folder, 'things/metadata/version-hint.text'), 'utf8')
  return JSON.parse(readFileSync(join(folder, `things/metadata/v${hint}.metadata.json`), 'utf8'))
}

describe.each(['iceberg', 'parquet'] as const)('a lake of %s', (format) => {
  const TYPES = {
    n: 'bigint',
    ok: 'boolean',
    raw: 'bytes',
    day: 'date',
    local: 'datetime',
    price: 'decimal',
    x: 'double',
    nested: 'json',
    big: 'numeric',
    t: 'text',
    clock: 'time',
    at: 'timestamp',
    id: 'uuid',
    tags: 'text[]',
    prices: 'decimal[]',
    times: 'timestamp[]',
  } as const
  const RECORD = {
    n: 9_007_199_254_740_993n,
    ok: true,
    raw: 'AAECAw==',
    day: '0001-01-01',
    local: '2026-01-31 12:00:00.25',
    price: '-12345678901234567890.12',
    x: 1e-300,
    nested: { a: [1, null, { b: 'ü' }] },
    big: 12_345_678_901_234_567_890n,
    t: '\u{1f600}',
    clock: '23:59:59.999999',
    at: '2026-01-31T12:00:00.123456Z',
    id: '00112233-4455-6677-8899-aabbccddeeff',
    tags: ['a', null, '', '\u{1f600}'],
    prices: ['1.00', null, '-2.50'],
    times: ['1969-12-31T23:59:59.999999Z'],
  }

  test('every type is exact, and has a type of its own in Parquet', async () => {
    const harness = await open({ format })
    const others: JsonObject = {
      ...RECORD,
      price: '1.5',
      big: 0.25,
      prices: [],
      tags: null,
      at: '2026-01-31T12:00:00Z',
    }
    const rows = [
      ['a', RECORD],
      ['b', others],
      ['c', Object.fromEntries(Object.keys(RECORD).map((name) => [name, null]))],
      ['d', {}],
      ['e', { ...RECORD, price: '9'.repeat(50), big: 1.5e-20, id: RECORD.id.toUpperCase(), n: 2n ** 70n }],
    ] as const
    await LakeWriter.load(harness.destination, TYPES, rows)
    expect(await recordsOf(harness)).toEqual(Object.fromEntries(rows))
    const connection = await (await DuckDBInstance.create(':memory:')).connect()
    const described = await connection.runAndReadAll(
      `select column_name, column_type from (describe select * from '${join(harness.folder, 'things/data/*.parquet')}')`,
    )
    expect(Object.fromEntries(described.getRows())).toEqual({
      _key: 'VARCHAR',
      _sequence: 'BIGINT',
      _committed_at: 'TIMESTAMP WITH TIME ZONE',
      _extra: 'VARCHAR',
      n: 'BIGINT',
      ok: 'BOOLEAN',
      raw: 'BLOB',
      day: 'DATE',
      local: 'TIMESTAMP',
      price: 'DECIMAL(38,2)',
      x: 'DOUBLE',
      nested: 'VARCHAR',
      big: 'DECIMAL(38,2)',
      t: 'VARCHAR',
      clock: 'TIME',
      at: 'TIMESTAMP WITH TIME ZONE',
      id: 'UUID',
      tags: 'VARCHAR[]',
      prices: 'DECIMAL(38,2)[]',
      times: 'TIMESTAMP WITH TIME ZONE[]',
    })
  })

  test('small files are merged: rows and types stay the same, and the number of files does not grow with the commits', async () => {
    const harness = await open({ format })
    const writer = await LakeWriter.load(harness.destination, TYPES, [['k0', RECORD]])
    const expected: Record<string, JsonObject | null> = { k0: RECORD }
    for (let n = 1; n <= 40; n++) {
      // Keys that sort differently by UTF-16 units and by bytes.
      const key = `${['k', '\uff01', '\u{1f600}'][n % 3]}${n % 13}`
      const record = n % 5 === 0 ? null : { ...RECORD, n, t: `${n}` }
      await writer.change([key, record])
      if (record === null) delete expected[key]
      else expected[key] = record
    }
    expect(await recordsOf(harness)).toEqual(expected)
    const live =
      format === 'iceberg'
        ? Number((await readManifests(harness)).length)
        : JSON.parse(readFileSync(join(harness.folder, 'things/_tidemark/live.json'), 'utf8')).files.length
    expect(live).toBeLessThan(24)
  })

  test('keys and texts are in the order of bytes, so that readers and later batches find them', async () => {
    const harness = await open({ format })
    const texts = ['\u{1f600}', '\uff01']
    // Ascending by UTF-16 units.
    const rows = texts.flatMap((t) => Array.from({ length: 20 }, (_, n) => [`${t}${n + 10}`, { t, n }] as const))
    const writer = await LakeWriter.load(harness.destination, { t: 'text', n: 'bigint' }, rows)
    const connection = await (await DuckDBInstance.create(':memory:')).connect()
    for (const t of texts) {
      const file = `'${join(harness.folder, 'things/data/*.parquet')}'`
      const found = await connection.runAndReadAll(`select count(*) from ${file} where t = '${t}'`)
      expect(found.getRows()).toEqual([[20n]])
    }
    await writer.change(...rows.map(([key, record]) => [key, { ...record, n: -1 }] as const))
    // A row that was not found would be there twice.
    expect(await harness.rows('things')).toHaveLength(rows.length)
    expect(await recordsOf(harness)).toEqual(
      Object.fromEntries(rows.map(([key, record]) => [key, { ...record, n: -1 }])),
    )
  })

  test('a history is merged as well', async () => {
    const harness = await open({ format })
    const writer = await LakeWriter.load(harness.destination, { n: 'bigint', t: 'text' }, [], 'history')
    // A file that is too large to be merged with the others.
    const large = Array.from(
      { length: 60 },
      (_, n) => [`k${n % 3}-${n}`, { n: -1, t: randomBytes(12_000).toString('hex') }] as const,
    )
    await writer.change(['k0', { n: -1 }], ['k1', { n: -1 }], ...large)
    for (let n = 0; n < 30; n++) await writer.change([`k${n % 3}`, n % 7 === 6 ? null : { n }])
    const rows = (await harness.rows('things')).filter(({ key }) => !key.includes('-'))
    expect(rows.map(({ record }) => record?.['n'])).toEqual(
      [-1, -1].concat(Array.from({ length: 30 }, (_, n) => n).filter((n) => n % 7 !== 6)),
    )
    expect(rows.filter(({ isCurrent }) => isCurrent).map(({ record }) => record?.['n'])).toEqual([28, 29])
  })

  test.each([
    ['day', 'at', 3],
    ['month', 'day', 2],
    ['value', 't', 3],
  ] as const)(
    'partitions by %s of a field have files of their own, and a row moves between them',
    async (by, field, count) => {
      const harness = await open({ format, partitionBy: { things: { field, by } } })
      const of = (day: string, t: string): JsonObject => ({ at: `${day}T10:00:00.000Z`, day, t })
      const rows = [
        ['a', of('2026-01-31', 'x')],
        ['b', of('1969-12-31', 'y/\u{1f600}')],
        ['c', {}],
        ['d', of('2026-01-01', 'x')],
      ] as const
      const writer = await LakeWriter.load(
        harness.destination,
        { at: 'timestamp', day: 'date', t: 'text' },
        rows.slice(0, 3),
      )
      await writer.change(rows[3], ['a', of('2026-01-31', 'x')])
      expect(await recordsOf(harness)).toEqual(Object.fromEntries(rows))
      const moved = of('1969-12-31', 'y/\u{1f600}')
      for (let n = 0; n < 10; n++) await writer.change(['a', { ...moved, n }], ['b', null])
      expect(await recordsOf(harness)).toEqual({ a: { ...moved, n: 9 }, c: {}, d: rows[3][1] })
      const folders = readdirSync(join(harness.folder, 'things/data'), { withFileTypes: true }).filter((one) =>
        one.isDirectory(),
      )
      expect(folders.length).toBeGreaterThanOrEqual(count)
    },
  )

  test('unused files are removed after the time that readers have, and not before', async () => {
    let now = Date.now()
    const harness = await open({ format, keepHours: 24, snapshotsMin: 2 }, () => now)
    const writer = await LakeWriter.load(harness.destination, { n: 'bigint' }, [['a', { n: 0 }]])
    const orphan = join(harness.folder, 'things/data/orphan.parquet')
    const young = join(harness.folder, 'things/data/young.parquet')
    writeFileSync(orphan, 'x')
    for (let n = 0; n < 12; n++) await writer.change(['a', { n }])
    const before = filesIn(harness.folder)
    expect(before).toContain(orphan)
    now += 48 * HOUR
    writeFileSync(young, 'x')
    utimesSync(young, new Date(now), new Date(now))
    for (let n = 0; n < 24; n++) await writer.change(['a', { n: 100 + n }])
    const after = filesIn(harness.folder)
    expect(after).not.toContain(orphan)
    expect(after).toContain(young)
    // Files of the first day are gone, and those of the last commits are there.
    expect(after.filter((file) => before.includes(file)).length).toBeLessThan(before.length / 3)
    expect(await recordsOf(harness)).toEqual({ a: { n: 123 } })
  }, 60_000)

  test('files that are not ours, another mode and a folder that is a file stop the destination, and stay', async () => {
    const harness = await open({ format })
    const bench = await DestinationBench.open(harness)
    await bench.commit(['a', { n: 1 }])
    const foreign = join(harness.folder, 'things/part-0.parquet')
    mkdirSync(join(harness.folder, 'things'), { recursive: true })
    writeFileSync(foreign, 'mine')
    expect((await bench.run()).report?.error).toMatchObject({
      code: 'DESTINATION_FOREIGN',
      message: expect.stringContaining('part-0.parquet'),
    })
    expect(filesIn(harness.folder)).toEqual([foreign])
    rmSync(foreign)
    expect((await bench.run()).report?.error).toBeNull()
    const before = filesIn(harness.folder)
    expect((await bench.run({ mode: 'append' })).report?.error?.code).toBe('DESTINATION_INVALID')
    expect(filesIn(harness.folder)).toEqual(before)
    const file = join(harness.folder, 'file')
    writeFileSync(file, '')
    expect((await bench.run({ destination: lake({ folder: file, format }) })).report?.error?.code).toBe(
      'DESTINATION_REFUSED',
    )
    await bench.store.close()
  })
})

const mounts = openMounts()
afterAll(() => mounts?.remove())

describe.skipIf(mounts === null)('a disk', () => {
  test('that is full stops the destination, which continues when there is space', async () => {
    const harness = await open()
    const bench = await DestinationBench.open(harness)
    const disk = mounts!.small(2)
    const ballast = join(disk, 'ballast')
    const destination = lake({ folder: join(disk, 'lake') })
    await bench.commit(['a', { n: 1 }])
    expect((await bench.run({ destination })).report?.error).toBeNull()
    const { bavail, bsize } = statfsSync(disk)
    writeFileSync(ballast, Buffer.alloc(bavail * bsize))
    await bench.commit(['a', { n: 2, text: 'x'.repeat(10_000) }])
    expect((await bench.run({ destination })).report?.error?.code).toBe('DESTINATION_FULL')
    rmSync(ballast)
    expect((await bench.run({ destination })).report?.error).toBeNull()
    expect(await readTable(join(disk, 'lake'), 'things')).toEqual(await bench.current())
    await bench.store.close()
  })

  test('that is read-only is refused', async () => {
    const harness = await open()
    const bench = await DestinationBench.open(harness)
    await bench.commit(['a', { n: 1 }])
    const destination = lake({ folder: join(mounts!.readOnly(mounts!.small(2)), 'lake') })
    expect((await bench.run({ destination })).report?.error?.code).toBe('DESTINATION_REFUSED')
    await bench.store.close()
  })
})

describe('an Iceberg table', () => {
  test('writes files again when many of its rows are deleted rows', async () => {
    const harness = await open()
    const rows = Array.from({ length: 5_000 }, (_, n) => [`k${n}`, { n }] as const)
    const writer = await LakeWriter.load(harness.destination, { n: 'bigint' }, rows)
    const expected: Record<string, JsonObject> = Object.fromEntries(rows)
    for (let batch = 0; batch < 6; batch++) {
      const changed = rows.slice(batch * 400, batch * 400 + 400).map(([key, { n }]) => [key, { n: -1 - n }] as const)
      await writer.change(...changed)
      Object.assign(expected, Object.fromEntries(changed))
    }
    expect(await recordsOf(harness)).toEqual(expected)
    const table = await readIceberg(`file://${join(harness.folder, 'things')}`)
    const connection = await (await DuckDBInstance.create(':memory:')).connect()
    const paths = table!.deletes.map((file) => `'${file}'`).join()
    const left =
      paths === ''
        ? []
        : (await connection.runAndReadAll(`select file_path from read_parquet([${paths}])`))
            .getRows()
            .map(([path]) => path)
    expect(left.length).toBeLessThan(1_500)
    // Positions of files that were written again are dropped.
    const live = new Set(table!.manifests!.map(({ path }) => path))
    expect(left.filter((path) => !live.has(String(path)))).toEqual([])
  })

  test('has deletes of its own for every partition', async () => {
    const harness = await open({ partitionBy: { things: { field: 't', by: 'value' } } })
    const rows = ['x', 'y', 'z'].map((t) => [t, { t, n: 1 }] as const)
    const writer = await LakeWriter.load(harness.destination, { t: 'text', n: 'bigint' }, rows)
    await writer.change(...rows.map(([key, record]) => [key, { ...record, n: 2 }] as const))
    const { manifests } = (await readIceberg(`file://${join(harness.folder, 'things')}`))!
    const partitionOf = new Map(manifests!.map(({ path, partition }) => [path, partition]))
    const deletes = manifests!.filter(({ content }) => content === 1)
    expect(deletes).toHaveLength(3)
    const connection = await (await DuckDBInstance.create(':memory:')).connect()
    for (const { path, partition } of deletes) {
      const named = await connection.runAndReadAll(`select file_path from '${path}'`)
      expect(named.getRows().map(([file]) => partitionOf.get(String(file)))).toEqual([partition])
    }
  })

  test('has a new field id for a new field, and keeps the others', async () => {
    const harness = await open()
    const bench = await DestinationBench.open(harness)
    await bench.commit(['a', { n: 1 }])
    await bench.run()
    await bench.commit(['a', { n: 1, later: 'x' }])
    await bench.run()
    const metadata = metadataOf(harness.folder)
    const current = metadata.schemas.find((schema: JsonObject) => schema['schema-id'] === metadata['current-schema-id'])
    expect(current.fields.map(({ id, name, type }: JsonObject) => [id, name, type])).toEqual([
      [1, '_key', 'string'],
      [2, '_sequence', 'long'],
      [3, '_committed_at', 'timestamptz'],
      [4, '_extra', 'string'],
      [5, 'n', 'long'],
      [6, 'later', 'string'],
    ])
    expect(metadata['last-column-id']).toBe(6)
    await bench.store.close()
  })

  test('keeps a bounded number of snapshots, and the token is in the summary of the current one', async () => {
    let now = 1_700_000_000_000
    const harness = await open({ snapshotsMin: 3, keepHours: 16 }, () => now)
    const writer = await LakeWriter.load(harness.destination, { n: 'bigint' }, [['a', { n: 0 }]])
    for (let n = 0; n < 44; n++) {
      now += HOUR / 2
      await writer.change(['a', { n }])
    }
    const metadata = metadataOf(harness.folder)
    // Three, then one per hour, up to the first that is older than 16 hours.
    expect(metadata.snapshots.length).toBeGreaterThanOrEqual(17)
    expect(metadata.snapshots.length).toBeLessThanOrEqual(21)
    const oldest = metadata.snapshots[0]['timestamp-ms']
    expect((now - oldest) / HOUR).toBeGreaterThanOrEqual(16)
    expect((now - oldest) / HOUR).toBeLessThan(18)
    const current = metadata.snapshots.find((one: JsonObject) => one['snapshot-id'] === metadata['current-snapshot-id'])
    expect(JSON.parse(current.summary['tidemark.token'])).toEqual(writer.token)
    expect(metadata['metadata-log'].length).toBeLessThanOrEqual(20)
  })

  test('that another program wrote to, that was moved, or that is not ours is refused', async () => {
    const harness = await open()
    const bench = await DestinationBench.open(harness)
    await bench.commit(['a', { n: 1 }])
    await bench.run()
    const hint = Number(readFileSync(join(harness.folder, 'things/metadata/version-hint.text'), 'utf8'))
    const next = join(harness.folder, `things/metadata/v${hint + 1}.metadata.json`)
    const metadata = metadataOf(harness.folder)
    const errorOf = async (changed: object) => {
      writeFileSync(next, JSON.stringify({ ...metadata, ...changed }))
      return (await bench.run()).report?.error
    }
    const [snapshot] = metadata.snapshots
    const without = { ...snapshot, summary: { operation: 'replace' } }
    expect(await errorOf({ snapshots: [without] })).toMatchObject({
      code: 'DESTINATION_FOREIGN',
      message: expect.stringContaining('Another program'),
    })
    expect(await errorOf({ location: 'file:///elsewhere' })).toMatchObject({ code: 'DESTINATION_FOREIGN' })
    expect(await errorOf({ properties: {} })).toMatchObject({ code: 'DESTINATION_FOREIGN' })
    rmSync(next)
    writeFileSync(join(harness.folder, 'things/metadata/version-hint.text'), String(hint))
    expect((await bench.run()).report?.error).toBeNull()
    await bench.store.close()
  })

  test('finds the newest version if the hint is missing, old, or names a version that is gone', async () => {
    const harness = await open()
    const writer = await LakeWriter.load(harness.destination, { n: 'bigint' }, [['a', { n: 0 }]])
    const hint = join(harness.folder, 'things/metadata/version-hint.text')
    for (const text of [null, '1', '999', 'x']) {
      if (text === null) rmSync(hint)
      else writeFileSync(hint, text)
      expect((await writer.session.position('things')).live).toEqual(writer.token)
      expect(readFileSync(hint, 'utf8')).toBe('3')
    }
  })
})

describe('versions', () => {
  test('a process that was suspended cannot commit under a number that was removed since', async () => {
    const harness = await open()
    const storage = new LocalStorage(harness.folder)
    const versions = new Versions(storage, 't/metadata', '.metadata.json')
    for (let version = 1; version <= 5; version++) await versions.create(version, Buffer.from(`v${version}`))
    expect(await versions.create(5, Buffer.from('other'))).toBe(false)
    // The answer to the first attempt was lost: the same bytes are the same commit.
    expect(await versions.create(5, Buffer.from('v5'))).toBe(true)
    await storage.remove([versions.pathOf(1), versions.pathOf(2)])
    expect(await versions.create(2, Buffer.from('stale'))).toBe(false)
    expect(await storage.read(versions.pathOf(2))).toBeNull()
    expect(await versions.readNewest()).toEqual({ version: 5, bytes: Buffer.from('v5') })
  })

  test('of many that create one at once, one succeeds, and no part of a file remains', async () => {
    const harness = await open()
    const storage = new LocalStorage(harness.folder)
    const created = await Promise.all(Array.from({ length: 8 }, (_, n) => storage.create('t/v1', Buffer.from(`${n}`))))
    expect(created.filter((isCreated) => isCreated)).toHaveLength(1)
    expect(readdirSync(join(harness.folder, 't'))).toEqual(['v1'])
  })
})

describe('options', () => {
  test('are checked', () => {
    const fails = (options: object) =>
      expect(() => createLake(options, Date.now)).toThrow(expect.objectContaining({ code: 'DESTINATION_INVALID' }))
    fails({})
    fails({ folder: 'a', s3: { bucket: 'b' } })
    fails({ folder: 'a', format: 'orc' })
    fails({ folder: 'a', snapshotsMin: 0 })
    fails({ folder: 'a', keepHours: -1 })
  })
})

async function readManifests(harness: LakeHarness): Promise<string[]> {
  const table = await readIceberg(`file://${join(harness.folder, 'things')}`)
  return [...(table?.data ?? []), ...(table?.deletes ?? [])]
}
