import { format, inspect } from 'node:util'
import { expect, test } from 'vitest'
import { Secret } from '../../src/redaction/secret.ts'

test('Z17: a secret is readable only by reveal', () => {
  const secret = new Secret('hunter2')
  const template = (value: unknown): string => `-${value as string}`
  const holder = { secret, list: [secret], map: new Map([['key', secret]]) }
  const error = new Error('failed', { cause: secret })
  const texts = [
    template(secret),
    String(secret),
    secret + '',
    JSON.stringify(holder),
    inspect(secret),
    inspect(holder, { depth: 9, showHidden: true }),
    format('%s %o %j %O', secret, secret, secret, secret),
    inspect(error),
    String(error.cause),
    Object.prototype.toString.call(secret),
    Object.entries(secret).join(''),
    inspect(structuredClone(Object.assign({}, secret))),
  ]
  for (const text of texts) expect(text).not.toContain('hunter2')
  expect([template(secret), JSON.stringify(secret), inspect(secret)]).toEqual(['-[secret]', '"[secret]"', '[secret]'])
  expect(secret.reveal()).toBe('hunter2')
})
