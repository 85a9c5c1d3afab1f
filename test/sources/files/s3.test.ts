import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DeleteObjectCommand, PutObjectCommand, S3Client } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openStore } from '../../../src/stores/open-store.ts'
import { files, s3Folder, type S3Options } from '../../../src/sources/files/source.ts'
import { buildPackage } from '../../process/build.ts'
import { Child } from '../../process/child.ts'
import { contextOf } from '../sql/cases.ts'
import { DatabaseFixture } from '../sql/database-fixture.ts'

let server: ChildProcess
let config: NonNullable<S3Options['client']>
let client: S3Client
beforeAll(async () => {
  server = spawn(process.execPath, ['--openssl-legacy-provider', join(import.meta.dirname, 's3-server.mjs')], {
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const [port] = (await once(server.stdout!, 'data')) as [Buffer]
  config = {
    endpoint: `http://127.0.0.1:${port.toString().trim()}`,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  }
  client = new S3Client(config as object)
})
afterAll(async () => {
  client?.destroy()
  server?.stdin!.end()
  await once(server, 'exit')
})

const put = (key: string, body: string): Promise<unknown> =>
  client.send(new PutObjectCommand({ Bucket: 'sales', Key: key, Body: body }))

test('R41 a bucket is followed like a folder: new, late, replaced and deleted objects, and only those below the prefix', async () => {
  // Below zero: the objects of this very second are settled.
  const { mode, execute, limits } = files({
    folder: s3Folder({ bucket: 'sales', prefix: 'orders/', client: config }),
    settleMs: -5_000,
    deletedFiles: 'delete',
    pageSize: 2,
  })
  const stage = (await DatabaseFixture.open()).sync('rows', mode, execute, limits)
  await put('orders/2026/b.csv', 'id,n\n1,a\n2,b\n3,c\n')
  await put('other/x.csv', 'id\n1\n')
  expect((await stage.complete('rows')).counts).toMatchObject({ created: 3 })
  expect((await stage.state('rows')).cursorValue).toMatch(/^2026\/b\.csv#sha256=[0-9a-f]{64}$/)
  await put('orders/2026/a.ndjson', '{"n":9007199254740993}\n')
  await put('orders/2026/b.csv', 'id,n\n1,a\n2,B\n')
  expect((await stage.complete('rows')).counts).toMatchObject({ created: 1, updated: 1, deleted: 1, unchanged: 1 })
  expect((await stage.complete('rows')).counts).toMatchObject({ created: 0, updated: 0, deleted: 0, unchanged: 0 })
  await client.send(new DeleteObjectCommand({ Bucket: 'sales', Key: 'orders/2026/b.csv' }))
  expect((await stage.complete('rows')).counts).toMatchObject({ deleted: 2 })
  expect(await stage.rows('rows')).toEqual({ '2026/a.ndjson#1': { n: 9007199254740993n } })
  await stage.close()
})

test('R41 R48 R50 a reader of a bucket that is killed in the middle of an object is followed by one that ends its cycle, and nothing lands twice', async () => {
  const build = await buildPackage()
  const root = mkdtempSync(join(tmpdir(), 'tidemark-s3-kill-'))
  const input = {
    url: `sqlite:${join(root, 'store.db')}`,
    bucket: { bucket: 'sales', prefix: 'kill/', client: config },
    pageSize: 3,
    settleMs: -5_000,
  }
  const keys = async (): Promise<string[]> => {
    const store = await openStore(input.url)
    try {
      return (await store.changes({ after: 0, limit: 1_000 })).map(({ key }) => key).toSorted()
    } finally {
      await store.close()
    }
  }
  const rowsOf = (name: string, count: number): string[] =>
    Array.from({ length: count }, (_, index) => `${name}.csv#${index + 1}`)
  try {
    for (const name of ['a', 'b']) await put(`kill/${name}.csv`, `id\n${'7\n'.repeat(8)}`)
    const victim = new Child(build, 'run-files.mjs', { input: { ...input, holdAt: 6 } })
    await victim.until('landed', (said) => said['page'] === 5)
    expect((await victim.kill()).signal).toBe('SIGKILL')
    expect((await keys()).length).toBeLessThan(16)
    const heir = await new Child(build, 'run-files.mjs', { input }).ended
    expect(heir.said.at(-1)).toMatchObject({ event: 'result', stopReason: 'complete', resumed: true })
    expect(await keys()).toEqual([...rowsOf('a', 8), ...rowsOf('b', 8)])
    // One more full incremental cycle, by yet another process.
    await put('kill/aa.csv', 'id\n1\n')
    const third = await new Child(build, 'run-files.mjs', { input }).ended
    expect(third.said.at(-1)).toMatchObject({
      stopReason: 'complete',
      resumed: false,
      counts: { created: 1, updated: 0, deleted: 0 },
    })
  } finally {
    rmSync(root, { recursive: true, force: true })
    build.remove()
  }
})

test('a bucket that is not there has a code of its own', async () => {
  const { execute } = files({ folder: s3Folder({ bucket: 'nowhere', client: config }) })
  await expect(execute(undefined, contextOf())).rejects.toMatchObject({ code: 'SOURCE_NOT_FOUND' })
})
