import fc from 'fast-check'
import { expect, test } from 'vitest'
import {
  KnownSecrets,
  maskSecrets,
  registerEnvironmentSecrets,
  registerNamedSecret,
} from '../../src/redaction/known-secrets.ts'

function knowing(...values: readonly string[]): KnownSecrets {
  const known = new KnownSecrets()
  for (const value of values) known.register(value)
  return known
}

test('XF16 a secret is masked as it is and in its encoded forms', () => {
  const secret = 'p"ss/w+rd é\\9%'
  const known = knowing(secret)
  const json = JSON.stringify({ token: secret })
  for (const text of [
    `bad key ${secret}!`,
    `?token=${encodeURIComponent(secret)}&x=1`,
    `?token=${encodeURIComponent(secret).toLowerCase()}`,
    new URLSearchParams({ token: secret }).toString(),
    json,
    JSON.stringify({ body: json }),
    `Basic ${Buffer.from(secret).toString('base64')}`,
    Buffer.from(secret).toString('base64url'),
    ...['u:', 'me:', 'anna:'].map((user) => Buffer.from(`${user}${secret}`).toString('base64')),
  ]) {
    const masked = known.mask(text)
    expect(masked, text).toContain('[secret]')
    for (const word of ['p"ss', 'p%22ss', 'p\\"ss', 'w+rd', 'w%2', Buffer.from(secret).toString('base64').slice(4, 12)])
      expect(masked, text).not.toContain(word)
  }
})

test('a secret that the mask contains does not change what is masked', () => {
  expect(knowing('secret', 'p4ssw0rd').mask('login with p4ssw0rd')).toBe('login with [secret]')
})

test('XF16 with any text before and after a secret in base64: less than four of its bytes remain', () => {
  fc.assert(
    fc.property(
      fc.uint8Array({ minLength: 12, maxLength: 40 }),
      fc.uint8Array({ maxLength: 7 }),
      fc.uint8Array({ maxLength: 7 }),
      fc.boolean(),
      (bytes, before, after, urlSafe) => {
        const secret = Buffer.from(bytes).toString('hex')
        const text = Buffer.concat([before, Buffer.from(secret), after]).toString(urlSafe ? 'base64url' : 'base64')
        const left = Buffer.from(knowing(secret).mask(text).replace('[secret]', ''), 'base64').length
        expect(left).toBeLessThan(before.length + after.length + 4)
      },
    ),
  )
})

test('a text without a secret is left unchanged', () => {
  const known = knowing(['sk', 'live', '4eC39HqLyjWDarjtT1zdp7dc'].join('_'))
  fc.assert(fc.property(fc.string(), (text) => known.mask(text) === text))
})

test('values of five characters or less are not masked: they occur in words by chance', () => {
  expect(knowing('admin', 'a', '').mask('the administrator of a database')).toBe('the administrator of a database')
  expect(knowing('admin1').mask('admin1')).toBe('[secret]')
})

test('a secret that contains another leaves no part of it, in any order of registration', () => {
  for (const order of [
    ['abcdef', 'abcdefghij'],
    ['abcdefghij', 'abcdef'],
  ])
    expect(knowing(...order).mask('abcdefghij abcdef')).toBe('[secret] [secret]')
})

test('only the credentials of a URL are secret, because messages are about the rest', () => {
  const known = knowing(
    'postgres://anna:hunter%2F22@db.example:5432/sales',
    'https://rpc.example/v3/0123456789abcdef0123/eth?api_key=qwertz-1',
    'https://api.example/v1',
  )
  expect(known.mask('db.example: password hunter/22 (hunter%2F22) refused')).toBe(
    'db.example: password [secret] ([secret]) refused',
  )
  expect(known.mask('GET https://rpc.example/v3/0123456789abcdef0123/eth?api_key=qwertz-1')).toBe(
    'GET https://rpc.example/v3/[secret]/eth?api_key=[secret]',
  )
  expect(known.mask('https://api.example/v1 answered 404')).toBe('https://api.example/v1 answered 404')
})

test('the part of a header after the scheme, and each line of a multi-line key, are secret', () => {
  const lines = [
    ['-----BEGIN', 'PRIVATE', 'KEY-----'].join(' '),
    'MIIEvQIBADANBgkqhkiG9w0BAQEFAASC',
    'BKcwggSjAgEAAoIBAQC7VJTUt9Us8cKj',
    '-----END PRIVATE KEY-----',
  ]
  const known = knowing('Bearer abc.def.ghi', lines.join('\n'))
  expect(known.mask('token abc.def.ghi expired')).toBe('token [secret] expired')
  expect(known.mask(`line 2: ${lines[1]!}`)).toBe('line 2: [secret]')
  expect(known.mask(JSON.stringify(lines.join('\n')))).toBe('"[secret]"')
})

test('environment variables are secret by name or by form, but ordinary words are not', () => {
  registerEnvironmentSecrets({
    SHOP_PASSWORD: 'correct-horse',
    THING: '9f86d081884c7d65',
    STORE: 'postgres://u:battery-staple@h/d',
    UNSET: undefined,
    HOME: '/home/anna-of-the-hill',
    LANG: 'de_DE.UTF-8',
    AUTH_USER: 'anna-of-the-hill',
    API_URL: 'https://api.example/v1',
    SHELL: '/bin/bash',
    PWD: '/srv/shop-of-anna',
    OLDPWD: '/srv/old-shop',
  })
  expect(maskSecrets('correct-horse 9f86d081884c7d65 battery-staple')).toBe('[secret] [secret] [secret]')
  const plain =
    '/srv/shop-of-anna /srv/old-shop /home/anna-of-the-hill de_DE.UTF-8 anna-of-the-hill https://api.example/v1 /bin/bash postgres://u h/d'
  expect(maskSecrets(plain)).toBe(plain)
})

test('a value looked up as a secret is one, unless its name says otherwise', () => {
  registerNamedSecret('WHATEVER', 'sunflower')
  registerNamedSecret('KAFKA_USERNAME', 'lighthouse')
  expect(maskSecrets('sunflower lighthouse')).toBe('[secret] lighthouse')
})

test('of a thousand tokens the most recently used are known', () => {
  const known = knowing('the-first-one', 'another-one')
  for (let n = 0; n < 998; n++) known.register(`token-number-${n}-`)
  known.register('the-first-one')
  known.register('one-too-many')
  expect(known.mask('the-first-one another-one one-too-many token-number-0-')).toBe(
    '[secret] another-one [secret] [secret]',
  )
})
