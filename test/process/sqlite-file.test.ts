import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from '@photostructure/sqlite'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { verifyAuditChain } from '../../src/registry/verify-audit-chain.ts'
import { MIGRATIONS, SCHEMA_VERSION, SCHEMA_VERSION_MIN } from '../../src/stores/sqlite/schema.ts'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { buildPackage, type Build } from './build.ts'
import { Child, killChildren, type ChildMessage } from './child.ts'
import { readStoreFacts, type StoreFacts } from './facts.ts'
import { openMounts } from './mount.ts'
import { createSqliteFixture, type ProcessStoreFixture } from './process-store-fixture.ts'

let build: Build
let stand: ProcessStoreFixture
const mounts = openMounts()
if (mounts === null) console.info('skipped: disk full and read-only, because this process may not mount a file system')
const folder = mkdtempSync(join(tmpdir(), 'tidemark-process-file-'))

beforeAll(async () => {
  build = await buildPackage()
  stand = createSqliteFixture()
})

afterAll(async () => {
  killChildren()
  mounts?.remove()
  rmSync(folder, { recursive: true, force: true })
  await stand.remove()
  build.remove()
})

describe.skipIf(mounts === null)('XB6 a full disk', () => {
  const INPUT = { rows: 30_000, pageSize: 500 }
  // The free space decides where it fails: in a page, in the release of the lease, or in a checkpoint.
  test.each([1.5, 3, 7.9, 15, 20])(
    'with %d MB left the cycle fails as a whole, reads continue, and after space is freed the same store ends equal',
    async (megabytes) => {
      const room = 64
      const disk = mounts!.small(room)
      const ballast = join(disk, 'ballast')
      writeFileSync(ballast, Buffer.alloc(Math.round((room - megabytes) * 2 ** 20)))
      const url = `sqlite:${join(disk, 'data', 'store.db')}`
      const child = new Child(build, 'fill-disk.mjs', { input: { url, ...INPUT } })
      const full = (await child.until('result')) as ChildMessage & { position: number; landed: number; page: number }
      expect(full).toMatchObject({ stopReason: 'error', error: { code: 'STORE_FULL' } })
      // The landed pages are complete, and readable while the disk is full.
      expect(full.landed).toBe(full.position)
      expect(full.position).toBe(full.page * INPUT.pageSize)

      rmSync(ballast)
      child.tell('there is room again')
      const { code, said, stderr } = await child.ended
      expect({ code, stderr, last: said.at(-1) }).toMatchObject({
        code: 0,
        stderr: '',
        last: { stopReason: 'complete', resumed: true, landed: INPUT.rows },
      })
      expect(await stand.look(url, readStoreFacts)).toEqual(await (unharmed ??= runUnharmed()))
    },
  )

  let unharmed: Promise<StoreFacts> | undefined
  async function runUnharmed(): Promise<StoreFacts> {
    const url = await stand.fresh()
    expect((await new Child(build, 'fill-disk.mjs', { input: { url, ...INPUT } }).ended).code).toBe(0)
    return stand.look(url, readStoreFacts)
  }
})

describe('XB7 a read-only file', () => {
  test.skipIf(mounts === null)('is reported as read-only and not retryable, and stays unchanged', async () => {
    const disk = mounts!.small(8)
    const url = `sqlite:${join(disk, 'store.db')}`
    expect((await open(url)).said).toMatchObject([{ stopReason: 'complete' }])
    const place = mounts!.readOnly(disk)
    const before = contents(disk)
    for (const name of ['store.db', 'another.db', 'deeper/still/another.db']) {
      const { code, said } = await open(`sqlite:${join(place, name)}`)
      expect({ code, said }).toMatchObject({
        code: 0,
        said: [
          {
            event: 'refused',
            code: 'STORE_READONLY',
            remedy: 'fix',
            message: expect.stringContaining(join(place, name)) as string,
          },
        ],
      })
    }
    expect(contents(disk)).toEqual(before)
  })
})

