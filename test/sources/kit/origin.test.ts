import { describe, expect, test } from 'vitest'
import { Origin, path, encodePathSegment } from '../../../src/sources/kit/origin.ts'

const origin = new Origin('https://api.example.com/v1')

describe('a link given by a source', () => {
  test.each([
    ['https://api.example.com/v1/customers?page=2', 'https://api.example.com/v1/customers?page=2'],
    ['https://API.example.com:443/v1/customers', 'https://api.example.com/v1/customers'],
    ['/v1/customers?cursor=a%2Fb', 'https://api.example.com/v1/customers?cursor=a%2Fb'],
    ['', 'https://api.example.com/v1'],
    ['?page=3', 'https://api.example.com/v1?page=3'],
    ['https://api.example.com/v1/a..b/c#fragment', 'https://api.example.com/v1/a..b/c'],
  ])('NX8: %s stays where the source lives', (link, expected) => {
    expect(origin.resolveLink(link).href).toBe(expected)
  })

  test.each([
    'http://169.254.169.254/',
    'http://169.254.169.254/latest/meta-data',
    '//169.254.169.254/v1/x',
    'https://api.example.com.evil.org/v1/x',
    'https://api.example.com@evil.org/v1/x',
    'https://user:pass@api.example.com/v1/x',
    'http://api.example.com/v1/x',
    'https://api.example.com:8443/v1/x',
    'https://api.example.com/v2/x',
    'https://api.example.com/v10/x',
    'https://api.example.com/v1/../admin',
    'https://api.example.com/v1/%2e%2e/admin',
    'https://api.example.com/v1/x%2f..%2f..%2fadmin',
    'https://api.example.com/v1/..%5cadmin',
    '\\\\evil.org/v1/x',
    '/admin',
    'file:///etc/passwd',
    'javascript:alert(1)',
    'https://[::1]/v1/x',
    'https://127.1/v1/x',
    'http://',
    `https://api.example.com/v1/${'x'.repeat(9_000)}`,
  ])('NX8, Z36: %s does not, and is not followed', (link) => {
    expect(() => origin.resolveLink(link)).toThrow(expect.objectContaining({ code: 'SOURCE_INVALID' }))
  })

  test('is relative to its response', () => {
    expect(origin.resolveLink('?page=2', new URL('https://api.example.com/v1/customers?page=1')).href).toBe(
      'https://api.example.com/v1/customers?page=2',
    )
    expect(origin.resolveLink('next', new URL('https://api.example.com/v1/customers/first')).href).toBe(
      'https://api.example.com/v1/customers/next',
    )
  })

  test('Z16: the error does not quote it', () => {
    expect(() => origin.resolveLink('https://evil.org/?token=canary')).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('canary') }),
    )
  })
})

describe('a path of the connector', () => {
  test('is below the base, with or without a slash', () => {
    expect([
      origin.resolvePath('/customers').href,
      origin.resolvePath('customers').href,
      new Origin('https://x.org/').resolvePath('/a').href,
      new Origin('https://x.org').resolvePath('a').href,
    ]).toEqual([
      'https://api.example.com/v1/customers',
      'https://api.example.com/v1/customers',
      'https://x.org/a',
      'https://x.org/a',
    ])
  })

  test.each([
    '../admin',
    '/../admin',
    'a/../../admin',
    '%2e%2e/admin',
    's3://../x',
    'https://evil.org/v1',
    'a\\..\\..\\b',
  ])('XD26: %s leaves the base and is rejected', (text) => {
    expect(() => origin.resolvePath(text)).toThrow(expect.objectContaining({ code: 'CONNECTOR_FAILED' }))
  })

  test('XD26: a value is exactly one segment', () => {
    expect(path`/customers/${'a/b?c#d'}/orders/${7}`).toBe('/customers/a%2Fb%3Fc%23d/orders/7')
    expect([
      encodePathSegment('a.b'),
      encodePathSegment('...'),
      encodePathSegment('ü'),
      encodePathSegment(12n),
    ]).toEqual(['a.b', '...', '%C3%BC', '12'])
    for (const value of ['', '.', '..', 'a\u0000b', 'a\nb', '\ud800', 'x'.repeat(2_000)])
      expect(() => path`/customers/${value}`).toThrow(expect.objectContaining({ code: 'CONNECTOR_FAILED' }))
  })

  test('a value with slashes is rejected if it leaves the base', () => {
    expect(() => origin.resolvePath(path`/files/${'../../etc/passwd'}`)).toThrow(
      expect.objectContaining({ code: 'CONNECTOR_FAILED' }),
    )
  })
})

test.each(['ftp://x.org', 'x.org', 'https://user@x.org', 'https://:pass@x.org', ''])(
  'the base URL %j is rejected',
  (baseUrl) => {
    expect(() => new Origin(baseUrl)).toThrow(expect.objectContaining({ code: 'CONNECTOR_FAILED' }))
  },
)
