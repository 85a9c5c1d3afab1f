import { cp, mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { SyncError } from '../../src/contract/index.ts'
import { createLake, type LakeOptions } from '../../src/destinations/lake/destination.ts'
import { LocalStorage } from '../../src/destinations/lake/storage/local-storage.ts'
import type { DestinationHarness, StoredRow } from '../../src/testing/destination-cases/harness.ts'
import { readIceberg, readPages, readRows, type ReadableTable } from './lake-reader.ts'

export interface LakeHarness extends DestinationHarness {
  readonly folder: string
}

/** A lake in a folder of its own, read with icebird and DuckDB. */
export async function openLakeHarness(
  options: Omit<LakeOptions, 'folder'> = {},
  now: () => number = Date.now,
): Promise<LakeHarness> {
  const root = await mkdtemp(join(tmpdir(), 'tidemark-lake-'))
  const folder = join(root, 'lake')
  return {
    folder,
    destination: createLake({ ...options, folder }, now),
    rows: (database) => readTable(folder, database),
    interrupt: (fault) => interruptStorage(LocalStorage.prototype, fault),
    backUp: async () => {
      const copy = join(root, 'backup')
      await rm(copy, { recursive: true, force: true })
      await cp(folder, copy, { recursive: true })
      return async () => {
        await rm(folder, { recursive: true })
        await cp(copy, folder, { recursive: true })
      }
    },
    close: () => rm(root, { recursive: true, force: true }),
  }
}

export async function readTable(folder: string, database: string): Promise<StoredRow[]> {
  const table = await tableOf(folder, database)
  return table === null ? [] : readRows(table)
}

export async function* pagesOf(table: ReadableTable | null): AsyncGenerator<StoredRow[]> {
  if (table !== null) yield* readPages(table)
}

/** The live files of a table; null if it does not exist. */
export async function tableOf(folder: string, database: string): Promise<ReadableTable | null> {
  const names = await readdir(join(folder, database)).catch((): string[] => [])
  if (names.includes('_tidemark')) {
    const shown = JSON.parse(await readFile(join(folder, database, '_tidemark/live.json'), 'utf8'))
    const hint = await readFile(join(folder, database, '_tidemark/version-hint.text'), 'utf8')
    const manifest = JSON.parse(await readFile(join(folder, database, `_tidemark/v${hint}.json`), 'utf8'))
    if (manifest.live === null) return null
    return { mode: shown.mode, columns: manifest.live.columns, data: shown.files, deletes: [] }
  }
  return names.includes('metadata') ? readIceberg(`file://${join(folder, database)}`) : null
}

const METHODS = ['read', 'readRange', 'write', 'create', 'list', 'remove'] as const

/** Every operation of a storage is a statement. The answer to a commit is lost when a version is created. */
export function interruptStorage(
  prototype: LocalStorage,
  fault: { readonly statement: number } | 'commit',
): () => boolean {
  const methods = METHODS.map((name) => [name, prototype[name]] as const)
  let [left, happened] = [fault === 'commit' ? Infinity : fault.statement, false]
  const fail = (): never => {
    happened = true
    throw new SyncError('DESTINATION_UNAVAILABLE', 'The storage broke.')
  }
  for (const [name, method] of methods) {
    Object.defineProperty(prototype, name, {
      configurable: true,
      writable: true,
      value: async function (this: LocalStorage, ...parameters: unknown[]) {
        if (!happened && left-- === 0) fail()
        const result: unknown = await Reflect.apply(method, this, parameters)
        if (fault === 'commit' && name === 'create' && !happened && result === true) fail()
        return result
      },
    })
  }
  return () => {
    for (const [name, value] of methods)
      Object.defineProperty(prototype, name, { configurable: true, writable: true, value })
    return happened
  }
}
