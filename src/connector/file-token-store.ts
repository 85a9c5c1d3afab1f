import { randomBytes, scryptSync } from 'node:crypto'
import { link, mkdir, open, readdir, readFile, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { SyncError } from '../contract/index.ts'
import { seal, unseal } from '../registry/seal.ts'
import { required } from '../values/required.ts'
import type { StoredTokens, Tokens, TokenStore } from '../sources/kit/token-store.ts'

/** The folder and encryption key of `fileTokens`. */
export interface FileTokensOptions {
  /** Created if missing, readable by its owner only. */
  readonly folder: string
  /**
   * The encryption key. The default is the environment variable TIDEMARK_KEY, then a key generated in the folder. Several keys are
   * separated by commas: the first encrypts, all of them decrypt.
   */
  readonly key?: string
}

/**
 * Stores tokens in files, for processes on one machine: `refreshToken({ …, tokens: fileTokens({ folder: '.tidemark/tokens' }) })`.
 *
 * Each write creates a new file, named by its version and linked when it is complete and on disk. Two writers of the same version
 * cannot both succeed, a crashed process leaves no lock behind, and a partial file is never read.
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
    if (!/^[\w-]{1,128}$/.test(account))
      throw new SyncError('SYNC_INVALID', 'The account name is invalid. Use up to 128 letters, digits, - and _.')
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
          // Another process replaced the file after it was listed.
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
        // Another process wrote this version (EEXIST), or wrote later versions and deleted the draft (ENOENT).
        if (getErrorCode(error) === 'EEXIST' || getErrorCode(error) === 'ENOENT') return false
        throw error
      } finally {
        await rm(draft, { force: true })
      }
      await fsyncFolder(this.#folder)
      // The version before the newest is always kept, so a lower name is free only if two newer versions exist. Then the order of this
      // write is unknown: it returns false, and the caller reads the newest version.
      const newest = (await this.#listVersions()).at(-1) ?? version
      if (newest > version + 1) return false
      await this.#deleteVersionsBelow(version - 1)
      return true
    })
  }

  async #listVersions(): Promise<number[]> {
    const names = await readdir(this.#folder)
    return names
      .flatMap((name) =>
        name.startsWith(`${this.#account}.`) && /^\d+$/.test(name.slice(this.#account.length + 1))
          ? [Number(name.slice(this.#account.length + 1))]
          : [],
      )
      .toSorted((a, b) => a - b)
  }

  /** Deletes older versions, and their drafts from crashed processes. */
  async #deleteVersionsBelow(below: number): Promise<void> {
    for (const name of await readdir(this.#folder)) {
      const version = name.startsWith(`${this.#account}.`)
        ? Number(name.slice(this.#account.length + 1).split('.')[0])
        : Number.NaN
      if (version < below) await rm(join(this.#folder, name), { force: true })
    }
  }

  #filePath(version: number): string {
    return join(this.#folder, `${this.#account}.${version}`)
  }

  /** Authenticated with the tokens, so that a file copied over another is rejected. */
  #associatedData(version: number): string {
    return `${this.#account}.${version}`
  }

  async #wrapErrors<T>(act: () => Promise<T>): Promise<T> {
    try {
      return await act()
    } catch (error) {
      if (error instanceof SyncError) throw error
      throw new SyncError(
        'STORE_UNAVAILABLE',
        `The tokens in ${this.#folder} cannot be read or written (${getErrorCode(error) ?? 'unknown error'}). Check the permissions of the folder.`,
        { cause: error },
      )
    }
  }
}

interface TokenCipher {
  /** The first encrypts; all of them decrypt. */
  readonly keys: readonly Buffer[]
}

/** A separate file, so that a token file alone cannot be decrypted. */
const KEY_FILE = 'key'

async function loadCipher(folder: string, given: string | undefined): Promise<TokenCipher> {
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // An empty variable counts as unset.
  const secret = given || (await readOrCreateKey(join(folder, KEY_FILE)))
  return {
    keys: secret
      .split(/[\s,]+/)
      .filter((key) => key !== '')
      .map((key) => scryptSync(key, 'tidemark tokens', 32)),
  }
}

/** The first process creates the key; all others read it. */
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

function sealTokens({ keys }: TokenCipher, tokens: Tokens, associatedData: string): string {
  return seal(required(keys[0], 'The key for the tokens'), JSON.stringify(tokens), associatedData, randomBytes)
}

function unsealTokens({ keys }: TokenCipher, text: string, associatedData: string, file: string): Tokens {
  for (const key of keys) {
    const bytes = unseal(key, text, associatedData)
    if (bytes !== null) return JSON.parse(bytes.toString()) as Tokens
  }
  throw new SyncError(
    'STATE_UNREADABLE',
    `The tokens in ${file} were written with another key, or are damaged. Restore the key, or delete the file and authorize again.`,
  )
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
