import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { openStore } from '../../src/stores/open-store.ts'
import { resolveSettings } from '../../src/config/settings.ts'
import { locateStore } from '../../src/stores/drivers.ts'

let folder: string
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'tidemark-settings-'))
})
afterEach(() => rmSync(folder, { recursive: true }))

describe('settings', () => {
  test('without anything set are the embedded default', () => {
    expect(resolveSettings({ environment: {}, folder })).toEqual({
      storeUrl: 'sqlite:.tidemark/tidemark.db',
      tenant: 'default',
      logLevel: 'warn',
      sendTraceparent: false,
      folder,
      environment: {},
    })
  })

  test('come from the flag, then the environment, then .env', () => {
    writeFileSync(
      join(folder, '.env'),
      '\uFEFFTIDEMARK_STORE=sqlite:file.db\nTIDEMARK_TENANT=file\nTIDEMARK_LOG=info\n# note\nAPI_KEY="with space" # why\n',
    )
    const environment = { TIDEMARK_STORE: 'sqlite:env.db', TIDEMARK_TENANT: 'env', OTHER: '1' }
    const flags = { store: 'sqlite:flag.db' }
    expect(resolveSettings({ flags, environment, folder })).toEqual({
      storeUrl: 'sqlite:flag.db',
      tenant: 'env',
      logLevel: 'info',
      sendTraceparent: false,
      folder,
      environment: {
        TIDEMARK_STORE: 'sqlite:env.db',
        TIDEMARK_TENANT: 'env',
        TIDEMARK_LOG: 'info',
        OTHER: '1',
        API_KEY: 'with space',
      },
    })
    expect(resolveSettings({ environment: {}, folder }).storeUrl).toBe('sqlite:file.db')
    expect(process.env['API_KEY']).toBeUndefined()
  })

  test('send the trace to vendors only if the setting has the exact value', () => {
    expect(
      ['send', 'no', '', undefined].map(
        (TIDEMARK_TRACEPARENT) => resolveSettings({ environment: { TIDEMARK_TRACEPARENT }, folder }).sendTraceparent,
      ),
    ).toEqual([true, false, false, false])
  })

  test('that are set to nothing count as not set', () => {
    expect(
      resolveSettings({ environment: { TIDEMARK_STORE: '', TIDEMARK_LOG: '', TIDEMARK_TENANT: '' }, folder }).storeUrl,
    ).toBe('sqlite:.tidemark/tidemark.db')
  })

  test('a folder called .env is not read', () => {
    mkdirSync(join(folder, '.env'))
    expect(resolveSettings({ environment: { A: '1' }, folder }).environment).toEqual({ A: '1' })
  })

  test('a wrong level or tenant is refused', () => {
    expect(() => resolveSettings({ environment: { TIDEMARK_LOG: 'loud' }, folder })).toThrow(
      expect.objectContaining({ code: 'ARGUMENT_INVALID' }),
    )
    expect(() => resolveSettings({ flags: { tenant: '../x' }, environment: {}, folder })).toThrow(
      expect.objectContaining({ code: 'NAME_INVALID' }),
    )
  })
})

describe('a store URL', () => {
  test.each([
    ['sqlite:data/app.db', '/base/data/app.db'],
    ['sqlite:./app.db', '/base/app.db'],
    ['sqlite:/var/app.db', '/var/app.db'],
    ['sqlite:///var/app.db', '/var/app.db'],
    ['sqlite://data/app.db', '/base/data/app.db'],
    ['file:app.db', '/base/app.db'],
    ['file:///var/a%20b.db', '/var/a b.db'],
    ['sqlite::memory:', ':memory:'],
    ['SQLITE:app.db', '/base/app.db'],
  ])('%s is the file %s', (url, file) => {
    expect(locateStore(url, '/base').storage).toEqual(
      file === ':memory:' ? { kind: 'memory' } : { kind: 'file', path: file },
    )
  })

  test('postgres and postgresql are the same', () => {
    for (const url of ['postgres://u:p@h:5432/d', 'postgresql:///d?host=/run/postgresql'])
      expect(locateStore(url, '/base')).toMatchObject({ product: 'PostgreSQL', storage: { kind: 'server' } })
  })

  test.each([
    '',
    'app.db',
    '/var/app.db',
    'mysql://u:hunter2@h/d',
    'postgres:d',
    'postgres://u:hunter2@h:port/d',
    'sqlite:',
    'sqlite:dir/',
    'file://host/x.db',
  ])('%j is refused, without its password', async (url) => {
    await expect(openStore(url)).rejects.toMatchObject({ code: 'STORE_URL_INVALID' })
    await expect(openStore(url)).rejects.not.toThrow(/hunter2/)
  })

  test('a bare path is refused with the correct form', () => {
    expect(() => locateStore('data/app.db', '/base')).toThrow('sqlite:data/app.db')
  })

  test('XD26 a tenant is a name', async () => {
    await expect(openStore('sqlite::memory:', { tenant: '../other' })).rejects.toMatchObject({ code: 'NAME_INVALID' })
  })
})
