import { expect, test } from 'vitest'
import type { StoreDriver } from '../../src/contract/index.ts'
import { openStore } from '../../src/stores/open-store.ts'
import { locateStore, registerStore } from '../../src/stores/drivers.ts'

const custom: StoreDriver = {
  schemes: ['my-db', 'mydb'],
  locate: (url, folder) => ({ ...locateStore('sqlite::memory:', folder), product: 'MyDB', describe: () => url }),
}

test('a registered store is found by each of its schemes, and opens like a built-in one', async () => {
  expect(() => locateStore('my-db://host/data', '/')).toThrow(
    'has the unsupported store type "my-db"; use one of sqlite, file, postgres, postgresql',
  )
  registerStore(custom)
  expect(locateStore('MY-DB://host/data', '/').describe('/')).toBe('MY-DB://host/data')
  const store = await openStore('mydb://host/data', { tenant: 'acme', environment: {} })
  try {
    expect(store.tenant).toBe('acme')
    expect(await store.tenants()).toEqual(['acme'])
  } finally {
    await store.close()
  }
})

test('a URL with an unknown scheme is refused without showing its password', () => {
  expect(() => locateStore('nodb://u:hunter2@host/data', '/')).toThrow(
    expect.objectContaining({ code: 'STORE_URL_INVALID', message: expect.not.stringContaining('hunter2') as unknown }),
  )
})
