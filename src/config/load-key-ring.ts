import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, renameSync, rmSync, statSync, writeSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { SyncError, type StoreLocation } from '../contract/index.ts'
import { KeyRing, encodeMasterKey, generateMasterKey, parseKeyRing } from '../registry/key-ring.ts'
import type { Environment } from './settings.ts'

type KeyRingLocation = Pick<StoreLocation, 'product' | 'storage'>

/**
 * The keys that states are sealed with: from TIDEMARK_KEY_FILE, from TIDEMARK_KEY, or beside the store's file, where the
 * first use makes one; `isNew` when nothing is sealed yet. A server is shared by processes on many machines; a key made on one of
 * them would lock the others out.
 */
export function loadKeyRing(location: KeyRingLocation, environment: Environment, folder: string, isNew = true): KeyRing {
  const file = findKeyFile(location, environment, folder)
  if (file !== null && environment['TIDEMARK_KEY_FILE']) return readKeyFile(file)
  const inline = environment['TIDEMARK_KEY']
  if (inline !== undefined && inline !== '') return parseKeyRing(inline, 'TIDEMARK_KEY')
  if (location.storage.kind === 'server') throw new SyncError('KEYS_MISSING', `A ${location.product} store needs a key to seal states with, the same for every process that uses it.`)
  return file === null ? new KeyRing([generateMasterKey(randomBytes)]) : loadOrCreateKeyFile(file, isNew)
}

/** The file that holds the keys; null when they are in the environment, or nowhere. */
export function findKeyFile(location: KeyRingLocation, environment: Environment, folder: string): string | null {
  if (environment['TIDEMARK_KEY_FILE']) return resolve(folder, environment['TIDEMARK_KEY_FILE'])
  if (environment['TIDEMARK_KEY'] || location.storage.kind !== 'file') return null
  return `${location.storage.path}.key`
}

/** Puts a new key in front of those in the file: it wraps from now on, and they still unwrap. */
export function addKeyToFile(file: string): KeyRing {
  replaceKeyFile(file, `${encodeMasterKey(generateMasterKey(randomBytes))}\n${readFileSync(file, 'utf8')}`)
  return readKeyFile(file)
}

/** The remarks between the keys stay. */
export function removeKeyFromFile(file: string, id: string): void {
  const text = encodeMasterKey(readKeyFile(file).find(id)!)
  replaceKeyFile(file, readFileSync(file, 'utf8').split('\n').filter((line) => line.trim() !== text).join('\n'))
  if (readKeyFile(file).find(id) !== undefined) throw new SyncError('KEYS_MISSING', `Key ${id} shares its line with another in ${file}: take it out by hand.`)
}

function replaceKeyFile(file: string, text: string): void {
  const draft = draftPath(file)
  try {
    writeDraft(draft, text)
    renameSync(draft, file)
  } finally {
    rmSync(draft, { force: true })
  }
  fsyncFolderOf(file)
}

/** Where something is sealed already, a new key would open none of it and hide that the right one is missing. */
function loadOrCreateKeyFile(file: string, isNew: boolean): KeyRing {
  try {
    return readKeyFile(file)
  } catch (error) {
    if (!isNew) throw error
    if ((error as SyncError).cause === undefined || ((error as SyncError).cause as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  createKeyFile(file)
  return readKeyFile(file)
}

function readKeyFile(file: string): KeyRing {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    throw new SyncError('KEYS_MISSING', `The key file ${file} cannot be read (${(cause as NodeJS.ErrnoException).code ?? 'unknown error'}).`, { cause })
  }
  if (process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0) {
    throw new SyncError('KEYS_MISSING', `The key file ${file} can be read by others. Run: chmod 600 ${file}`)
  }
  return parseKeyRing(text, file)
}

/** Whole or not at all, and never over one that is there: of two processes that make it at once, one wins for both. */
function createKeyFile(file: string): void {
  const draft = draftPath(file)
  try {
    mkdirSync(dirname(file), { recursive: true })
    writeDraft(draft, `# Seals the state of every sync in the store beside it. Keep a copy: without it their state cannot be read.\n${encodeMasterKey(generateMasterKey(randomBytes))}\n`)
    linkSync(draft, file)
    fsyncFolderOf(file)
  } catch (cause) {
    const { code, syscall } = cause as NodeJS.ErrnoException
    if (code === 'EEXIST' && syscall === 'link') return
    throw new SyncError(code === 'EROFS' || code === 'EACCES' || code === 'EPERM' ? 'STORE_READONLY' : 'STORE_UNAVAILABLE', `The key file ${file} cannot be made (${code ?? 'unknown error'}).`, { cause })
  } finally {
    rmSync(draft, { force: true })
  }
}

/** The name of a file is on the disk only once its folder is. Windows has no handle for a folder and needs none. */
function fsyncFolderOf(file: string): void {
  if (process.platform === 'win32') return
  const handle = openSync(dirname(file), 'r')
  try {
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}

function draftPath(file: string): string {
  return `${file}.${randomBytes(6).toString('hex')}`
}

function writeDraft(draft: string, text: string): void {
  const handle = openSync(draft, 'wx', 0o600)
  try {
    writeSync(handle, text)
    fsyncSync(handle)
  } finally {
    closeSync(handle)
  }
}
