import { describe, expect, test } from 'vitest'
import { resolveRedirect, type Hop } from '../../src/platform/redirect.ts'

const hopOf = (more: Partial<Hop> = {}): Hop => ({
  url: new URL('https://api.example.com/a'),
  method: 'GET',
  headers: new Headers({ accept: 'text/csv', 'x-api-key': 'k' }),
  body: null,
  isCrossOrigin: false,
  ...more,
})
const to = (location: string, status = 302): Response => new Response(null, { status, headers: { location } })

describe('the next request after a redirect', () => {
  test('keeps its headers within the origin, and drops the credentials for another origin', () => {
    expect([...resolveRedirect(to('/b'), hopOf())!.headers.keys()]).toEqual(['accept', 'x-api-key'])
    expect([...resolveRedirect(to('https://files.example.com/b'), hopOf())!.headers.keys()]).toEqual(['accept'])
  })

  test('stays restricted to public addresses once it has left the first origin', () => {
    const elsewhere = resolveRedirect(to('https://files.example.com/b'), hopOf())!
    expect(elsewhere.isCrossOrigin).toBe(true)
    expect(resolveRedirect(to('/c'), elsewhere)!.isCrossOrigin).toBe(true)
    expect(resolveRedirect(to('/b'), hopOf())!.isCrossOrigin).toBe(false)
  })

  test('carries no credentials that the location contains', () => {
    for (const location of ['https://user:word@files.example.com/b', 'https://user:word@api.example.com/b']) {
      const { url } = resolveRedirect(to(location), hopOf())!
      expect([url.username, url.password, url.pathname]).toEqual(['', '', '/b'])
    }
  })

  test.each(['file:///etc/passwd', 'ftp://files.example.com/b', 'data:text/plain,x', 'http://['])(
    'is refused for %s',
    (location) => {
      expect(() => resolveRedirect(to(location), hopOf())).toThrow(expect.objectContaining({ code: 'SOURCE_INVALID' }))
    },
  )

  test.each([
    'http://10.0.0.1/',
    'http://169.254.169.254/latest',
    'http://metadata.google.internal/',
    'http://localhost:8080/',
  ])('is refused for %s, which is not public', (location) => {
    expect(() => resolveRedirect(to(location), hopOf())).toThrow(expect.objectContaining({ code: 'SOURCE_INVALID' }))
  })

  test.each([
    ['POST', 307],
    ['POST', 308],
    ['PUT', 301],
  ])('is refused where a %s answered with %i would take its body to another origin', (method, status) => {
    const hop = hopOf({ method, body: 'client_secret=s' })
    expect(() => resolveRedirect(to('https://files.example.com/b', status), hop)).toThrow(
      expect.objectContaining({ code: 'SOURCE_INVALID' }),
    )
    expect(resolveRedirect(to('/b', status), hop)).toMatchObject({ method, body: 'client_secret=s' })
  })

  test.each([
    [301, 'POST', 'GET'],
    [302, 'POST', 'GET'],
    [303, 'PUT', 'GET'],
    [303, 'HEAD', 'HEAD'],
    [301, 'PUT', 'PUT'],
    [307, 'POST', 'POST'],
  ])('%i turns %s into %s', (status, method, next) => {
    expect(resolveRedirect(to('/b', status), hopOf({ method, body: method === 'HEAD' ? null : 'x' }))!.method).toBe(
      next,
    )
  })
})
