import { expect, test } from 'vitest'
import { createSecrets } from '../../src/platform/secrets.ts'

test('a secret comes from the environment it was given', () => {
  expect(createSecrets({ API_KEY: 'x' }).get('API_KEY')).toBe('x')
})

test('a missing or empty secret is named', () => {
  for (const name of ['NOPE', 'EMPTY', 'toString', '__proto__']) {
    expect(() => createSecrets({ EMPTY: '' }).get(name)).toThrow(expect.objectContaining({ code: 'SECRET_MISSING', message: expect.stringContaining(name) }))
  }
})
