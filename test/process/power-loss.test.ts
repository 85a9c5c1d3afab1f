import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openSqliteStore } from '../../src/stores/sqlite/store.ts'
import { buildPackage, type Build } from './build.ts'
import { Child, killChildren } from './child.ts'
import { chance } from './children/world.mjs'
import { readStoreFacts, type StoreFacts } from './facts.ts'
import { cutPower, parseRecord, replayAll, type Operation } from './power-cut.ts'
import { integrityOf } from './process-store-fixture.ts'

const IMAGES = process.env['TIDEMARK_LONG'] === '1' ? 20_000 : 150
const SEED = Number(process.env['TIDEMARK_SEED'] ?? 1)
const WORLD = { seed: SEED, keys: 100, steps: 12, pageSize: 16 }

const folder = mkdtempSync(join(tmpdir(), 'tidemark-process-power-'))
const recorder = join(folder, 'recorder.so')
const missing = process.platform === 'linux' ? compileRecorder() : 'the recorder is written for Linux'
if (missing !== null) console.info(`skipped: XA15, because ${missing}`)

let build: Build

beforeAll(async () => {
  build = await buildPackage()
})

afterAll(() => {
  killChildren()
  rmSync(folder, { recursive: true, force: true })
  build.remove()
})

describe.skipIf(missing !== null)('XA15 a power cut', () => {
  test(
    'loses no acknowledged change and damages nothing, whatever of the unsynced writes was lost or torn',
    async () => {
      const operations = await recordRun()
      const whole = await factsOf(replayAll(operations))
      const random = chance(SEED)
      const score = { images: 0, synced: operations.filter(({ kind }) => kind === 'synced').length, behindTheEnd: 0 }
      for (const { at, image } of cutPower(operations, IMAGES, random)) {
        const acknowledged = lastAcknowledged(operations.slice(0, at))
        const facts = await factsOf(image).catch((error: unknown) => {
          throw new Error(`seed ${SEED}, image ${score.images}, cut after operation ${at} of ${operations.length}`, {
            cause: error,
          })
        })
        expect(facts.position, `image ${score.images}, cut after operation ${at}`).toBeGreaterThanOrEqual(acknowledged)
        // The result is a prefix of the complete run, and not only consistent in itself.
        expect(facts.feed).toEqual(whole.feed.slice(0, facts.position))
        score.images++
        if (facts.position < whole.position) score.behindTheEnd++
      }
      console.info(`power cuts: ${JSON.stringify(score)}, seed ${SEED}`)
      expect(score.behindTheEnd).toBeGreaterThan(IMAGES / 2)
    },
    process.env['TIDEMARK_LONG'] === '1' ? 3_600_000 : 180_000,
  )

  test('the recorder misses nothing: all writes replayed give exactly the final file', async () => {
    const operations = await recordRun()
    const files = replayAll(operations)
    expect([...files.keys()].toSorted()).toEqual(['acknowledged', 'store.db'])
    expect(files.get('store.db')!.equals(readFileSync(join(folder, 'data', 'store.db')))).toBe(true)
  })

  test('a page of a listing that changes nothing does not wait for the disk; the next change does', async () => {
    const operations = await record('run-listings.mjs', 'listings', { pages: 5, changed: 4 })
    // The syncs of the log before each acknowledgement.
    const syncs: number[] = [0]
    for (const { kind, name } of operations) {
      if (kind === 'synced' && name === 'store.db-wal') syncs[syncs.length - 1]!++
      if (kind === 'written' && name === 'acknowledged') syncs.push(0)
    }
    const waited = syncs.slice(0, 15).map((count) => count > 0)
    const [yes, no] = [true, false]
    expect(waited).toEqual([yes, yes, yes, yes, yes, yes, no, no, no, yes, yes, no, no, yes, yes])
    const random = chance(SEED)
    for (const { at, image } of cutPower(operations, 60, random))
      expect((await factsOf(image)).position, `cut after operation ${at}`).toBeGreaterThanOrEqual(
        lastAcknowledged(operations.slice(0, at)),
      )
  })

  test('the images can fail: without the synced log, acknowledged pages are missing', async () => {
    const operations = await recordRun()
    const random = chance(SEED)
    const careless = operations.filter(({ kind, name }) => !(kind === 'synced' && name === 'store.db-wal'))
    let missed = 0
    for (const { at, image } of cutPower(careless, 40, random)) {
      const facts = await factsOf(image).catch(() => null)
      if (facts === null || facts.position < lastAcknowledged(careless.slice(0, at))) missed++
    }
    expect(missed).toBeGreaterThan(0)
  })
})

/** The reason why it is unavailable, or null. */
function compileRecorder(): string | null {
  const { error, status, stderr } = spawnSync('gcc', [
    '-O2',
    '-shared',
    '-fPIC',
    '-o',
    recorder,
    join(import.meta.dirname, 'children', 'recorder.c'),
    '-ldl',
  ])
  if (error !== undefined) return 'there is no gcc here'
  return status === 0 ? null : `gcc refused: ${stderr.toString()}`
}

let recorded: Promise<Operation[]> | undefined

function recordRun(): Promise<Operation[]> {
  return (recorded ??= record('run-recorded.mjs', 'data', WORLD))
}

async function record(script: string, name: string, input: object): Promise<Operation[]> {
  const data = join(folder, name)
  mkdirSync(data)
  const { code, stderr } = await new Child(build, script, {
    input: { folder: data, ...input },
    env: { LD_PRELOAD: recorder, RECORD_FOLDER: data, RECORD_TO: `${data}.record` },
  }).ended
  expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
  return parseRecord(readFileSync(`${data}.record`))
}

function lastAcknowledged(operations: readonly Operation[]): number {
  const last = operations.findLast(({ name }) => name === 'acknowledged')
  return last === undefined || last.kind !== 'written' ? 0 : Number(last.data.toString())
}

let images = 0

/** Starts from the image as the next process would. */
async function factsOf(image: ReadonlyMap<string, Buffer>): Promise<StoreFacts> {
  const place = join(folder, `image-${++images}`)
  mkdirSync(place)
  for (const [name, content] of image) writeFileSync(join(place, name), content)
  const file = join(place, 'store.db')
  try {
    const store = await openSqliteStore({ file, synchronous: 'off', thread: false })
    try {
      expect(integrityOf(file)).toEqual(['ok'])
      return await readStoreFacts(store)
    } finally {
      await store.close()
    }
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}
