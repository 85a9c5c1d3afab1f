import { fork, type ChildProcess } from 'node:child_process'
import { copyFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { fileTokens } from '../../src/connector/index.ts'
import type { Tokens } from '../../src/sources/kit/token-store.ts'
import { buildPackage, type Build } from '../process/build.ts'

const TOKENS: Tokens = { accessToken: 'access-abc', refreshToken: 'refresh-xyz', renewAt: 1, claimedUntil: null }

let folder: string
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), 'tidemark-tokens-')), 'tokens')
})
afterEach(() => rmSync(join(folder, '..'), { recursive: true, force: true }))

const stored = (): string[] => readdirSync(folder).toSorted()

describe('tokens in files', () => {
  test('are written by compare-and-swap and read with the key', async () => {
    const tokens = fileTokens({ folder, key: 'k' })('a')
    expect(await tokens.read()).toBeNull()
    expect(await tokens.write(0, TOKENS)).toBe(true)
    expect(await tokens.write(0, { ...TOKENS, accessToken: 'other' })).toBe(false)
    expect(await tokens.write(7, { ...TOKENS, accessToken: 'other' })).toBe(false)
    expect(await tokens.write(1, { ...TOKENS, accessToken: 'second' })).toBe(true)
    expect(await fileTokens({ folder, key: 'k' })('a').read()).toEqual({ ...TOKENS, accessToken: 'second', version: 2 })
    expect(await fileTokens({ folder, key: 'k' })('b').read()).toBeNull()
  })

  test('are readable by their owner only, encrypted, and bound to their account and version', async () => {
    const open = fileTokens({ folder, key: 'k' })
    await open('a').write(0, TOKENS)
    await open('a').write(1, TOKENS)
    expect(stored()).toEqual(['a.1', 'a.2'])
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    for (const name of stored()) {
      expect(statSync(join(folder, name)).mode & 0o777).toBe(0o600)
      expect(readFileSync(join(folder, name), 'latin1')).not.toMatch(/access|refresh|abc|xyz/)
    }
    copyFileSync(join(folder, 'a.2'), join(folder, 'b.1'))
    copyFileSync(join(folder, 'a.1'), join(folder, 'a.3'))
    await expect(open('b').read()).rejects.toMatchObject({ code: 'STATE_UNREADABLE' })
    await expect(open('a').read()).rejects.toMatchObject({ code: 'STATE_UNREADABLE' })
  })

  test('another key reads nothing and changes nothing', async () => {
    await fileTokens({ folder, key: 'k' })('a').write(0, TOKENS)
    const before = readFileSync(join(folder, 'a.1'))
    await expect(fileTokens({ folder, key: 'other' })('a').read()).rejects.toMatchObject({
      code: 'STATE_UNREADABLE',
      message: expect.stringContaining(join(folder, 'a.1')),
    })
    expect(readFileSync(join(folder, 'a.1'))).toEqual(before)
  })

  test('without a key one is generated for its owner only and reused', async () => {
    vi.stubEnv('TIDEMARK_KEY', '')
    onTestFinished(() => void vi.unstubAllEnvs())
    const open = fileTokens({ folder, key: '' })
    await open('a').write(0, TOKENS)
    expect(statSync(join(folder, 'key')).mode & 0o777).toBe(0o600)
    expect(await fileTokens({ folder, key: '' })('a').read()).toMatchObject({ accessToken: 'access-abc' })
  })

  test('keys rotate: the first of several encrypts, and the others still decrypt', async () => {
    await fileTokens({ folder, key: 'old' })('a').write(0, TOKENS)
    const both = fileTokens({ folder, key: 'new,old' })('a')
    expect(await both.read()).toMatchObject({ version: 1, accessToken: 'access-abc' })
    expect(await both.write(1, TOKENS)).toBe(true)
    expect(await fileTokens({ folder, key: 'new' })('a').read()).toMatchObject({ version: 2 })
    await expect(fileTokens({ folder, key: 'old' })('a').read()).rejects.toMatchObject({ code: 'STATE_UNREADABLE' })
  })

  test('the two newest versions are kept, and drafts of crashed processes are deleted', async () => {
    const tokens = fileTokens({ folder, key: 'k' })('a')
    await tokens.write(0, TOKENS)
    writeFileSync(join(folder, 'a.2.0badcafe'), 'half')
    expect(await tokens.read()).toMatchObject({ version: 1 })
    for (let version = 1; version < 6; version++) await tokens.write(version, TOKENS)
    expect(stored()).toEqual(['a.5', 'a.6'])
  })

  test('an unusable folder is an error without the tokens', async () => {
    writeFileSync(folder, 'a file')
    await expect(fileTokens({ folder, key: 'k' })('a').write(0, TOKENS)).rejects.toMatchObject({
      code: 'STORE_UNAVAILABLE',
      message: expect.not.stringContaining('abc'),
    })
    expect(() => fileTokens({ folder, key: 'k' })('../a')).toThrow('account name is invalid')
  })
})

describe('tokens in files, between processes', () => {
  let build: Build
  beforeAll(async () => {
    build = await buildPackage()
  })
  afterAll(() => build.remove())

  const run = (job: Record<string, unknown>): ChildProcess =>
    fork(join(import.meta.dirname, 'write-tokens.mjs'), [JSON.stringify({ dist: build.dist, folder, ...job })], {
      stdio: 'inherit',
    })
  const ended = (child: ChildProcess): Promise<number | NodeJS.Signals> =>
    new Promise((resolve) => child.once('exit', (code, signal) => resolve(code ?? signal!)))

  test('NX9: four concurrent writers lose no write', async () => {
    const codes = await Promise.all(Array.from({ length: 4 }, () => ended(run({ writes: 25 }))))
    expect(codes).toEqual([0, 0, 0, 0])
    // One more if a slow writer could not see that its write succeeded, and wrote again.
    const { version, ...stored } = (await fileTokens({ folder, key: 'k' })('a').read())!
    expect(version).toBeGreaterThanOrEqual(100)
    expect(stored).toEqual({ ...TOKENS, accessToken: String(version) })
  })

  test.each([
    ['before', 1],
    ['after', 2],
  ] as const)(
    'NX9: a writer killed %s its file is linked leaves version %i and blocks no other writer',
    async (when, version) => {
      await fileTokens({ folder, key: 'k' })('a').write(0, { ...TOKENS, accessToken: '1' })
      expect(await ended(run({ writes: 1, die: when }))).toBe('SIGKILL')
      const tokens = fileTokens({ folder, key: 'k' })('a')
      expect(await tokens.read()).toMatchObject({ version, accessToken: String(version) })
      expect(await tokens.write(version, TOKENS)).toBe(true)
    },
  )

  test('a writer that paused for several versions does not overwrite them', async () => {
    const tokens = fileTokens({ folder, key: 'k' })('a')
    for (const others of [1, 2, 3, 4, 5]) {
      const before = (await tokens.read())?.version ?? 0
      const child = run({ writes: 1, wait: true })
      await new Promise((resolve) => child.once('message', resolve))
      for (let n = 0; n < others; n++)
        expect(await tokens.write(before + n, { ...TOKENS, accessToken: `other ${n}` })).toBe(true)
      child.send('go on')
      expect(await ended(child)).toBe(9)
      expect(await tokens.read()).toMatchObject({ version: before + others, accessToken: `other ${others - 1}` })
    }
  })
})
