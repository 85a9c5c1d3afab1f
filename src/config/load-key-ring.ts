import { required } from '../values/required.ts'
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  fsyncSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { dirname, resolve } from 'node:path'
import { SyncError, type StoreLocation } from '../contract/index.ts'
import { KeyRing, encodeMasterKey, generateMasterKey, parseKeyRing } from '../registry/key-ring.ts'
import type { Environment } from './settings.ts'

type KeyRingLocation = Pick<StoreLocation, 'product' | 'storage'>

/**
 * Loads the keys that encrypt stored state: from TIDEMARK_KEY_FILE, from TIDEMARK_KEY, or from a file next to a
 * file-based store, which the first use creates. For a server no key is created, because other machines would lack it.
 */
export function loadKeyRing(
  location: KeyRingLocation,
  environment: Environment,
  folder: string,
  isNew = true,
): KeyRing {
  const file = findKeyFile(location, environment, folder)
  if (file !== null && environment['TIDEMARK_KEY_FILE']) return readKeyFile(file)
  const inline = environment['TIDEMARK_KEY']
  if (inline !== undefined && inline !== '') return parseKeyRing(inline, 'TIDEMARK_KEY')
  if (location.storage.kind === 'server')
    throw new SyncError(
      'KEYS_MISSING',
      `A ${location.product} store needs an encryption key that all of its processes share. Create one with \`tidemark keys new\` and set TIDEMARK_KEY or TIDEMARK_KEY_FILE.`,
    )
  return file === null ? new KeyRing([generateMasterKey(randomBytes)]) : loadOrCreateKeyFile(file, isNew)
}

/** The key file; null if the keys are in the environment or missing. */
export function findKeyFile(location: KeyRingLocation, environment: Environment, folder: string): string | null {
  if (environment['TIDEMARK_KEY_FILE']) return resolve(folder, environment['TIDEMARK_KEY_FILE'])
  if (environment['TIDEMARK_KEY'] || location.storage.kind !== 'file') return null
  return `${location.storage.path}.key`
}

/** Adds a new key as the first one. It wraps from now on; the others still unwrap. */
export function addKeyToFile(file: string): KeyRing {
  replaceKeyFile(file, `${encodeMasterKey(generateMasterKey(randomBytes))}\n${readFileSync(file, 'utf8')}`)
  return readKeyFile(file)
}

/** Keeps comments in the file. */
export function removeKeyFromFile(file: string, id: string): void {
  const text = encodeMasterKey(required(readKeyFile(file).find(id), `key ${id}`))
  replaceKeyFile(
    file,
    readFileSync(file, 'utf8')
      .split('\n')
      .filter((line) => line.trim() !== text)
      .join('\n'),
  )
  if (readKeyFile(file).find(id) !== undefined)
    throw new SyncError('KEYS_MISSING', `Key ${id} shares a line with another key in ${file}. Remove it manually.`)
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

/** If encrypted data exists, a new key could not decrypt it and would hide that the right key is missing. */
function loadOrCreateKeyFile(file: string, isNew: boolean): KeyRing {
  try {
    return readKeyFile(file)
  } catch (error) {
    if (!isNew) throw error
    if (
      (error as SyncError).cause === undefined ||
      ((error as SyncError).cause as NodeJS.ErrnoException).code !== 'ENOENT'
    )
      throw error
  }
  createKeyFile(file)
  return readKeyFile(file)
}

function readKeyFile(file: string): KeyRing {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (cause) {
    throw new SyncError(
      'KEYS_MISSING',
      `The key file ${file} cannot be read (${(cause as NodeJS.ErrnoException).code ?? 'unknown error'}).`,
      { cause },
    )
  }
  if (process.platform !== 'win32' && (statSync(file).mode & 0o077) !== 0) {
    throw new SyncError('KEYS_MISSING', `The key file ${file} is readable by other users. Run: chmod 600 ${file}`)
  }
  return parseKeyRing(text, file)
}

/** Creates the file atomically without overwriting: of two concurrent processes, one wins and both use its key. */
function createKeyFile(file: string): void {
  const draft = draftPath(file)
  try {
    mkdirSync(dirname(file), { recursive: true })
    writeDraft(
      draft,
      `# Encrypts the state of every sync in the store next to it. Keep a copy: without it the state cannot be read.\n${encodeMasterKey(generateMasterKey(randomBytes))}\n`,
    )
    linkSync(draft, file)
    fsyncFolderOf(file)
  } catch (cause) {
    const { code, syscall } = cause as NodeJS.ErrnoException
    if (code === 'EEXIST' && syscall === 'link') return
    throw new SyncError(
      code === 'EROFS' || code === 'EACCES' || code === 'EPERM' ? 'STORE_READONLY' : 'STORE_UNAVAILABLE',
      `The key file ${file} cannot be created (${code ?? 'unknown error'}).`,
      { cause },
    )
  } finally {
    rmSync(draft, { force: true })
  }
}

/** A new file name is durable only after an fsync of its folder. Windows has no folder handles and does not need it. */
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
