import { expect, test } from 'vitest'
import { createTenantSecrets, createSecrets } from '../../src/platform/secrets.ts'

test('a secret comes from the environment it was given', () => {
  expect(createSecrets({ API_KEY: 'x' }).get('API_KEY')).toBe('x')
})

test('a missing or empty secret is named', () => {
  for (const name of ['NOPE', 'EMPTY', 'toString', '__proto__']) {
    expect(() => createSecrets({ EMPTY: '' }).get(name)).toThrow(
      expect.objectContaining({ code: 'SECRET_MISSING', message: expect.stringContaining(name) }),
    )
  }
})

test('Z14 a tenant’s own secret takes precedence over the shared one, and tenants do not share secrets', () => {
  const environment = { TOKEN: 'all', TOKEN__acme: 'acme', TOKEN__a_2db: 'a-b', TOKEN__a_5fb: 'a_b', TOKEN__empty: '' }
  const tokens = ['acme', 'a-b', 'a_b', 'a.b', 'a_2db', 'empty', 'ACME'].map((tenant) =>
    createSecrets(environment, tenant).get('TOKEN'),
  )
  expect(tokens).toEqual(['acme', 'a-b', 'a_b', 'all', 'all', 'all', 'all'])
})

test('own secrets only: shared secrets are not used', () => {
  const own = createTenantSecrets({ TOKEN: 'shared', TOKEN__acme: 'own', OTHER: 'shared', EMPTY__acme: '' }, 'acme')
  expect(own.get('TOKEN')).toBe('own')
  for (const name of ['OTHER', 'EMPTY'])
    expect(() => own.get(name)).toThrow(
      expect.objectContaining({ code: 'SECRET_MISSING', message: expect.stringContaining(`${name}__acme`) }),
    )
})
