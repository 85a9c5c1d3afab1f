import { expect, test } from 'vitest'
import { maskUrl } from '../../src/redaction/mask-url.ts'

test.each([
  ['postgres://user:secret@host/db', 'postgres://***@host/db'],
  ['postgres://user:se@cr/et@host/db', 'postgres://***@host/db'],
  ['postgres://user:se\ncret@host:port/db', 'postgres://***@host:port/db'],
  ['sqlite:.tidemark/tidemark.db', 'sqlite:.tidemark/tidemark.db'],
])('XF16 the credentials of %j are not shown', (url, shown) => {
  expect(maskUrl(url)).toBe(shown)
})

test.each(['password', 'sslpassword', 'PWD', 'client_secret', 'access_token', 'api_key'])(
  'XF16 a %s in a query is not shown, wherever it is in it',
  (name) => {
    expect(maskUrl(`postgres://host/db?${name}=hunter2&sslmode=require#x`)).toBe(
      `postgres://host/db?${name}=***&sslmode=require#x`,
    )
    expect(maskUrl(`postgres://host/db?sslmode=require&${name}=hunter2`)).toBe(
      `postgres://host/db?sslmode=require&${name}=***`,
    )
  },
)
