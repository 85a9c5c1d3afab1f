import { randomBytes } from 'node:crypto'
import { closeSync, fsyncSync, linkSync, mkdirSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { SyncError } from '../contract/index.ts'
import { KeyRing, keyText, makeMasterKey, parseKeyRing } from '../registry/key-ring.ts'
import type { Environment } from './settings.ts'
import type { StoreLocation } from './store-url.ts'

/**
 * The keys that states are sealed with: from TIDEMARK_KEY_FILE, from TIDEMARK_KEY, or beside a SQLite file, where the first
 * use makes one. A PostgreSQL is shared by processes on many machines; a key made on one of them would lock the others out.
 */
export function loadKeyRing(location: StoreLocation, environment: Environment, folder: string): KeyRing {
  const given = environment['TIDEMARK_KEY_FILE']
  if (given !== undefined && given !== '') return readKeyFile(resolve(folder, given))
  const inline = environment['TIDEMARK_KEY']
  if (inline !== undefined && inline !== '') return parseKeyRing(inline, 'TIDEMARK_KEY')
  if (location.kind === 'postgres') throw new SyncError('KEYS_MISSING', 'A PostgreSQL store needs a key to seal states with, the same for every process that uses it.')
  if (location.file === ':memory:') return new KeyRing([makeMasterKey(randomBytes)])
  return keyBeside(location.file)
}

function keyBeside(storeFile: string): KeyRing {
  const file = `${storeFile}.key`
  try {
    return readKeyFile(file)
  } catch (error) {
    if ((error as SyncError).cause === undefined || ((error as SyncError).cause as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  makeKeyFile(file)
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
function makeKeyFile(file: string): void {
  const draft = `${file}.${randomBytes(6).toString('hex')}`
  try {
    mkdirSync(dirname(file), { recursive: true })
    const handle = openSync(draft, 'wx', 0o600)
    try {
      writeSync(handle, `# Seals the state of every sync in the store beside it. Keep a copy: without it their state cannot be read.\n${keyText(makeMasterKey(randomBytes))}\n`)
      fsyncSync(handle)
    } finally {
      closeSync(handle)
    }
    linkSync(draft, file)
  } catch (cause) {
    const { code, syscall } = cause as NodeJS.ErrnoException
    if (code !== 'EEXIST' || syscall !== 'link') throw new SyncError(code === 'EROFS' || code === 'EACCES' || code === 'EPERM' ? 'STORE_READONLY' : 'STORE_UNAVAILABLE', `The key file ${file} cannot be made (${code ?? 'unknown error'}).`, { cause })
  } finally {
    rmSync(draft, { force: true })
  }
}
