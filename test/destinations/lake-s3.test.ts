import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { GetObjectCommand, ListObjectsV2Command, S3Client } from '@aws-sdk/client-s3'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { lake, type LakeS3Options } from '../../src/destinations/lake/destination.ts'
import { S3Storage } from '../../src/destinations/lake/storage/s3-storage.ts'
import { runDestinationCase } from '../../src/testing/describe-destination.ts'
import { destinationCases } from '../../src/testing/destination-cases/cases.ts'
import { DestinationBench, type DestinationHarness } from '../../src/testing/destination-cases/harness.ts'
import { startConditionalProxy, type ConditionalProxy } from './conditional-proxy.ts'
import { readIceberg, readRows, serveFiles } from './lake-reader.ts'

let server: ChildProcess
let client: S3Client
let direct: string
let proxy: ConditionalProxy
let options: LakeS3Options
const BUCKET = 'sales'
beforeAll(async () => {
  server = spawn(
    process.execPath,
    ['--openssl-legacy-provider', join(import.meta.dirname, '../sources/files/s3-server.mjs')],
    { stdio: ['pipe', 'pipe', 'ignore'] },
  )
  const [port] = (await once(server.stdout!, 'data')) as [Buffer]
  direct = `http://127.0.0.1:${port.toString().trim()}`
  proxy = await startConditionalProxy(direct)
  options = {
    bucket: BUCKET,
    endpoint: proxy.endpoint,
    region: 'us-east-1',
    forcePathStyle: true,
    credentials: { accessKeyId: 'S3RVER', secretAccessKey: 'S3RVER' },
  }
  client = new S3Client({
    ...options,
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  } as object)
})
afterAll(async () => {
  client?.destroy()
  await proxy?.close()
  server?.stdin!.end()
  await once(server, 'exit')
})

let prefixes = 0

async function openHarness(): Promise<DestinationHarness & { prefix: string }> {
  const prefix = `lake ${prefixes++}`
  return {
    prefix,
    destination: lake({ s3: { ...options, prefix } }),
    rows: async (database) => {
      const url = `s3://${BUCKET}/${prefix}/${database}`
      const read = async (uri: string): Promise<Uint8Array | null> => {
        const key = uri.slice(`s3://${BUCKET}/`.length)
        const { Body } = await client
          .send(new GetObjectCommand({ Bucket: BUCKET, Key: key }))
          .catch(() => ({ Body: undefined }))
        return Body === undefined ? null : Body.transformToByteArray()
      }
      return serveFiles(read, url, async (local) => {
        const table = await readIceberg(local, url)
        return table === null ? [] : readRows(table)
      })
    },
    interrupt: (fault) => {
      let [left, happened] = [fault === 'commit' ? Infinity : fault.statement, false]
      proxy.intercept = (method, path) => {
        if (happened) return null
        const isHit = fault === 'commit' ? method === 'PUT' && path.includes('.metadata.json') : left-- === 0
        happened = isHit
        return !isHit ? null : fault === 'commit' ? 'after' : 'before'
      }
      return () => {
        proxy.intercept = null
        return happened
      }
    },
    close: async () => {},
  }
}

describe('a lake on S3', () => {
  const titles = [
    'follows every change',
    'kept exactly',
    'a lost answer to the commit',
    'a crash between any two statements of a batch',
    'two appliers',
    'history:',
    'a requested load during a load',
  ]
  for (const destinationCase of destinationCases.filter(({ name }) => titles.some((title) => name.includes(title))))
    test(
      destinationCase.name,
      async () => expect(await runDestinationCase(destinationCase, openHarness)).toBeNull(),
      120_000,
    )

  test('a server that ignores conditional writes is refused before anything is written', async () => {
    const harness = await openHarness()
    const bench = await DestinationBench.open(harness)
    await bench.commit(['a', { n: 1 }])
    const { report } = await bench.run({
      destination: lake({ s3: { ...options, endpoint: direct, prefix: 'ignored' } }),
    })
    expect(report?.error).toMatchObject({
      code: 'DESTINATION_INVALID',
      message: expect.stringContaining('If-None-Match'),
    })
    const { Contents } = await client.send(new ListObjectsV2Command({ Bucket: BUCKET, Prefix: 'ignored/things/' }))
    expect(Contents ?? []).toEqual([])
    await bench.store.close()
  })

  test('of two processes that create a version at once, one succeeds', async () => {
    const storage = new S3Storage({ ...options, prefix: 'race' })
    const results = await Promise.all(
      Array.from({ length: 4 }, (_, n) => storage.create('t/metadata/v1.metadata.json', Buffer.from(String(n)))),
    )
    expect(results.filter((isCreated) => isCreated)).toHaveLength(1)
  })

  test('wrong credentials, a missing bucket and an unreachable server have their own codes, without secrets', async () => {
    const harness = await openHarness()
    const bench = await DestinationBench.open(harness)
    await bench.commit(['a', { n: 1 }])
    const errorOf = async (changed: Partial<LakeS3Options>) =>
      (await bench.run({ destination: lake({ s3: { ...options, ...changed } }) })).report?.error
    const wrong = await errorOf({ credentials: { accessKeyId: 'UNKNOWN', secretAccessKey: 'wrong-secret' } })
    expect(wrong).toMatchObject({ code: 'DESTINATION_REFUSED' })
    expect(wrong?.message).not.toContain('wrong-secret')
    expect(await errorOf({ bucket: 'no-such-bucket' })).toMatchObject({ code: 'DESTINATION_REFUSED' })
    expect(await errorOf({ endpoint: 'http://127.0.0.1:1' })).toMatchObject({ code: 'DESTINATION_UNAVAILABLE' })
    await bench.store.close()
  })
})