describe('XB13 a foreign file stays unchanged, to the last byte', () => {
  test('of a newer tidemark', async () => {
    const file = await ours()
    edit(file, `pragma user_version = ${SCHEMA_VERSION + 1}`)
    await expectRefused(file, 'STORE_NEWER', /version/)
  })

  // As that version wrote it: an unencrypted state, in the registry and in the audit log.
  test.each([1, 2, 3])('of schema version %i, whose states are not encrypted', async (version) => {
    const file = place()
    edit(
      file,
      `${MIGRATIONS.slice(0, version).join(';')}; pragma user_version = ${version};
      insert into tidemark_tenants (name, sequence, committed_at) values ('default', 1, 7);
      insert into tidemark_registry (tenant_id, connector_id, stream_id, version, committed, tidemark) values (1, 'w', 's', 3, '{"cursor":7}', '7');
      insert into tidemark_audit (tenant_id, sync_id, version, at, actor, action, reason, state)
        values (1, 1, 3, 7, 'engine', 'complete', '', '{"cursor":7}')`,
    )
    await expectRefused(file, 'STORE_OLDER', new RegExp(`schema version ${version}`))
  })

  test('of another program that uses its own user_version', async () => {
    for (const version of [SCHEMA_VERSION, SCHEMA_VERSION + 1]) {
      const file = place()
      edit(file, `create table notes (text); insert into notes values ('mine'); pragma user_version = ${version}`)
      await expectRefused(file, 'STORE_FOREIGN', /another program/)
    }
  })

  test('with a table that has the name of one of ours', async () => {
    const file = place()
    edit(file, 'create table tidemark_commits (text)')
    await expectRefused(file, 'STORE_FOREIGN', /tidemark_commits/)
  })

  test('that is not a database', async () => {
    const file = place()
    writeFileSync(file, 'name,amount\nsomebody,1\n'.repeat(200))
    await expectRefused(file, 'STORE_FOREIGN', /not a database/)
  })

  test('XB12 that was truncated, and is never taken for an empty one', async () => {
    const file = await ours()
    truncateSync(file, 8_192 * 3)
    await expectRefused(file, 'STATE_UNREADABLE', /malformed/)
  })
})

test('a store of the oldest readable version is migrated in place, and keeps its data', async () => {
  const file = join(folder, 'old.db')
  edit(
    file,
    `pragma journal_mode = wal; ${MIGRATIONS.slice(0, SCHEMA_VERSION_MIN).join(';')}; pragma user_version = ${SCHEMA_VERSION_MIN};
    insert into tidemark_tenants (name, sequence, committed_at) values ('default', 1, 7);
    insert into tidemark_databases (tenant_id, name, view_name) values (1, 'things', 'things');
    insert into tidemark_registry (tenant_id, connector_id, stream_id, version) values (1, 'w', 's', 3);
    insert into tidemark_registry (tenant_id, connector_id, stream_id) values (1, 'w', 't');
    insert into tidemark_pacers (tenant_id, sync_id, pacer, slot_at) values (1, 1, 'api', 500), (1, 2, 'api', 700), (1, 2, 'slow', 600);
    insert into tidemark_commits (tenant_id, sync_id, cycle_id, page, committed_at) values (1, 1, 1, 1, 7);
    insert into tidemark_log (position, commit_id, database_id, key, action, record) values (${2 ** 40 + 1}, 1, 1, 'a', 1, '{"n":1}');
    insert into tidemark_rows (tenant_id, database_id, key, position, status, hash, writer_id, owner_id) values (1, 1, 'a', ${2 ** 40 + 1}, 0, 'h', 1, 1);
    insert into tidemark_audit (tenant_id, sync_id, version, at, actor, action, reason) values (1, 1, 3, 7, 'engine', 'complete', '')`,
  )
  const store = await openSqliteStore({ file, thread: false })
  expect(await store.readCheckpoint({ worker: 'w', sync: 's' })).toMatchObject({ version: 3 })
  expect(await store.rows({ database: 'things', limit: 10 })).toMatchObject([{ key: 'a', text: '{"n":1}' }])
  await store.signalSync({ worker: 'w', sync: 's' }, { kind: 'pause', actor: 'ana', at: 8 })
  expect(await verifyAuditChain(store)).toMatchObject({ intact: true, entries: 1 })
  // A budget is shared by all syncs since: the latest slot of any of them counts.
  expect(await store.lastSlotTimes('w')).toEqual({ api: 700, slow: 600 })
  expect(await store.takeSlots({ worker: 'w', pacer: 'api', count: 1, paceMs: 10, at: 9 })).toEqual({
    now: 9,
    firstSlotAt: 710,
  })
  await store.close()
})

test('a closed store leaves one file and no descriptor behind', async () => {
  const { said, code } = await new Child(build, 'close-store.mjs', { input: { url: await stand.fresh() } }).ended
  expect(code).toBe(0)
  expect(said).toEqual([1, 2, 3].map(() => ({ event: 'closed', opened: 3, left: [], files: ['store.db'] })))
})

function open(url: string): Child['ended'] {
  return new Child(build, 'open-store.mjs', { input: { url } }).ended
}

async function expectRefused(file: string, code: string, message: RegExp): Promise<void> {
  const before = contents(join(file, '..'))
  const { said } = await open(`sqlite:${file}`)
  expect(said).toMatchObject([
    { event: 'refused', code, remedy: 'fix', message: expect.stringMatching(message) as string },
  ])
  expect(contents(join(file, '..'))).toEqual(before)
}

let places = 0

function place(): string {
  const own = join(folder, String(++places))
  mkdirSync(own)
  return join(own, 'store.db')
}

async function ours(): Promise<string> {
  const file = place()
  expect((await open(`sqlite:${file}`)).said).toMatchObject([{ stopReason: 'complete' }])
  return file
}

function edit(file: string, sql: string): void {
  const db = new DatabaseSync(file)
  db.exec(sql)
  db.close()
}

function contents(directory: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(directory).map((name) => [name, readFileSync(join(directory, name)).toString('base64')]),
  )
}
