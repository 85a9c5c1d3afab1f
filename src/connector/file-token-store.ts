import { randomBytes, scryptSync } from 'node:crypto'
import { link, mkdir, open, readdir, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { SyncError } from '../contract/index.ts'
import { seal, unseal } from '../registry/seal.ts'
import type { StoredTokens, Tokens, TokenStore } from '../sources/kit/token-store.ts'

export interface FileTokensOptions {
  /** Made when it is missing, for its owner alone. */
  readonly folder: string
  /**
   * What the tokens are encrypted with; the variable TIDEMARK_KEY unless given, and without it a key made in the folder. Several with
   * commas between them: the first seals, the others still open what they sealed.
   */
  readonly key?: string
}

/**
 * Tokens in files, for processes of one machine: `refreshToken({ …, tokens: fileTokens({ folder: '.tidemark/tokens' }) })`.
 *
 * Each write is a file of its own, named for its version and linked into place when it is whole and on disk. Two who write the
 * same version cannot both succeed, no lock is left behind by whoever dies, and half a file is never read.
 */
export function fileTokens({ folder, key }: FileTokensOptions): (account: string) => TokenStore {
  let cipher: Promise<TokenCipher> | undefined
  const withCipher = (): Promise<TokenCipher> => (cipher ??= loadCipher(folder, key || process.env['TIDEMARK_KEY']))
  return (account) => new FileTokenStore(folder, account, withCipher)
}

class FileTokenStore implements TokenStore {
  readonly #folder: string
  readonly #account: string
  readonly #cipher: () => Promise<TokenCipher>

  constructor(folder: string, account: string, cipher: () => Promise<TokenCipher>) {
    if (!/^[\w-]{1,128}$/.test(account)) throw new SyncError('SYNC_INVALID', 'The name of an account is letters and digits.')
    this.#folder = folder
    this.#account = account
    this.#cipher = cipher
  }

  read(): Promise<StoredTokens | null> {
    return this.#wrapErrors(async () => {
      const cipher = await this.#cipher()
      for (;;) {
        const version = (await this.#listVersions()).at(-1)
        if (version === undefined) return null
        try {
          const file = this.#filePath(version)
          return { ...unsealTokens(cipher, await readFile(file, 'utf8'), this.#associatedData(version), file), version }
        } catch (error) {
          // Replaced while it was looked for.
          if (getErrorCode(error) !== 'ENOENT') throw error
        }
      }
    })
  }

  write(expectedVersion: number, tokens: Tokens): Promise<boolean> {
    return this.#wrapErrors(async () => {
      const cipher = await this.#cipher()
      const versions = await this.#listVersions()
      if ((versions.at(-1) ?? 0) !== expectedVersion) return false
      const version = expectedVersion + 1
      const draft = `${this.#filePath(version)}.${randomBytes(6).toString('hex')}`
      try {
        await writeDurably(draft, sealTokens(cipher, tokens, this.#associatedData(version)))
        await link(draft, this.#filePath(version))
      } catch (error) {
        // Somebody else has written this version; or has gone on from it, and cleared the draft away.
        if (getErrorCode(error) === 'EEXIST' || getErrorCode(error) === 'ENOENT') return false
        throw error
      } finally {
        await rm(draft, { force: true })
      }
      await fsyncFolder(this.#folder)
      // The version before the newest always stays, so an old name is free again only when two newer ones are there. Whether this one
      // came before them cannot be told then; who hears "no" reads again, and finds what followed from it.
      const newest = (await this.#listVersions()).at(-1)!
      if (newest > version + 1) return false
      await this.#deleteVersionsBelow(version - 1)
      return true
    })
  }

  async #listVersions(): Promise<number[]> {
    const names = await readdir(this.#folder)
    return names.flatMap((name) => (name.startsWith(`${this.#account}.`) && /^\d+$/.test(name.slice(this.#account.length + 1)) ? [Number(name.slice(this.#account.length + 1))] : [])).toSorted((a, b) => a - b)
  }

  /** Versions below, and drafts of them that somebody died over. */
  async #deleteVersionsBelow(below: number): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      const version = name.startsWith(`${this.#account}.`) ? Number(name.slice(this.#account.length + 1).split('.')[0]) : Number.NaN
      if (version < below) await rm(join(this.#folder, name), { force: true })
    }
  }

  #filePath(version: number): string {
    return join(this.#folder, `${this.#account}.${version}`)
  }

  /** Sealed in with the tokens: a file that is copied over another is not taken for it. */
  #associatedData(version: number): string {
    return `${this.#account}.${version}`
  }

  async #wrapErrors<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act()
    } catch (error) {
      if (error instanceof SyncError) throw error
      throw new SyncError('STORE_UNAVAILABLE', `The tokens in ${this.#folder} cannot be read or written (${getErrorCode(error) ?? 'unknown error'}).`, { cause: error })
    }
  }
}

interface TokenCipher {
  /** The first seals; all of them open. */
  readonly keys: readonly Buffer[]
}

/** Not in the tokens' own files: who has one of those alone has nothing. */
const KEY_FILE = 'key'

async function loadCipher(folder: string, given: string | undefined): Promise<TokenCipher> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // Set to nothing is not set.
  const secret = given || (await readOrCreateKey(join(folder, KEY_FILE)))
  return { keys: secret.split(/[\s,]+/).filter((word) => word !== '').map((word) => scryptSync(word, 'tidemark tokens', 32)) }
}

/** Whoever comes first makes it; all others read it. */
async function readOrCreateKey(file: string): Promise<string> {
  const draft = `${file}.${randomBytes(6).toString('hex')}`
  try {
    await writeDurably(draft, randomBytes(32).toString('base64'))
    await link(draft, file)
    await fsyncFolder(dirname(file))
  } catch (error) {
    if (getErrorCode(error) !== 'EEXIST') throw error
  } finally {
    await rm(draft, { force: true })
  }
  return readFile(file, 'utf8')
}

function sealTokens({ keys }: TokenCipher, tokens: Tokens, place: string): string {
  return seal(keys[0]!, JSON.stringify(tokens), place, randomBytes)
}

function unsealTokens({ keys }: TokenCipher, text: string, place: string, file: string): Tokens {
  for (const key of keys) {
    const bytes = unseal(key, text, place)
    if (bytes !== null) return JSON.parse(bytes.toString()) as Tokens
  }
  throw new SyncError('STATE_UNREADABLE', `The tokens in ${file} were written with another key, or are damaged.`)
}

async function writeDurably(file: string, text: string): Promise<void> {
  const handle = await open(file, 'wx', 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function fsyncFolder(folder: string): Promise<void> {
  const handle = await open(folder)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

function getErrorCode(error: unknown): string | undefined {
  return (error as NodeJS.ErrnoException | undefined)?.code
}
